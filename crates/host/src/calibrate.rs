//! Measures this host's latencies. The geometry walked is always the same; the times are what they are.

use super::additions::Additions;
use super::chase::{Cycle, clock_mhz, handover_nanoseconds};
use super::core::{self, CoreFigures};
use super::offsets::{FirstTranslation, sets_at_one_offset, translation};
use super::pages::TranslationFigures;
use super::settle::{Settled, lengthened};
use super::streams::{self, StreamFigures};
use super::touches::{self, TouchFigures};
use super::{Found, aliasing, contended, left};
use nearmiss_record::machine::Noise;
use rustix::thread::{CpuSet, sched_setaffinity};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Latencies of a host, *measured*.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The core's clock while it was measured.
    pub clock_mhz: Option<u32>,
    /// Load-to-use by level, nearest first, in nanoseconds.
    pub level_ns: Vec<f64>,
    /// Bytes that others leave of the last level, where they take more than half of it.
    pub last_level_left: Option<u64>,
    /// Own node's memory.
    pub memory_local_ns: Option<f64>,
    /// Another node's memory, where there is one.
    pub memory_remote_ns: Option<f64>,
    /// A modified line from another core of the node.
    pub core_to_core_ns: Option<f64>,
    /// A modified line from a core of another node.
    pub remote_cache_ns: Option<f64>,
    /// Sets of the second level that lines at one offset of their pages reach.
    pub second_level_reach: Option<u64>,
    /// First level of address translation.
    pub translation: Option<FirstTranslation>,
    /// Wait of a load behind a store to the same offset of another page.
    pub aliased_load_ns: Option<f64>,
    /// Latency that the core hides of its misses.
    pub core: CoreFigures,
    /// Streams that the core fetches ahead.
    pub streams: StreamFigures,
    /// The second level of address translation, and large pages.
    pub second_translation: TranslationFigures,
    /// First touches of memory; nothing in files of earlier versions.
    #[serde(default)]
    pub touches: TouchFigures,
    /// Disturbances meanwhile; nothing in files of earlier versions.
    #[serde(default)]
    pub noise: Option<Noise>,
}

impl Calibration {
    /// Spreads of those figures that settle on a quiet machine. Differences may be nearly nothing, and a hypervisor moves
    /// CPUs that contend for a line: those are left out.
    pub fn steady_spreads(&self) -> impl Iterator<Item = f64> {
        let (core, streams) = (&self.core, &self.streams);
        let core =
            [core.chains, core.width, core.forwarding_cycles, core.crowded_store_cycles, core.window, core.stores];
        let lines = streams.line_ns.iter().chain(&streams.chained_line_ns).copied();
        core.into_iter().flatten().chain(lines).map(|figure| figure.spread)
    }
}

/// Figures measured by walks through memory that no cache holds.
#[derive(Default)]
struct Far {
    clock_mhz: Option<u32>,
    /// Ahead of the core and the streams, and behind them.
    local_ns: [Option<f64>; 2],
    remote_ns: Option<f64>,
    core: CoreFigures,
    streams: StreamFigures,
}

/// Number of looks at the part left of the last level.
const LOOKS: usize = 5;
/// Walks through lines at one offset.
const REACH_WALKS: usize = 4;
const LEAST_MEMORY_WALK: u64 = 64 << 20;
const MOST_MEMORY_WALK: u64 = 512 << 20;

