//! Private caches kept coherent: who has a line, who answers for it, who must give it up, and the cost.
//!
//! There is no directory beside the caches: a cache's history of a line shows whether it holds it, and pages record
//! which CPUs ever looked them up, so a page that one CPU alone uses costs one comparison.

use crate::model::cache::bytes::mask_within;
use crate::model::cache::{DIRTY, WRITABLE};
use crate::model::engine::Access;
use crate::model::fast::{Fast, Walk};
use crate::observer::{BusRead, Outcome};
use nearmiss_record::machine::Protocol;
use nearmiss_record::model::{MAX_LEVELS, MissClass};
use nearmiss_record::reference::Kind;

/// Copies of a coherence unit in caches that the CPU does not use.
#[derive(Clone, Copy, Debug, Default)]
struct Others {
    present: bool,
    present_same_node: bool,
    present_other_node: bool,
    /// Some copy lies outside the reach of the CPU's outermost cache.
    present_outside: bool,
    /// First cache, by number, with a modified copy.
    dirty: Option<usize>,
    /// First cache with a modified copy, among caches before the one that hit.
    dirty_before_hit: Option<usize>,
}

impl Fast {
    /// Counts a miss on a line that another took, if it is one.
    #[cold]
    pub(super) fn count_sharing(&mut self, first: usize, address: u64, outcome: &Outcome) {
        let is_shared = |class: &&MissClass| matches!(class, MissClass::TrueSharing | MissClass::FalseSharing);
        let Some(class) = outcome.missed.iter().flatten().find(is_shared) else { return };
        let line_log2 = self.caches[first].line_log2;
        let row = self.sharing.entry(address >> line_log2 << line_log2).or_default();
        *(if *class == MissClass::TrueSharing { &mut row.0 } else { &mut row.1 }) += 1;
    }

    /// Handles everything after the lookups: the line's source, the others' copies, the fills. Returns the cycles it
    /// takes.
    pub(in crate::model) fn transfer(&mut self, access: &Access, walk: &Walk, outcome: &mut Outcome) -> u64 {
        let write = matches!(access.kind, Kind::Store | Kind::Atomic);
        let Some(last) = walk.way.last() else { return 0 };
        if walk.hit() == Some(0) && !write {
            return 0;
        }
        let cpu = access.cpu;
        let node = self.plan.node[cpu];
        let alone = self.pages.page(walk.page).cpus & !self.plan.siblings[cpu] == 0;
        if alone && !(write && self.plan.clean_stores_need_bus) {
            return self.transfer_alone(access, walk, write, outcome);
        }
        let others = if alone { Others::default() } else { self.survey(access, walk, last, write) };
        let own_dirty = self.plan.protocol == Protocol::Msi && write && self.own_dirty(access, walk);

        let mut cycles = 0;
        let mut dirty = [false; MAX_LEVELS];
        let answered_by = others.dirty_before_hit;
        match (answered_by, walk.hit()) {
            (Some(owner), _) => {
                let same = self.plan.instances[owner].node == node;
                let latency = &self.plan.latency;
                cycles += u64::from(if same { latency.core_modified_cycles } else { latency.remote_cache_cycles });
            }
            (None, Some(0)) => {}
            (None, Some(_)) => cycles += walk.hit_cycles,
            (None, None) => {
                let latency = &self.plan.latency;
                cycles += u64::from(if others.present_same_node {
                    latency.core_clean_cycles
                } else if outcome.home == node {
                    latency.memory_local_cycles
                } else {
                    latency.memory_remote_cycles
                });
            }
        }
        if walk.hit().is_none() {
            cycles += self.read_from_bus(access, &others, outcome);
        }

        if write {
            let upgrade = walk.hit().is_some()
                && answered_by.is_none()
                && self.plan.stores_need_permission
                && (others.present || self.plan.protocol == Protocol::Msi && !own_dirty);
            if upgrade {
                cycles = cycles.max(self.upgrade(access, &others, outcome));
            }
        } else if let Some(owner) = answered_by.filter(|_| self.plan.protocol != Protocol::Moesi) {
            self.downgrade(access, walk, owner, &mut dirty, outcome);
        }
        let watched = !alone && self.update_others(access, write);
        // A modified line that an exclusive cache hands to a reader stays modified only if no other cache has it; under
        // MOESI, if no other cache owns it.
        let kept = if self.plan.protocol == Protocol::Moesi { others.dirty.is_none() } else { !others.present };
        let clean = !write && !kept;
        self.fill(access, walk, dirty, clean, outcome);
        if write {
            let first = walk.way.at(0);
            if let Some(frame) = self.caches[first].frame_of(walk.lines[0]) {
                let (add, remove) = if watched { (DIRTY, WRITABLE) } else { (DIRTY | WRITABLE, 0) };
                self.caches[first].set_flags(frame, add, remove);
            }
        }
        cycles
    }

