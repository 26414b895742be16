//! The replica of the kernel's allocator: by its own rules, and all its figures, pinned.
#![allow(clippy::unwrap_used)]

use nearmiss_papers::numa::chassis::Chassis;
use nearmiss_papers::numa::load::{Function, Load};
use nearmiss_papers::numa::memory::{Memory, NODE_BYTES};
use nearmiss_papers::numa::pools::{Class, Pools};
use nearmiss_papers::numa::{Kernel, SERVER, WEB, replica};
use nearmiss_papers::pacing::plan::Scale;
use nearmiss_papers::{paper, text};
use std::path::Path;

/// Tables (a) and (b) of the paper; (c) and (d) are recorded.
#[test]
fn the_numa_papers_simulated_figures_are_these() {
    let numa = paper("numa").unwrap();
    for table in ["a", "b"] {
        let record = numa.run(Some(table), Scale::Small, Path::new(""), &|_, _| ()).unwrap();
        insta::assert_snapshot!(format!("the_numa_papers_figures_{table}"), text::render(&record));
        assert_eq!(record.pictures.len(), 4);
        for picture in &record.pictures {
            assert!(picture.svg.starts_with("<svg") && picture.svg.ends_with("</svg>"), "{}", picture.file);
            assert!(!picture.svg.contains("NaN") && !picture.svg.contains("inf"), "{}", picture.file);
        }
    }
}

struct AllocatorParts {
    chassis: Chassis,
    memory: Memory,
    pools: Pools,
}

fn allocator(kernel: Kernel) -> AllocatorParts {
    let (chassis, mut memory) = (Chassis::new(2).unwrap(), Memory::new(2, 1));
    let pools = Pools::new(kernel, &chassis, &mut memory);
    AllocatorParts { chassis, memory, pools }
}

/// CPUs 0 and 1 are on node 0, CPUs 2 and 3 on node 1.
#[test]
fn one_pool_gives_out_what_came_back_last_wherever_it_lies() {
    let AllocatorParts { mut chassis, mut memory, mut pools } = allocator(Kernel::Base);
    let object = pools.allocate(Class::Packet, 0, &mut chassis, &mut memory);
    assert_eq!(memory.node(object.address), 0, "pages come from the node that allocates");
    pools.release(object, 3, &mut chassis, &memory);
    assert_eq!(pools.allocate(Class::Packet, 2, &mut chassis, &mut memory), object, "on the other node");
    assert_eq!(pools.allocation_pool(Class::Packet, 0, 0), pools.allocation_pool(Class::Packet, 3, 1), "one pool");
}

#[test]
fn pools_by_node_take_their_own_back_and_a_cpu_keeps_what_is_of_its_node() {
    let AllocatorParts { mut chassis, mut memory, mut pools } = allocator(Kernel::Pools);
    let object = pools.allocate(Class::Head, 0, &mut chassis, &mut memory);
    assert!(pools.free_pool(object, 2, 1, &memory).is_some(), "goes back to node 0");
    pools.release(object, 2, &mut chassis, &memory);
    let other = pools.allocate(Class::Head, 3, &mut chassis, &mut memory);
    assert!(other.address >= NODE_BYTES, "node 1 has its own");
    assert_eq!(pools.allocate(Class::Head, 1, &mut chassis, &mut memory), object, "node 0 has it again");
    pools.release(object, 1, &mut chassis, &memory);
    assert_eq!(pools.allocation_pool(Class::Head, 1, 0), None, "no lock: the CPU's own cache has it");
    assert!(pools.allocation_pool(Class::Head, 0, 0).is_some());
    assert_eq!(pools.allocate(Class::Head, 1, &mut chassis, &mut memory), object);
}

#[test]
fn one_node_has_no_remote_reads_and_the_same_work() {
    let load = Load { sent: 2, ..WEB };
    let [one, two] = [1, 2].map(|nodes| replica::run(load, Kernel::Base, nodes, 3, 40).unwrap());
    assert_eq!(one.bus.read_remote, 0);
    assert!(two.bus.read_remote > 0);
    assert!(one.cycles.iter().sum::<u64>() < two.cycles.iter().sum::<u64>());
    assert_eq!(one, replica::run(load, Kernel::Base, 1, 3, 40).unwrap(), "the same seed");
}

#[test]
fn bound_processes_find_their_own_memory_near() {
    let load = Load { lasting_lines: 0, shared_lines: 0, file_lines: 0, sent: 0, ..SERVER };
    let [free, bound] =
        [Kernel::Pools, Kernel::PoolsBound].map(|kernel| replica::run(load, kernel, 2, 1, 60).unwrap().bus);
    assert!(free.read_remote * 10 > free.reads() * 4, "half of it lies elsewhere");
    assert!(bound.read_remote * 10 < bound.reads());
}

/// No task waits if no two CPUs need the same lock.
#[test]
fn locks_are_waited_for_where_they_are_shared() {
    let alone = Load { connections: 0, locked_calls: 0, received: 0, sent: 0, acknowledged: 0, ..WEB };
    let counts = replica::run(alone, Kernel::Base, 2, 1, 20).unwrap();
    assert_eq!((counts.lock_requests, counts.contended, counts.of(Function::LockWait)), (0, 0, 0.0));
    let counts = replica::run(WEB, Kernel::Base, 2, 1, 20).unwrap();
    assert!(counts.contended > 0 && counts.of(Function::LockWait) > 0.0);
}
