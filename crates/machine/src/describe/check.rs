//! Checks of a machine before the model uses it.

use super::problem::Step::{Index, Key};
use super::problem::{Problem, number};
use nearmiss_record::abi::MAX_NODES;
use nearmiss_record::machine::{Cache, CacheKind, Inclusion, Machine, Replacement, Sharing};
use nearmiss_record::model::MAX_LEVELS;

/// CPUs that share one instance of a cache of this sharing.
pub fn cpus_per_instance(machine: &Machine, sharing: Sharing) -> u32 {
    let t = &machine.topology;
    match sharing {
        Sharing::Thread => 1,
        Sharing::Core => t.threads_per_core,
        Sharing::Cluster => t.threads_per_core * t.cores_per_cluster.max(1),
        Sharing::Package => t.threads_per_core * t.cores_per_package,
        Sharing::Node => t.cpus() / machine.memory.nodes.max(1),
    }
}

/// Sets of a cache; valid for a checked machine.
pub fn sets(cache: &Cache) -> u64 {
    cache.size.0 / (u64::from(cache.ways) * cache.line.0)
}

const MAX_CPUS: u64 = 1024;
const MAX_CACHE_BYTES_ALL: u64 = 16 << 30;
const MAX_WAYS: u32 = 1024;
const SMALLEST_PAGE: u64 = 4096;

/// Checks everything that the types cannot: the first problem, in the order of the file.
pub fn check(machine: &Machine) -> Result<(), Problem> {
    scalars(machine)?;
    topology(machine)?;
    memory(machine)?;
    if machine.caches.is_empty() {
        return Err(Problem::new([Key("cache")], "no cache", "at least a `[[cache]]` with level = 1, kind = \"data\""));
    }
    for (i, cache) in machine.caches.iter().enumerate() {
        geometry(machine, cache, i)?;
    }
    hierarchy(machine)?;
    latency(machine)?;
    super::core::check(machine)
}

fn scalars(machine: &Machine) -> Result<(), Problem> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
    if machine.name.is_empty() || machine.name.len() > 64 || !machine.name.chars().all(plain) {
        return Err(Problem::new(
            [Key("name")],
            format!("name is {:?}", machine.name),
            "lower-case letters, digits, `-`",
        ));
    }
    if !matches!(machine.isa.as_str(), "x86" | "x86_64" | "aarch64" | "riscv64" | "ppc64" | "s390x") {
        return Err(Problem::new(
            [Key("isa")],
            format!("isa is {:?}", machine.isa),
            "x86, x86_64, aarch64, riscv64, ppc64 or s390x",
        ));
    }
    number(&[Key("clock_mhz")], machine.clock_mhz, 1, 100_000)?;
    number(&[Key("cycles_per_instruction")], machine.cycles_per_instruction, 0.05, 100.0)?;
    number(&[Key("overlap")], machine.overlap, 0.0, 1.0)?;
    number(&[Key("write_combining_buffers")], machine.write_combining_buffers, 1, 64)?;
    if let Some(aliasing) = machine.store_aliasing {
        let at = |key| [Key("store_aliasing"), Key(key)];
        number(&at("stores"), aliasing.stores, 1, 1024)?;
        number(&at("wait_cycles"), aliasing.wait_cycles, 0.0, 100.0)?;
    }
    number(&[Key("bus"), Key("transaction_cycles")], machine.bus.transaction_cycles, 1, 100_000)?;
    number(&[Key("bus"), Key("channels")], machine.bus.channels, 1, 1024)
}

fn topology(machine: &Machine) -> Result<(), Problem> {
    let t = &machine.topology;
    let at = |key| [Key("topology"), Key(key)];
    number(&at("packages"), t.packages, 1, 64)?;
    number(&at("cores_per_package"), t.cores_per_package, 1, 1024)?;
    number(&at("threads_per_core"), t.threads_per_core, 1, 8)?;
    let cpus = u64::from(t.packages) * u64::from(t.cores_per_package) * u64::from(t.threads_per_core);
    if cpus > MAX_CPUS {
        return Err(Problem::new([Key("topology")], format!("{cpus} CPUs"), format!("at most {MAX_CPUS}")));
    }
    if t.cores_per_cluster != 0 && !t.cores_per_package.is_multiple_of(t.cores_per_cluster) {
        return Err(Problem::new(
            at("cores_per_cluster"),
            format!("clusters of {} cores in a package of {}", t.cores_per_cluster, t.cores_per_package),
            "a divisor of cores_per_package, or 0",
        ));
    }
    Ok(())
}