    /// Handles [`Fast::transfer`] if no other CPU ever used the page and the bus is not involved.
    #[inline]
    fn transfer_alone(&mut self, access: &Access, walk: &Walk, write: bool, outcome: &mut Outcome) -> u64 {
        let cycles = self.answer_alone(access, walk, outcome);
        self.fill(access, walk, [false; MAX_LEVELS], false, outcome);
        let first = &mut self.caches[walk.way.at(0)];
        if let Some(frame) = first.frame_of(walk.lines[0]).filter(|_| write) {
            first.set_flags(frame, DIRTY | WRITABLE, 0);
        }
        cycles
    }

    /// Returns the cycles until the line is there, if no other cache has it.
    #[inline(always)]
    pub(in crate::model) fn answer_alone(&mut self, access: &Access, walk: &Walk, outcome: &mut Outcome) -> u64 {
        match walk.hit() {
            Some(0) => 0,
            Some(_) => walk.hit_cycles,
            None => self.read_alone(access, outcome),
        }
    }

    /// Reads from memory a line that no other cache has.
    fn read_alone(&mut self, access: &Access, outcome: &mut Outcome) -> u64 {
        let latency = &self.plan.latency;
        let near = outcome.home == self.plan.node[access.cpu];
        let cycles = u64::from(if near { latency.memory_local_cycles } else { latency.memory_remote_cycles });
        cycles + self.read_from_bus(access, &Others::default(), outcome)
    }

    /// Collects other caches' copies of the unit. Notes in `affected` which of their lines the access affects.
    fn survey(&mut self, access: &Access, walk: &Walk, last: usize, write: bool) -> Others {
        let mut others = Others::default();
        let mut affected = std::mem::take(&mut self.affected);
        affected.clear();
        let node = self.plan.node[access.cpu];
        let hit_cpus = walk.hit().map(|step| self.plan.instances[walk.way.at(step)].cpus);
        self.for_others(access, walk, |at, line_address, line| {
            if self.caches[at].is_affected(line, write) {
                affected.push((at, line_address, line));
            }
            let Some(frame) = self.caches[at].frame_of(line) else { return };
            let instance = &self.plan.instances[at];
            others.present = true;
            others.present_same_node |= instance.node == node;
            others.present_other_node |= instance.node != node;
            others.present_outside |= instance.cpus & !self.plan.instances[last].cpus != 0;
            if self.caches[at].flags(frame) & DIRTY != 0 {
                others.dirty.get_or_insert(at);
                if hit_cpus.is_none_or(|cpus| instance.cpus & !cpus == 0) {
                    others.dirty_before_hit.get_or_insert(at);
                }
            }
        });
        self.affected = affected;
        others
    }

