//! The model proper: caches in flat arrays; only misses and coherence requests leave the first level's fast way.

pub(in crate::model) mod around;
pub(crate) mod bus;
pub(in crate::model) mod coherence;
pub(in crate::model) mod combining;
mod earlier;
pub(in crate::model) mod front;
pub(crate) mod plan;
pub(in crate::model) mod prefetch;
pub(in crate::model) mod straight;
pub(in crate::model) mod summary;

use crate::model::cache::bytes::mask_within;
use crate::model::cache::history::Standing;
use crate::model::cache::spot::Spot;
use crate::model::cache::{Cache, DIRTY, Removed, WRITABLE};
use crate::model::engine::{Access, Drained, Engine};
use crate::model::fast::bus::Bus;
use crate::model::fast::combining::Buffers;
use crate::model::fast::front::Front;
use crate::model::fast::plan::{CachePath, Plan};
use crate::model::options::{ModelError, ModelOptions};
use crate::model::pages::homes::Toucher;
use crate::model::pages::places::Places;
use crate::model::pages::seen::Pages;
use crate::model::quick_map::QuickMap;
use crate::model::sites::Sites;
use crate::model::totals::ModelTotals;
use crate::observer::Outcome;
use nearmiss_record::machine::Machine;
use nearmiss_record::model::{BusTally, MAX_LEVELS, MissClass};
use nearmiss_record::policy::{Order, Policy};
use nearmiss_record::reference::{Control, Kind, MARK_PART};

/// Misses on a shared line: true and false sharing.
pub(crate) type Sharing = QuickMap<u64, (u64, u64)>;

/// See [`Engine`].
pub struct Fast {
    pub(in crate::model) plan: Plan,
    pub(in crate::model) pages: Pages,
    pub(in crate::model) caches: Vec<Cache>,
    pub(in crate::model) buffers: Vec<Buffers>,
    pub(in crate::model) bus: Bus,
    pub(in crate::model) nodes: Vec<BusTally>,
    pub(in crate::model) sharing: Sharing,
    /// On pages that no other CPU uses, misses go [`Fast::straight`].
    pub(in crate::model) goes_straight: bool,
    /// Flags that a store needs of a line.
    wanted: u8,
    /// Some cache is worth fetching ahead.
    far: bool,
    /// Fronts by CPU: of data, of fetches.
    pub(in crate::model) fronts: Vec<[Front; 2]>,
    /// Bits of the first level's line: data, fetches.
    first_log2: [u32; 2],
    /// Scratch: lines of others found by one access.
    pub(in crate::model) affected: Vec<(usize, u64, u32)>,
}

/// Path of an access through its own caches, and the result.
#[derive(Clone, Copy, Default)]
pub(in crate::model) struct Walk {
    pub way: CachePath,
    pub page: u32,
    /// History index by step of the way.
    pub lines: [u32; MAX_LEVELS],
    /// Set by step of the way.
    pub sets: [u32; MAX_LEVELS],
    /// Steps that missed.
    pub steps: usize,
    /// The step after them hit.
    pub found: bool,
    /// Latency of the cache that hit.
    pub hit_cycles: u64,
    /// Levels missed.
    pub missed: u8,
}

impl Walk {
    /// Step at which it hit.
    #[inline(always)]
    pub fn hit(&self) -> Option<usize> {
        self.found.then_some(self.steps)
    }
}

