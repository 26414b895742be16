//! A calibration without figures outside its processor family's range, and the reason why each was removed.

use super::bounds::{self, CLOCK_MHZ, FAR_LINE_NS, Family, LARGE_TOUCH_NS, LINE_NS, REMOTE_NS, TOUCH_NS};
use super::offsets::FirstTranslation;
use super::settle::Settled;
use super::{Calibration, CoreFigures, Found, StreamFigures, TouchFigures, TranslationFigures};
use std::collections::BTreeMap;

/// Pages of a first level of translation, and cycles of a page that only the second level holds.
const USUAL_TLB: (f64, f64) = (64.0, 7.0);

/// The rest of a calibration.
#[derive(Debug)]
pub struct Plausible {
    /// Plausible figures of the calibration; levels keep their places.
    pub calibration: Calibration,
    /// Reason for each figure that is assumed, though it was measured.
    pub replaced: BTreeMap<String, String>,
}

/// Leaves what `found` can be; `assumed_mhz` is its clock if the measured one is none.
pub fn plausible(found: &Found, calibration: &Calibration, assumed_mhz: u32) -> Plausible {
    let mut sieve = Sieve { family: bounds::family(found), replaced: BTreeMap::new() };
    let mut kept = calibration.clone();
    kept.clock_mhz = sieve.clock(kept.clock_mhz);
    let cycles_per_ns = f64::from(kept.clock_mhz.unwrap_or(assumed_mhz)) / 1e3;
    sieve.latencies(&mut kept, cycles_per_ns);
    sieve.sizes(found, &mut kept);
    sieve.core(&mut kept.core);
    sieve.streams(&mut kept.streams);
    sieve.pages(&mut kept, cycles_per_ns);
    sieve.touches(&mut kept.touches);
    Plausible { calibration: kept, replaced: sieve.replaced }
}

struct Sieve {
    family: &'static Family,
    replaced: BTreeMap<String, String>,
}

impl Sieve {
    /// The value if it lies within, else a note of the figure.
    fn number(&mut self, figure: &str, value: Option<f64>, within: [f64; 2], unit: &str) -> Option<f64> {
        let assumed = format!("usual of {}", self.family.name);
        self.or_assumed(figure, value, within, unit, &assumed)
    }

    /// The clock. No family has a usual one.
    fn clock(&mut self, mhz: Option<u32>) -> Option<u32> {
        let mhz = mhz.map(f64::from);
        self.or_assumed("clock_mhz", mhz, CLOCK_MHZ, "MHz", "as without a measurement").map(|mhz| mhz as u32)
    }

    /// The value if it lies within, else a note of what is assumed for it.
    fn or_assumed(
        &mut self,
        figure: &str,
        value: Option<f64>,
        [low, high]: [f64; 2],
        unit: &str,
        assumed: &str,
    ) -> Option<f64> {
        let value = value?;
        if (low..=high).contains(&value) {
            return Some(value);
        }
        let range = format!("{} to {}", short(low), short(high));
        let why = format!("assumed: {assumed}; measured {} {unit}, where {range} is plausible", short(value));
        self.replaced.insert(figure.to_owned(), why);
        None
    }

    fn settled(&mut self, figure: &str, value: Option<Settled>, within: [f64; 2], unit: &str) -> Option<Settled> {
        let kept = self.number(figure, Some(value?.value), within, unit);
        kept.and(value).map(with_a_spread)
    }

    fn latencies(&mut self, kept: &mut Calibration, cycles_per_ns: f64) {
        let ranges = self.family.level_cycles;
        for (i, (ns, range)) in kept.level_ns.iter().zip(ranges).enumerate() {
            self.number(&format!("latency.L{}", i + 1), Some(ns * cycles_per_ns), [range.low, range.high], "cycles");
        }
        let memory = self.family.memory_ns;
        let mut ns = |figure, value: &mut Option<f64>, within| *value = self.number(figure, *value, within, "ns");
        ns("latency.memory_local", &mut kept.memory_local_ns, [memory.low, memory.high]);
        ns("latency.memory_remote", &mut kept.memory_remote_ns, REMOTE_NS);
        ns("latency.core_modified", &mut kept.core_to_core_ns, LINE_NS);
        ns("latency.remote_cache", &mut kept.remote_cache_ns, FAR_LINE_NS);
        ns("store_aliasing", &mut kept.aliased_load_ns, [0.0, 12.0]);
    }