/// Measures; takes some seconds. Runs in a thread of its own, so the caller's affinity stays as it is.
pub fn calibrate(found: &Found) -> Calibration {
    let home = found.nodes.first().and_then(|n| n.first()).copied().unwrap_or(0);
    let other_node = found.nodes.get(1).and_then(|n| n.first()).copied();
    let neighbour = neighbour(found, home);
    let pair = |other: u32| move |which: usize| pin(if which == 0 { home } else { other });
    let handover = |other: u32| handover_nanoseconds(pair(other));
    let levels = levels(found);
    let chase_levels = || {
        pin(home);
        (0..levels.len()).map_while(|i| chase(walk_of_level(&levels, i))).collect::<Vec<f64>>()
    };
    std::thread::scope(|scope| {
        let mut additions_ns = Additions::<Vec<f64>>::default();
        let mut accesses_ns: [[Vec<f64>; 3]; 3] = Default::default();
        let mut contend = || {
            let takes = scope.spawn(|| neighbour.map(|other| contended::addition_nanoseconds(pair(other)))).join();
            additions_ns.extend(takes.ok().flatten().unwrap_or_default());
            let takes = scope.spawn(|| neighbour.map(|other| contended::access_nanoseconds(pair(other)))).join();
            let takes = takes.ok().flatten().unwrap_or_default();
            for (all, more) in accesses_ns.iter_mut().flatten().zip(takes.iter().flatten()) {
                all.extend(more);
            }
        };
        let first = scope.spawn(chase_levels).join().ok();
        contend();
        let memory = scope.spawn(|| {
            pin(home);
            let walk = levels.last().copied().unwrap_or(0).saturating_mul(4).clamp(LEAST_MEMORY_WALK, MOST_MEMORY_WALK);
            let remote_ns = other_node.and_then(|cpu| remote_chase(home, cpu, walk));
            pin(home);
            Far { remote_ns, ..beyond_all_levels(&levels, walk) }
        });
        // The threads do nothing that panics; should one, its figures count as not measured.
        let far = memory.join().unwrap_or_default();
        let second = scope.spawn(chase_levels).join().ok();
        contend();
        let core_to_core_ns = scope.spawn(|| neighbour.and_then(handover)).join().ok().flatten();
        let remote_cache_ns = scope.spawn(|| other_node.and_then(handover)).join().ok().flatten();
        let third = scope.spawn(chase_levels).join().ok();
        contend();
        let passes: Vec<Vec<f64>> = [first, second, third].into_iter().flatten().collect();
        let local_ns = far.local_ns.into_iter().flatten().reduce(f64::min);
        let spread = apart(&passes, &far.local_ns.into_iter().flatten().collect::<Vec<_>>());
        let level_ns = least(passes.into_iter());
        let (sizes, latencies) = (&levels, level_ns.clone());
        let left = scope.spawn(move || pin(home).then(|| left_of_the_last(sizes, &latencies, local_ns)));
        let last_level_left = left.join().ok().flatten().flatten();
        let latencies = level_ns.clone();
        let pages = scope.spawn(move || {
            pin(home);
            pages(found, &latencies)
        });
        let aliased_load_ns = scope.spawn(|| pin(home).then(aliasing::wait_ns)).join().ok().flatten();
        let second_translation = scope.spawn(|| pin(home).then(super::pages::measure));
        let second_translation = second_translation.join().ok().flatten().unwrap_or_default();
        let touches = scope.spawn(|| pin(home).then(touches::measure)).join().ok().flatten().unwrap_or_default();
        let (translation, second_level_reach) = pages.join().unwrap_or_default();
        contend();
        let cycles = |ns: &Vec<f64>| Some(lengthened(ns)?.times(f64::from(far.clock_mhz?) / 1e3));
        let contended_addition_cycles = additions_ns.each(|ns| cycles(&ns));
        let contended_cycles = accesses_ns.each_ref().map(|ns| ns.each_ref().map(cycles));
        Calibration {
            clock_mhz: far.clock_mhz,
            level_ns,
            last_level_left,
            second_level_reach,
            translation,
            aliased_load_ns,
            memory_local_ns: local_ns,
            memory_remote_ns: far.remote_ns,
            core: CoreFigures { contended_addition_cycles, contended_cycles, ..far.core },
            streams: far.streams,
            second_translation,
            touches,
            core_to_core_ns,
            remote_cache_ns,
            noise: Some(Noise { spread, ..Noise::default() }),
        }
    })
}

/// The own node's memory: its latency, the part that the core hides, and the lines that it fetches ahead.
fn beyond_all_levels(levels: &[u64], walk: u64) -> Far {
    let clock_mhz = clock_mhz();
    let Some(far) = cycle(walk) else { return Far { clock_mhz, ..Far::default() } };
    let near: Vec<Cycle> = (1..levels.len()).map_while(|level| cycle(walk_of_level(levels, level))).collect();
    let before = far.nanoseconds();
    let (core, streams) = (core::measure(&near, &far), streams::measure(&near, &far));
    Far { clock_mhz, local_ns: [Some(before), Some(far.nanoseconds())], remote_ns: None, core, streams }
}

/// Returns the part of the last level that other programs leave: the median of some looks, by the levels' sizes and
/// times and that of memory.
fn left_of_the_last(sizes: &[u64], ns: &[f64], memory_ns: Option<f64>) -> Option<u64> {
    let ([.., nearer, own], Some(hit_ns)) = (sizes, ns.get(sizes.len().wrapping_sub(1))) else { return None };
    let mut cycles: BTreeMap<u64, Cycle> = BTreeMap::new();
    let mut walk = |size: u64| {
        if let Entry::Vacant(place) = cycles.entry(size) {
            place.insert(Cycle::at_random(usize::try_from(size).ok()?).ok()?);
        }
        cycles.get(&size).map(Cycle::usual_nanoseconds)
    };
    let mut looks =
        [0; LOOKS].map(|_| left::bytes((*nearer, *own), (*hit_ns, memory_ns.unwrap_or(f64::INFINITY)), &mut walk));
    // Nothing is taken: more than all that may be left.
    looks.sort_by_key(|left| left.unwrap_or(u64::MAX));
    looks[LOOKS / 2]
}

