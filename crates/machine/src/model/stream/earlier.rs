//! Lines that a recording shows for the first time behind a pause: the program may have used them before.
//!
//! Nobody saw which caches still had such a line. The first level had none: it is filled anew within moments. Another
//! cache had what was used within its *characteristic time*, in which the lines of the program, and of others that share
//! the cache, fill it (Che, Tung and Wang, "Hierarchical web caching systems", IEEE JSAC 20(7), 2002). How often the
//! program comes to a line is estimated from the parts so far. Lines that one part showed, and those that two did, show
//! how many there are that none did, and how seldom they are used (Chao, Biometrics 43:783, 1987). Lines of two parts and
//! more are used as often as they were seen.
//!
//! Instructions differ: the kernel clears a page that it gives out and comes to no line twice, while a loop comes back to
//! its table. So each instruction that is first at enough lines has an estimate of its own, and the others have one in
//! common.
//!
//! An estimate needs two parts. In the first one that shows an instruction, its lines are taken to be in the outermost
//! cache: a table would be read from memory else, which can outweigh all other parts, while a stream that seems near
//! hides no more than that part's waits. In the second one, the lines of the first show how often it comes back.

use crate::hashing;
use crate::model::cache::neighbours::rates;
use crate::model::quick_map::QuickMap;
use nearmiss_record::machine::Machine;
use nearmiss_record::model::MAX_LEVELS;
use rustc_hash::FxHashSet;

/// One line of so many is counted.
const SAMPLE_LOG2: u32 = 4;
/// An instruction with so many first uses of counted lines has an estimate of its own.
const ENOUGH: u64 = 24;
/// Lines that are taken for seen again where none was.
const NONE_AGAIN: f64 = 0.5;
/// All parts, in the unit of shares.
const SHARES: u64 = 1 << 16;
/// A line that each part shows may be used at any time.
const NEARLY_ALL: f64 = 1.0 - 1e-6;
/// Rates at which others bring lines into sets.
const RATES: usize = 8;
/// Halvings of a characteristic time until it is known well enough, and the longest such time.
const HALVINGS: u32 = 60;
const LONGEST_CYCLES: f64 = 1e15;

/// By level: a line with a hash below was in the cache.
type Below = [u64; MAX_LEVELS];

/// By level: the characteristic times of sets, in cycles, by the rate at which others bring lines in.
type Times = [[f64; RATES]; MAX_LEVELS];

/// Chances of lines that an instruction is the first to use in a part.
#[derive(Clone, Copy)]
struct Chances {
    /// Chances of lines that no part showed before.
    new: Below,
    /// Chances of lines that an earlier part showed.
    again: Below,
}

/// Which of the lines that come up behind a pause were in a cache.
pub(in crate::model) struct Earlier {
    line_log2: u32,
    /// Lines that a cache of each level holds; none of the first.
    capacity_lines: [f64; MAX_LEVELS],
    /// Lines that others bring into it in a cycle.
    others_a_cycle: [f64; MAX_LEVELS],
    /// The recording began late or paused.
    is_late: bool,
    part: u32,
    lines: QuickMap<u64, Seen>,
    first_uses: QuickMap<u32, FirstUses>,
    /// Lines that stores wrote past the caches since the pause: none has them.
    around: FxHashSet<u64>,
    chances: QuickMap<u32, Chances>,
    /// Chances of lines that another instruction is the first to use.
    of_others: Chances,
    /// Instructions that fewer than two earlier parts showed.
    fresh: QuickMap<u32, Fresh>,
    /// Cycles of a part, on average.
    part_cycles: f64,
    times: Times,
    /// All lines are in the outermost cache, and in no other.
    outermost: Below,
}

/// An instruction in the first two parts that show it first at a line.
#[derive(Clone, Copy, Default)]
struct Fresh {
    /// The first of them.
    first: u32,
    /// The part that was counted.
    part: u32,
    /// Counted lines of that part that no earlier one showed, and others.
    new: u64,
    again: u64,
    /// Chances by these, once there are enough.
    chances: Option<Chances>,
}

