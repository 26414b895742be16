//! Cost of a run with its objects in 1, 2, 4, … colors.

use super::subject::Subject;
use nearmiss_analysis::{
    AGREED_BY_THREE, AGREED_BY_TWO, CaseError, Cost, PLACEMENTS, Replays, TracePart, Traced, seeds, spread,
    translation_misses, waits,
};
use nearmiss_record::figures::{Cell, Table};
use nearmiss_record::finding::{FunctionGain, LEAST_GAIN, SavingRange};
use nearmiss_record::policy::Policy;
use nearmiss_record::rehearsal::Rehearsal;
use std::collections::BTreeMap;

/// Name of the parameter, as its option is named.
pub const PARAMETER: &str = "colors";
/// Most colors tried unless more are requested.
pub const MOST_COLORS: u64 = 64;
/// Share of the most that any number of colors saves which is enough.
const ENOUGH: f64 = 0.95;
/// Least gain on the first placement of pages for replays on others.
const COULD_COUNT: f64 = LEAST_GAIN / 2.0;

/// Extent of the trials of numbers of colors.
#[derive(Clone, Copy)]
enum On<'a> {
    /// The whole trace, under these placements.
    Whole(&'a [u64]),
    /// A part of it, under one.
    Part(TracePart, u64),
}

/// Costs by number of colors, each under every placement.
pub struct Colorings {
    /// Numbers of colors, as tried; the first is 1, the run as it was.
    pub colors: Vec<u64>,
    /// Costs by number of colors, then by placement.
    pub costs: Vec<Vec<Cost>>,
    /// Seeds of the placements.
    pub placements: Vec<u64>,
    /// Cycles of the command but for stalls.
    computing_cycles: u64,
    /// The share of the trace, from its begin on, on which numbers of colors were compared; none: on all of it.
    pub compared_on: Option<f64>,
}

/// 1, 2, 4, … up to the most that are tried.
pub fn usual_colors() -> Vec<u64> {
    (0..).map(|n| 1 << n).take_while(|colors| *colors <= MOST_COLORS).collect()
}

impl Colorings {
    /// Replays the run in each number of colors, under each placement. 1 is added where it is missing. The bus
    /// transactions of `ranges` are counted apart.
    pub fn new(
        case: &Traced,
        subject: &Subject,
        colors: &[u64],
        line_bytes: u64,
        placements: Vec<u64>,
        ranges: &[(u64, u64)],
    ) -> Result<Self, CaseError> {
        let mut all: Vec<u64> = colors.to_vec();
        all.push(1);
        all.sort_unstable();
        all.dedup();
        let policies: Vec<Policy> = all.iter().map(|colors| policy(subject, *colors, line_bytes)).collect();
        let costs = Replays::of(case).policies(&policies).placements(&placements).inside(ranges).run()?;
        let totals = &case.model.totals;
        Ok(Colorings {
            colors: all,
            costs,
            placements,
            computing_cycles: totals.cycles - totals.stall_cycles,
            compared_on: None,
        })
    }

    /// Finds the number of colors that is worth it on one placement, and replays it under as many as settle the gain:
    /// on no other where it gains too little to count. Also returns the share of its savings that half as many colors
    /// save, if found. A part of a long trace is enough to compare numbers of colors, where they differ there; the gain
    /// of the chosen number is always of the whole trace.
    pub fn best(
        case: &Traced,
        subject: &Subject,
        least: u64,
        line_bytes: u64,
    ) -> Result<(Self, Option<f64>), CaseError> {
        let seeds = seeds(case.machine(), PLACEMENTS);
        if let Some(part) = case.part()? {
            let on_part = Colorings::screened(case, subject, least, line_bytes, On::Part(part, seeds[0]))?;
            let at = on_part.enough(least.max(2));
            if on_part.gain(at).0 >= COULD_COUNT {
                let half = on_part.share_of_half(case, subject, line_bytes, at, On::Part(part, seeds[0]))?;
                let colors = [on_part.colors[at]];
                let chosen = Colorings::new(case, subject, &colors, line_bytes, seeds[..2].to_vec(), &[])?;
                let chosen = Colorings { compared_on: on_part.compared_on, ..chosen };
                return Ok((chosen.agreed(case, subject, line_bytes, &seeds)?, Some(half)));
            }
        }
        let tried = Colorings::screened(case, subject, least, line_bytes, On::Whole(&seeds[..1]))?;
        let at = tried.enough(least.max(2));
        let (best, half) = (tried.gain(at).0, tried.known_half(at));
        let mut chosen = tried.only(at);
        if best < COULD_COUNT && !case.thorough {
            return Ok((chosen, half));
        }
        let half = match half {
            Some(known) => chosen.replay_under(case, subject, line_bytes, &seeds[1..2]).map(|()| known)?,
            None => chosen.replay_beside_half(case, subject, line_bytes, seeds[1])?,
        };
        Ok((chosen.agreed(case, subject, line_bytes, &seeds)?, Some(half)))
    }

