//! A machine as the model needs it: which cache instance serves which CPU, and which one is behind it.

use crate::describe::node_of;
use crate::model::options::{ModelError, ModelOptions};
use nearmiss_record::abi::MAX_VCPUS;
use nearmiss_record::machine::{
    BusSharing, Cache, CacheKind, Inclusion, Index, Latency, Machine, Protocol, Replacement, Sharing,
};
use nearmiss_record::model::MAX_LEVELS;
use nearmiss_record::reference::Kind;

/// log₂ of the guest's page, the grain of recorded physical addresses.
pub(crate) const PAGE_LOG2: u32 = 12;
/// Longest line: a byte mask of a line is 128 bits.
const MAX_LINE_LOG2: u32 = 7;

/// One `[[cache]]` of the machine.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub name: String,
    pub level: usize,
    pub kind: CacheKind,
    pub sets: u64,
    pub ways: usize,
    pub line_log2: u32,
    pub replacement: Replacement,
    pub seed: u64,
    pub inclusion: Inclusion,
    pub index: Index,
    /// Upper bits of the set's number that the hash of a hashed index makes.
    pub hashed_bits: u32,
    /// Cycles from one line that others bring in to the next, in each set; 0: nobody does.
    pub others_period_cycles: u64,
}

impl Config {
    /// As the machine describes it; refuses what the model cannot hold.
    pub fn of(machine: &Machine, cache: &Cache) -> Result<Self, ModelError> {
        let suffix = match cache.kind {
            CacheKind::Data => "d",
            CacheKind::Instruction => "i",
            CacheKind::Unified => "",
        };
        let suffix = if cache.level > 1 && cache.kind == CacheKind::Data { "" } else { suffix };
        let name = format!("L{}{suffix}", cache.level);
        let bad = |what: &str| refused(format!("{}: {name} {what}", machine.name));
        if cache.level == 0 || usize::from(cache.level) > MAX_LEVELS {
            return bad("is no level from 1 to 4");
        }
        if !cache.line.0.is_power_of_two() || cache.line.0.ilog2() > MAX_LINE_LOG2 || cache.line.0 < 8 {
            return bad("has a line that the model cannot hold; lines are 8 to 128 bytes, a power of two");
        }
        let set_bytes = u64::from(cache.ways).saturating_mul(cache.line.0);
        if set_bytes == 0
            || cache.size.0 == 0
            || !cache.size.0.is_multiple_of(set_bytes)
            || cache.size.0 / cache.line.0 >= 1 << 28
        {
            return bad("has no whole number of sets, or more than 2^28 lines");
        }
        if cache.replacement == Replacement::TreePlru && !(cache.ways.is_power_of_two() && cache.ways <= 64) {
            return bad("is tree-plru and has ways that are no power of two up to 64");
        }
        let level = usize::from(cache.level) - 1;
        Ok(Config {
            name,
            level,
            kind: cache.kind,
            sets: cache.size.0 / set_bytes,
            ways: cache.ways as usize,
            line_log2: cache.line.0.ilog2(),
            replacement: cache.replacement,
            seed: cache.seed,
            inclusion: if level == 0 { Inclusion::None } else { cache.inclusion },
            index: cache.index,
            hashed_bits: hashed_bits(cache, cache.size.0 / set_bytes),
            others_period_cycles: others_period_cycles(cache, cache.size.0 / set_bytes),
        })
    }

    /// Whether virtual, recorded and modelled physical address give the same set.
    pub fn index_within_page(&self) -> bool {
        self.index != Index::Hashed && self.sets << self.line_log2 <= 1 << PAGE_LOG2
    }

    /// The set of an address under this cache's index function. A hashed index keeps the lowest bits of the line
    /// number, where not all are hashed, and folds the rest by XOR of all its digits of `hashed_bits` bits.
    pub fn set_of(&self, address: u64) -> u64 {
        if self.index != Index::Hashed || self.sets == 1 {
            return self.within(address >> self.line_log2);
        }
        self.within(self.hashed(address))
    }

    /// A number cut to the number of sets, without the division that nearly no cache needs.
    #[inline]
    fn within(&self, number: u64) -> u64 {
        if self.sets.is_power_of_two() { number & (self.sets - 1) } else { number % self.sets }
    }

