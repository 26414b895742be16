//! From sysfs to a machine description.

use super::bounds::{self, CLOCK_MHZ};
use super::latencies::{Latencies, in_cycles};
use super::measured::Sources;
use super::plausible::plausible;
use super::{Calibration, CoreFigures, Found, FoundCache, HostError, StreamFigures, measured as parts};
use nearmiss_machine::describe::{check, sets};
use nearmiss_record::machine::{
    Bus, BusSharing, Cache, CacheKind, Inclusion, Index, Machine, Memory, Placement, Protocol, Replacement, Sharing,
    StoreAliasing, Topology, halved_chase_cycles,
};
use nearmiss_record::units::Bytes;

const SYSFS: &str = "sysfs";
/// Most ways of a last level that others use, too: the order of so many is followed.
const MOST_WAYS: u64 = 16;
/// Most that is modelled of such a level, if a chase does not keep more than a quarter of that.
const MOST_MODELLED: u64 = 64 << 20;
const TYPICAL_CLOCK_MHZ: u32 = 2500;
/// Stores that a load is compared with, if not specified.
const COMPARED_STORES: u32 = 24;

/// The host as a machine; without a calibration its latencies are usual figures of its processors, marked assumed, as
/// are those that a calibration has outside the range of such processors.
pub fn describe(found: &Found, calibration: Option<&Calibration>) -> Result<Machine, HostError> {
    let reported_mhz = found.clock_mhz.filter(|mhz| (CLOCK_MHZ[0]..=CLOCK_MHZ[1]).contains(&f64::from(*mhz)));
    let sieved = calibration.map(|c| plausible(found, c, reported_mhz.unwrap_or(TYPICAL_CLOCK_MHZ)));
    let replaced = sieved.as_ref().map(|sieved| &sieved.replaced);
    let calibration = sieved.as_ref().map(|sieved| &sieved.calibration);
    let mut sources = fixed_sources();
    let mut topology = topology(found);
    let nodes = nodes(found, &topology);
    note_shape(found, &topology, nodes, &mut sources);
    let caches = caches(found, calibration, &mut topology, nodes, &mut sources);
    let levels = caches.iter().map(|c| usize::from(c.level)).max().unwrap_or(0);
    let clock_mhz = clock_mhz(calibration, reported_mhz, &mut sources);
    let cycles = in_cycles(clock_mhz);
    let latencies = Latencies { calibration, replaced, family: bounds::family(found), nodes, clock_mhz };
    let latency = latencies.of_levels(levels, &mut sources);
    let tlb = calibration.and_then(|c| Some(parts::tlb(c.translation?, &c.second_translation, cycles, &mut sources)));
    let store_aliasing = calibration.and_then(|c| c.aliased_load_ns).map(|ns| StoreAliasing {
        stores: COMPARED_STORES,
        wait_cycles: (ns * f64::from(clock_mhz) / 1e3 * 100.0).round() / 100.0,
    });
    if store_aliasing.is_some() {
        let from = "measured here by a running sum; how many stores: assumed";
        sources.insert("store_aliasing".to_owned(), from.to_owned());
    }
    let touches = calibration.map(|c| c.touches.clone()).unwrap_or_default();
    let [first_touch_cycles, large_first_touch_cycles] = parts::first_touches(&touches, cycles, &mut sources);
    let none = (CoreFigures::default(), StreamFigures::default());
    let (core, streams) = calibration.map_or((&none.0, &none.1), |c| (&c.core, &c.streams));
    let core = parts::core(core, &mut sources);
    let streams = parts::streams(streams, &latency, f64::from(clock_mhz) / 1e3, &mut sources);
    let machine = Machine {
        name: "host".into(),
        title: format!("this machine: {}", found.model),
        isa: std::env::consts::ARCH.into(),
        clock_mhz,
        cycles_per_instruction: 0.4,
        topology,
        memory: Memory {
            nodes,
            page_size: Bytes(4096),
            placement: Placement::Random,
            placement_seed: 1,
            first_touch_cycles,
            large_first_touch_cycles,
        },
        caches,
        coherence: if matches!(found.vendor.as_str(), "AuthenticAMD" | "HygonGenuine") {
            Protocol::Moesi
        } else {
            Protocol::Mesi
        },
        latency,
        tlb,
        core: Some(core),
        streams: Some(streams),
        store_aliasing,
        overlap: 0.0,
        bus: Bus { transaction_cycles: cycles(2.5), shared_by: BusSharing::Node, channels: 2 },
        write_combining_buffers: 8,
        noise: calibration.and_then(|c| c.noise.clone()),
        sources: with_reasons(sources, sieved.map(|sieved| sieved.replaced).unwrap_or_default()),
    };
    match check(&machine) {
        Ok(()) => Ok(machine),
        Err(problem) => Err(HostError::Nonsense(problem)),
    }
}

