//! The slow engine.

use super::buffer::Buffer;
use super::cache::{Resident, Table, Went};
use crate::model::fast::bus::Bus;
use crate::model::fast::plan::Plan;
use crate::model::pages::homes::Toucher;
use crate::model::pages::page_of::PageOf;
use crate::model::pages::places::Places;
use crate::model::{Access, Drained, Engine, ModelError, ModelOptions, ModelTotals, Sites};
use crate::observer::{BusRead, Outcome};
use nearmiss_record::machine::{Inclusion, Index, Machine, Protocol};
use nearmiss_record::model::{BusTally, MissClass};
use nearmiss_record::policy::{Order, Policy};
use nearmiss_record::reference::{Control, Kind, MARK_PART};
use std::collections::{BTreeMap, BTreeSet};

/// See [`Engine`].
pub struct Slow {
    pub(super) plan: Plan,
    places: Places,
    /// Modelled page address and home by recorded page.
    pages: BTreeMap<u64, (u64, u8)>,
    pub(super) tables: Vec<Table>,
    /// Buffers by core, oldest first.
    pub(super) buffers: Vec<Vec<Buffer>>,
    pub(super) bus: Bus,
    pub(super) nodes: Vec<BusTally>,
    pub(super) sharing: BTreeMap<u64, (u64, u64)>,
    pub(super) last_writer: Option<(u64, usize)>,
}

pub(super) fn bytes_of(address: u64, size: u32) -> BTreeSet<u64> {
    (address..address + u64::from(size)).collect()
}

impl Engine for Slow {
    fn new(machine: &Machine, policy: &Policy, options: &ModelOptions) -> Result<Self, ModelError> {
        let plan = Plan::new(machine, options)?;
        Ok(Slow {
            places: Places::new(machine, policy, options, plan.virtual_tags),
            pages: BTreeMap::new(),
            tables: (0..plan.instances.len()).map(|i| Table::new(plan.config(i), plan.instances[i].number)).collect(),
            buffers: (0..plan.cores).map(|_| Vec::new()).collect(),
            bus: Bus::new(&plan, options.order == Order::Recorded),
            nodes: vec![BusTally::default(); plan.nodes],
            sharing: BTreeMap::new(),
            last_writer: None,
            plan,
        })
    }

    fn hit(&mut self, _: usize, _: Kind, _: u64, _: u64) -> bool {
        false
    }

    fn access(&mut self, access: &Access, outcome: &mut Outcome) -> u8 {
        let cpu = access.cpu;
        let way = self.way(access);
        if access.kind == Kind::Fetch && way.is_empty() {
            return 0;
        }
        let by = Toucher::of(cpu, self.plan.node[cpu], access.kind, access.record.vaddr());
        let (modelled, home) = self.page(access.address, by);
        outcome.home = home;
        let line = way.first().map_or(1 << self.plan.unit_log2, |&at| self.tables[at].line_bytes());
        outcome.line_paddr = (modelled | access.address & 0xfff) / line * line;
        if access.kind == Kind::NtStore {
            self.store_around(access, outcome);
            self.last_writer = None;
            return 0;
        }
        let mut cycles = 0;
        if access.kind == Kind::Atomic {
            let core = self.plan.core[cpu];
            for buffer in std::mem::take(&mut self.buffers[core]) {
                cycles = cycles.max(self.send_for(&buffer, access, outcome));
            }
        }
        let (hit, missed) = self.look_up(access, &way, outcome);
        cycles += self.settle(access, &way, hit, outcome);
        outcome.stall_cycles = u32::try_from(cycles).unwrap_or(u32::MAX);
        self.last_writer = access.kind.writes().then(|| (access.address >> self.plan.unit_log2, cpu));
        missed
    }

    fn fence(&mut self, cpu: usize, now: u64, sink: &mut dyn FnMut(Drained)) {
        let core = self.plan.core[cpu];
        for buffer in std::mem::take(&mut self.buffers[core]) {
            let (full, partial) = self.send(&buffer);
            for _ in 0..full + partial {
                self.bus.transact(cpu, buffer.home, now);
            }
            sink(Drained { last: buffer.last, full, partial, home: buffer.home });
        }
    }

