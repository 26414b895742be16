//! Ranges that published figures of a processor's family leave possible.
//!
//! A range is what is published, with room for the next generation, for pages that need a walk, and for a hypervisor.
//! It excludes figures of no such processor, such as half a millisecond for a line from another core. Sources:
//! - AMD, Software Optimization Guides: 17h (55723, 56305: L1 4, L2 12, L3 39 to 40 cycles), 19h (56665, Zen 3: 4, 12, 46;
//!   57647, Zen 4: 4, 14, 50), 1Ah (58455, Zen 5: 4, 14).
//! - Intel, Optimization Reference Manual (248966): L1 4 to 5, L2 12 to 15 cycles from Skylake to Golden Cove.
//! - Pellegrini et al., The Arm Neoverse N1 Platform, IEEE Micro 40(2), 2020: L1 4, L2 9 to 11 cycles.
//! - Velten et al., Memory Performance of AMD EPYC Rome and Intel Cascade Lake SP Server Processors, ICPE 2022: memory of
//!   the own and of another node.
//! - Chips and Cheese, Core to Core Latency Data on Large Systems, 2023: lines within a core, a package, across packages.

use super::Found;
use nearmiss_record::model::MAX_LEVELS;

/// A figure's range, and its usual value.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    /// The least that is plausible.
    pub low: f64,
    /// The most.
    pub high: f64,
    /// Assumed instead of a figure outside.
    pub usual: f64,
}

const fn range(low: f64, usual: f64, high: f64) -> Range {
    Range { low, high, usual }
}

/// Latencies of a family.
#[derive(Debug)]
pub struct Family {
    /// For people: `AMD family 19h`.
    pub name: &'static str,
    vendors: &'static [&'static str],
    numbers: std::ops::RangeInclusive<u32>,
    /// Load-to-use cycles by level, nearest first.
    pub level_cycles: [Range; MAX_LEVELS],
    /// Nanoseconds of the own node's memory.
    pub memory_ns: Range,
}

/// Nanoseconds of another node's memory: 1.2 to 2 times the own, or two hops away.
pub const REMOTE_NS: [f64; 2] = [40.0, 800.0];
/// Nanoseconds of a line from another CPU of the package: from 5 within a core, to 200 over a mesh.
pub const LINE_NS: [f64; 2] = [3.0, 400.0];
/// Nanoseconds of a line from another package: 100 to 300.
pub const FAR_LINE_NS: [f64; 2] = [10.0, 800.0];
/// Nanoseconds of a first touch of a small page: from clearing it alone to a hypervisor that handles each fault.
pub const TOUCH_NS: [f64; 2] = [50.0, 50_000.0];
/// Nanoseconds of a first touch of a large page: from clearing 2 MiB at 100 GB/s to the time of 512 slow small ones.
pub const LARGE_TOUCH_NS: [f64; 2] = [20_000.0, 10_000_000.0];
/// From the slowest that a power manager picks to the fastest boost, in MHz.
pub const CLOCK_MHZ: [f64; 2] = [300.0, 7000.0];

/// A fourth level is rare: DRAM on the package, or a system cache.
const FOURTH: Range = range(25.0, 90.0, 500.0);
const MEMORY_NS: Range = range(40.0, 105.0, 300.0);

const FAMILIES: [Family; 5] = [
    Family {
        name: "AMD family 17h",
        vendors: &["AuthenticAMD", "HygonGenuine"],
        numbers: 0x17..=0x18,
        level_cycles: [range(3.0, 4.0, 8.0), range(9.0, 12.0, 30.0), range(25.0, 39.0, 200.0), FOURTH],
        memory_ns: MEMORY_NS,
    },
    Family {
        name: "AMD family 19h",
        vendors: &["AuthenticAMD"],
        numbers: 0x19..=0x19,
        level_cycles: [range(3.0, 4.0, 8.0), range(9.0, 14.0, 30.0), range(25.0, 50.0, 200.0), FOURTH],
        memory_ns: MEMORY_NS,
    },
    Family {
        name: "AMD family 1Ah",
        vendors: &["AuthenticAMD"],
        numbers: 0x1a..=0x1a,
        level_cycles: [range(3.0, 4.0, 8.0), range(9.0, 14.0, 30.0), range(25.0, 50.0, 200.0), FOURTH],
        memory_ns: MEMORY_NS,
    },
    Family {
        name: "Intel family 6",
        vendors: &["GenuineIntel"],
        numbers: 6..=6,
        level_cycles: [range(3.0, 5.0, 8.0), range(9.0, 14.0, 30.0), range(25.0, 65.0, 250.0), FOURTH],
        memory_ns: MEMORY_NS,
    },
    Family {
        name: "Arm's own cores",
        vendors: &["0x41"],
        numbers: 0..=u32::MAX,
        level_cycles: [range(3.0, 4.0, 8.0), range(7.0, 11.0, 30.0), range(20.0, 80.0, 250.0), FOURTH],
        memory_ns: MEMORY_NS,
    },
];

/// Any other, older and smaller ones included.
const ANY: Family = Family {
    name: "today's servers",
    vendors: &[],
    numbers: 0..=0,
    level_cycles: [range(2.0, 4.0, 12.0), range(6.0, 14.0, 60.0), range(10.0, 50.0, 300.0), FOURTH],
    memory_ns: range(30.0, 112.0, 600.0),
};

/// The family of a machine's processors.
pub fn family(found: &Found) -> &'static Family {
    let number = found.family.unwrap_or(0);
    let of = |family: &&Family| family.vendors.contains(&found.vendor.as_str()) && family.numbers.contains(&number);
    FAMILIES.iter().find(of).unwrap_or(&ANY)
}
