//! CPUs of a machine that share a cache, or a node.

use super::check::cpus_per_instance;
use nearmiss_record::machine::Machine;

/// The CPUs of a machine in groups that share a cache of data: the nearest one that any CPUs share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domains {
    /// Level of that cache.
    pub level: u8,
    /// CPUs that use one.
    pub cpus_each: u32,
    /// Number of domains.
    pub count: u32,
}

impl Domains {
    /// The CPUs of one.
    pub fn cpus(&self, domain: u32) -> std::ops::Range<u32> {
        domain * self.cpus_each..(domain + 1) * self.cpus_each
    }

    /// The one that a CPU belongs to.
    pub fn of(&self, cpu: u32) -> u32 {
        cpu / self.cpus_each.max(1)
    }
}

/// The sharing domains of a machine, as cut down to a guest's CPUs; none where every CPU has all its caches for itself.
pub fn domains(machine: &Machine) -> Option<Domains> {
    let shared = |level: usize| {
        let cache = machine.data_cache(level)?;
        let cpus_each = cpus_per_instance(machine, cache.shared_by);
        (cpus_each > 1).then(|| Domains { level: cache.level, cpus_each, count: machine.topology.cpus() / cpus_each })
    };
    (1..=machine.levels()).find_map(shared)
}

/// The memory node of a CPU: nodes have as many CPUs each.
pub fn node_of(machine: &Machine, cpu: u32) -> u32 {
    let (nodes, cpus) = (u64::from(machine.memory.nodes.max(1)), u64::from(machine.topology.cpus().max(1)));
    (u64::from(cpu) * nodes / cpus) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::describe::{cut, preset};

    fn of(name: &str, cpus: u32) -> Option<(u8, u32, u32)> {
        let machine = cut(&preset(name).unwrap().machine().unwrap(), cpus);
        domains(&machine).map(|domains| (domains.level, domains.cpus_each, domains.count))
    }

    #[test]
    fn the_nearest_cache_that_is_shared_counts() {
        assert_eq!(of("xeon-ht-2x2", 4), Some((1, 2, 2)));
        assert_eq!(of("xeon-ht-2x2", 2), Some((1, 2, 1)));
        assert_eq!(of("neoverse-n1", 4), Some((3, 4, 1)));
        assert_eq!(of("pentium3-xeon-8way", 8), None);
    }

    #[test]
    fn nodes_have_as_many_cpus_each() {
        let machine = cut(&preset("pentium3-xeon-numa-2x2").unwrap().machine().unwrap(), 4);
        assert_eq!([0, 1, 2, 3].map(|cpu| node_of(&machine, cpu)), [0, 0, 1, 1]);
    }

    #[test]
    fn every_cpu_is_in_one() {
        let domains = Domains { level: 2, cpus_each: 2, count: 3 };
        assert_eq!((domains.cpus(1), domains.of(3), domains.of(5)), (2..4, 1, 2));
    }
}