    fn share(&mut self, address: u64, owner: usize, written: u64) {
        if self.plan.others[owner].is_empty() || self.plan.virtual_tags {
            return;
        }
        self.page(address, Toucher::before(owner, self.plan.node[owner]));
        for &at in &self.plan.others[owner] {
            let bytes = self.tables[at].line_bytes();
            for line in self.lines_of_unit(at, address) {
                if let Some(Went::Taken(known)) = self.tables[at].gone.get_mut(&line) {
                    let fresh = (0..64).filter(|b| written >> b & 1 != 0).map(|b| address + b);
                    known.extend(fresh.filter(|b| b / bytes == line));
                }
            }
        }
    }

    fn control(&mut self, cpu: usize, control: &Control<'_>) {
        self.places.control(cpu, self.plan.node[cpu], control);
        let is_pause = matches!(control, Control::Mark { number: MARK_PART, .. });
        self.tables.iter_mut().for_each(|table| table.part += u64::from(is_pause));
    }

    fn lay(&mut self, addresses: &[u64]) {
        for address in addresses {
            self.places.modelled(*address, PageOf::Program);
        }
    }

    fn node(&self, cpu: usize) -> u8 {
        self.plan.node[cpu]
    }

    fn finish(mut self, sites: &Sites, sink: &mut dyn FnMut(Drained)) -> ModelTotals {
        for core in 0..self.buffers.len() {
            for buffer in std::mem::take(&mut self.buffers[core]) {
                let (full, partial) = self.send(&buffer);
                sink(Drained { last: buffer.last, full, partial, home: buffer.home });
            }
        }
        self.totals(sites)
    }
}

/// Whether a kind writes through the caches.
trait Writes {
    fn writes(self) -> bool;
}

impl Writes for Kind {
    fn writes(self) -> bool {
        matches!(self, Kind::Store | Kind::Atomic)
    }
}

impl Slow {
    fn way(&self, access: &Access) -> Vec<usize> {
        self.plan.way(access.cpu, access.kind).iter().collect()
    }

    fn page(&mut self, address: u64, by: Toucher) -> (u64, u8) {
        let page = address >> 12;
        let (home, _) = self.places.home(page << 12, by);
        let places = &mut self.places;
        let known = self.pages.entry(page).or_insert_with(|| (places.modelled(page << 12, by.page_of), home));
        known.1 = home;
        *known
    }

    fn set_of(&mut self, at: usize, address: u64, vaddr: Option<u64>) -> usize {
        let (modelled, _) = self.pages[&(address >> 12)];
        let config = &self.tables[at].config;
        let indexing = match (config.index, vaddr) {
            (Index::Virtual, _) if self.plan.virtual_tags => address,
            (Index::Virtual, Some(vaddr)) if !config.index_within_page() => vaddr,
            _ => modelled | address & 0xfff,
        };
        config.set_of(indexing) as usize
    }

    /// The numbers, in a cache, of the lines of the unit of an address.
    pub(super) fn lines_of_unit(&self, at: usize, address: u64) -> Vec<u64> {
        let unit = 1u64 << self.plan.unit_log2;
        let first = address / unit * unit / self.tables[at].line_bytes();
        (first..first + unit / self.tables[at].line_bytes()).collect()
    }