    /// Calls `visit` with cache, line address and history index for every line of the unit that another's cache has
    /// seen.
    fn for_others(&self, access: &Access, walk: &Walk, mut visit: impl FnMut(usize, u64, u32)) {
        let unit = access.address >> self.plan.unit_log2 << self.plan.unit_log2;
        let spots = self.pages.spots(walk.page);
        for &at in &self.plan.others[access.cpu] {
            let Some(spot) = spots[at].if_seen() else { continue };
            let cache = &self.caches[at];
            for line_address in (unit..unit + (1 << self.plan.unit_log2)).step_by(1 << cache.line_log2) {
                visit(at, line_address, cache.line_of(spot, line_address));
            }
        }
    }

    fn own_dirty(&self, access: &Access, walk: &Walk) -> bool {
        walk.way.iter().any(|at| {
            let Some(spot) = self.pages.spot(walk.page, at) else { return false };
            let cache = &self.caches[at];
            cache.frame_of(cache.line_of(spot, access.address)).is_some_and(|frame| cache.flags(frame) & DIRTY != 0)
        })
    }

    /// A read transaction of one of P4's classes. Returns its wait.
    fn read_from_bus(&mut self, access: &Access, others: &Others, outcome: &mut Outcome) -> u64 {
        let tally = &mut self.nodes[usize::from(outcome.home)];
        let read = if outcome.home != self.plan.node[access.cpu] {
            tally.read_remote += 1;
            BusRead::Remote
        } else if others.dirty.is_some() {
            tally.read_local_modified += 1;
            BusRead::LocalModified
        } else if others.present {
            tally.read_local_shared += 1;
            BusRead::LocalShared
        } else {
            tally.read_local_none += 1;
            BusRead::LocalNone
        };
        outcome.read = Some(read);
        self.bus.transact(access.cpu, outcome.home, access.now)
    }

    /// Invalidation without data. Returns its cycles.
    fn upgrade(&mut self, access: &Access, others: &Others, outcome: &mut Outcome) -> u64 {
        outcome.invalidated = true;
        self.nodes[usize::from(outcome.home)].invalidations += 1;
        let latency = &self.plan.latency;
        let cycles =
            u64::from(if others.present_other_node { latency.remote_cache_cycles } else { latency.core_clean_cycles });
        let on_bus = others.present_outside || !others.present;
        cycles + if on_bus { self.bus.transact(access.cpu, outcome.home, access.now) } else { 0 }
    }

    /// A modified line is read by another: it becomes clean, its data go to the nearest cache that both use, or to
    /// memory.
    fn downgrade(&mut self, access: &Access, walk: &Walk, owner: usize, dirty: &mut [bool], outcome: &mut Outcome) {
        let mut modified = Vec::new();
        self.for_others(access, walk, |at, _, line| {
            if let Some(frame) = self.caches[at].frame_of(line) {
                modified.push((at, frame));
            }
        });
        for (at, frame) in modified {
            self.caches[at].set_flags(frame, 0, DIRTY);
        }
        let owners = self.plan.instances[owner].cpus;
        let common = walk.way.iter().position(|at| owners & !self.plan.instances[at].cpus == 0);
        match common {
            Some(step) if !self.caches[walk.way.at(step)].exclusive => {
                let at = walk.way.at(step);
                match self.caches[at].frame_of(walk.lines[step]) {
                    Some(frame) if walk.hit() == Some(step) => self.caches[at].set_flags(frame, DIRTY, 0),
                    _ => dirty[step] = true,
                }
            }
            _ => self.write_back(walk.page, access, outcome),
        }
    }

    /// Invalidates others' lines found by the survey (a write), or revokes their leave to write silently (a read).
    /// Returns whether some cache must see the next write too.
    fn update_others(&mut self, access: &Access, write: bool) -> bool {
        let affected = std::mem::take(&mut self.affected);
        let mut watched = false;
        for &(at, line_address, line) in &affected {
            let cache = &mut self.caches[at];
            if write {
                let mask = mask_within(line_address, cache.line_log2, access.address, access.size);
                watched |= cache.taken_by_other(line, mask);
            } else if let Some(frame) = cache.frame_of(line) {
                cache.set_flags(frame, 0, WRITABLE);
            }
        }
        self.affected = affected;
        watched
    }
}
