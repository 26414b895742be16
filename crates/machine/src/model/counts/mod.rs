//! Misses counted without their reasons: tags, modified lines and replacement of one CPU's caches.
//!
//! The levels, their fills and their victims are those of the model's text for one CPU, so every level misses as often
//! as in [`crate::model::Model`]. Further contents of a report are not kept: no classes (each miss is counted under
//! [`MissClass::Capacity`], which has no meaning here: add the classes up), no pollution, no maps of sets, no lines
//! seen before. Nothing waits: there is no bus and no latency, and cycles are those of the instructions. Only
//! write-backs of the bus are counted, all of them at node 0.

mod pages;
mod tags;

use crate::model::engine::{Access, Drained, Engine, Quiet};
use crate::model::fast::plan::{CachePath, Plan};
use crate::model::options::{ModelError, ModelOptions};
use crate::model::pages::places::Places;
use crate::model::sites::Sites;
use crate::model::totals::{CacheTotals, ModelTotals};
use crate::observer::Outcome;
use nearmiss_record::machine::{Index, Machine};
use nearmiss_record::model::{BusTally, ByClass, MAX_LEVELS, MissClass};
use nearmiss_record::policy::Policy;
use nearmiss_record::reference::{Kind, Record};
use pages::Pages;
use tags::{Gone, Tags};

/// See [`Engine`], and [`crate::model::Counter`] for its omissions.
pub struct Counts {
    plan: Plan,
    pages: Pages,
    caches: Vec<Tags>,
    /// The ways of data and of fetches, and the first cache of each.
    ways: [(CachePath, Option<usize>); 2],
    write_backs: u64,
}

impl Engine for Counts {
    fn new(machine: &Machine, policy: &Policy, options: &ModelOptions) -> Result<Self, ModelError> {
        let plan = Plan::new(machine, options)?;
        refuse(machine, &plan, options)?;
        let places = Places::new(machine, policy, options, plan.virtual_tags);
        let mut caches: Vec<Tags> =
            plan.instances.iter().map(|instance| Tags::new(&plan.configs[instance.config], instance)).collect();
        for at in 0..caches.len() {
            caches[at].reports_clean_victims |= caches[at].parent.is_some_and(|outer| caches[outer].exclusive);
            let config = plan.config(at);
            if config.level == 0 && options.filter.has_run(config.kind) {
                caches[at].let_caller_choose();
            }
        }
        let ways = [plan.data[0], plan.fetch[0]].map(|way| (way, way.iter().next()));
        Ok(Counts { plan, pages: Pages::new(places), caches, ways, write_backs: 0 })
    }

    #[inline(always)]
    fn hit(&mut self, _: usize, kind: Kind, address: u64, vaddr: u64) -> bool {
        if kind == Kind::NtStore {
            return false;
        }
        let Some(first) = self.ways[usize::from(kind == Kind::Fetch)].1 else { return true };
        let address = self.pages.modelled(address, kind, vaddr);
        let cache = &mut self.caches[first];
        cache.look_up(cache.set_of(address), address, writes(kind))
    }

    #[inline(always)]
    fn miss_quietly(&mut self, kind: Kind, address: u64, record: Record) -> Option<Quiet> {
        Some(self.walk(kind, address, record, 0, true))
    }

    fn access(&mut self, access: &Access, outcome: &mut Outcome) -> u8 {
        if access.kind == Kind::NtStore {
            outcome.write_backs = self.store_around(access);
            return 0;
        }
        let before = access.missed_before;
        let quiet = self.walk(access.kind, access.address, access.record, before, false);
        outcome.write_backs = quiet.write_backs;
        for (level, class) in outcome.missed.iter_mut().enumerate() {
            *class = ((quiet.missed & !before) >> level & 1 != 0).then_some(MissClass::Capacity);
        }
        quiet.missed
    }

    fn fence(&mut self, _: usize, _: u64, _: &mut dyn FnMut(Drained)) {}

    fn share(&mut self, _: u64, _: usize, _: u64) {}

    fn node(&self, cpu: usize) -> u8 {
        self.plan.node[cpu]
    }

    fn finish(self, _: &Sites, _: &mut dyn FnMut(Drained)) -> ModelTotals {
        let mut nodes = vec![BusTally::default(); self.plan.nodes];
        nodes[0].write_backs = self.write_backs;
        let caches = self.caches.iter().enumerate().map(|(at, cache)| self.totals(at, cache)).collect();
        ModelTotals { caches, nodes, ..ModelTotals::default() }
    }
}