    /// Looks up level by level: the step that hit, and the levels missed.
    fn look_up(&mut self, access: &Access, way: &[usize], outcome: &mut Outcome) -> (Option<usize>, u8) {
        let mut missed = 0;
        let mut sharing: Option<MissClass> = None;
        let mut hit = None;
        for (step, &at) in way.iter().enumerate() {
            let level = self.tables[at].config.level;
            let set = self.set_of(at, access.address, Some(access.vaddr));
            let line = access.address / self.tables[at].line_bytes();
            let wanted = bytes_of(access.address, access.size);
            let stayed = access.stayed >> level & 1 != 0;
            if let Some(gone) = if stayed { None } else { self.tables[at].pushed_out_in_pause(line) } {
                self.evict(at, gone, access, outcome);
            }
            while let Some(gone) = self.tables[at].pushed_out(set, access.now) {
                self.evict(at, gone, access, outcome);
            }
            let Err(class) = self.tables[at].look_up(set, line, &wanted) else {
                hit = Some(step);
                break;
            };
            if access.was_there >> level & 1 != 0
                && class == MissClass::Compulsory
                && self.is_new_to_all(access, way, step)
            {
                self.bring_back(access, way, step, outcome);
                hit = Some(step);
                break;
            }
            missed |= 1 << level;
            let table = &mut self.tables[at];
            if class == MissClass::Compulsory {
                table.set_lines[set] += 1;
            }
            if access.missed_before >> level & 1 == 1 {
                continue;
            }
            table.count_miss(set, line, class, access.site);
            match access.kind {
                Kind::Fetch => table.references.fetch_misses[class as usize] += 1,
                Kind::Store => table.references.store_misses[class as usize] += 1,
                _ => table.references.load_misses[class as usize] += 1,
            }
            outcome.missed[level] = Some(class);
            outcome.set[level] = set as u32;
            if sharing.is_none() && (class == MissClass::TrueSharing || class == MissClass::FalseSharing) {
                sharing = Some(class);
            }
        }
        if let Some(class) = sharing {
            let bytes = self.tables[way[0]].line_bytes();
            let row = self.sharing.entry(access.address / bytes * bytes).or_default();
            match class {
                MissClass::TrueSharing => row.0 += 1,
                _ => row.1 += 1,
            }
        }
        (hit, missed)
    }

    /// Whether this step is behind the first, and no cache of others and none beyond the step ever saw any of the unit
    /// that caches pass on.
    fn is_new_to_all(&self, access: &Access, way: &[usize], step: usize) -> bool {
        let saw = |&at: &usize| {
            let table = &self.tables[at];
            self.lines_of_unit(at, access.address)
                .iter()
                .any(|line| table.gone.contains_key(line) || table.holds(*line))
        };
        step > 0 && !self.plan.others[access.cpu].iter().chain(&way[step + 1..]).any(saw)
    }

    /// The cache of this step has had the line since before the recording, and so have those beyond that keep what it
    /// has.
    fn bring_back(&mut self, access: &Access, way: &[usize], step: usize, outcome: &mut Outcome) {
        self.tables[way[step]].hits += 1;
        self.tables[way[step]].line_misses[MissClass::Compulsory as usize] -= 1;
        for &at in way[step..].iter().rev() {
            let set = self.set_of(at, access.address, Some(access.vaddr));
            let table = &mut self.tables[at];
            let line = access.address / table.line_bytes();
            if table.exclusive() {
                if at == way[step] {
                    table.gone.insert(line, Went::HandedOn);
                }
            } else if let Some(displaced) = table.fill(set, line, access.site, false) {
                self.evict(at, displaced, access, outcome);
            }
        }
    }