fn memory(machine: &Machine) -> Result<(), Problem> {
    let (t, m) = (&machine.topology, &machine.memory);
    let at = |key| [Key("memory"), Key(key)];
    number(&at("nodes"), m.nodes, 1, MAX_NODES as u32)?;
    let cores = t.packages * t.cores_per_package;
    let aligned = t.packages.is_multiple_of(m.nodes) || m.nodes.is_multiple_of(t.packages);
    if !cores.is_multiple_of(m.nodes) || !aligned {
        return Err(Problem::new(
            at("nodes"),
            format!("{} nodes for {} packages of {} cores", m.nodes, t.packages, t.cores_per_package),
            "equal numbers of whole cores a node, and whole packages a node or whole nodes a package",
        ));
    }
    for (key, cycles) in
        [("first_touch_cycles", m.first_touch_cycles), ("large_first_touch_cycles", m.large_first_touch_cycles)]
    {
        cycles.map_or(Ok(()), |cycles| number(&at(key), cycles, 1, 1_000_000_000))?;
    }
    if !m.page_size.0.is_power_of_two() || m.page_size.0 < SMALLEST_PAGE || m.page_size.0 > 1 << 30 {
        return Err(Problem::new(
            at("page_size"),
            format!("page_size is {}", m.page_size),
            "a power of two from 4 KiB to 1 GiB",
        ));
    }
    Ok(())
}

fn geometry(machine: &Machine, cache: &Cache, i: usize) -> Result<(), Problem> {
    let at = |key| [Key("cache"), Index(i), Key(key)];
    number(&at("level"), u32::from(cache.level), 1, MAX_LEVELS as u32)?;
    number(&at("ways"), cache.ways, 1, MAX_WAYS)?;
    if !cache.line.0.is_power_of_two() || !(16..=1024).contains(&cache.line.0) {
        return Err(Problem::new(
            at("line"),
            format!("line is {}", cache.line),
            "a power of two from 16 to 1024 bytes",
        ));
    }
    let set_bytes = u64::from(cache.ways) * cache.line.0;
    if cache.size.0 == 0 || !cache.size.0.is_multiple_of(set_bytes) {
        return Err(Problem::new(
            at("size"),
            format!("{} ways of {} lines do not divide {}", cache.ways, cache.line, cache.size),
            format!("a multiple of {set_bytes} bytes"),
        ));
    }
    if !sets(cache).is_power_of_two() {
        return Err(Problem::new(
            at("size"),
            format!("{} in {} ways: {} sets is no power of two", cache.size, cache.ways, sets(cache)),
            "size / (ways × line) a power of two, such as 48 KiB in 12 ways of 64-byte lines",
        ));
    }
    if cache.others_lines > 0 && (cache.replacement != Replacement::Lru || cache.ways > 16 || cache.level == 1) {
        return Err(Problem::new(
            at("others_lines"),
            format!("lines of others in {} of {} ways, replaced by {:?}", cache.name(), cache.ways, cache.replacement),
            "a level behind the first with replacement \"lru\" and at most 16 ways",
        ));
    }
    if cache.replacement == Replacement::TreePlru && (!cache.ways.is_power_of_two() || cache.ways > 64) {
        return Err(Problem::new(
            at("replacement"),
            format!("tree-plru in {} ways", cache.ways),
            "ways a power of two up to 64, or lru, random or srrip",
        ));
    }
    if cache.shared_by == Sharing::Cluster && machine.topology.cores_per_cluster == 0 {
        return Err(Problem::new(
            at("shared_by"),
            "a cache for each cluster, and no clusters",
            "topology.cores_per_cluster above 0, or thread, core, package or node",
        ));
    }
    if cache.level == 1 && cache.inclusion != Inclusion::None {
        return Err(Problem::new(at("inclusion"), "a first level that includes nothing nearer", "none"));
    }
    if cache.level == 1 && cache.kind == CacheKind::Unified {
        return Err(Problem::new(
            at("kind"),
            "a unified first level",
            "a data and an instruction cache (fetches and references are filtered apart)",
        ));
    }
    Ok(())
}