    /// Removes sizes that cannot be: others leave at least a nearer level's size of the last level, or all of that.
    fn sizes(&mut self, found: &Found, kept: &mut Calibration) {
        let sizes = || found.caches.iter().filter(|cache| cache.kind.holds_data());
        let last = sizes().max_by_key(|cache| cache.level);
        let (Some(last), left) = (last, kept.last_level_left) else { return kept.last_level_left = None };
        let nearer = sizes().filter(|cache| cache.level < last.level).map(|cache| cache.size).max().unwrap_or(64 << 10);
        let within = [nearer as f64, (last.size / 2) as f64];
        kept.last_level_left = left.filter(|left| (within[0]..=within[1]).contains(&(*left as f64)));
        kept.second_level_reach = kept.second_level_reach.filter(|sets| (1..=1 << 20).contains(sets));
    }

    fn core(&mut self, core: &mut CoreFigures) {
        let mut keep = |figure: &str, value: &mut Option<Settled>, within: [f64; 2], unit: &str| {
            *value = self.settled(&format!("core.{figure}"), *value, within, unit);
        };
        // From in-order cores to twice the largest of today: reorder buffers of 224 to 576, store buffers of 56 to 120.
        keep("window", &mut core.window, [16.0, 1200.0], "instructions");
        keep("fill_buffers", &mut core.chains, [2.0, 64.0], "misses");
        keep("store_buffer", &mut core.stores, [8.0, 256.0], "stores");
        keep("width", &mut core.width, [0.9, 16.0], "instructions");
        keep("forwarding", &mut core.forwarding_cycles, [0.0, 20.0], "cycles");
        // From the same guides: 11 to 20 cycles.
        keep("mispredict", &mut core.mispredict_cycles, [4.0, 60.0], "cycles");
        keep("fetch_ahead", &mut core.fetch_ahead_instructions, [0.0, 512.0], "instructions");
        keep("crowded_store", &mut core.crowded_store_cycles, [0.0, 60.0], "cycles");
        keep("crowded_addition", &mut core.crowded_addition_cycles, [0.0, 120.0], "cycles");
        keep("crowded_beside", &mut core.crowded_beside_cycles, [0.0, 60.0], "cycles");
        keep("crowded_half", &mut core.crowded_half_lines, [4.0, 64.0], "lines");
        let lines = core.second_level_cycles.iter_mut().chain(&mut core.second_level_written_cycles);
        lines.for_each(|one| keep("second_level", one, [0.1, 60.0], "cycles"));
        keep("fill", &mut core.fill_cycles, [-1.0, 20.0], "cycles");
        core.reread_cycles.iter_mut().for_each(|one| keep("reread", one, [-20.0, 4000.0], "cycles"));
        keep("atomics_ahead", &mut core.atomics_beside, [0.0, 2.0], "of one by one");
        let additions = &mut core.contended_addition_cycles;
        keep("contended_store", &mut additions.one, [0.0, 2000.0], "cycles");
        keep("contended_stores", &mut additions.several, [0.0, 4000.0], "cycles");
        keep("contended.lone_addition", &mut additions.lone, [0.0, 2000.0], "cycles");
        keep("contended.between_stores", &mut additions.between_stores, [0.0, 4000.0], "cycles");
        keep("contended.far_addition", &mut additions.far, [0.0, 2000.0], "cycles");
        keep("contended.far_load", &mut additions.far_load, [0.0, 4000.0], "cycles");
        keep("contended.needed_addition", &mut additions.needed, [0.0, 4000.0], "cycles");
        keep("contended.needed_load", &mut additions.needed_load, [0.0, 4000.0], "cycles");
        for (kind, all) in ["store", "atomic", "load"].into_iter().zip(&mut core.contended_cycles) {
            all.iter_mut().for_each(|one| keep(&format!("contended.{kind}"), one, [0.0, 4000.0], "cycles"));
        }
    }