/// Refuses what cannot be counted here, in one sentence.
fn refuse(machine: &Machine, plan: &Plan, options: &ModelOptions) -> Result<(), ModelError> {
    if options.cpus > 1 {
        return Err(ModelError::Refused(format!(
            "counts without classes are of one CPU, and there are {}: cut {} to one, or trace without --counts",
            options.cpus, machine.name
        )));
    }
    let has_synonyms = |c: &&crate::model::fast::plan::Config| c.index == Index::Virtual && !c.index_within_page();
    if let Some(cache) = plan.configs.iter().find(has_synonyms).filter(|_| !plan.virtual_tags) {
        return Err(ModelError::Refused(format!(
            "{}: {} is indexed by virtual bits above the page offset, where a line may be in another set than it is \
             looked up in: trace without --counts",
            machine.name, cache.name
        )));
    }
    Ok(())
}

#[inline(always)]
fn writes(kind: Kind) -> bool {
    !matches!(kind, Kind::Load | Kind::Fetch)
}

impl Counts {
    /// Looks the line up level by level, counts the misses and fills the caches that missed. `record`: with the way that a
    /// line takes in the first level, from the tap; `before`: levels, a bit each, where the reference does not miss
    /// again; `first_missed`: the first level was looked up already, and has missed.
    #[inline(always)]
    fn walk(&mut self, kind: Kind, address: u64, record: Record, before: u8, first_missed: bool) -> Quiet {
        let address = self.pages.modelled(address, kind, record.vaddr());
        let way = self.ways[usize::from(kind == Kind::Fetch)].0;
        let written = writes(kind);
        let mut quiet = Quiet::default();
        let mut missers = [(0usize, 0usize); MAX_LEVELS];
        let mut steps = 0;
        let mut dirty = false;
        for at in way.iter() {
            let cache = &mut self.caches[at];
            let set = cache.set_of(address);
            let looked_up = steps == 0 && first_missed;
            if !looked_up && cache.look_up(set, address, written && steps == 0) {
                dirty = steps > 0 && cache.exclusive && cache.take_out(address);
                break;
            }
            missers[steps] = (at, set);
            steps += 1;
            quiet.missed |= 1 << cache.level;
            if before & 1 << cache.level != 0 {
                cache.missed_again += 1;
            } else {
                cache.misses.count(kind, MissClass::Capacity);
            }
        }
        for step in (0..steps).rev() {
            let (at, set) = missers[step];
            let cache = &mut self.caches[at];
            if cache.exclusive {
                continue;
            }
            if step == 0 {
                dirty |= written;
                cache.choose_way(record.way());
            }
            let gone = cache.fill(set, address, std::mem::take(&mut dirty));
            if let Some(gone) = gone
                && (gone.dirty || cache.reports_clean_victims)
            {
                quiet.write_backs += self.evicted(at, gone);
            }
        }
        quiet
    }

    /// Handles an evicted line: nearer copies go if the cache is inclusive, the line goes outward. Returns the lines
    /// written back.
    fn evicted(&mut self, at: usize, mut gone: Gone) -> u8 {
        if self.caches[at].inclusive {
            let bytes = 1u64 << self.caches[at].line_log2;
            for &nearer in &self.plan.instances[at].nearer {
                let nearer = &mut self.caches[nearer];
                for address in (gone.address..gone.address + bytes).step_by(1 << nearer.line_log2) {
                    gone.dirty |= nearer.take_out(address);
                }
            }
        }
        let mut behind = self.caches[at].parent;
        while let Some(outer) = behind {
            let cache = &mut self.caches[outer];
            if cache.exclusive {
                let there = cache.modify(gone.address, gone.dirty);
                let next = if there { None } else { cache.fill(cache.set_of(gone.address), gone.address, gone.dirty) };
                return next.map_or(0, |next| self.evicted(outer, next));
            }
            if !gone.dirty || cache.modify(gone.address, true) {
                return 0;
            }
            behind = cache.parent;
        }
        self.write_backs += u64::from(gone.dirty);
        u8::from(gone.dirty)
    }

    /// Handles a non-temporal store: cached copies go, modified ones written back first, which is counted and returned.
    fn store_around(&mut self, access: &Access) -> u8 {
        let address = self.pages.modelled(access.address, access.kind, access.record.vaddr());
        let unit = address >> self.plan.unit_log2 << self.plan.unit_log2;
        let mut dirty = false;
        for cache in &mut self.caches {
            for address in (unit..unit + (1 << self.plan.unit_log2)).step_by(1 << cache.line_log2) {
                dirty |= cache.take_out(address);
            }
        }
        self.write_backs += u64::from(dirty);
        u8::from(dirty)
    }

    fn totals(&self, at: usize, cache: &Tags) -> CacheTotals {
        let (instance, config) = (&self.plan.instances[at], self.plan.config(at));
        let references = cache.misses.tally();
        let mut line_misses = ByClass::default();
        line_misses[MissClass::Capacity as usize] = references.misses() + cache.missed_again;
        CacheTotals {
            name: config.name.clone(),
            level: config.level as u8 + 1,
            instance: instance.number,
            cpus: vec![0],
            accesses: cache.hits + line_misses.iter().sum::<u64>(),
            hits: cache.hits,
            fills: cache.fills,
            dirty_evictions: cache.dirty_evictions,
            line_misses,
            references,
        }
    }
}
