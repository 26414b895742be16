//! Checks of a core, its streams and its address translation before the model uses them.

use super::problem::Step::{self, Index, Key};
use super::problem::{Problem, number};
use nearmiss_record::machine::{Core, Machine, Streams, Tlb};

const MOST_ENTRIES: u32 = 1 << 20;
const MOST_WALK_CYCLES: u32 = 10_000;
const MOST_BANKS: u32 = 64;
const LARGEST_BLOCK: u64 = 1 << 30;

/// Checks the core, its streams, and its address translation, as far as the machine has them.
pub(super) fn check(machine: &Machine) -> Result<(), Problem> {
    if let Some(core) = &machine.core {
        one_of_two(machine)?;
        core_ranges(core)?;
    }
    if let Some(streams) = &machine.streams {
        stream_ranges(streams)?;
        line_cycles(machine, streams)?;
    }
    machine.tlb.as_ref().map_or(Ok(()), translation)
}

/// Checks that a core excludes an overlap: both specify what is hidden.
fn one_of_two(machine: &Machine) -> Result<(), Problem> {
    if machine.overlap == 0.0 {
        return Ok(());
    }
    let what = format!("overlap is {} beside a [core], which determines what is hidden", machine.overlap);
    Err(Problem::new([Key("overlap")], what, "one of the two"))
}

fn core_ranges(core: &Core) -> Result<(), Problem> {
    let at = |key| [Key("core"), Key(key)];
    number(&at("window_instructions"), core.window_instructions, 1, 65_536)?;
    number(&at("fill_buffers"), core.fill_buffers, 1, 1024)?;
    number(&at("store_buffer"), core.store_buffer, 1, 1024)?;
    number(&at("width"), core.width, 1, 64)?;
    number(&at("forwarding_cycles"), core.forwarding_cycles, 0, 1000)?;
    number(&at("mispredict_cycles"), core.mispredict_cycles, 0, 1000)?;
    number(&at("fetch_ahead_instructions"), core.fetch_ahead_instructions, 0, 10_000)?;
    number(&at("crowded_store_cycles"), core.crowded_store_cycles, 0, 1000)?;
    number(&at("crowded_addition_cycles"), core.crowded_addition_cycles, 0, 1000)?;
    number(&at("crowded_beside_cycles"), core.crowded_beside_cycles.unwrap_or(0), 0, 1000)?;
    number(&at("crowded_half_lines"), core.crowded_half_lines.unwrap_or(1), 1, 1000)?;
    for cycles in core.contended_store_cycles {
        number(&at("contended_store_cycles"), cycles, 0, 10_000)?;
    }
    contended_ranges(core)?;
    for cycles in core.reread_cycles.into_iter().flatten() {
        number(&at("reread_cycles"), cycles, 0, 10_000)?;
    }
    second_level(core)?;
    number(&at("fill_cycles"), core.fill_cycles, 0.0, 100.0)
}

fn second_level(core: &Core) -> Result<(), Problem> {
    let Some(figures) = &core.second_level else { return Ok(()) };
    let at = |key| [Key("core"), Key("second_level"), Key(key)];
    if !(1..=MOST_BANKS).contains(&figures.banks) || !figures.banks.is_power_of_two() {
        let expected = format!("a power of two up to {MOST_BANKS}");
        return Err(Problem::new(at("banks"), format!("banks is {}", figures.banks), expected));
    }
    number(&at("bank_cycles"), figures.bank_cycles, 0.0, 100.0)?;
    number(&at("written_line_cycles"), figures.written_line_cycles, 0.0, 100.0)?;
    number(&at("written_bank_cycles"), figures.written_bank_cycles, 0.0, 100.0)
}

fn contended_ranges(core: &Core) -> Result<(), Problem> {
    let Some(contended) = &core.contended else { return Ok(()) };
    let figures = [
        ("store_cycles", contended.store_cycles),
        ("atomic_cycles", contended.atomic_cycles),
        ("load_cycles", contended.load_cycles),
    ];
    let optional = [
        ("lone_addition_cycles", contended.lone_addition_cycles),
        ("between_stores_cycles", contended.between_stores_cycles),
        ("far_addition_cycles", contended.far_addition_cycles),
        ("far_load_cycles", contended.far_load_cycles),
        ("spaced_addition_cycles", contended.spaced_addition_cycles),
        ("needed_addition_cycles", contended.needed_addition_cycles),
        ("needed_load_cycles", contended.needed_load_cycles),
    ];
    let optional = optional.into_iter().filter_map(|(key, cycles)| Some((key, cycles?)));
    let figures = figures.into_iter().flat_map(|(key, cycles)| cycles.map(|cycles| (key, cycles)));
    for (key, cycles) in figures.chain(optional) {
        number(&[Key("core"), Key("contended"), Key(key)], cycles, 0, 10_000)?;
    }
    Ok(())
}