    fn streams(&mut self, streams: &mut StreamFigures) {
        let mut keep = |figure: &str, value: &mut Option<Settled>, within: [f64; 2], unit: &str| {
            *value = self.settled(&format!("streams.{figure}"), *value, within, unit);
        };
        keep("followed", &mut streams.followed, [1.0, 128.0], "streams");
        keep("trained_by", &mut streams.trained_by, [1.0, 32.0], "accesses");
        keep("longest_stride", &mut streams.longest_stride_lines, [1.0, 256.0], "lines");
        keep("region", &mut streams.region_lines, [1.0, 15.0], "lines");
        keep("region.wait", &mut streams.region_wait_ns, [0.0, 500.0], "ns");
        keep("within", &mut streams.border, [0.0, 1.0], "of a beginning");
        let plausible =
            |sieve: &mut Sieve, ns: &Settled| sieve.settled("streams.line", Some(*ns), [0.01, 1000.0], "ns").is_some();
        if !streams.line_ns.iter().all(|ns| plausible(self, ns)) {
            streams.line_ns.clear();
        }
        if !streams.apart_line_ns.iter().all(|ns| (0.01..=1000.0).contains(&ns.value)) {
            streams.apart_line_ns.clear();
        }
        let lines = streams.line_ns.iter_mut().chain(&mut streams.apart_line_ns);
        lines.for_each(|ns| *ns = with_a_spread(*ns));
        streams.chained_line_ns.retain(|ns| (0.01..=1000.0).contains(&ns.value));
    }

    /// Pages and their walks, which a hypervisor makes up to five times as long.
    fn pages(&mut self, kept: &mut Calibration, cycles_per_ns: f64) {
        if let Some(FirstTranslation { entries, ways, miss_ns }) = kept.translation {
            let plausible = self.number("tlb", Some(f64::from(entries)), [4.0, 1024.0], "pages");
            let miss = self.number("tlb", Some(miss_ns * cycles_per_ns), [0.0, 200.0], "cycles");
            let (entries, cycles) = plausible.zip(miss).unwrap_or(USUAL_TLB);
            let entries = entries as u32;
            let ways = ways.filter(|ways| *ways > 0 && entries.is_multiple_of(*ways));
            kept.translation = Some(FirstTranslation { entries, ways, miss_ns: cycles / cycles_per_ns });
        }
        let ns = |cycles: f64| cycles / cycles_per_ns;
        let mut keep = |figure: &str, value: &mut Option<Settled>, within, usual: f64, unit| {
            let plausible = self.settled(figure, *value, within, unit);
            *value = value.map(|_| plausible.unwrap_or(Settled { value: usual, spread: 0.0 }));
        };
        let TranslationFigures {
            second_entries,
            walk_ns,
            apart_walk_ns,
            large_apart_walk_ns,
            far_walk_ns,
            far_apart_walk_ns,
            large_entries,
            large_walk_ns,
            large_pages_split,
        } = &mut kept.second_translation;
        keep("tlb.second.entries", second_entries, [16.0, 65_536.0], 2048.0, "pages");
        keep("tlb.second.walk", walk_ns, [0.0, ns(1000.0)], ns(30.0), "ns");
        keep("tlb.second.apart_walk", apart_walk_ns, [0.0, ns(1000.0)], ns(15.0), "ns");
        keep("tlb.second.large_apart_walk", large_apart_walk_ns, [0.0, ns(1000.0)], ns(12.0), "ns");
        keep("tlb.second.far_walk", far_walk_ns, [0.0, ns(1000.0)], ns(45.0), "ns");
        keep("tlb.second.far_apart_walk", far_apart_walk_ns, [0.0, ns(1000.0)], ns(20.0), "ns");
        keep("tlb.large_entries", large_entries, [1.0, 4096.0], 64.0, "large pages");
        keep("tlb.second.large_walk", large_walk_ns, [0.0, ns(1000.0)], ns(25.0), "ns");
        keep("tlb.large_pages_split", large_pages_split, [0.0, 10.0], 0.0, "of a walk");
    }

    /// A figure that no first touch has is left out: first touches are then priced as modelled.
    fn touches(&mut self, touches: &mut TouchFigures) {
        let TouchFigures { small_ns, large_ns } = touches;
        *small_ns = self.settled("memory.first_touch", *small_ns, TOUCH_NS, "ns");
        *large_ns =
            self.settled("memory.large_first_touch", *large_ns, LARGE_TOUCH_NS, "ns").filter(|_| small_ns.is_some());
    }
}

fn with_a_spread(figure: Settled) -> Settled {
    let spread = if (0.0..1e6).contains(&figure.spread) { figure.spread } else { 1.0 };
    Settled { spread, ..figure }
}

/// A number in few digits.
fn short(value: f64) -> String {
    if value.abs() < 1e9 { format!("{}", (value * 100.0).round() / 100.0) } else { format!("{value:.1e}") }
}

#[cfg(test)]
#[path = "plausible_tests.rs"]
mod tests;
