//! A cache as a table of sets, with its whole past kept by line number.

use crate::hashing;
use crate::model::cache::neighbours::rates;
use crate::model::cache::replacement::{next_random, random_start};
use crate::model::fast::plan::Config;
use nearmiss_record::machine::{Inclusion, Replacement};
use nearmiss_record::model::{ByClass, LevelTally, MissClass};
use std::collections::{BTreeMap, BTreeSet};

/// A line in a cache.
#[derive(Clone, Debug)]
pub(super) struct Resident {
    /// Number of the line: address / line size.
    pub line: u64,
    /// Index of the fill that brought the line.
    pub fill: usize,
    pub dirty: bool,
    used_at: u64,
    /// Time of that use.
    used_cycles: u64,
    /// The recorded part in which it was used last.
    part: u64,
    prediction: u8,
}

/// One fill: who caused it, and whether its line was reused while it stayed.
#[derive(Clone, Debug)]
pub(super) struct Fill {
    pub insn: u32,
    reused: bool,
}

/// Reason why a line that a cache saw is gone.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Went {
    /// Without anyone to blame.
    Away,
    /// Displaced by this fill.
    Displaced(usize),
    /// Another wrote it: these bytes, by address.
    Taken(BTreeSet<u64>),
    /// An inclusive outer cache gave it up.
    Victim,
    /// To a nearer cache.
    HandedOn,
}

pub(super) struct Table {
    pub config: Config,
    pub sets: Vec<Vec<Option<Resident>>>,
    /// Line last referenced in each set.
    latest: Vec<Option<u64>>,
    /// Trees by set, a bit a node of the tree: true points to the upper half.
    trees: Vec<Vec<bool>>,
    random: u64,
    time: u64,
    /// By set: from one line that others bring in to the next.
    periods_cycles: Vec<u64>,
    /// Latest time of any CPU.
    now_cycles: u64,
    /// The recorded part under way.
    pub part: u64,
    /// Lines, newest first.
    pub shadow: Vec<u64>,
    /// Every line seen that is not held.
    pub gone: BTreeMap<u64, Went>,
    pub fills: Vec<Fill>,
    /// Misses on a displaced line: the fill that displaced it, the instruction that missed.
    accusations: Vec<(usize, u32)>,
    pub accesses: u64,
    pub hits: u64,
    pub dirty_evictions: u64,
    pub line_misses: ByClass,
    pub references: LevelTally,
    pub set_misses: Vec<u64>,
    pub set_conflicts: Vec<u64>,
    pub set_lines: Vec<u64>,
}

impl Table {
    pub fn new(config: &Config, number: u32) -> Self {
        let sets = config.sets as usize;
        let rates = rates::<256>();
        let rate = |set: usize| rates[hashing::place(set as u64, rates.len().ilog2())];
        Table {
            sets: vec![vec![None; config.ways]; sets],
            latest: vec![None; sets],
            trees: vec![vec![false; config.ways]; sets],
            random: random_start(config.seed, number),
            time: 0,
            periods_cycles: (0..sets)
                .map(|set| (config.others_period_cycles as f64 / rate(set)).max(1.0) as u64)
                .collect(),
            now_cycles: 0,
            part: 0,
            shadow: Vec::new(),
            gone: BTreeMap::new(),
            fills: Vec::new(),
            accusations: Vec::new(),
            accesses: 0,
            hits: 0,
            dirty_evictions: 0,
            line_misses: [0; 6],
            references: LevelTally::default(),
            set_misses: vec![0; sets],
            set_conflicts: vec![0; sets],
            set_lines: vec![0; sets],
            config: config.clone(),
        }
    }

    pub fn line_bytes(&self) -> u64 {
        1 << self.config.line_log2
    }

    pub fn exclusive(&self) -> bool {
        self.config.inclusion == Inclusion::Exclusive
    }