fn hierarchy(machine: &Machine) -> Result<(), Problem> {
    let mut bytes: u64 = 0;
    for (i, cache) in machine.caches.iter().enumerate() {
        let at = |key| [Key("cache"), Index(i), Key(key)];
        let group = cpus_per_instance(machine, cache.shared_by);
        bytes = bytes.saturating_add(cache.size.0.saturating_mul(u64::from(machine.topology.cpus() / group.max(1))));
        let clash = |a: CacheKind, b: CacheKind| a == b || a == CacheKind::Unified || b == CacheKind::Unified;
        if machine.caches[..i].iter().any(|c| c.level == cache.level && clash(c.kind, cache.kind)) {
            return Err(Problem::new(
                at("level"),
                format!("a second cache of level {}", cache.level),
                "one a level and kind",
            ));
        }
        let serves = |c: &&Cache| c.level + 1 == cache.level && c.kind.holds_data() == cache.kind.holds_data();
        let nearer = machine.caches.iter().find(serves);
        if cache.level > 1 && nearer.is_none() {
            return Err(Problem::new(
                at("level"),
                format!("level {} without a level {} before it", cache.level, cache.level - 1),
                "levels from 1 on without a gap",
            ));
        }
        for nearer in machine.caches.iter().filter(|c| c.level + 1 == cache.level) {
            let inner = cpus_per_instance(machine, nearer.shared_by);
            if group < inner || !group.is_multiple_of(inner) {
                return Err(Problem::new(
                    at("shared_by"),
                    format!("level {} serves {group} CPUs, level {} serves {inner}", cache.level, nearer.level),
                    "each cache shared by all that share the nearer one",
                ));
            }
            if cache.line.0 < nearer.line.0 {
                return Err(Problem::new(
                    at("line"),
                    format!("lines of {} behind lines of {}", cache.line, nearer.line),
                    "lines no shorter than the nearer level's",
                ));
            }
            if cache.inclusion == Inclusion::Exclusive && cache.line != nearer.line {
                return Err(Problem::new(
                    at("inclusion"),
                    format!("exclusive, with lines of {} behind lines of {}", cache.line, nearer.line),
                    "equal lines, or inclusion none or inclusive",
                ));
            }
        }
    }
    if !machine.caches.iter().any(|c| c.level == 1 && c.kind == CacheKind::Data) {
        return Err(Problem::new(
            [Key("cache"), Index(0)],
            "no first-level data cache",
            "a cache with level = 1, kind = \"data\"",
        ));
    }
    if bytes > MAX_CACHE_BYTES_ALL {
        return Err(Problem::new(
            [Key("cache")],
            format!("{} MiB of caches in all", bytes >> 20),
            format!("at most {} GiB: the model keeps every line", MAX_CACHE_BYTES_ALL >> 30),
        ));
    }
    Ok(())
}

fn latency(machine: &Machine) -> Result<(), Problem> {
    let l = &machine.latency;
    let at = |key| [Key("latency"), Key(key)];
    let levels = machine.levels();
    if l.level_cycles.len() != levels {
        return Err(Problem::new(
            at("level_cycles"),
            format!("{} latencies for {levels} levels", l.level_cycles.len()),
            format!("{levels}, nearest first"),
        ));
    }
    if l.level_cycles.first() == Some(&0) || !l.level_cycles.is_sorted() {
        return Err(Problem::new(
            at("level_cycles"),
            format!("latencies {:?}", l.level_cycles),
            "above 0, and none less than a nearer level's",
        ));
    }
    let last = l.level_cycles.last().copied().unwrap_or(0);
    number(&at("memory_local_cycles"), l.memory_local_cycles, last, 1_000_000)?;
    number(&at("memory_remote_cycles"), l.memory_remote_cycles, l.memory_local_cycles, 1_000_000)?;
    for (key, cycles) in [
        ("core_clean_cycles", l.core_clean_cycles),
        ("core_modified_cycles", l.core_modified_cycles),
        ("remote_cache_cycles", l.remote_cache_cycles),
    ] {
        number(&at(key), cycles, 1, 1_000_000)?;
    }
    Ok(())
}