/// A counted line.
#[derive(Clone, Copy)]
struct Seen {
    /// The first part that showed it, the latest one, and their number.
    first: u32,
    part: u32,
    parts: u32,
    /// The instruction that was the first to use it.
    insn: u32,
}

/// Counted lines that an instruction was the first to use, of all or in a part.
#[derive(Clone, Copy, Default)]
struct FirstUses {
    /// Lines that one part showed, that two did, and that more did.
    once: u64,
    twice: u64,
    more: u64,
    /// Parts that showed lines of two parts and more, summed over the lines.
    again: u64,
    /// The first part of each of these lines, summed.
    firsts: u64,
    /// Lines of earlier parts that it was the first to use in a part, summed over the parts.
    known: u64,
    /// Share of the parts between its first one and that part that showed such a line, in [`SHARES`], summed.
    shares: u64,
}

/// Lines to which the program comes at random.
struct Population {
    lines: f64,
    /// Uses of each line.
    uses_a_cycle: f64,
}

impl Earlier {
    /// For the caches of a machine. `starts_late`: the program ran before the recording.
    pub fn new(machine: &Machine, starts_late: bool) -> Self {
        let outermost = machine.caches.iter().max_by_key(|cache| cache.level);
        let line = outermost.map_or(64, |cache| cache.line.0.max(1));
        let lines = |level: usize| machine.data_cache(level + 1).map_or(0.0, |cache| (cache.size.0 / line) as f64);
        let others =
            |level: usize| machine.data_cache(level + 1).map_or(0.0, |cache| f64::from(cache.others_lines) / 1e6);
        let outermost = outermost.map_or(0, |cache| usize::from(cache.level).clamp(1, MAX_LEVELS) - 1);
        // While nothing is known: a program that starts finds nothing, and a later one all in the outermost cache.
        let outermost = std::array::from_fn(|level| if level == outermost { u64::MAX } else { 0 });
        let at_first = if starts_late { outermost } else { Below::default() };
        Earlier {
            line_log2: line.ilog2(),
            capacity_lines: std::array::from_fn(|level| if level == 0 { 0.0 } else { lines(level) }),
            others_a_cycle: std::array::from_fn(others),
            is_late: starts_late,
            part: 1,
            lines: QuickMap::default(),
            first_uses: QuickMap::default(),
            around: FxHashSet::default(),
            chances: QuickMap::default(),
            of_others: Chances { new: at_first, again: at_first },
            fresh: QuickMap::default(),
            part_cycles: 1.0,
            times: [[0.0; RATES]; MAX_LEVELS],
            outermost,
        }
    }

    /// A part begins behind a pause, when so many cycles were recorded.
    pub fn pause(&mut self, recorded_cycles: u64) {
        self.is_late = true;
        self.part += 1;
        self.around.clear();
        if !self.lines.is_empty() {
            self.estimate(recorded_cycles.max(1) as f64);
        }
    }

    /// A store writes the line of `address` past the caches.
    pub fn goes_around(&mut self, address: u64) {
        if self.is_late {
            self.around.insert(address >> self.line_log2);
        }
    }

    /// Counts a reference of an instruction to `address`, as recorded.
    #[inline(always)]
    pub fn note(&mut self, address: u64, insn: u32) {
        let line = address >> self.line_log2;
        if hashing::mixed(line) >> (64 - SAMPLE_LOG2) == 0 {
            self.count(line, insn);
        }
    }