impl Engine for Fast {
    fn new(machine: &Machine, policy: &Policy, options: &ModelOptions) -> Result<Self, ModelError> {
        let plan = Plan::new(machine, options)?;
        if options.filter.first_level.is_some_and(|first| first.misses_only) {
            return Err(ModelError::Refused("the tap recorded misses alone, which have no classes".into()));
        }
        let places = Places::new(machine, policy, options, plan.virtual_tags);
        let mut caches: Vec<Cache> = plan
            .instances
            .iter()
            .map(|instance| {
                let config = &plan.configs[instance.config];
                let latency_cycles = plan.latency.level_cycles[config.level];
                Cache::new(config, instance, latency_cycles, plan.virtual_tags, options.reasons)
            })
            .collect();
        for at in 0..caches.len() {
            caches[at].victims_go_on = caches[at].parent.is_some_and(|outer| caches[outer].exclusive);
            let config = plan.config(at);
            if config.level == 0 && options.filter.has_run(config.kind) {
                caches[at].let_caller_choose();
            }
        }
        let first = |way: &[CachePath]| way.iter().find_map(|way| way.iter().next());
        let first_log2 =
            [&plan.data, &plan.fetch].map(|ways| first(ways).map_or(plan.unit_log2, |at| caches[at].line_log2));
        Ok(Fast {
            first_log2,
            pages: Pages::new(caches.len(), places),
            goes_straight: !plan.clean_stores_need_bus
                && !caches.iter().any(|cache| cache.exclusive || cache.has_synonyms()),
            caches,
            buffers: vec![Buffers::default(); plan.cores],
            bus: Bus::new(&plan, options.order == Order::Recorded),
            nodes: vec![BusTally::default(); plan.nodes],
            sharing: Sharing::default(),
            fronts: plan
                .data
                .iter()
                .zip(&plan.fetch)
                .map(|(data, fetch)| [data, fetch].map(|w| Front::new(*w)))
                .collect(),
            affected: Vec::new(),
            far: false,
            wanted: if plan.stores_need_permission { WRITABLE } else { 0 },
            plan,
        })
    }

    #[inline(always)]
    fn hit(&mut self, cpu: usize, kind: Kind, address: u64, vaddr: u64) -> bool {
        let (wanted, gives) = if matches!(kind, Kind::Load | Kind::Fetch) { (0, 0) } else { (self.wanted, DIRTY) };
        if kind == Kind::NtStore || kind == Kind::Atomic && !self.buffers[self.plan.core[cpu]].is_empty() {
            return false;
        }
        let front = &self.fronts[cpu][usize::from(kind == Kind::Fetch)];
        let Some(first) = front.first else { return true };
        let known = front.row(address).map(|row| row.spots[0]);
        let Some(spot) = known.or_else(|| Some(self.remember(cpu, kind, address)?.spots[0])) else { return false };
        let cache = &mut self.caches[first];
        cache.hit(cache.set_of(spot, address, vaddr), cache.line_of(spot, address), wanted, gives)
    }

    #[inline]
    fn is_far(&self) -> bool {
        self.far
    }

    #[inline(always)]
    fn prepare(&mut self, cpu: usize, kind: Kind, address: u64, vaddr: u64) {
        let which = usize::from(kind == Kind::Fetch);
        if self.fronts[cpu][which].row(address).is_none() {
            self.remember(cpu, kind, address);
        }
        let front = &self.fronts[cpu][which];
        let Some(row) = front.row(address) else { return };
        for (at, spot) in front.way.iter().zip(&row.spots) {
            let cache = &self.caches[at];
            if cache.far && spot.if_seen().is_some() {
                cache.prefetch(cache.set_of(*spot, address, vaddr), cache.line_of(*spot, address));
            }
        }
        if !row.straight && !self.pages.is_alone(row.page, cpu, self.plan.siblings[cpu]) {
            let spots = self.pages.spots(row.page);
            for &at in &self.plan.others[cpu] {
                let Some(spot) = spots[at].if_seen() else { continue };
                self.caches[at].prefetch_line(self.caches[at].line_of(spot, address));
            }
        }
    }