    /// Coherence, then fills. Returns cycles.
    fn settle(&mut self, access: &Access, way: &[usize], hit: Option<usize>, outcome: &mut Outcome) -> u64 {
        let (cpu, write) = (access.cpu, access.kind.writes());
        if way.is_empty() || hit == Some(0) && !write {
            return 0;
        }
        let node = self.plan.node[cpu];
        let others = self.plan.others[cpu].clone();
        let holders: Vec<usize> = others
            .iter()
            .copied()
            .filter(|&at| self.lines_of_unit(at, access.address).iter().any(|&l| self.tables[at].holds(l)))
            .collect();
        let dirty: Vec<usize> = holders
            .iter()
            .copied()
            .filter(|&at| self.lines_of_unit(at, access.address).iter().any(|&l| self.tables[at].is_dirty(l)))
            .collect();
        let before_hit = |at: &usize| {
            hit.is_none_or(|step| self.plan.instances[*at].cpus & !self.plan.instances[way[step]].cpus == 0)
        };
        let owner = dirty.iter().copied().find(before_hit);
        let holder_in_node = holders.iter().any(|&at| self.plan.instances[at].node == node);
        let holder_elsewhere = holders.iter().any(|&at| self.plan.instances[at].node != node);
        let outermost = self.plan.instances[way[way.len() - 1]].cpus;
        let holder_outside = holders.iter().any(|&at| self.plan.instances[at].cpus & !outermost != 0);
        let latency = self.plan.latency.clone();

        let mut cycles = u64::from(match (owner, hit) {
            (Some(owner), _) if self.plan.instances[owner].node == node => latency.core_modified_cycles,
            (Some(_), _) => latency.remote_cache_cycles,
            (None, Some(0)) => 0,
            (None, Some(step)) => latency.level_cycles[self.tables[way[step]].config.level],
            (None, None) if holder_in_node => latency.core_clean_cycles,
            (None, None) if outcome.home == node => latency.memory_local_cycles,
            (None, None) => latency.memory_remote_cycles,
        });
        if hit.is_none() {
            let tally = &mut self.nodes[usize::from(outcome.home)];
            let (count, read) = if outcome.home != node {
                (&mut tally.read_remote, BusRead::Remote)
            } else if !dirty.is_empty() {
                (&mut tally.read_local_modified, BusRead::LocalModified)
            } else if !holders.is_empty() {
                (&mut tally.read_local_shared, BusRead::LocalShared)
            } else {
                (&mut tally.read_local_none, BusRead::LocalNone)
            };
            *count += 1;
            outcome.read = Some(read);
            cycles += self.bus.transact(cpu, outcome.home, access.now);
        }

        let mut takes_over_dirty = None;
        if write {
            let own_dirty =
                way.iter().any(|&at| self.tables[at].is_dirty(access.address / self.tables[at].line_bytes()));
            let needs_invalidation = !holders.is_empty() || self.plan.protocol == Protocol::Msi && !own_dirty;
            if hit.is_some() && owner.is_none() && self.plan.stores_need_permission && needs_invalidation {
                outcome.invalidated = true;
                self.nodes[usize::from(outcome.home)].invalidations += 1;
                let mut invalidation_cycles =
                    u64::from(if holder_elsewhere { latency.remote_cache_cycles } else { latency.core_clean_cycles });
                if holder_outside || holders.is_empty() {
                    invalidation_cycles += self.bus.transact(cpu, outcome.home, access.now);
                }
                cycles = cycles.max(invalidation_cycles);
            }
            let written = bytes_of(access.address, access.size);
            others.iter().for_each(|&at| self.take(at, access.address, &written));
        } else if let Some(owner) = owner.filter(|_| self.plan.protocol != Protocol::Moesi) {
            for &at in &others {
                for line in self.lines_of_unit(at, access.address) {
                    if let Some(resident) = self.tables[at].resident(line) {
                        resident.dirty = false;
                    }
                }
            }
            let owners = self.plan.instances[owner].cpus;
            let common = way.iter().position(|&at| owners & !self.plan.instances[at].cpus == 0);
            match common {
                Some(step) if !self.tables[way[step]].exclusive() => {
                    let line = access.address / self.tables[way[step]].line_bytes();
                    match self.tables[way[step]].resident(line).filter(|_| hit == Some(step)) {
                        Some(resident) => resident.dirty = true,
                        None => takes_over_dirty = Some(step),
                    }
                }
                _ => self.write_back(outcome.home, access, outcome),
            }
        }
        let clean = !write && !if self.plan.protocol == Protocol::Moesi { &dirty } else { &holders }.is_empty();
        self.fill(access, way, hit, takes_over_dirty, clean, outcome);
        if write {
            let line = access.address / self.tables[way[0]].line_bytes();
            if let Some(resident) = self.tables[way[0]].resident(line) {
                resident.dirty = true;
            }
        }
        cycles
    }