    /// Returns the place of a line, wherever its index put it.
    fn place(&self, line: u64) -> Option<(usize, usize)> {
        self.sets.iter().enumerate().find_map(|(set, ways)| {
            ways.iter().position(|r| r.as_ref().is_some_and(|r| r.line == line)).map(|way| (set, way))
        })
    }

    pub fn resident(&mut self, line: u64) -> Option<&mut Resident> {
        let (set, way) = self.place(line)?;
        self.sets[set][way].as_mut()
    }

    pub fn is_dirty(&self, line: u64) -> bool {
        self.place(line).is_some_and(|(set, way)| self.sets[set][way].as_ref().is_some_and(|r| r.dirty))
    }

    pub fn holds(&self, line: u64) -> bool {
        self.place(line).is_some()
    }

    fn used(&mut self, set: usize, way: usize, filled: bool) {
        self.time += 1;
        if let Some(resident) = &mut self.sets[set][way] {
            resident.used_at = self.time;
            resident.used_cycles = self.now_cycles;
            resident.part = self.part;
            resident.prediction = if filled { 2 } else { 0 };
        }
        let (mut node, mut low, mut high) = (1, 0, self.config.ways);
        while self.config.replacement == Replacement::TreePlru && high - low > 1 {
            let middle = (low + high) / 2;
            let upper = way >= middle;
            self.trees[set][node] = !upper;
            (low, high) = if upper { (middle, high) } else { (low, middle) };
            node = node * 2 + usize::from(upper);
        }
    }

    fn victim(&mut self, set: usize) -> usize {
        let ways = self.config.ways;
        if let Some(empty) = self.sets[set].iter().position(Option::is_none) {
            return empty;
        }
        match self.config.replacement {
            Replacement::Lru => {
                (0..ways).min_by_key(|&way| self.sets[set][way].as_ref().map(|r| r.used_at)).unwrap_or(0)
            }
            Replacement::TreePlru => {
                let (mut node, mut low, mut high) = (1, 0, ways);
                while high - low > 1 {
                    let middle = (low + high) / 2;
                    let upper = self.trees[set][node];
                    (low, high) = if upper { (middle, high) } else { (low, middle) };
                    node = node * 2 + usize::from(upper);
                }
                low
            }
            Replacement::Random => next_random(&mut self.random) as usize % ways,
            Replacement::Srrip => loop {
                let far = |r: &Option<Resident>| r.as_ref().is_some_and(|r| r.prediction == 3);
                if let Some(way) = self.sets[set].iter().position(far) {
                    break way;
                }
                self.sets[set].iter_mut().flatten().for_each(|r| r.prediction += 1);
            },
        }
    }

    fn request_shadow(&mut self, line: u64) -> bool {
        let at = self.shadow.iter().position(|&l| l == line);
        if let Some(at) = at {
            self.shadow.remove(at);
        }
        if !self.exclusive() {
            self.shadow.insert(0, line);
            self.shadow.truncate(self.config.sets as usize * self.config.ways);
        }
        at.is_some()
    }

    /// Requests a line; `wanted` are the addresses of its bytes. `Err` is the class of the miss.
    pub fn look_up(&mut self, set: usize, line: u64, wanted: &BTreeSet<u64>) -> Result<(), MissClass> {
        self.accesses += 1;
        let shadowed = self.request_shadow(line);
        if let Some(way) = self.sets[set].iter().position(|r| r.as_ref().is_some_and(|r| r.line == line)) {
            self.hits += 1;
            if let Some(resident) = self.sets[set][way].as_ref().filter(|_| self.latest[set] != Some(line)) {
                self.fills[resident.fill].reused = true;
            }
            self.latest[set] = Some(line);
            self.used(set, way, false);
            return Ok(());
        }
        let class = match self.gone.get(&line) {
            None if !self.holds(line) => MissClass::Compulsory,
            Some(Went::Taken(written)) if !written.is_disjoint(wanted) => MissClass::TrueSharing,
            Some(Went::Taken(_)) => MissClass::FalseSharing,
            Some(Went::Victim) => MissClass::InclusionVictim,
            _ if shadowed => MissClass::Conflict,
            _ => MissClass::Capacity,
        };
        self.line_misses[class as usize] += 1;
        Err(class)
    }