    /// The levels, a bit each, of the caches that had the line of `address` when an instruction is the first to use it:
    /// a line that no part showed before, and one that an earlier part did.
    #[inline]
    pub fn was_there(&self, address: u64, insn: u32) -> (u8, u8) {
        if !self.is_late {
            return (0, 0);
        }
        let line = address >> self.line_log2;
        if self.around.contains(&line) {
            return (0, 0);
        }
        // Other bits than those of the sample.
        let hash = hashing::mixed(line) << SAMPLE_LOG2;
        let of_level = |levels: u8, (level, below): (usize, &u64)| levels | u8::from(hash < *below) << level;
        let levels = |below: &Below| below.iter().enumerate().fold(0, of_level);
        let chances = self.chances.get(&insn).or_else(|| self.fresh.get(&insn)?.chances.as_ref());
        let chances = chances.unwrap_or(&self.of_others);
        (levels(&chances.new), levels(&chances.again))
    }

    #[inline(never)]
    fn count(&mut self, line: u64, insn: u32) {
        let seen = self.lines.entry(line).or_insert(Seen { first: self.part, part: 0, parts: 0, insn });
        if seen.part != self.part {
            let is_new = seen.parts == 0;
            // Parts between its first one and this one, which are sure to show it.
            let between = u64::from(self.part - seen.first).saturating_sub(1);
            if let Some(share) = (SHARES * u64::from(seen.parts.saturating_sub(1))).checked_div(between) {
                let uses = self.first_uses.entry(insn).or_default();
                (uses.known, uses.shares) = (uses.known + 1, uses.shares + share);
            }
            (seen.part, seen.parts) = (self.part, seen.parts + 1);
            self.first_uses.entry(seen.insn).or_default().count(seen);
            if self.is_late && !self.chances.contains_key(&insn) {
                self.count_fresh(insn, is_new);
            }
        }
    }

    /// Counts a line of an instruction without an estimate of its own.
    fn count_fresh(&mut self, insn: u32, is_new: bool) {
        let fresh = self.fresh.entry(insn).or_insert(Fresh { first: self.part, ..Fresh::default() });
        if fresh.part != self.part {
            *fresh = Fresh { part: self.part, new: 0, again: 0, ..*fresh };
        }
        (fresh.new, fresh.again) = (fresh.new + u64::from(is_new), fresh.again + u64::from(!is_new));
        if fresh.new + fresh.again < ENOUGH {
            return;
        }
        let below = if fresh.first == self.part {
            self.outermost
        } else {
            let share = fresh.again as f64 / (fresh.new + fresh.again) as f64;
            below(&Population { lines: 0.0, uses_a_cycle: uses_a_cycle(share, self.part_cycles) }, &self.times)
        };
        fresh.chances = Some(Chances { new: below, again: below });
    }

    /// Estimates the chances of lines of the part which begins.
    fn estimate(&mut self, recorded_cycles: f64) {
        let part_cycles = recorded_cycles / f64::from(self.part - 1);
        let mut common = FirstUses::default();
        let mut own = Vec::new();
        for (insn, uses) in &self.first_uses {
            let is_fresh = self.fresh.get(insn).is_some_and(|fresh| fresh.first + 2 > self.part);
            match uses.lines() + uses.known >= ENOUGH && self.part > 2 && !is_fresh {
                true => own.push((*insn, Estimate::of(uses, self.part - 1, part_cycles))),
                false => common.add(uses),
            }
        }
        // Sums of rounded numbers depend on their order.
        own.sort_unstable_by_key(|(insn, _)| *insn);
        let common = Estimate::of(&common, self.part - 1, part_cycles);
        let all: Vec<&Population> =
            own.iter().map(|(_, of)| of).chain([&common]).flat_map(|of| [&of.seldom, &of.often]).collect();
        let caches = self.capacity_lines.iter().zip(&self.others_a_cycle);
        self.part_cycles = part_cycles;
        for (times, (lines, others)) in self.times.iter_mut().zip(caches) {
            let of_rate = |rate: f64| characteristic_cycles(&all, *lines, others * rate);
            *times = if *others > 0.0 { rates().map(of_rate) } else { [of_rate(1.0); RATES] };
        }
        let chances =
            |of: &Estimate| Chances { new: below(&of.seldom, &self.times), again: below(&of.known, &self.times) };
        self.chances = own.iter().map(|(insn, of)| (*insn, chances(of))).collect();
        self.of_others = chances(&common);
    }
}