    fn prepare_fills(&self, cpu: usize, kind: Kind, address: u64, vaddr: u64) {
        let Some(page) = self.pages.known(address) else { return };
        let spots = self.pages.spots(page);
        for at in self.plan.way(cpu, kind).iter() {
            let cache = &self.caches[at];
            if !cache.far {
                continue;
            }
            let Some(spot) = spots[at].if_seen() else { return };
            if let Some(frame) = cache.frame_of(cache.line_of(spot, address)) {
                cache.prefetch_hit(frame);
                return;
            }
            if cache.exclusive {
                continue;
            }
            let set = cache.set_of(spot, address, vaddr);
            let Some((gone, its_page)) = cache.prefetch_fill(set) else { continue };
            let Some(outer) = cache.parent.filter(|_| cache.victims_go_on) else { continue };
            let outer_cache = &self.caches[outer];
            if let Some(spot) = self.pages.spot(its_page, outer) {
                outer_cache.prefetch(outer_cache.set_of(spot, gone, gone), outer_cache.line_of(spot, gone));
            }
        }
    }

    #[inline(always)]
    fn miss(&mut self, access: &Access, outcome: &mut Outcome) -> u8 {
        let &Access { cpu, kind, address, .. } = access;
        let needs_permission = kind == Kind::Store && self.wanted != 0;
        if let Some(&row) = self.fronts[cpu][usize::from(kind == Kind::Fetch)].row(address)
            && row.straight
            && !(needs_permission && self.has_in_first(&row, access))
        {
            return self.straight(access, &row, outcome);
        }
        self.access(access, outcome)
    }

    fn access(&mut self, access: &Access, outcome: &mut Outcome) -> u8 {
        let cpu = access.cpu;
        let by = Toucher::of(cpu, self.plan.node[cpu], access.kind, access.record.vaddr());
        let page = self.pages.locate(access.address, by);
        let known = self.pages.page(page);
        (outcome.home, outcome.line_paddr) = (known.home, self.line_paddr(known.modelled, access));
        if access.kind == Kind::NtStore {
            self.store_around(access, page, outcome);
            return 0;
        }
        let mut stall = 0;
        if access.kind == Kind::Atomic {
            stall += self.drain_for(access, outcome);
        }
        if self.pages.note_use(page, cpu) {
            self.fronts.iter_mut().flatten().for_each(|front| front.forget(access.address));
        }
        let way = self.plan.way(cpu, access.kind);
        let walk = self.walk(access, page, way, outcome, |fast, _, at| fast.spot(at, page));
        stall += self.transfer(access, &walk, outcome);
        outcome.stall_cycles = u32::try_from(stall).unwrap_or(u32::MAX);
        walk.missed
    }

    fn fence(&mut self, cpu: usize, now: u64, sink: &mut dyn FnMut(Drained)) {
        let core = self.plan.core[cpu];
        for combined in self.buffers[core].drain() {
            let (full, partial) = self.send_combined(&combined);
            for _ in 0..full + partial {
                self.bus.transact(cpu, combined.home, now);
            }
            sink(Drained { last: combined.last, full, partial, home: combined.home });
        }
    }

    fn share(&mut self, address: u64, owner: usize, written: u64) {
        if self.plan.others[owner].is_empty() || self.plan.virtual_tags {
            return;
        }
        let page = self.pages.locate(address, Toucher::before(owner, self.plan.node[owner]));
        let unit = address >> self.plan.unit_log2 << self.plan.unit_log2;
        for i in 0..self.plan.others[owner].len() {
            let at = self.plan.others[owner][i];
            let Some(spot) = self.pages.spot(page, at) else { continue };
            let line_log2 = self.caches[at].line_log2;
            for line_address in (unit..unit + (1 << self.plan.unit_log2)).step_by(1 << line_log2) {
                let mut mask = 0;
                for byte in (0..64).filter(|byte| written >> byte & 1 != 0) {
                    mask |= mask_within(line_address, line_log2, address + byte, 1);
                }
                let line = self.caches[at].line_of(spot, line_address);
                self.caches[at].learned_written(line, mask);
            }
        }
    }

    fn control(&mut self, cpu: usize, control: &Control<'_>) {
        self.pages.control(cpu, self.plan.node[cpu], control);
        if matches!(control, Control::Mark { number: MARK_PART, .. }) {
            self.caches.iter_mut().for_each(Cache::pause);
        }
    }