    /// The number that a hashed index makes of an address, not yet cut to the number of sets: the XOR of those of the
    /// address's parts.
    pub fn hashed(&self, address: u64) -> u64 {
        let line = address >> self.line_log2;
        let bits = self.hashed_bits;
        let plain = self.sets.next_power_of_two().trailing_zeros() - bits;
        let (mut rest, mut folded) = (line >> plain, 0);
        while rest != 0 {
            folded ^= rest & ((1 << bits) - 1);
            rest >>= bits;
        }
        folded << plain | line & ((1 << plain) - 1)
    }
}

/// One cache of the modelled machine.
#[derive(Clone, Debug)]
pub(crate) struct Instance {
    /// Index into [`Plan::configs`].
    pub config: usize,
    /// Number among its kind in the whole machine.
    pub number: u32,
    /// Guest CPUs that use the cache, a bit each.
    pub cpus: u64,
    /// Index of the instance behind this instance.
    pub parent: Option<usize>,
    /// Indices of the instances before this instance.
    pub nearer: Vec<usize>,
    /// Memory node of the cache's first CPU.
    pub node: u8,
}

/// The way of a reference through the caches: instances, nearest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CachePath {
    /// 16 bits a step, the nearest lowest: the instance's number + 1; 0: the end.
    steps: u64,
}

const STEP_BITS: usize = 16;
const _: () = assert!(MAX_LEVELS * STEP_BITS <= u64::BITS as usize);

impl CachePath {
    fn push(&mut self, at: usize) {
        self.steps |= (at as u64 + 1) << (self.len() * STEP_BITS);
    }

    #[inline]
    pub fn len(self) -> usize {
        (u64::BITS - self.steps.leading_zeros()).div_ceil(STEP_BITS as u32) as usize
    }

    /// The cache of a step that it has.
    #[inline]
    pub fn at(self, step: usize) -> usize {
        (self.steps >> (step * STEP_BITS)) as u16 as usize - 1
    }

    pub fn last(self) -> Option<usize> {
        self.len().checked_sub(1).map(|step| self.at(step))
    }

    #[inline]
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut steps = self.steps;
        std::iter::from_fn(move || {
            let at = usize::from(steps as u16).checked_sub(1);
            steps >>= STEP_BITS;
            at
        })
    }
}

/// Everything that does not change during a replay.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub configs: Vec<Config>,
    pub instances: Vec<Instance>,
    /// Way of data by CPU.
    pub data: Vec<CachePath>,
    /// Way of fetches by CPU.
    pub fetch: Vec<CachePath>,
    /// Instances that a CPU does not use and that its writes affect, by CPU.
    pub others: Vec<Vec<usize>>,
    /// CPUs that use exactly the same instances, by CPU.
    pub siblings: Vec<u64>,
    /// Core by CPU.
    pub core: Vec<usize>,
    pub cores: usize,
    /// Node by CPU.
    pub node: Vec<u8>,
    pub nodes: usize,
    /// log₂ of the coherence unit: the machine's longest line.
    pub unit_log2: u32,
    /// A store needs permission of others, or of the bus (MSI).
    pub stores_need_permission: bool,
    /// A store to a line that is here unmodified needs the bus, even without other copies (MSI).
    pub clean_stores_need_bus: bool,
    pub protocol: Protocol,
    pub latency: Latency,
    pub transaction_cycles: u64,
    pub channels: usize,
    pub bus_by_node: bool,
    pub combining_buffers: usize,
    /// Lines are identified by virtual address and address space.
    pub virtual_tags: bool,
}

fn refused<T>(why: String) -> Result<T, ModelError> {
    Err(ModelError::Refused(why))
}

