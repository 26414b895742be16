//! Objects that crowd on few sets: misses that would be hits if the lines were spread over all sets of the same cache.
//!
//! A conflict miss alone shows little: lines that lie at random have such misses too, and no other place helps them. So
//! each cache has a twin in which lines are spread ([`Spread`]). A miss that hits in the twin is *crowded*; hits that
//! miss in the twin are subtracted. Lines at random have as many of one as of the other. Lines at the same offset of
//! aligned pieces have crowded misses alone, however many sets they pass over and whoever runs between.

use super::objects::ObjectId;
use super::spacing::Bursts;
use super::spread::{Mark, Spread, turn_of};
use super::tracker::{Tracker, USER_END};
use crate::model::fast::plan::{Config, number_of};
use crate::observer::{Effective, Outcome};
use nearmiss_record::machine::{Cache, Machine};
use nearmiss_record::model::{MAX_LEVELS, MissClass};
use nearmiss_record::reference::{Kind, Record};
use rustc_hash::FxHashMap;

/// Objects and lines kept of one row.
pub(super) const MAX_EXTENTS: usize = 1 << 16;
const LINE_LOG2: u32 = 6;
const SHARE_LOG2: u32 = 20;

/// Sums of the crowded misses of one object at one level.
#[derive(Debug, Default)]
pub(super) struct CrowdRow {
    /// Crowded misses.
    pub misses: u64,
    /// Hits that would be misses if the lines were spread.
    pub spread_misses: u64,
    /// Waits of the crowded misses, and of the stores to lines evicted before their turn.
    pub stall_cycles: u64,
    /// Crowded misses of lines that had missed before, and sums over them: misses of the line's set since then, and the
    /// share that these are of the misses of all sets, in 2^-20.
    returned: u64,
    in_set: u64,
    share: u64,
    /// Crowded misses after one of the same object in the set.
    within_one: u64,
    /// Extents by process and first address: end, misses.
    pub extents: FxHashMap<(u32, u64), (u64, u64)>,
    /// Lines by number: the first byte of the line that missed, misses.
    pub lines: FxHashMap<u64, (u64, u64)>,
    pub insns: FxHashMap<u32, u64>,
    pub bursts: Bursts,
}

impl CrowdRow {
    /// Sets that lines pass over before they return, on average.
    pub fn sets(&self) -> f64 {
        ((self.returned << SHARE_LOG2) as f64 / self.share.max(1) as f64).max(1.0)
    }

    /// Lines that miss in a set until a line returns, itself included, on average.
    pub fn competing(&self) -> f64 {
        self.in_set as f64 / self.returned.max(1) as f64
    }

    /// Returns the share of the misses in sets where a line of the same object had missed before.
    pub fn within_one(&self) -> f64 {
        self.within_one as f64 / self.misses.max(1) as f64
    }
}

/// One cache and its twin.
struct Watch {
    spread: Spread,
    /// Misses of user memory by set, and the begin of the object of the last crowded one.
    sets: Vec<(u32, u64)>,
    /// Misses of all sets.
    misses: u32,
}

/// The caches of one level.
struct LevelCaches {
    /// Cache instances by CPU.
    instances: Vec<usize>,
    watches: Vec<Watch>,
}

/// Twin's result at one level for a reference that missed.
#[derive(Clone, Copy, Debug)]
enum Found {
    /// A crowded miss: the cache's count when the line last missed there, and its count now.
    Crowded(Mark, Mark),
    /// A hit, and a miss in the twin.
    Displaced,
}

/// See the module's text.
pub(super) struct Crowds {
    /// Watched levels; `None`: a level without an index by offset.
    levels: Vec<Option<LevelCaches>>,
    /// Twins' results for the reference that missed last.
    found: [Option<Found>; MAX_LEVELS],
    vcpu: usize,
    pub rows: FxHashMap<(u8, ObjectId), CrowdRow>,
    /// Cycles that the command's references with a conflict miss waited.
    pub conflict_waits: u64,
    /// Cycles that an object's other references waited, by object.
    pub other_waits: Vec<u64>,
}