fn stream_ranges(streams: &Streams) -> Result<(), Problem> {
    let at = |key| [Key("streams"), Key(key)];
    number(&at("followed"), streams.followed, 1, 1024)?;
    number(&at("trained_by"), streams.trained_by, 1, 64)?;
    number(&at("longest_stride_lines"), streams.longest_stride_lines, 1, 65_536)?;
    if let Some(region) = streams.region {
        number(&[Key("streams"), Key("region"), Key("lines")], region.lines, 1, 15)?;
        number(&[Key("streams"), Key("region"), Key("wait_cycles")], region.wait_cycles, 0, 10_000)?;
    }
    let within = streams.within.0;
    if within.is_power_of_two() && (1024..=LARGEST_BLOCK).contains(&within) {
        return Ok(());
    }
    Err(Problem::new(at("within"), format!("within is {}", streams.within), "a power of two from 1 KiB to 1 GiB"))
}

/// Figures for each level behind the first and for memory, none above the wait of a single access to the place.
fn line_cycles(machine: &Machine, streams: &Streams) -> Result<(), Problem> {
    let latency = &machine.latency;
    let waits: Vec<u32> = latency.level_cycles.iter().skip(1).chain([&latency.memory_local_cycles]).copied().collect();
    let apart = &streams.apart_line_cycles;
    by_place("line_cycles", &streams.line_cycles, &waits)?;
    if apart.is_empty() { Ok(()) } else { by_place("apart_line_cycles", apart, &waits) }
}

fn by_place(figure: &'static str, cycles: &[f64], waits: &[u32]) -> Result<(), Problem> {
    let path = [Key("streams"), Key(figure)];
    if cycles.len() != waits.len() {
        let what = format!("{} figures for {} places", cycles.len(), waits.len());
        return Err(Problem::new(path, what, format!("{}: levels from the second on, then memory", waits.len())));
    }
    for (i, (&cycles, &wait)) in cycles.iter().zip(waits).enumerate() {
        number(&[Key("streams"), Key(figure), Index(i)], cycles, 0.0, wait.into())?;
    }
    Ok(())
}

fn translation(tlb: &Tlb) -> Result<(), Problem> {
    let at = |key| vec![Key("tlb"), Key(key)];
    number(&at("entries"), tlb.entries, 1, MOST_ENTRIES)?;
    ways(at("ways"), tlb.ways, tlb.entries)?;
    number(&at("miss_cycles"), tlb.miss_cycles, 0, MOST_WALK_CYCLES)?;
    number(&at("large_entries"), tlb.large_entries, 0, MOST_ENTRIES)?;
    let Some(second) = tlb.second else { return Ok(()) };
    let at = |key| vec![Key("tlb"), Key("second"), Key(key)];
    number(&at("entries"), second.entries, tlb.entries, MOST_ENTRIES)?;
    ways(at("ways"), second.ways, second.entries)?;
    number(&at("walk_cycles"), second.walk_cycles, 0, MOST_WALK_CYCLES)?;
    number(&at("large_walk_cycles"), second.large_walk_cycles, 0, MOST_WALK_CYCLES)?;
    number(&at("apart_walk_cycles"), second.apart_walk_cycles, 0, MOST_WALK_CYCLES)?;
    number(&at("large_apart_walk_cycles"), second.large_apart_walk_cycles, 0, MOST_WALK_CYCLES)?;
    number(&at("far_walk_cycles"), second.far_walk_cycles, 0, MOST_WALK_CYCLES)?;
    number(&at("far_apart_walk_cycles"), second.far_apart_walk_cycles, 0, MOST_WALK_CYCLES)
}

fn ways(path: Vec<Step>, ways: u32, entries: u32) -> Result<(), Problem> {
    if ways == 0 || entries.is_multiple_of(ways) {
        return Ok(());
    }
    Err(Problem::new(path, format!("{ways} ways do not divide {entries} entries"), "a divisor of the entries, or 0"))
}
