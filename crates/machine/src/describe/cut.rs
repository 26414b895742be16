//! The guest's machine: a machine's shape, cut down to few CPUs.

use nearmiss_record::machine::{Machine, Topology};

/// CPUs of a guest unless specified.
pub const DEFAULT_CPUS: u32 = 4;

/// The machine with at most `cpus` CPUs (at least one).
///
/// Parts that make CPUs differ are kept longest. Given up, in this order, each only as far as needed:
/// 1. cores of a package, down to one a package (or one a node, where a package holds several nodes);
/// 2. packages beyond one a node;
/// 3. hardware threads of a core;
/// 4. nodes, with their packages.
///
/// So 2 packages × 1 core × 2 threads at 4 CPUs stay as they are; 2 × 64 × 2 become 2 × 1 × 2; 8 × 1 × 1 become
/// 4 × 1 × 1. Every cache keeps its size: fewer CPUs share the whole of it. Clusters shrink with the cores.
pub fn cut(machine: &Machine, cpus: u32) -> Machine {
    let limit = cpus.max(1);
    let full = machine.topology;
    if full.cpus() <= limit {
        return machine.clone();
    }
    let mut nodes = machine.memory.nodes;
    let mut packages = full.packages;
    let mut threads = full.threads_per_core;
    let cores_needed = |nodes: u32, packages: u32| (nodes / packages.max(1)).max(1);
    while packages * cores_needed(nodes, packages) * threads > limit {
        if packages > nodes {
            // Whole packages a node stay equal.
            packages = next_multiple_down(packages, nodes);
        } else if threads > 1 {
            threads -= 1;
        } else {
            nodes -= 1;
            packages = packages.min(nodes);
            while !nodes.is_multiple_of(packages) {
                packages -= 1;
            }
        }
    }
    let step = cores_needed(nodes, packages);
    let most = (limit / (packages * threads)).min(full.cores_per_package);
    let cluster = full.cores_per_cluster;
    // Whole cores a node, and whole clusters or a part of one.
    let fits = |cores: &u32| {
        cores.is_multiple_of(step) && (*cores <= cluster || cluster == 0 || cores.is_multiple_of(cluster))
    };
    let cores = (1..=most).rev().find(fits).unwrap_or(step);
    let mut small = machine.clone();
    small.memory.nodes = nodes;
    small.topology = Topology {
        packages,
        cores_per_package: cores,
        threads_per_core: threads,
        cores_per_cluster: cluster.min(cores),
    };
    small.title = format!("{}, cut down to {packages} × {cores} × {threads} CPUs", machine.title);
    small
}

/// The next smaller multiple of `unit` below `n`; `n` is a multiple of `unit` and larger than it.
fn next_multiple_down(n: u32, unit: u32) -> u32 {
    n - unit.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::describe::{PRESETS, check, preset};

    fn shape(name: &str, cpus: u32) -> (u32, u32, u32, u32) {
        let m = cut(&preset(name).expect("a preset").machine().expect("a good one"), cpus);
        (m.topology.packages, m.topology.cores_per_package, m.topology.threads_per_core, m.memory.nodes)
    }

    #[test]
    fn structure_outlives_number() {
        assert_eq!(shape("xeon-ht-2x2", 4), (2, 1, 2, 1));
        assert_eq!(shape("xeon-ht-2x2", 2), (1, 1, 2, 1));
        assert_eq!(shape("pentium3-xeon-numa-2x2", 4), (4, 1, 1, 2));
        assert_eq!(shape("pentium3-xeon-numa-2x2", 2), (2, 1, 1, 2));
        assert_eq!(shape("pentium3-xeon-8way", 4), (4, 1, 1, 1));
        assert_eq!(shape("zen4-genoa", 4), (2, 1, 2, 2));
        assert_eq!(shape("zen4-genoa", 2), (2, 1, 1, 2));
        assert_eq!(shape("zen4-genoa", 64), (2, 16, 2, 2));
        assert_eq!(shape("neoverse-n1", 4), (1, 4, 1, 1));
        assert_eq!(shape("neoverse-n1", 1000), (1, 64, 1, 1));
    }

    #[test]
    fn every_cut_of_every_machine_is_a_machine_of_at_most_that_many() {
        for p in PRESETS {
            let machine = p.machine().unwrap_or_else(|e| panic!("{e}"));
            for nodes in 1..=8 {
                let mut machine = machine.clone();
                machine.memory.nodes = nodes;
                if check(&machine).is_err() {
                    continue;
                }
                for cpus in 1..=70 {
                    let small = cut(&machine, cpus);
                    check(&small).unwrap_or_else(|e| panic!("{} with {nodes} nodes cut to {cpus}: {e}", p.name));
                    assert!(small.topology.cpus() <= cpus, "{} cut to {cpus}: {:?}", p.name, small.topology);
                }
            }
        }
    }
}