impl LevelCaches {
    fn new(machine: &Machine, cache: &Cache, cpus: usize) -> Option<Self> {
        let number = |cpu| number_of(machine, cache.shared_by, cpu as u64) as usize;
        let instances: Vec<usize> = (0..cpus).map(number).collect();
        let most = instances.iter().max().map_or(0, |last| last + 1);
        let watch = |instance| {
            let spread = Spread::new(Config::of(machine, cache).ok()?, instance as u32)?;
            Some(Watch { sets: vec![(0, 0); spread.sets()], spread, misses: 0 })
        };
        Some(LevelCaches { instances, watches: (0..most).map(watch).collect::<Option<_>>()? })
    }
}

impl Watch {
    /// Looks a line up in the twin. `set`: the one in which the cache itself missed, if it did; `class`: its class there.
    #[inline]
    fn look_up(
        &mut self,
        address: u64,
        vaddr: u64,
        missed: Option<(usize, MissClass)>,
        is_data: bool,
    ) -> Option<Found> {
        let of_user = is_data && vaddr < USER_END;
        let (there, mark) = self.spread.access(address, if of_user { turn_of(vaddr) } else { 0 });
        if !of_user {
            return None;
        }
        let Some((set, class)) = missed else { return (!there).then_some(Found::Displaced) };
        let counted = &mut self.sets[set].0;
        *counted = counted.wrapping_add(1);
        self.misses = self.misses.wrapping_add(1);
        let now = Mark { in_set: *counted, in_all: self.misses };
        let before = std::mem::replace(mark, now);
        let movable = matches!(class, MissClass::Conflict | MissClass::Capacity);
        (there && movable).then_some(Found::Crowded(before, now))
    }
}

impl Crowds {
    pub fn new(machine: &Machine, cpus: usize) -> Self {
        let levels = 1..=machine.levels().min(MAX_LEVELS);
        Crowds {
            levels: levels.map(|level| LevelCaches::new(machine, machine.data_cache(level)?, cpus)).collect(),
            found: [None; MAX_LEVELS],
            vcpu: 0,
            rows: FxHashMap::default(),
            conflict_waits: 0,
            other_waits: Vec::new(),
        }
    }

    #[inline]
    fn watch(&mut self, level: usize, vcpu: usize) -> Option<&mut Watch> {
        let level = self.levels.get_mut(level)?.as_mut()?;
        level.watches.get_mut(*level.instances.get(vcpu)?)
    }

    /// A reference hit the first level. Whether it would have missed with its lines spread.
    #[inline]
    pub fn hit(&mut self, vcpu: usize, reference: &Effective) -> bool {
        if reference.kind == Kind::Fetch {
            return false;
        }
        let Some(watch) = self.watch(0, vcpu) else { return false };
        let address = if watch.spread.is_virtual() { reference.vaddr } else { reference.address };
        watch.look_up(address, reference.vaddr, None, true).is_some()
    }

    /// Looks up a reference in the twins if it missed the first level or caused traffic. [`Crowds::charge`] follows if it
    /// is the command's.
    pub fn missed(&mut self, vcpu: usize, reference: &Effective, outcome: &Outcome) {
        self.found = [None; MAX_LEVELS];
        self.vcpu = vcpu;
        let is_data = reference.kind != Kind::Fetch;
        for level in 0..self.levels.len() {
            if level > 0 && outcome.missed[level - 1].is_none() {
                break;
            }
            if level == 0 && !is_data {
                continue;
            }
            let Some(watch) = self.watch(level, vcpu) else { continue };
            let address = match level {
                0 if watch.spread.is_virtual() => reference.vaddr,
                0 => reference.address,
                _ => outcome.line_paddr,
            };
            let missed = outcome.missed[level].map(|class| (outcome.set[level] as usize, class));
            self.found[level] =
                watch.look_up(address, reference.vaddr, missed, is_data).filter(|_| !outcome.continuation);
        }
    }