/// Sources of the figures that every host has alike.
fn fixed_sources() -> Sources {
    let fixed = [
        ("memory.page_size", "assumed: the kernel's base page"),
        ("cycles_per_instruction", "assumed: about 2.5 instructions a cycle while it hits"),
        ("coherence", "assumed from the vendor"),
        ("bus", "assumed: two memory channels a node, 64 bytes at 25.6 GB/s"),
        ("write_combining_buffers", "assumed: 8"),
    ];
    fixed.map(|(figure, from)| (figure.to_owned(), from.to_owned())).into()
}

fn note(sources: &mut Sources, figure: &str, from: &str) {
    sources.insert(figure.to_owned(), from.to_owned());
}

/// Notes how regular the topology and the nodes are.
fn note_shape(found: &Found, topology: &Topology, nodes: u32, sources: &mut Sources) {
    let regular = topology.cpus() as usize == found.cpus().count();
    let from = if regular { SYSFS } else { "sysfs, made regular: packages or cores differ in size" };
    note(sources, "topology", from);
    let equal = nodes as usize == found.nodes.len();
    note(sources, "memory.nodes", if equal { SYSFS } else { "assumed: sysfs lists nodes of unequal size" });
}

/// Returns the caches, as far as others leave them. May make clusters of cores that share one.
fn caches(
    found: &Found,
    calibration: Option<&Calibration>,
    topology: &mut Topology,
    nodes: u32,
    sources: &mut Sources,
) -> Vec<Cache> {
    let last = found.caches.iter().map(|c| c.level).max();
    let mut caches = Vec::new();
    for c in &found.caches {
        let shared_by = sharing(c, topology, nodes);
        let left = calibration.and_then(|c| c.last_level_left).filter(|_| last == Some(c.level));
        let shared = left.zip(calibration).and_then(|(left, calibration)| shared_with(c, left, calibration, shared_by));
        let (mut cache, from) = shared.unwrap_or_else(|| cache(c, shared_by));
        let reach = calibration.and_then(|c| c.second_level_reach).filter(|_| c.level == 2);
        let name = format!("cache.{}", cache.name());
        let differ = "sysfs, of the first CPU: others have other caches";
        note(sources, &name, if found.caches_differ { differ } else { &from });
        note(sources, &format!("{name}.replacement"), "assumed: sysfs does not list it");
        note(sources, &format!("{name}.index"), set_index(&mut cache, reach));
        if cache.level > 1 {
            note(sources, &format!("{name}.inclusion"), "assumed: sysfs does not list it");
        }
        caches.push(cache);
    }
    caches
}

/// Returns the clock: measured, reported by the kernel, or a typical one.
fn clock_mhz(calibration: Option<&Calibration>, reported_mhz: Option<u32>, sources: &mut Sources) -> u32 {
    let (mhz, from) = match (calibration.and_then(|c| c.clock_mhz), reported_mhz) {
        (Some(mhz), _) => (mhz, "measured here by a chain of multiplications"),
        (None, Some(mhz)) => (mhz, "sysfs or /proc/cpuinfo"),
        (None, None) => (TYPICAL_CLOCK_MHZ, "assumed: the kernel does not report it"),
    };
    note(sources, "clock_mhz", from);
    mhz
}

/// The sources, with the reason of each figure that was measured and is assumed.
fn with_reasons(mut sources: Sources, replaced: Sources) -> Sources {
    for (figure, why) in replaced {
        sources.entry(figure).and_modify(|source| *source = why);
    }
    sources
}

/// Sets the cache's index from the sets that lines at one offset of their pages reach, and returns the source. More of
/// them than pages of a way mean that a hash of the page's number reaches into the offset's bits.
fn set_index(cache: &mut Cache, reach: Option<u64>) -> &'static str {
    let Some(reach) = reach else { return "assumed: sysfs does not list it" };
    let sets = sets(cache);
    if reach > sets * cache.line.0 / 4096 {
        cache.index = Index::Hashed;
        cache.hashed_bits = reach.min(sets).next_power_of_two().trailing_zeros();
    }
    "measured here by a chase through lines at one offset of their pages"
}

/// Returns the largest regular shape inside the topology found.
fn topology(found: &Found) -> Topology {
    let cores = found.packages.iter().map(Vec::len).min().unwrap_or(1).max(1);
    let threads = found.packages.iter().flatten().map(Vec::len).min().unwrap_or(1).max(1);
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Topology {
        packages: number(found.packages.len().max(1)),
        cores_per_package: number(cores),
        threads_per_core: number(threads),
        cores_per_cluster: 0,
    }
}