    fn lay(&mut self, addresses: &[u64]) {
        self.pages.lay(addresses);
    }

    fn node(&self, cpu: usize) -> u8 {
        self.plan.node[cpu]
    }

    fn finish(mut self, sites: &Sites, sink: &mut dyn FnMut(Drained)) -> ModelTotals {
        for core in 0..self.buffers.len() {
            for combined in self.buffers[core].drain() {
                let (full, partial) = self.send_combined(&combined);
                sink(Drained { last: combined.last, full, partial, home: combined.home });
            }
        }
        self.caches.iter_mut().for_each(Cache::close);
        crate::model::fast::summary::summary(&self.plan, &self.caches, self.nodes, &self.sharing, sites)
    }
}

impl Fast {
    /// The first-level line of an access, given the modelled address of its page.
    #[inline]
    pub(in crate::model) fn line_paddr(&self, page: u64, access: &Access) -> u64 {
        let line_log2 = self.first_log2[usize::from(access.kind == Kind::Fetch)];
        (page | access.address & 0xfff) >> line_log2 << line_log2
    }

    /// Returns a cache's place of a page, which is made now if the cache never saw the page.
    #[inline]
    fn spot(&mut self, at: usize, page: u32) -> Spot {
        match self.pages.spot(page, at) {
            Some(spot) => spot,
            None => self.first_spot(at, page),
        }
    }

    #[cold]
    fn first_spot(&mut self, at: usize, page: u32) -> Spot {
        let spot = self.caches[at].add_page(self.pages.page(page).modelled);
        self.pages.set_spot(page, at, spot);
        self.far |= self.caches[at].far;
        spot
    }

    /// Looks the line up level by level and counts the misses. `spot_of` returns the page's place in the cache of a
    /// step.
    #[inline(always)]
    pub(in crate::model) fn walk(
        &mut self,
        access: &Access,
        page: u32,
        way: CachePath,
        outcome: &mut Outcome,
        spot_of: impl Fn(&mut Self, usize, usize) -> Spot,
    ) -> Walk {
        let mut walk = Walk { way, page, ..Walk::default() };
        let mut was_taken = false;
        for (step, at) in way.iter().enumerate() {
            let spot = spot_of(self, step, at);
            let cache = &mut self.caches[at];
            let level = cache.level;
            let line = cache.line_of(spot, access.address);
            let set = cache.set_of(spot, access.address, access.vaddr);
            (walk.lines[step], walk.sets[step]) = (line, set as u32);
            if cache.has_neighbours() {
                self.let_others_in(at, set, line, access, outcome);
            }
            let cache = &mut self.caches[at];
            let line_log2 = cache.line_log2;
            let wanted = || {
                was_taken = true;
                mask_within(access.address >> line_log2 << line_log2, line_log2, access.address, access.size)
            };
            let Err(missed) = cache.look_up(set, line, wanted) else {
                walk.found = true;
                walk.hit_cycles = cache.latency_cycles;
                break;
            };
            let class = missed.class;
            if class == MissClass::Compulsory && self.was_there(&walk, step, access) {
                walk.found = true;
                walk.hit_cycles = self.caches[at].latency_cycles;
                self.bring_back(access, &walk, step, outcome);
                break;
            }
            walk.steps = step + 1;
            let cache = &mut self.caches[at];
            walk.missed |= 1 << level;
            if class == MissClass::Compulsory {
                cache.count_new_line(set);
            }
            if access.missed_before & 1 << level != 0 {
                cache.missed_again[class as usize] += 1;
                continue;
            }
            cache.count_miss(set, missed, access.kind, access.site);
            outcome.missed[level] = Some(class);
            outcome.set[level] = set as u32;
        }
        if was_taken {
            self.count_sharing(way.at(0), access.address, outcome);
        }
        walk
    }