impl Plan {
    pub fn new(machine: &Machine, options: &ModelOptions) -> Result<Self, ModelError> {
        let topology = &machine.topology;
        let all =
            u64::from(topology.packages) * u64::from(topology.cores_per_package) * u64::from(topology.threads_per_core);
        let cpus = options.cpus as usize;
        if cpus == 0 || cpus > MAX_VCPUS || cpus as u64 > all {
            return refused(format!(
                "the trace has {cpus} CPUs and {} has {all}; name a machine with at least as many",
                machine.name
            ));
        }
        let mut sorted: Vec<&Cache> = machine.caches.iter().collect();
        sorted.sort_by_key(|c| (c.level, matches!(c.kind, CacheKind::Instruction)));
        let configs = sorted.iter().map(|c| Config::of(machine, c)).collect::<Result<Vec<_>, _>>()?;
        let levels = configs.iter().map(|c| c.level + 1).max().unwrap_or(0);
        if machine.latency.level_cycles.len() < levels {
            return refused(format!(
                "{} has {levels} cache levels and fewer latencies; give one a level",
                machine.name
            ));
        }
        if !(0..levels).all(|l| configs.iter().any(|c| c.level == l && c.kind != CacheKind::Instruction)) || levels == 0
        {
            return refused(format!(
                "{} lacks a data or unified cache at a level; levels run from 1 without a gap",
                machine.name
            ));
        }
        for other in [CacheKind::Instruction, CacheKind::Data] {
            if configs.iter().filter(|c| c.kind != other).count() > MAX_LEVELS {
                return refused(format!("{} has several caches of one level and kind; give one", machine.name));
            }
        }
        let virtual_tags = !options.coherence && configs.iter().any(|c| c.index == Index::Virtual);
        if virtual_tags && !configs.iter().all(|c| c.index == Index::Virtual) {
            return refused(format!(
                "without coherence, {} mixes virtual with other indexes; make all of them virtual, as cachegrind's are",
                machine.name
            ));
        }
        if !virtual_tags && configs.iter().any(|c| c.index == Index::Virtual && c.level > 0 && !c.index_within_page()) {
            return refused(format!(
                "{}: only a first level may be indexed by virtual bits above the page offset",
                machine.name
            ));
        }

        let nodes = machine.memory.nodes.max(1) as usize;
        let node: Vec<u8> = (0..cpus as u32).map(|cpu| node_of(machine, cpu) as u8).collect();
        let mut plan = Plan {
            instances: Vec::new(),
            data: vec![CachePath::default(); cpus],
            fetch: vec![CachePath::default(); cpus],
            others: Vec::new(),
            siblings: Vec::new(),
            core: (0..cpus).map(|cpu| cpu / topology.threads_per_core.max(1) as usize).collect(),
            cores: 0,
            node,
            nodes,
            unit_log2: configs.iter().map(|c| c.line_log2).max().unwrap_or(6),
            stores_need_permission: false,
            clean_stores_need_bus: options.coherence && machine.coherence == Protocol::Msi,
            protocol: machine.coherence,
            latency: machine.latency.clone(),
            transaction_cycles: u64::from(machine.bus.transaction_cycles),
            channels: machine.bus.channels.max(1) as usize,
            bus_by_node: machine.bus.shared_by == BusSharing::Node,
            combining_buffers: machine.write_combining_buffers.max(1) as usize,
            virtual_tags,
            configs,
        };
        plan.cores = plan.core.last().map_or(0, |c| c + 1);
        plan.place_instances(machine, &sorted);
        plan.link(&machine.name)?;
        plan.others = (0..cpus)
            .map(|cpu| {
                let foreign = |i: &usize| options.coherence && plan.instances[*i].cpus & (1 << cpu) == 0;
                (0..plan.instances.len()).filter(foreign).collect()
            })
            .collect();
        plan.siblings = (0..cpus)
            .map(|a| (0..cpus).filter(|&b| plan.uses(a) == plan.uses(b)).fold(0, |mask, b| mask | 1 << b))
            .collect();
        plan.stores_need_permission = options.coherence
            && (machine.coherence == Protocol::Msi || plan.others.iter().any(|others| !others.is_empty()));
        Ok(plan)
    }

    fn uses(&self, cpu: usize) -> (CachePath, CachePath) {
        (self.data[cpu], self.fetch[cpu])
    }