    /// Another's write takes a unit from a cache.
    pub(super) fn take(&mut self, at: usize, address: u64, written: &BTreeSet<u64>) {
        for line in self.lines_of_unit(at, address) {
            let bytes = self.tables[at].line_bytes();
            let fresh: BTreeSet<u64> = written.iter().copied().filter(|b| b / bytes == line).collect();
            let table = &mut self.tables[at];
            table.shadow.retain(|&l| l != line);
            if table.remove(line, Went::Taken(fresh.clone())).is_some() {
                continue;
            }
            match table.gone.get_mut(&line) {
                Some(Went::Taken(known)) => known.extend(fresh),
                Some(went @ Went::HandedOn) => *went = Went::Taken(fresh),
                _ => {}
            }
        }
    }

    fn fill(
        &mut self,
        access: &Access,
        way: &[usize],
        hit: Option<usize>,
        takes_over: Option<usize>,
        clean: bool,
        outcome: &mut Outcome,
    ) {
        let mut carried = false;
        if let Some(step) = hit.filter(|&step| step > 0) {
            let table = &mut self.tables[way[step]];
            if table.exclusive() {
                let line = access.address / table.line_bytes();
                carried = table.remove(line, Went::HandedOn).is_some_and(|r| r.dirty);
            }
            if carried && clean {
                self.write_back(outcome.home, access, outcome);
                carried = false;
            }
        }
        for step in (0..hit.unwrap_or(way.len())).rev() {
            let at = way[step];
            let line = access.address / self.tables[at].line_bytes();
            if self.tables[at].exclusive() {
                self.tables[at].gone.insert(line, Went::HandedOn);
                continue;
            }
            let synonym = self.tables[at].remove(line, Went::Away);
            let dirty = takes_over == Some(step) || carried || synonym.is_some_and(|r| r.dirty);
            carried = false;
            let set = self.set_of(at, access.address, Some(access.vaddr));
            let displaced = self.tables[at].fill(set, line, access.site, dirty);
            if let Some(displaced) = displaced {
                outcome.gives_up_modified |= step == 0 && displaced.dirty;
                self.evict(at, displaced, access, outcome);
            }
        }
    }

    fn evict(&mut self, at: usize, mut gone: Resident, access: &Access, outcome: &mut Outcome) {
        let bytes = self.tables[at].line_bytes();
        let address = gone.line * bytes;
        if self.tables[at].config.inclusion == Inclusion::Inclusive {
            for nearer in self.plan.instances[at].nearer.clone() {
                let step = self.tables[nearer].line_bytes();
                for line in address / step..(address + bytes) / step {
                    let table = &mut self.tables[nearer];
                    table.shadow.retain(|&l| l != line);
                    gone.dirty |= table.remove(line, Went::Victim).is_some_and(|r| r.dirty);
                    if let Some(went @ Went::HandedOn) = table.gone.get_mut(&line) {
                        *went = Went::Victim;
                    }
                }
            }
        }
        let insn = self.tables[at].fills[gone.fill].insn;
        let mut direct = true;
        let mut behind = self.plan.instances[at].parent;
        while let Some(outer) = behind {
            if self.tables[outer].exclusive() && (direct || gone.dirty) {
                let line = address / self.tables[outer].line_bytes();
                self.tables[outer].shadow_insert(line);
                if let Some(resident) = self.tables[outer].resident(line) {
                    resident.dirty |= gone.dirty;
                    return;
                }
                let set = self.set_of(outer, address, None);
                if let Some(next) = self.tables[outer].fill(set, line, insn, gone.dirty) {
                    self.evict(outer, next, access, outcome);
                }
                return;
            }
            if !gone.dirty {
                return;
            }
            let line = address / self.tables[outer].line_bytes();
            if let Some(resident) = self.tables[outer].resident(line) {
                resident.dirty = true;
                return;
            }
            direct = false;
            behind = self.plan.instances[outer].parent;
        }
        if gone.dirty {
            let home = self.pages[&(address >> 12)].1;
            self.write_back(home, access, outcome);
        }
    }

    pub(super) fn write_back(&mut self, home: u8, access: &Access, outcome: &mut Outcome) {
        outcome.write_backs += 1;
        self.nodes[usize::from(home)].write_backs += 1;
        self.bus.transact(access.cpu, home, access.now);
    }
}