impl FirstUses {
    /// Another part showed a line.
    fn count(&mut self, seen: &Seen) {
        match seen.parts {
            1 => self.once += 1,
            2 => {
                (self.once, self.twice, self.again) = (self.once - 1, self.twice + 1, self.again + 2);
                self.firsts += u64::from(seen.first);
            }
            3 => (self.twice, self.more, self.again) = (self.twice - 1, self.more + 1, self.again + 1),
            _ => self.again += 1,
        }
    }

    fn add(&mut self, other: &Self) {
        self.once += other.once;
        self.twice += other.twice;
        self.more += other.more;
        self.again += other.again;
        self.firsts += other.firsts;
        self.known += other.known;
        self.shares += other.shares;
    }

    fn lines(&self) -> u64 {
        self.once + self.twice + self.more
    }
}

/// Lines of which few parts or none showed one, lines of which several did, and those of other parts that come up again.
struct Estimate {
    seldom: Population,
    often: Population,
    known: Population,
}

impl Estimate {
    /// Estimates from the uses in so many parts of this length.
    fn of(uses: &FirstUses, parts: u32, part_cycles: f64) -> Self {
        let (once, twice) = (uses.once as f64, uses.twice as f64);
        let counted = f64::from(1u32 << SAMPLE_LOG2);
        let unseen = once * (once - 1.0).max(0.0) / (2.0 * (twice + 1.0));
        let seldom = Population {
            lines: (once + unseen) * counted,
            uses_a_cycle: 2.0 * (twice + NONE_AGAIN) / once.max(1.0) / part_cycles / f64::from(parts),
        };
        let several = (uses.twice + uses.more) as f64;
        // Parts behind a line's first one, summed.
        let behind = several * f64::from(parts) - uses.firsts as f64;
        let share = if several > 0.0 { (uses.again as f64 - several) / behind } else { 1.0 };
        let often = Population { lines: several * counted, uses_a_cycle: uses_a_cycle(share, part_cycles) };
        let share = uses.shares.checked_div(uses.known).map_or(1.0, |share| share as f64 / SHARES as f64);
        let known = Population { lines: 0.0, uses_a_cycle: uses_a_cycle(share, part_cycles) };
        Estimate { seldom, often, known }
    }
}

impl Population {
    /// Share of the lines that are used within a time.
    fn share_within(&self, cycles: f64) -> f64 {
        1.0 - (-self.uses_a_cycle * cycles).exp()
    }
}

/// By level: the bound of the lines' hashes that are used within its characteristic times.
fn below(of: &Population, times: &Times) -> Below {
    times.map(|times| {
        let share = times.iter().map(|time| of.share_within(*time)).sum::<f64>() / RATES as f64;
        (share * u64::MAX as f64) as u64
    })
}

/// Uses of a line in a cycle, if this share of the parts shows it.
fn uses_a_cycle(share: f64, part_cycles: f64) -> f64 {
    -(1.0 - share.min(NEARLY_ALL)).ln() / part_cycles
}

/// Time in which lines of these populations, and so many of others in a cycle, fill a cache.
fn characteristic_cycles(populations: &[&Population], capacity_lines: f64, others_a_cycle: f64) -> f64 {
    let filled = |cycles: f64| {
        let own: f64 = populations.iter().map(|population| population.lines * population.share_within(cycles)).sum();
        own + others_a_cycle * cycles
    };
    let (mut least, mut most) = (0.0, LONGEST_CYCLES);
    for _ in 0..HALVINGS {
        let middle = (least + most) / 2.0;
        if filled(middle) <= capacity_lines { least = middle } else { most = middle }
    }
    least
}

#[cfg(test)]
#[path = "earlier_tests.rs"]
mod tests;