    /// The reference of the last [`Crowds::missed`] was the command's, to an object that begins at `start`; `None`: to
    /// code.
    pub fn charge(
        &mut self,
        object: Option<(ObjectId, u64)>,
        pid: u32,
        record: Record,
        outcome: &Outcome,
        tracker: &Tracker,
    ) {
        self.waited(object.map(|(id, _)| id), outcome);
        let Some((object, start)) = object else { return };
        let crowded = matches!(self.found[0], Some(Found::Crowded(..)));
        if record.kind() == Some(Kind::Store) && outcome.missed[1].is_none() && !crowded {
            self.store_waited(object, outcome);
        }
        for level in 0..self.levels.len() {
            match self.found[level] {
                Some(Found::Displaced) => self.missed_if_spread(level, object),
                Some(Found::Crowded(before, now)) => {
                    let instance = self.levels[level].as_ref().map_or(0, |at| at.instances[self.vcpu]);
                    let last = self
                        .watch(level, self.vcpu)
                        .map(|watch| std::mem::replace(&mut watch.sets[outcome.set[level] as usize].1, start));
                    let row = self.rows.entry((level as u8, object)).or_default();
                    row.within_one += u64::from(last == Some(start));
                    row.crowded(before, now, record, outcome.stall_cycles);
                    row.bursts.add(instance as u32, outcome.set[level], record.vaddr());
                    row.place(pid, start, record.vaddr(), tracker);
                }
                None => {}
            }
        }
    }

    fn waited(&mut self, object: Option<ObjectId>, outcome: &Outcome) {
        if outcome.missed.contains(&Some(MissClass::Conflict)) {
            self.conflict_waits += u64::from(outcome.stall_cycles);
        } else if let Some(object) = object {
            let at = object.0 as usize;
            if at >= self.other_waits.len() {
                self.other_waits.resize(at + 1, 0);
            }
            self.other_waits[at] += u64::from(outcome.stall_cycles);
        }
    }

    /// A store that hits, or that the second level serves, waits where its line is pushed out before its turn
    /// (`model/core/crowded.rs`): the wait is its crowd's.
    fn store_waited(&mut self, object: ObjectId, outcome: &Outcome) {
        if let Some(row) = self.rows.get_mut(&(0, object)) {
            row.stall_cycles += u64::from(outcome.stall_cycles);
        }
    }

    /// A reference of the command to `object` hit at `level`, where it would have missed with its lines spread.
    pub fn missed_if_spread(&mut self, level: usize, object: ObjectId) {
        self.rows.entry((level as u8, object)).or_default().spread_misses += 1;
    }
}

impl CrowdRow {
    fn crowded(&mut self, before: Mark, now: Mark, record: Record, stall_cycles: u32) {
        self.misses += 1;
        self.stall_cycles += u64::from(stall_cycles);
        if before.in_all != 0 {
            self.returned += 1;
            let in_set = u64::from(now.in_set.wrapping_sub(before.in_set));
            self.in_set += in_set;
            self.share += (in_set << SHARE_LOG2) / u64::from(now.in_all.wrapping_sub(before.in_all)).max(1);
        }
        *self.insns.entry(record.insn().0).or_default() += 1;
        let line = record.vaddr() >> LINE_LOG2;
        if self.lines.len() < MAX_EXTENTS || self.lines.contains_key(&line) {
            self.lines.entry(line).or_insert((record.vaddr(), 0)).1 += 1;
        }
    }

    /// Counts a miss at `address` for the object that begins at `start`.
    fn place(&mut self, pid: u32, start: u64, address: u64, tracker: &Tracker) {
        let room = self.extents.len() < MAX_EXTENTS;
        match self.extents.get_mut(&(pid, start)) {
            Some((end, misses)) => {
                *misses += 1;
                if address >= *end {
                    *end = tracker.extent(pid, address).1;
                }
            }
            None if room => {
                self.extents.insert((pid, start), (tracker.extent(pid, address).1, 1));
            }
            None => {}
        }
    }
}