    /// Brings the line into the caches that missed it. `dirty` marks, by step, those that take a modified line over;
    /// `clean`: a modified line that an exclusive cache hands on is written back.
    pub(in crate::model) fn fill(
        &mut self,
        access: &Access,
        walk: &Walk,
        mut dirty: [bool; MAX_LEVELS],
        clean: bool,
        outcome: &mut Outcome,
    ) {
        let missed = walk.steps;
        let mut carried = false;
        if let Some(step) = walk.hit().filter(|step| *step > 0) {
            let at = walk.way.at(step);
            if self.caches[at].exclusive {
                carried = self.caches[at].hand_on(walk.lines[step]);
            }
            if carried && clean {
                self.write_back(walk.page, access, outcome);
                carried = false;
            }
        }
        for step in (0..missed).rev() {
            let at = walk.way.at(step);
            if self.caches[at].exclusive {
                self.caches[at].hand_on(walk.lines[step]);
                continue;
            }
            // A synonym: the same line under another virtual index moves over.
            if let Some(frame) = self.caches[at].frame_of(walk.lines[step]) {
                let left = self.caches[at].take_out(frame, Standing::Evicted);
                dirty[step] |= left.dirty;
            }
            dirty[step] |= std::mem::take(&mut carried);
            self.choose_way(access, walk, step);
            let gone = self.caches[at].fill(
                walk.sets[step] as usize,
                access.address,
                walk.lines[step],
                walk.page,
                access.site,
                if dirty[step] { DIRTY } else { 0 },
            );
            if let Some(gone) = gone {
                outcome.gives_up_modified |= step == 0 && gone.dirty;
                self.evicted(at, gone, access, outcome);
            }
        }
    }

    /// Passes on the place that a line takes in the first level, as chosen by the tap.
    #[inline(always)]
    pub(in crate::model) fn choose_way(&mut self, access: &Access, walk: &Walk, step: usize) {
        if step == 0 {
            let (set, record) = (walk.sets[0] as usize, access.record);
            self.caches[walk.way.at(0)].choose_way(set, record.way(), record.goes_reused());
        }
    }

    /// Handles an evicted line: nearer copies go if the cache is inclusive, the line goes outward.
    pub(in crate::model) fn evicted(&mut self, at: usize, mut gone: Removed, access: &Access, outcome: &mut Outcome) {
        if self.caches[at].inclusive {
            let bytes = 1u64 << self.caches[at].line_log2;
            for &nearer in &self.plan.instances[at].nearer {
                let Some(spot) = self.pages.spot(gone.page, nearer) else { continue };
                let nearer = &mut self.caches[nearer];
                for line_address in (gone.address..gone.address + bytes).step_by(1 << nearer.line_log2) {
                    gone.dirty |= nearer.back_invalidate(nearer.line_of(spot, line_address));
                }
            }
        }
        let mut behind = self.caches[at].parent;
        let mut direct = true;
        while let Some(outer) = behind {
            if self.caches[outer].exclusive && (direct || gone.dirty) {
                let spot = self.spot(outer, gone.page);
                let cache = &mut self.caches[outer];
                let set = cache.set_of(spot, gone.address, gone.address);
                if let Some(next) = cache.insert_victim(set, gone, cache.line_of(spot, gone.address)) {
                    self.evicted(outer, next, access, outcome);
                }
                return;
            }
            if !gone.dirty {
                return;
            }
            let cache = &mut self.caches[outer];
            if let Some(spot) = self.pages.spot(gone.page, outer)
                && let Some(frame) = cache.frame_of(cache.line_of(spot, gone.address))
            {
                cache.set_flags(frame, DIRTY, 0);
                return;
            }
            direct = false;
            behind = cache.parent;
        }
        if gone.dirty {
            self.write_back(gone.page, access, outcome);
        }
    }

    /// A modified line goes to memory.
    pub(in crate::model) fn write_back(&mut self, page: u32, access: &Access, outcome: &mut Outcome) {
        let home = self.pages.page(page).home;
        outcome.write_backs = outcome.write_backs.saturating_add(1);
        self.nodes[usize::from(home)].write_backs += 1;
        self.bus.transact(access.cpu, home, access.now);
    }
}