    fn place_instances(&mut self, machine: &Machine, sorted: &[&Cache]) {
        for (config, cache) in sorted.iter().enumerate() {
            let first = self.instances.len();
            for cpu in 0..self.core.len() {
                let number = number_of(machine, cache.shared_by, cpu as u64);
                let found = self.instances[first..].iter().position(|i| i.number == number);
                let at = found.map_or(self.instances.len(), |i| first + i);
                if found.is_none() {
                    let node = self.node[cpu];
                    self.instances.push(Instance { config, number, cpus: 0, parent: None, nearer: Vec::new(), node });
                }
                self.instances[at].cpus |= 1 << cpu;
                if cache.kind != CacheKind::Instruction {
                    self.data[cpu].push(at);
                }
                if cache.kind != CacheKind::Data {
                    self.fetch[cpu].push(at);
                }
            }
        }
    }

    fn link(&mut self, name: &str) -> Result<(), ModelError> {
        for way in self.data.iter().chain(&self.fetch) {
            for step in 1..way.len() {
                let pair = [way.at(step - 1), way.at(step)];
                let (near, far) = (&self.instances[pair[0]], &self.instances[pair[1]]);
                let (n, f) = (&self.configs[near.config], &self.configs[far.config]);
                if near.cpus & !far.cpus != 0 {
                    return refused(format!(
                        "{name}: {} is shared by fewer CPUs than {}; sharing must not narrow",
                        f.name, n.name
                    ));
                }
                if f.line_log2 < n.line_log2 || (f.inclusion == Inclusion::Exclusive && f.line_log2 != n.line_log2) {
                    return refused(format!("{name}: the line of {} does not fit that of {}", f.name, n.name));
                }
                self.instances[pair[0]].parent = Some(pair[1]);
            }
        }
        for i in 0..self.instances.len() {
            let mut behind = self.instances[i].parent;
            while let Some(outer) = behind {
                self.instances[outer].nearer.push(i);
                behind = self.instances[outer].parent;
            }
        }
        Ok(())
    }

    /// The way of a CPU's references of a kind.
    #[inline]
    pub fn way(&self, cpu: usize, kind: Kind) -> CachePath {
        if kind == Kind::Fetch { self.fetch[cpu] } else { self.data[cpu] }
    }

    /// Returns the description of an instance's cache.
    pub fn config(&self, instance: usize) -> &Config {
        &self.configs[self.instances[instance].config]
    }
}

/// Returns the number, among instances of this sharing, of the one that a CPU uses.
pub(crate) fn number_of(machine: &Machine, sharing: Sharing, cpu: u64) -> u32 {
    let t = &machine.topology;
    let core = cpu / u64::from(t.threads_per_core.max(1));
    let per_package = u64::from(t.cores_per_package.max(1));
    let number = match sharing {
        Sharing::Thread => cpu,
        Sharing::Core => core,
        Sharing::Cluster => {
            let size =
                u64::from(if t.cores_per_cluster == 0 { t.cores_per_package } else { t.cores_per_cluster }).max(1);
            core / per_package * per_package.div_ceil(size) + core % per_package / size
        }
        Sharing::Package => core / per_package,
        Sharing::Node => u64::from(node_of(machine, cpu as u32)),
    };
    number as u32
}

/// Cycles from one line that others bring into a set to the next; 0: nobody does.
fn others_period_cycles(cache: &Cache, sets: u64) -> u64 {
    sets.saturating_mul(1_000_000).checked_div(cache.others_lines.into()).map_or(0, |cycles| cycles.max(1))
}

/// At least one, at most all bits of the set's number.
fn hashed_bits(cache: &Cache, sets: u64) -> u32 {
    let all = sets.next_power_of_two().trailing_zeros();
    if cache.hashed_bits == 0 { all } else { cache.hashed_bits.min(all) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::describe::preset;

    #[test]
    fn more_caches_than_levels_are_refused() {
        let mut machine = preset("zen3-milan").unwrap().machine().unwrap();
        let first = machine.caches.iter().find(|c| c.kind == CacheKind::Data).unwrap().clone();
        machine.caches.extend(std::iter::repeat_n(first, MAX_LEVELS));
        let refused = Plan::new(&machine, &ModelOptions::of_one_cpu()).unwrap_err().to_string();
        assert!(refused.contains("several caches of one level"), "{refused}");
    }
}