    /// A reference, not merely a line of it, missed.
    pub fn count_miss(&mut self, set: usize, line: u64, class: MissClass, insn: u32) {
        self.set_misses[set] += 1;
        self.set_conflicts[set] += u64::from(class == MissClass::Conflict);
        if let Some(Went::Displaced(by)) = self.gone.get(&line) {
            self.accusations.push((*by, insn));
        }
    }

    /// Removes a line, for the reason given. Returns it.
    pub fn remove(&mut self, line: u64, went: Went) -> Option<Resident> {
        let (set, way) = self.place(line)?;
        self.gone.insert(line, went);
        self.sets[set][way].take()
    }

    /// Removes a line that others have pushed out of its set by now: it, what was used later and what they brought in
    /// since are more than the set has ways for.
    pub fn pushed_out(&mut self, set: usize, now_cycles: u64) -> Option<Resident> {
        if self.config.others_period_cycles == 0 {
            return None;
        }
        self.now_cycles = self.now_cycles.max(now_cycles);
        let residents: Vec<&Resident> = self.sets[set].iter().flatten().collect();
        let oldest = residents.iter().min_by_key(|resident| resident.used_at)?;
        let before_it = residents.len() as u64 - 1 + (self.now_cycles - oldest.used_cycles) / self.periods_cycles[set];
        if before_it < self.config.ways as u64 {
            return None;
        }
        self.give_up(oldest.line)
    }

    /// Removes a line that was not used since the latest pause, and that others pushed out of a cache of theirs then.
    pub fn pushed_out_in_pause(&mut self, line: u64) -> Option<Resident> {
        let (part, has_others) = (self.part, self.config.others_period_cycles > 0);
        let is_older = self.resident(line).is_some_and(|resident| resident.part < part);
        if has_others && is_older { self.give_up(line) } else { None }
    }

    fn give_up(&mut self, line: u64) -> Option<Resident> {
        self.shadow.retain(|&l| l != line);
        let gone = self.remove(line, Went::Away)?;
        self.dirty_evictions += u64::from(gone.dirty);
        Some(gone)
    }

    /// Brings a line in; returns the one it displaced.
    pub fn fill(&mut self, set: usize, line: u64, insn: u32, dirty: bool) -> Option<Resident> {
        let way = self.victim(set);
        let fill = self.fills.len();
        self.fills.push(Fill { insn, reused: false });
        let displaced = self.sets[set][way].take();
        if let Some(displaced) = &displaced {
            self.gone.insert(displaced.line, Went::Displaced(fill));
            self.dirty_evictions += u64::from(displaced.dirty);
        }
        self.gone.remove(&line);
        self.sets[set][way] = Some(Resident { line, fill, dirty, used_at: 0, used_cycles: 0, part: 0, prediction: 0 });
        self.latest[set] = Some(line);
        self.used(set, way, true);
        displaced
    }

    /// The shadow's side of taking in a victim.
    pub fn shadow_insert(&mut self, line: u64) {
        self.shadow.retain(|&l| l != line);
        self.shadow.insert(0, line);
        self.shadow.truncate(self.config.sets as usize * self.config.ways);
    }

    /// Pollution blame: misses by polluter and victim.
    pub fn pollution(&self) -> BTreeMap<(u32, u32), u64> {
        let mut pairs = BTreeMap::new();
        for &(by, victim) in &self.accusations {
            if !self.fills[by].reused {
                *pairs.entry((self.fills[by].insn, victim)).or_insert(0) += 1;
            }
        }
        pairs
    }
}