    /// Replays under more placements than the first two, as far as these do not agree.
    fn agreed(mut self, case: &Traced, subject: &Subject, line_bytes: u64, seeds: &[u64]) -> Result<Self, CaseError> {
        for (some, agreed) in [(&seeds[2..3], AGREED_BY_TWO), (&seeds[3..], AGREED_BY_THREE)] {
            let (_, low, high) = self.gain(1);
            if high - low <= agreed {
                break;
            }
            self.replay_under(case, subject, line_bytes, some)?;
        }
        Ok(self)
    }

    /// Returns the share of the `at`-th number's savings that half as many colors save, if they were tried.
    fn known_half(&self, at: usize) -> Option<f64> {
        let before = at.checked_sub(1)?;
        (self.colors[before] * 2 == self.colors[at]).then(|| self.share_of(before, self.gain(at).0))
    }

    /// Returns that share as `known_half` does; tries them if need be.
    fn share_of_half(
        &self,
        case: &Traced,
        subject: &Subject,
        line_bytes: u64,
        at: usize,
        on: On<'_>,
    ) -> Result<f64, CaseError> {
        if let Some(known) = self.known_half(at) {
            return Ok(known);
        }
        let half = Colorings::tried(case, subject, &[self.colors[at] / 2], line_bytes, on)?;
        Ok(half.share_of(half.colors.len() - 1, self.gain(at).0))
    }

    /// Returns the savings of the `at`-th number of colors as a share of the best one's.
    fn share_of(&self, at: usize, best: f64) -> f64 {
        self.gain(at).0 / best.max(f64::MIN_POSITIVE)
    }

    /// Adds the costs under another placement, and returns the share that half as many colors save on the first one.
    /// Replays take a CPU each, and these are two.
    fn replay_beside_half(
        &mut self,
        case: &Traced,
        subject: &Subject,
        line_bytes: u64,
        seed: u64,
    ) -> Result<f64, CaseError> {
        let best = self.gain(1).0;
        let [as_it_was, chosen, half] =
            [1, self.colors[1], self.colors[1] / 2].map(|colors| policy(subject, colors, line_bytes));
        let each = [(&chosen, seed), (&half, self.placements[0]), (&as_it_was, seed)];
        let [after, half, before] = <[Cost; 3]>::try_from(Replays::of(case).each(&each)?)
            .map_err(|_| CaseError::Unfit("a replay ended without a result".to_owned()))?;
        let cycles = (self.computing_cycles + half.stall_cycles) as f64;
        self.placements.push(seed);
        self.costs[0].push(before);
        self.costs[1].push(after);
        Ok((1.0 - cycles / self.cycles(0, 0).max(1.0)) / best.max(f64::MIN_POSITIVE))
    }

    /// Replays these numbers of colors, and 1, on a part of the trace or on all of it.
    fn tried(case: &Traced, subject: &Subject, colors: &[u64], line_bytes: u64, on: On<'_>) -> Result<Self, CaseError> {
        let (part, seed) = match on {
            On::Whole(placements) => {
                return Colorings::new(case, subject, colors, line_bytes, placements.to_vec(), &[]);
            }
            On::Part(part, seed) => (part, seed),
        };
        let all: Vec<u64> = [1].into_iter().chain(colors.iter().copied().filter(|colors| *colors > 1)).collect();
        let policies: Vec<Policy> = all.iter().map(|colors| policy(subject, *colors, line_bytes)).collect();
        let costs = Replays::of(case).policies(&policies).placements(&[seed]).part(part).run()?;
        let totals = &case.model.totals;
        let computing_cycles = ((totals.cycles - totals.stall_cycles) as f64 * part.share) as u64;
        Ok(Colorings { colors: all, costs, placements: vec![seed], computing_cycles, compared_on: Some(part.share) })
    }

    /// The numbers of colors that may be worth it, on one placement. Those between the fewest that can help and the most
    /// are left out where the fewest help as much as the most.
    fn screened(case: &Traced, subject: &Subject, least: u64, line_bytes: u64, on: On<'_>) -> Result<Self, CaseError> {
        let tried = |colors: &[u64]| {
            let may_help = |colors: &u64| (2..=MOST_COLORS.max(least)).contains(colors);
            let colors: Vec<u64> = colors.iter().copied().filter(may_help).collect();
            Colorings::tried(case, subject, &colors, line_bytes, on)
        };
        let mut ends = tried(&[least, least * 8])?;
        let at = ends.enough(least.max(2));
        if ends.colors[at] > least {
            let between = tried(&[least * 2, least * 4])?;
            ends.insert(between);
        }
        Ok(ends)
    }

