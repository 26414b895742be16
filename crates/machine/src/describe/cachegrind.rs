//! The machine that cachegrind simulates, for comparison with it.

use super::DescribeError;
use super::check::check;
use nearmiss_record::machine::{
    Bus, BusSharing, Cache, CacheKind, Inclusion, Index, Latency, Machine, Memory, Placement, Protocol, Replacement,
    Sharing, Topology,
};
use nearmiss_record::units::Bytes;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// A cache as cachegrind's options `--I1`, `--D1` and `--LL` give it: `size,associativity,line size`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Capacity.
    pub size: Bytes,
    /// Lines a set.
    pub ways: u32,
    /// Line size.
    pub line: Bytes,
}

impl FromStr for Geometry {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no cache; write size,ways,line in bytes as cachegrind does: 32768,8,64");
        let mut parts = text.split(',');
        let (Some(size), Some(ways), Some(line), None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(wrong());
        };
        Ok(Geometry {
            size: Bytes::parse(size)?,
            ways: ways.trim().parse().map_err(|_| wrong())?,
            line: Bytes::parse(line)?,
        })
    }
}

impl fmt::Display for Geometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{}", self.size.0, self.ways, self.line.0)
    }
}

/// Cachegrind's machine: one CPU, two levels, LRU, no inclusion, indexed by virtual address. Only its miss counts mean
/// something; its latencies are the weights that cachegrind's manual gives for rough comparison (10 and 100 cycles).
pub fn cachegrind_like(i1: Geometry, d1: Geometry, ll: Geometry) -> Result<Machine, DescribeError> {
    let cache = |level, kind, g: Geometry| Cache {
        level,
        kind,
        size: g.size,
        ways: g.ways,
        line: g.line,
        shared_by: Sharing::Core,
        replacement: Replacement::Lru,
        seed: 0,
        inclusion: Inclusion::None,
        index: Index::Virtual,
        hashed_bits: 0,
        others_lines: 0,
    };
    let machine = Machine {
        name: "cachegrind".into(),
        title: format!("what cachegrind simulates with --I1={i1} --D1={d1} --LL={ll}"),
        isa: "x86_64".into(),
        clock_mhz: 1000,
        cycles_per_instruction: 1.0,
        topology: Topology { packages: 1, cores_per_package: 1, threads_per_core: 1, cores_per_cluster: 0 },
        memory: Memory {
            nodes: 1,
            page_size: Bytes(4096),
            placement: Placement::AsRecorded,
            placement_seed: 0,
            first_touch_cycles: None,
            large_first_touch_cycles: None,
        },
        caches: vec![
            cache(1, CacheKind::Data, d1),
            cache(1, CacheKind::Instruction, i1),
            cache(2, CacheKind::Unified, ll),
        ],
        coherence: Protocol::Msi,
        latency: Latency {
            level_cycles: vec![1, 10],
            core_clean_cycles: 100,
            core_modified_cycles: 100,
            remote_cache_cycles: 100,
            memory_local_cycles: 100,
            memory_remote_cycles: 100,
        },
        tlb: None,
        core: None,
        streams: None,
        store_aliasing: None,
        overlap: 0.0,
        bus: Bus { transaction_cycles: 1, shared_by: BusSharing::Machine, channels: 1 },
        write_combining_buffers: 1,
        noise: None,
        sources: BTreeMap::from([
            ("cache".to_owned(), "given; policy: cachegrind's manual, simulation details".to_owned()),
            ("latency".to_owned(), "cachegrind's manual: rough weights of a miss".to_owned()),
        ]),
    };
    match check(&machine) {
        Ok(()) => Ok(machine),
        Err(problem) => Err(DescribeError::Wrong { name: machine.name, problem }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn geometry_reads_as_cachegrinds_options_do() {
        let g: Geometry = "32768,8,64".parse().expect("good");
        assert_eq!((g.size.0, g.ways, g.line.0, g.to_string().as_str()), (32768, 8, 64, "32768,8,64"));
        for bad in ["", "32768", "32768,8", "32768,eight,64", "1,2,3,4", "32 parsecs,8,64"] {
            assert!(bad.parse::<Geometry>().is_err(), "{bad}");
        }
    }

    #[test]
    fn it_has_one_cpu_and_refuses_what_cachegrind_refuses() {
        let g = |t: &str| t.parse::<Geometry>().expect("good");
        let m = cachegrind_like(g("32768,8,64"), g("49152,12,64"), g("8388608,16,64")).expect("a machine");
        assert_eq!((m.topology.cpus(), m.caches.len()), (1, 3));
        assert!(m.caches.iter().all(|c| c.index == Index::Virtual && c.replacement == Replacement::Lru));
        let bad = cachegrind_like(g("32768,8,64"), g("49152,8,64"), g("8388608,16,64")).expect_err("96 sets");
        assert!(bad.to_string().contains("96 sets"), "{bad}");
    }
}
