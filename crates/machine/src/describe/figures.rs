//! Source of each figure of a machine.
//!
//! A figure is named by its dotted path without the unit (`cache.L2`, `cache.L2.replacement`, `latency.memory_local`).
//! Its source is the entry of its own name or of the longest leading part of it.

use nearmiss_record::machine::{Contended, Inclusion, Machine};

/// Names of every figure of a machine that must have a source or be marked assumed.
pub fn figures(machine: &Machine) -> Vec<String> {
    let mut names: Vec<String> = [
        "clock_mhz",
        "cycles_per_instruction",
        "topology",
        "memory.nodes",
        "memory.page_size",
        "coherence",
        "bus.transaction",
        "bus.channels",
        "write_combining_buffers",
        "latency.core_clean",
        "latency.core_modified",
        "latency.remote_cache",
        "latency.memory_local",
        "latency.memory_remote",
    ]
    .map(str::to_owned)
    .into();
    names.extend(of_the_core(machine).into_iter().map(str::to_owned));
    for level in 1..=machine.latency.level_cycles.len() {
        names.push(format!("latency.L{level}"));
    }
    for cache in &machine.caches {
        let name = cache.name();
        names.push(format!("cache.{name}"));
        names.push(format!("cache.{name}.replacement"));
        names.push(format!("cache.{name}.index"));
        if cache.level > 1 || cache.inclusion != Inclusion::None {
            names.push(format!("cache.{name}.inclusion"));
        }
    }
    names
}

/// Figures of the core and of optional parts of a machine.
fn of_the_core(machine: &Machine) -> Vec<&'static str> {
    const CORE: [&str; 11] = [
        "core.window",
        "core.fill_buffers",
        "core.store_buffer",
        "core.width",
        "core.forwarding",
        "core.mispredict",
        "core.fetch_ahead",
        "core.contended_store",
        "core.contended_stores",
        "core.crowded_store",
        "core.fill",
    ];
    const CONTENDED: [&str; 3] = ["core.contended.store", "core.contended.atomic", "core.contended.load"];
    const STREAMS: [&str; 5] =
        ["streams.followed", "streams.trained_by", "streams.longest_stride", "streams.within", "streams.line"];
    const TLB: [&str; 3] = ["tlb.entries", "tlb.miss", "tlb.large_entries"];
    const SECOND_TLB: [&str; 3] = ["tlb.second.entries", "tlb.second.walk", "tlb.second.large_walk"];
    let mut names: Vec<&str> = if machine.core.is_some() { CORE.to_vec() } else { vec!["overlap"] };
    names.extend(machine.core.iter().filter(|core| core.crowded_addition_cycles > 0).map(|_| "core.crowded_addition"));
    names.extend(machine.core.iter().filter_map(|core| core.crowded_beside_cycles.map(|_| "core.crowded_beside")));
    names.extend(machine.core.iter().filter_map(|core| core.crowded_half_lines.map(|_| "core.crowded_half")));
    names.extend(machine.core.iter().filter_map(|core| core.second_level.map(|_| "core.second_level")));
    let contended = machine.core.iter().filter(|core| core.contended.is_some());
    names.extend(contended.clone().flat_map(|_| CONTENDED));
    let optional = |of: Contended| {
        let figures = [
            ("core.contended.lone_addition", of.lone_addition_cycles),
            ("core.contended.between_stores", of.between_stores_cycles),
            ("core.contended.far_addition", of.far_addition_cycles),
            ("core.contended.far_load", of.far_load_cycles),
            ("core.contended.spaced_addition", of.spaced_addition_cycles),
            ("core.contended.needed_addition", of.needed_addition_cycles),
            ("core.contended.needed_load", of.needed_load_cycles),
        ];
        figures.into_iter().filter_map(|(name, cycles)| cycles.map(|_| name))
    };
    names.extend(contended.filter_map(|core| core.contended).flat_map(optional));
    names.extend(machine.core.iter().filter(|core| core.atomics_ahead).map(|_| "core.atomics_ahead"));
    names.extend(machine.core.iter().filter(|core| core.reread_cycles.is_some()).map(|_| "core.reread"));
    names.extend(machine.streams.iter().flat_map(|_| STREAMS));
    let apart = machine.streams.iter().filter(|streams| !streams.apart_line_cycles.is_empty());
    names.extend(apart.map(|_| "streams.apart_line"));
    names.extend(machine.streams.iter().filter(|streams| streams.region.is_some()).map(|_| "streams.region"));
    names.extend(machine.tlb.iter().flat_map(|_| TLB));
    names.extend(machine.tlb.iter().filter(|tlb| tlb.second.is_some()).flat_map(|_| SECOND_TLB));
    let apart = machine.tlb.iter().flat_map(|tlb| tlb.second).filter(|second| second.apart_walk_cycles > 0);
    names.extend(apart.flat_map(|_| ["tlb.second.apart_walk", "tlb.second.large_apart_walk"]));
    let far = machine.tlb.iter().flat_map(|tlb| tlb.second).filter(|second| second.far_walk_cycles > 0);
    names.extend(far.flat_map(|_| ["tlb.second.far_walk", "tlb.second.far_apart_walk"]));
    names.extend(machine.tlb.iter().filter(|tlb| tlb.large_pages_split).map(|_| "tlb.large_pages_split"));
    names.extend(machine.memory.first_touch_cycles.map(|_| "memory.first_touch"));
    names.extend(machine.memory.large_first_touch_cycles.map(|_| "memory.large_first_touch"));
    names.extend(machine.store_aliasing.iter().map(|_| "store_aliasing"));
    names
}

/// The source of a figure, if it has one.
pub fn source_of<'a>(machine: &'a Machine, figure: &str) -> Option<&'a str> {
    let mut name = figure;
    loop {
        if let Some(source) = machine.sources.get(name) {
            return Some(source);
        }
        name = name.rsplit_once('.')?.0;
    }
}

/// Whether the source marks the figure as a guess.
pub fn is_assumed(source: &str) -> bool {
    source.starts_with("assumed")
}

/// A source entry that names no figure of the machine: a typing mistake.
pub(super) fn stray_source(machine: &Machine) -> Option<&String> {
    let names = figures(machine);
    let leads =
        |key: &str| names.iter().any(|n| n == key || n.strip_prefix(key).is_some_and(|rest| rest.starts_with('.')));
    machine.sources.keys().find(|key| !leads(key) && key.as_str() != "memory.placement")
}