    /// Adds what was tried of other numbers of colors on the same placements.
    fn insert(&mut self, other: Colorings) {
        let both = std::mem::take(&mut self.colors).into_iter().zip(std::mem::take(&mut self.costs));
        let mut all: BTreeMap<u64, Vec<Cost>> = both.collect();
        all.extend(other.colors.into_iter().zip(other.costs));
        (self.colors, self.costs) = all.into_iter().unzip();
    }

    /// The run as it was, and the `at`-th number of colors.
    fn only(mut self, at: usize) -> Self {
        let chosen = self.costs.swap_remove(at);
        self.costs.truncate(1);
        self.costs.push(chosen);
        self.colors = vec![1, self.colors[at]];
        self
    }

    /// Adds the costs under more placements.
    fn replay_under(
        &mut self,
        case: &Traced,
        subject: &Subject,
        line_bytes: u64,
        placements: &[u64],
    ) -> Result<(), CaseError> {
        let more = Colorings::new(case, subject, &self.colors, line_bytes, placements.to_vec(), &[])?;
        self.placements.extend(more.placements);
        for (costs, more) in self.costs.iter_mut().zip(more.costs) {
            costs.extend(more);
        }
        Ok(())
    }

    /// The command's cycles in the `at`-th number of colors under a placement.
    fn cycles(&self, at: usize, placement: usize) -> f64 {
        (self.computing_cycles + self.costs[at][placement].stall_cycles) as f64
    }

    /// The command's cycles without colors: median over the placements.
    pub fn cycles_before(&self) -> u64 {
        spread((0..self.placements.len()).map(|p| self.cycles(0, p))).0 as u64
    }

    /// Share of the cycles that the `at`-th number of colors saves: median, least, most over the placements.
    pub fn gain(&self, at: usize) -> (f64, f64, f64) {
        spread((0..self.placements.len()).map(|p| 1.0 - self.cycles(at, p) / self.cycles(0, p).max(1.0)))
    }

    /// Ends of what the `at`-th number of colors saves of the whole run, where parts of it were recorded.
    pub fn of_whole_run(&self, at: usize) -> Option<SavingRange> {
        let [before, after] = [0, at].map(|at| self.costs[at].first());
        before?.saved_of_whole_run(after?, self.computing_cycles)
    }

    /// Returns the gain, but kernel savings count only as far as the command's own code saves as much: no line that the
    /// kernel clears or copies by its own addresses moves with the objects, so its cycles change by the way.
    pub fn own_gain(&self, case: &Traced, at: usize) -> (f64, f64, f64) {
        let kernel = |insn: usize| case.symbols.insns.get(insn).is_some_and(|names| is_kernel(case, names.0));
        let own = |at: usize, placement: usize| {
            let stalls = self.costs[at][placement].by_insn.iter().enumerate();
            stalls.filter(|(insn, _)| !kernel(*insn)).map(|(_, cycles)| *cycles).sum::<u64>() as f64
        };
        spread((0..self.placements.len()).map(|p| {
            let before = self.cycles(0, p);
            let saved = (before - self.cycles(at, p)).min(2.0 * (own(0, p) - own(at, p)).max(0.0));
            saved / before.max(1.0)
        }))
    }

    /// The fewest colors, not fewer than `least`, that save nearly as much as any number does.
    pub fn enough(&self, least: u64) -> usize {
        let best = (0..self.colors.len()).map(|at| self.gain(at).0).fold(0.0, f64::max);
        let good = |at: &usize| self.colors[*at] >= least && self.gain(*at).0 >= ENOUGH * best;
        (0..self.colors.len()).find(good).unwrap_or(self.colors.len() - 1)
    }