/// Measures the effects of page numbers: translation, and the sets of the second level.
fn pages(found: &Found, level_ns: &[f64]) -> (Option<FirstTranslation>, Option<u64>) {
    let data = |level: u8| found.caches.iter().find(|c| c.level == level && c.kind.holds_data());
    let (Some(first), Some(second)) = (data(1), data(2)) else { return (None, None) };
    let translation = translation(first.size / first.line.max(1));
    let (Some(ways), [_, near_ns, next_ns, ..]) = (second.ways, level_ns) else { return (translation, None) };
    let page_sets = (second.size / u64::from(ways.max(1)) / 4096).max(1);
    // Takes the most of several walks: other programs only push lines out, none brings them back.
    let reach = || sets_at_one_offset(ways, page_sets, *near_ns, *next_ns, translation);
    (translation, (0..REACH_WALKS).filter_map(|_| reach()).max())
}

/// Place by place the least: other programs come and go within the seconds that all this takes.
fn least(passes: impl Iterator<Item = Vec<f64>>) -> Vec<f64> {
    passes.reduce(|a, b| a.iter().zip(&b).map(|(x, y)| x.min(*y)).collect()).unwrap_or_default()
}

/// The widest spread of the passes of one latency, as a share of their median.
fn apart(levels: &[Vec<f64>], memory: &[f64]) -> Option<f64> {
    let count = levels.iter().map(Vec::len).min().unwrap_or(0);
    let of_level = |level: usize| levels.iter().map(|pass| pass[level]).collect::<Vec<f64>>();
    let spreads = (0..count).map(of_level).chain([memory.to_vec()]);
    spreads.filter_map(|takes| Some(Settled::of(&takes)?.spread)).max_by(f64::total_cmp)
}

/// Sizes of the data caches by level.
fn levels(found: &Found) -> Vec<u64> {
    let mut data: Vec<_> = found.caches.iter().filter(|c| c.kind.holds_data()).collect();
    data.sort_by_key(|c| c.level);
    data.iter().map(|c| c.size).collect()
}

/// Bytes to walk to measure one level: more than the nearer level holds, no more of this one than needed, since other
/// programs (on a virtual machine: other guests) take their share of a large one.
fn walk_of_level(sizes: &[u64], level: usize) -> u64 {
    let own = sizes[level];
    match level.checked_sub(1).map(|nearer| sizes[nearer]) {
        None => own / 2,
        Some(nearer) if nearer.saturating_mul(4) <= own => nearer * 3,
        Some(nearer) => nearer / 2 + own / 2,
    }
}

/// A CPU of another core of the same package.
fn neighbour(found: &Found, home: u32) -> Option<u32> {
    let package = found.packages.iter().find(|p| p.iter().any(|core| core.contains(&home)))?;
    package.iter().find(|core| !core.contains(&home))?.first().copied()
}

/// Returns a cycle through `bytes` of memory; `None` where so much is not to be had.
fn cycle(bytes: u64) -> Option<Cycle> {
    Cycle::new(usize::try_from(bytes).ok()?).ok()
}

fn chase(bytes: u64) -> Option<f64> {
    Some(cycle(bytes)?.nanoseconds())
}

/// Memory touched first on `far`, walked from `home`.
fn remote_chase(home: u32, far: u32, bytes: u64) -> Option<f64> {
    if !pin(far) {
        return None;
    }
    let cycle = cycle(bytes);
    if !pin(home) {
        return None;
    }
    cycle.map(|c| c.nanoseconds())
}

fn pin(cpu: u32) -> bool {
    let mut set = CpuSet::new();
    set.set(cpu as usize);
    sched_setaffinity(None, &set).is_ok()
}

#[cfg(test)]
mod tests {
    use super::{apart, least, walk_of_level};

    #[test]
    fn a_walk_is_larger_than_the_nearer_level_and_fits_its_own() {
        let sizes = [48 << 10, 1 << 20, 32 << 20, 40 << 20];
        assert_eq!(walk_of_level(&sizes, 0), 24 << 10);
        assert_eq!(walk_of_level(&sizes, 1), 144 << 10);
        assert_eq!(walk_of_level(&sizes, 2), 3 << 20);
        assert_eq!(walk_of_level(&sizes, 3), 36 << 20);
    }

    #[test]
    fn the_latency_with_the_largest_spread_is_the_noise() {
        let passes = [vec![1.0, 10.0], vec![1.0, 12.0], vec![1.1, 11.0, 7.0]];
        assert_eq!(apart(&passes, &[100.0, 110.0]), Some(2.0 / 11.0));
        assert_eq!(apart(&passes, &[100.0, 200.0]), Some(0.5));
        assert_eq!(apart(&[], &[]), None);
    }

    #[test]
    fn the_least_of_each_level_counts() {
        assert_eq!(least([vec![1.0, 9.0], vec![2.0, 5.0]].into_iter()), [1.0, 5.0]);
        assert!(least(std::iter::empty()).is_empty());
    }
}