/// Nodes, if they divide the machine evenly; else one.
fn nodes(found: &Found, topology: &Topology) -> u32 {
    let nodes = u32::try_from(found.nodes.len()).unwrap_or(1).max(1);
    let size = found.nodes.first().map(Vec::len);
    let equal = found.nodes.iter().all(|n| Some(n.len()) == size);
    let cores = topology.packages * topology.cores_per_package;
    let whole = cores.is_multiple_of(nodes)
        && (topology.packages.is_multiple_of(nodes) || nodes.is_multiple_of(topology.packages));
    if equal && whole { nodes } else { 1 }
}

/// Returns the sharers of a cache, by how many CPUs its list names. May make the clusters that it finds.
fn sharing(cache: &FoundCache, topology: &mut Topology, nodes: u32) -> Sharing {
    let sharers = u32::try_from(cache.cpus.len()).unwrap_or(u32::MAX).max(1);
    let package = topology.cores_per_package * topology.threads_per_core;
    let cores = sharers / topology.threads_per_core;
    if sharers >= package && package > topology.threads_per_core {
        Sharing::Package
    } else if sharers == topology.cpus() / nodes && cores > 1 {
        Sharing::Node
    } else if cores > 1
        && topology.cores_per_package.is_multiple_of(cores)
        && [0, cores].contains(&topology.cores_per_cluster)
    {
        topology.cores_per_cluster = cores;
        Sharing::Cluster
    } else if cores > 1 {
        Sharing::Package
    } else if sharers < topology.threads_per_core {
        Sharing::Thread
    } else if cache.level >= 3 && package == topology.threads_per_core {
        Sharing::Package
    } else {
        Sharing::Core
    }
}

/// Returns a level of which a chase of more than `left` bytes goes to memory for most of its loads, since others bring in
/// other lines. The chase uses each line again after a time that follows from its size, in which others fill what half of
/// the sets have room for beside it. Larger levels are cut: what is beyond matters to walks of many megabytes alone.
fn shared_with(
    found: &FoundCache,
    left: u64,
    calibration: &Calibration,
    shared_by: Sharing,
) -> Option<(Cache, String)> {
    let size = found.size.min(MOST_MODELLED.max(4 * left));
    let ways = found.ways.filter(|ways| size == found.size && u64::from(*ways) <= MOST_WAYS).or_else(|| {
        let sets = (size / MOST_WAYS / found.line.max(1)).max(1).next_power_of_two();
        u32::try_from(size / found.line.max(1) / sets).ok()
    });
    let (cache, _) = cache(&FoundCache { size, ways, ..found.clone() }, shared_by);
    let hit_ns = calibration.level_ns.get(usize::from(found.level).checked_sub(1)?).copied()?;
    let load_ns = halved_chase_cycles(hit_ns, calibration.memory_local_ns?);
    let load_cycles = load_ns * f64::from(calibration.clock_mhz?) / 1e3;
    let others_lines = ((cache.size.0 as f64 / left as f64 - 1.0) / load_cycles * 1e6) as u32;
    let from = format!(
        "measured here by chases of growing size: others push out what a chase of more than {} uses; ways as listed or \
         assumed",
        Bytes(left),
    );
    Some((Cache { replacement: Replacement::Lru, others_lines, ..cache }, from))
}

/// The cache, with sets made a power of two if the hardware's many slices have another number.
fn cache(found: &FoundCache, shared_by: Sharing) -> (Cache, String) {
    let mut from = if found.ways.is_some() { SYSFS } else { "sysfs; ways assumed: it lists none" };
    let line = found.line.max(1);
    let mut ways = found.ways.unwrap_or(8);
    let lines = (found.size / line).max(1);
    let sets = lines / u64::from(ways).max(1);
    let mut size = found.size;
    if !sets.is_power_of_two() || sets * u64::from(ways) != lines {
        let rounded = if sets <= 1 { 1 } else { 1u64 << sets.ilog2() };
        ways = u32::try_from((lines + rounded / 2) / rounded).unwrap_or(1).max(1);
        size = rounded * u64::from(ways) * line;
        from = "sysfs, with sets rounded to a power of two and ways to the nearest size";
    }
    let replacement = if ways.is_power_of_two() && ways <= 64 { Replacement::TreePlru } else { Replacement::Lru };
    let hashed = found.level >= 3 && !matches!(shared_by, Sharing::Thread | Sharing::Core);
    let cache = Cache {
        level: found.level,
        kind: if found.level == 1 && found.kind == CacheKind::Unified { CacheKind::Data } else { found.kind },
        size: Bytes(size),
        ways,
        line: Bytes(line),
        shared_by,
        replacement,
        seed: 0,
        inclusion: Inclusion::None,
        index: if hashed { Index::Hashed } else { Index::Physical },
        hashed_bits: 0,
        others_lines: 0,
    };
    (cache, from.to_owned())
}

#[cfg(test)]
#[path = "tests.rs"]
pub(crate) mod tests;