    /// The command's own function that gains most in the `at`-th number of colors.
    pub fn function(&self, case: &Traced, at: usize) -> Result<Option<FunctionGain>, CaseError> {
        let sums = |cycles: &[u64]| {
            let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
            for (insn, cycles) in cycles.iter().enumerate().filter(|(_, cycles)| **cycles > 0) {
                let function = case.symbols.insns.get(insn).map_or(0, |names| names.0);
                *sums.entry(function).or_default() += cycles;
            }
            sums
        };
        let stalls: Vec<[BTreeMap<u32, u64>; 2]> = (0..self.placements.len())
            .map(|p| [sums(&self.costs[0][p].by_insn), sums(&self.costs[at][p].by_insn)])
            .collect();
        let Some([before, after]) = stalls.first() else { return Ok(None) };
        let saved = |f: &u32| before[f].saturating_sub(after.get(f).copied().unwrap_or(0));
        let Some(function) =
            before.keys().copied().filter(|f| *f != 0 && !is_kernel(case, *f)).max_by_key(|f| saved(f))
        else {
            return Ok(None);
        };
        let Some(about) = case.symbols.functions.get(function as usize) else { return Ok(None) };
        let row = case.model.functions.iter().find(|row| row.name == about.name && row.kernel == about.kernel);
        let Some(row) = row else { return Ok(None) };
        let computing = (row.tally.cycles - row.tally.stall_cycles) as f64;
        let translating = match case.machine().tlb {
            // A core that is modelled has waited for its pages already.
            Some(tlb) if case.machine().core.is_none() => {
                let misses = sums(&translation_misses(case, tlb)?);
                (misses.get(&function).copied().unwrap_or(0) * u64::from(tlb.miss_cycles)) as f64
            }
            _ => 0.0,
        };
        let shown = case.machine().shown_share().max(0.01);
        let cycles = |stalls: &BTreeMap<u32, u64>, shown_of: f64| {
            computing + translating * shown_of + stalls.get(&function).copied().unwrap_or(0) as f64 / shown * shown_of
        };
        let gain = |shown_of: f64| {
            spread(stalls.iter().map(|[a, b]| 1.0 - cycles(b, shown_of) / cycles(a, shown_of).max(1.0))).0
        };
        Ok(Some(FunctionGain {
            name: about.name.clone(),
            gain: gain(shown),
            cycles_before: cycles(before, shown) as u64,
            cycles_after: cycles(after, shown) as u64,
            dependent_gain: gain(1.0),
        }))
    }

    /// The table.
    pub fn table(&self, case: &Traced, subject: &Subject, name: String, line_bytes: u64) -> Rehearsal {
        let levels = case.model.totals.levels.len();
        let misses = (1..=levels).map(|level| format!("L{level} misses"));
        let others = ["bus, objects", "bus, others", "cycles", "least", "most", "gain", "memory"].map(str::to_owned);
        let columns = [PARAMETER.to_owned()].into_iter().chain(misses).chain(others).collect();
        let rows = (0..self.colors.len()).map(|at| self.row(at, levels, subject, line_bytes)).collect();
        Rehearsal {
            remedy: super::NAME.to_owned(),
            subject: name,
            basis: format!(
                "medians over {} page placements, {}; {}",
                self.placements.len(),
                waits(case),
                exactness(case)
            ),
            placements: self.placements.clone(),
            table: Table { title: "rehearsal".to_owned(), columns, rows },
            more: Vec::new(),
        }
    }

    fn row(&self, at: usize, levels: usize, subject: &Subject, line_bytes: u64) -> Vec<Cell> {
        let median = |figures: &dyn Fn(&Cost) -> u64| {
            spread(self.costs[at].iter().map(|cost| figures(cost) as f64)).0.round() as u64
        };
        let cycles = |at: usize| spread((0..self.placements.len()).map(|p| self.cycles(at, p)));
        let (middle, low, high) = cycles(at);
        let colors = self.colors[at];
        let mut cells = vec![Cell::Count(colors)];
        cells.extend((0..levels).map(|l| Cell::Count(median(&|cost| cost.misses.get(l).copied().unwrap_or(0)))));
        cells.push(Cell::Count(median(&|cost| cost.transactions_inside)));
        cells.push(Cell::Count(median(&|cost| cost.transactions_outside)));
        cells.extend([middle, low, high].map(|cycles| Cell::Cycles(cycles as u64)));
        let first = (cycles(0).0 as u64).max(1);
        cells.push(Cell::Share(1.0 - (middle as u64) as f64 / first as f64));
        cells.push(Cell::Bytes(subject.memory_bytes(colors, line_bytes)));
        cells
    }
}

/// The run in so many colors; 1: as it was.
fn policy(subject: &Subject, colors: u64, line_bytes: u64) -> Policy {
    Policy { address: subject.policy(colors, line_bytes), ..Policy::default() }
}

fn is_kernel(case: &Traced, function: u32) -> bool {
    case.symbols.functions.get(function as usize).is_some_and(|function| function.kernel)
}

/// Returns how exact the figures are with the filter that made the trace, and what would make them so.
pub fn exactness(case: &Traced) -> String {
    let advice = match nearmiss_machine::describe::can_move_addresses(case.filter) {
        Ok(()) => "",
        Err(_) => "; record with --one-line-filter for exact figures",
    };
    format!("{}{advice}", crate::exactness::exactness(case))
}
