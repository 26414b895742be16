//! Measured figures as the parts of a machine: the core, its streams, and the source of each figure.

use super::banks::DISTANCES;
use super::core::CoreFigures;
use super::offsets::FirstTranslation;
use super::pages::TranslationFigures;
use super::settle::Settled;
use super::streams::StreamFigures;
use super::touches::TouchFigures;
use nearmiss_record::machine::{Contended, Core, Latency, Region, SecondLevel, SecondTlb, Streams, Tlb};
use nearmiss_record::units::Bytes;
use std::collections::BTreeMap;

/// A core of today's servers, where nothing was measured.
const TYPICAL: Core = Core {
    window_instructions: 320,
    fill_buffers: 16,
    store_buffer: 64,
    width: 6,
    forwarding_cycles: 5,
    mispredict_cycles: 16,
    fetch_ahead_instructions: 32,
    crowded_store_cycles: 9,
    crowded_addition_cycles: 20,
    crowded_beside_cycles: None,
    crowded_half_lines: None,
    second_level: None,
    contended_store_cycles: [25, 75],
    fill_cycles: 1.5,
    contended: Some(TYPICAL_CONTENDED),
    atomics_ahead: false,
    reread_cycles: None,
};
/// Lines that another CPU writes, where nothing was measured.
const TYPICAL_CONTENDED: Contended = Contended {
    store_cycles: [8, 30, 50],
    atomic_cycles: [30, 60, 75],
    load_cycles: [4, 15, 25],
    lone_addition_cycles: None,
    between_stores_cycles: None,
    far_addition_cycles: None,
    far_load_cycles: None,
    spaced_addition_cycles: None,
    needed_addition_cycles: None,
    needed_load_cycles: None,
};
/// Lines at a distance of a bank's next line take so many times as long as consecutive ones, where there are banks.
const BANKED: f64 = 1.25;
/// Lines of one bank take so much of the time at the slowest distance, at least.
const ONE_BANK: f64 = 0.9;
/// Atomics that take less than this share of those one by one are requested ahead.
const AHEAD: f64 = 0.5;
const TYPICAL_FOLLOWED: u32 = 16;
const TYPICAL_TRAINED_BY: u32 = 3;
const TYPICAL_STRIDE_LINES: u32 = 16;
/// Cost of a line of a stream, as a share of a single access's wait.
const TYPICAL_SHARE: f64 = 0.1;
const SMALL_PAGE: Bytes = Bytes(4 << 10);
const LARGE_PAGE: Bytes = Bytes(2 << 20);
/// A stream ends at a border that costs more than this share of a beginning.
const NEW_BEGINNING: f64 = 0.5;

/// Sources by figure.
pub type Sources = BTreeMap<String, String>;

/// Notes a figure's source, and returns its measured value.
pub fn noted(sources: &mut Sources, figure: &str, measured: Option<Settled>, how: &str) -> Option<f64> {
    let from = match measured {
        None => "assumed: typical of today's servers".to_owned(),
        Some(figure) if figure.stable() => format!("measured here by {how}"),
        Some(figure) => format!("measured here by {how}; unstable, spread {:.0}%", figure.spread * 100.0),
    };
    sources.insert(figure.to_owned(), from);
    measured.map(|figure| figure.value)
}

/// The core.
pub fn core(measured: &CoreFigures, sources: &mut Sources) -> Core {
    const FILLS: &str = "loads of lines of one set in turn";
    let fill_cycles = noted(sources, "core.fill", measured.fill_cycles, FILLS).unwrap_or(TYPICAL.fill_cycles);
    let contended = contended(measured, sources);
    let [crowded_beside_cycles, crowded_half_lines] = crowded(measured, sources);
    let reread_cycles = reread(measured, sources);
    let second_level = second_level(measured, sources);
    let atomics_ahead = atomics_ahead(measured, sources);
    let mut whole = |figure: &str, measured: Option<Settled>, how: &str, least: u32, otherwise: u32| {
        let value = noted(sources, &format!("core.{figure}"), measured, how);
        value.map_or(otherwise, |value| (value.round() as u32).max(least))
    };
    Core {
        window_instructions: whole(
            "window",
            measured.window,
            "two misses and instructions between them that wait for nothing",
            1,
            TYPICAL.window_instructions,
        ),
        fill_buffers: whole("fill_buffers", measured.chains, "chases side by side", 1, TYPICAL.fill_buffers),
        store_buffer: whole(
            "store_buffer",
            measured.stores,
            "two misses and stores between them",
            1,
            TYPICAL.store_buffer,
        ),
        width: whole("width", measured.width, "instructions that wait for nothing", 1, TYPICAL.width),
        forwarding_cycles: whole(
            "forwarding",
            measured.forwarding_cycles,
            "a chain of stores and loads of one address",
            0,
            TYPICAL.forwarding_cycles,
        ),
        mispredict_cycles: whole(
            "mispredict",
            measured.mispredict_cycles,
            "random against regular branches",
            0,
            TYPICAL.mispredict_cycles,
        ),
        fetch_ahead_instructions: whole(
            "fetch_ahead",
            measured.fetch_ahead_instructions,
            "a chain of jumps through code that only the second level holds",
            0,
            TYPICAL.fetch_ahead_instructions,
        ),
        crowded_store_cycles: whole(
            "crowded_store",
            measured.crowded_store_cycles,
            "stores to lines of one set in turn",
            0,
            TYPICAL.crowded_store_cycles,
        ),
        crowded_addition_cycles: whole(
            "crowded_addition",
            measured.crowded_addition_cycles,
            "additions to lines of one set in turn",
            1,
            TYPICAL.crowded_addition_cycles,
        ),
        crowded_beside_cycles,
        crowded_half_lines,
        second_level,
        contended_store_cycles: [
            whole(
                "contended_store",
                measured.contended_addition_cycles.one,
                "two CPUs that add to one line, with stores to other lines between",
                0,
                TYPICAL.contended_store_cycles[0],
            ),
            whole(
                "contended_stores",
                measured.contended_addition_cycles.several,
                "two CPUs that add to four lines",
                0,
                TYPICAL.contended_store_cycles[1],
            ),
        ],
        fill_cycles: (fill_cycles.max(0.0) * 100.0).round() / 100.0,
        contended: Some(contended),
        atomics_ahead,
        reread_cycles,
    }
}

/// The cost of crowded stores beside those of other sets, and the lines of one set that take half; none where they were
/// not measured.
fn crowded(measured: &CoreFigures, sources: &mut Sources) -> [Option<u32>; 2] {
    let mut whole = |figure: &str, measured: Option<Settled>, how: &str| {
        noted(sources, figure, Some(measured?), how).map(|value| value.round().max(0.0) as u32)
    };
    [
        whole("core.crowded_beside", measured.crowded_beside_cycles, "stores to lines of sixteen sets in turn"),
        whole("core.crowded_half", measured.crowded_half_lines, "stores to ever more lines of one set in turn"),
    ]
}

/// How the second level gives its lines; none where that was not measured.
fn second_level(measured: &CoreFigures, sources: &mut Sources) -> Option<SecondLevel> {
    const HOW: &str = "loads of its lines, and additions to them, at distances of 1, 2, 4 and 8 lines";
    let all = |figures: [Option<Settled>; DISTANCES.len()]| figures.into_iter().collect::<Option<Vec<_>>>();
    let (loads, additions) = (all(measured.second_level_cycles)?, all(measured.second_level_written_cycles)?);
    let spread = |figure: &&Settled| figure.spread;
    let least_stable = loads.iter().chain(&additions).max_by(|a, b| spread(a).total_cmp(&spread(b)));
    noted(sources, "core.second_level", least_stable.copied(), HOW);
    let hundredths = |cycles: f64| (cycles * 100.0).round() / 100.0;
    let slowest = loads.iter().map(|figure| figure.value).fold(0.0, f64::max);
    let is_of_one_bank = |figure: &Settled| figure.value >= ONE_BANK * slowest;
    let at = loads.iter().position(is_of_one_bank).filter(|_| slowest >= BANKED * loads[0].value).unwrap_or(0);
    let of_a_bank = |figures: &[Settled]| if at == 0 { 0.0 } else { hundredths(figures[at].value) };
    Some(SecondLevel {
        banks: DISTANCES[at] as u32,
        bank_cycles: of_a_bank(&loads),
        written_line_cycles: hundredths(additions[0].value),
        written_bank_cycles: of_a_bank(&additions),
    })
}

/// Costs of lines that were just written past the caches; none where they were not measured. The least stable of the
/// figures stands for them.
fn reread(measured: &CoreFigures, sources: &mut Sources) -> Option<[u32; 3]> {
    const HOW: &str = "loads of lines that non-temporal stores have just written, beside plain ones";
    let [Some(a), Some(b), Some(c)] = measured.reread_cycles else { return None };
    let least_stable = [a, b, c].into_iter().max_by(|a, b| a.spread.total_cmp(&b.spread));
    noted(sources, "core.reread", least_stable, HOW);
    Some([a, b, c].map(|figure| figure.value.max(0.0).round() as u32))
}

/// Whether atomics on far lines take less beside one another than one by one.
fn atomics_ahead(measured: &CoreFigures, sources: &mut Sources) -> bool {
    let share = measured.atomics_beside.filter(|share| share.value < AHEAD);
    if share.is_some() {
        noted(sources, "core.atomics_ahead", share, "atomics on far lines side by side and one by one");
    }
    share.is_some()
}

/// Cost of an access to one line that another CPU adds to; none if it was not measured.
fn access(measured: Option<Settled>, sources: &mut Sources, (name, how): (&str, &str)) -> Option<u32> {
    let measured = measured?;
    // The spread of what takes no time is only noise.
    let spread = if measured.value < 1.0 { 0.0 } else { measured.spread };
    let (figure, how) = (format!("core.contended.{name}"), format!("two CPUs at one line that {how}"));
    noted(sources, &figure, Some(Settled { spread, ..measured }), &how).map(|cycles| cycles.round().max(0.0) as u32)
}

/// Costs of lines that another CPU writes. The least stable of three figures stands for them.
fn contended(measured: &CoreFigures, sources: &mut Sources) -> Contended {
    let [stores, atomics, loads] = measured.contended_cycles;
    let typical = TYPICAL_CONTENDED;
    let additions = &measured.contended_addition_cycles;
    let mut access = |measured, name, how| access(measured, sources, (name, how));
    let lone_addition_cycles = access(additions.lone, "lone_addition", "add to it and store nothing else");
    let between_stores_cycles =
        access(additions.between_stores, "between_stores", "add to it and store to four other lines between");
    let far_addition_cycles = access(additions.far, "far_addition", "add to it, with 160 instructions between");
    let far_load_cycles =
        access(additions.far_load, "far_load", "load it and store to it, with 160 instructions between two loads");
    let needed_addition_cycles =
        access(additions.needed, "needed_addition", "add to it and compute with the sum for 128 cycles");
    let needed_load_cycles = access(
        additions.needed_load,
        "needed_load",
        "add to it, and load it and compute with the value for 128 cycles",
    );
    let mut cycles = |figure: &str, what: &str, measured: [Option<Settled>; 3], typical: [u32; 3]| {
        // The spread of an access that takes no time is of no use: it has only noise to compare.
        let spreads = measured.iter().flatten().filter(|figure| figure.value > 0.0).map(|figure| figure.spread);
        let spread = spreads.fold(0.0, f64::max);
        let all = measured[0].filter(|_| measured.iter().all(Option::is_some));
        let how = format!("{what} of one, two and four lines that another CPU writes");
        noted(sources, figure, all.map(|figure| Settled { spread, ..figure }), &how);
        let value = |(figure, typical): (Option<Settled>, u32)| {
            all.and(figure).map_or(typical, |figure| figure.value.round().max(0.0) as u32)
        };
        [0, 1, 2].map(|at| value((measured[at], typical[at])))
    };
    Contended {
        lone_addition_cycles,
        between_stores_cycles,
        far_addition_cycles,
        far_load_cycles,
        spaced_addition_cycles: None,
        needed_addition_cycles,
        needed_load_cycles,
        store_cycles: cycles("core.contended.store", "stores to words", stores, typical.store_cycles),
        atomic_cycles: cycles("core.contended.atomic", "atomic additions to words", atomics, typical.atomic_cycles),
        load_cycles: cycles("core.contended.load", "loads of words", loads, typical.load_cycles),
    }
}

/// The streams; `cycles_per_ns` turns times into cycles.
pub fn streams(measured: &StreamFigures, latency: &Latency, cycles_per_ns: f64, sources: &mut Sources) -> Streams {
    let mut whole = |figure: &str, measured: Option<Settled>, how: &str, otherwise: u32| {
        let value = noted(sources, &format!("streams.{figure}"), measured, how);
        value.map_or(otherwise, |value| (value.round() as u32).max(1))
    };
    let followed = whole("followed", measured.followed, "chained walks in turn", TYPICAL_FOLLOWED);
    let trained_by = whole("trained_by", measured.trained_by, "short walks in random pages", TYPICAL_TRAINED_BY);
    let longest_stride_lines = whole(
        "longest_stride",
        measured.longest_stride_lines,
        "chained walks of growing distance, the longest at less than half of a random load",
        TYPICAL_STRIDE_LINES,
    );
    let border = noted(sources, "streams.within", measured.border, "chained walks within pages and along them");
    let within = if border.is_some_and(|cost| cost < NEW_BEGINNING) { LARGE_PAGE } else { SMALL_PAGE };
    let line_cycles = line_cycles(measured, latency, cycles_per_ns, sources);
    let apart_line_cycles = apart_line_cycles(measured, &line_cycles, latency, cycles_per_ns, sources);
    let region = region(measured, cycles_per_ns, sources);
    Streams { followed, trained_by, longest_stride_lines, within, line_cycles, apart_line_cycles, region }
}

/// Lines that come with a missed one, where both figures of them are valid.
fn region(measured: &StreamFigures, cycles_per_ns: f64, sources: &mut Sources) -> Option<Region> {
    let [lines, wait_ns] = [measured.region_lines?, measured.region_wait_ns?].map(|figure| figure.value);
    noted(sources, "streams.region", measured.region_lines, "chained loads of pairs of lines in random places")?;
    Some(Region { lines: lines.round() as u32, wait_cycles: (wait_ns * cycles_per_ns).round() as u32 })
}

/// Cycles of a line in a stream that leaves lines out, by place: not below one without gaps, nor above a single access.
fn apart_line_cycles(
    measured: &StreamFigures,
    line_cycles: &[f64],
    latency: &Latency,
    cycles_per_ns: f64,
    sources: &mut Sources,
) -> Vec<f64> {
    let places = &measured.apart_line_ns;
    let worst = places.iter().copied().max_by(|a, b| a.spread.total_cmp(&b.spread));
    if places.len() != line_cycles.len()
        || noted(sources, "streams.apart_line", worst, "walks through every third line").is_none()
    {
        return Vec::new();
    }
    let waits = latency.level_cycles.iter().skip(1).chain([&latency.memory_local_cycles]);
    let cycles = |((ns, along), wait): ((&Settled, &f64), &u32)| {
        let own = (ns.value * cycles_per_ns * 100.0).round() / 100.0;
        own.max(*along).min((*wait).into())
    };
    places.iter().zip(line_cycles).zip(waits).map(cycles).collect()
}

/// Address translation; `cycles` turns nanoseconds into cycles.
pub fn tlb(
    first: FirstTranslation,
    second: &TranslationFigures,
    cycles: impl Fn(f64) -> u32,
    sources: &mut Sources,
) -> Tlb {
    const CHASE: &str = "loads from many pages";
    /// Share of a walk to a small page that a piece of a large page takes, from which on it has a place of its own.
    const SPLIT: f64 = 0.3;
    sources.insert("tlb".to_owned(), "measured here by a chase through pages".to_owned());
    let entries = noted(sources, "tlb.second.entries", second.second_entries, CHASE);
    let walk = noted(sources, "tlb.second.walk", second.walk_ns, CHASE);
    let large_walk = noted(sources, "tlb.second.large_walk", second.large_walk_ns, "loads from many large pages");
    let apart = noted(sources, "tlb.second.apart_walk", second.apart_walk_ns, "loads from many pages, side by side");
    let large_apart = noted(
        sources,
        "tlb.second.large_apart_walk",
        second.large_apart_walk_ns,
        "loads from many pieces, side by side",
    );
    const FAR: &str = "loads from pages of very many tables";
    let far = noted(sources, "tlb.second.far_walk", second.far_walk_ns, FAR);
    let far_apart = noted(sources, "tlb.second.far_apart_walk", second.far_apart_walk_ns, FAR);
    let large_pages_split = second.large_pages_split.is_some_and(|share| share.value >= SPLIT);
    sources.extend(large_pages_split.then(|| {
        let from = "measured here by loads from many small pieces of few large pages, which walk the page table";
        ("tlb.large_pages_split".to_owned(), from.to_owned())
    }));
    let large_entries = noted(sources, "tlb.large_entries", second.large_entries, "loads from many large pages");
    if large_entries.is_none() {
        let from = "assumed: shared with small pages, as loads from many large pages show no limit of their own";
        sources.insert("tlb.large_entries".to_owned(), from.to_owned());
    }
    let behind = entries.zip(walk).map(|(entries, walk_ns)| SecondTlb {
        entries: (entries as u32).max(first.entries),
        ways: 0,
        walk_cycles: cycles(walk_ns),
        large_walk_cycles: cycles(large_walk.unwrap_or(walk_ns)),
        apart_walk_cycles: apart.map_or(0, &cycles),
        large_apart_walk_cycles: large_apart.filter(|_| large_pages_split).or(apart).map_or(0, &cycles),
        far_walk_cycles: far.map_or(0, |far_ns| cycles(far_ns.max(walk_ns))),
        far_apart_walk_cycles: far_apart
            .map_or(0, |far_ns| cycles(apart.map_or(far_ns, |near_ns| far_ns.max(near_ns)))),
    });
    if behind.is_none() {
        sources.retain(|figure, _| !figure.starts_with("tlb.second"));
    }
    let large_entries = large_entries.map_or(0, |entries| entries as u32);
    Tlb {
        entries: first.entries,
        ways: first.ways.unwrap_or(0),
        miss_cycles: cycles(first.miss_ns),
        large_entries,
        user_pages_large: false,
        large_pages_split,
        second: behind,
    }
}

/// First touches of a small and of a large page; no source where there is no figure.
pub fn first_touches(measured: &TouchFigures, cycles: impl Fn(f64) -> u32, sources: &mut Sources) -> [Option<u32>; 2] {
    let TouchFigures { small_ns, large_ns } = measured;
    let small = ("memory.first_touch", small_ns, "the CPU time of writing to fresh small pages once");
    let large = ("memory.large_first_touch", large_ns, "the CPU time of writing to fresh large pages");
    [small, large].map(|(figure, ns, how)| ns.and_then(|ns| noted(sources, figure, Some(ns), how)).map(&cycles))
}

/// Cycles of a line by its place, none above the wait of a single access to it and none below a nearer one.
fn line_cycles(measured: &StreamFigures, latency: &Latency, cycles_per_ns: f64, sources: &mut Sources) -> Vec<f64> {
    let waits =
        latency.level_cycles.iter().skip(1).chain([&latency.memory_local_cycles]).map(|cycles| f64::from(*cycles));
    let whole = waits.clone().count() == measured.line_ns.len();
    let worst = measured.line_ns.iter().copied().filter(|_| whole).max_by(|a, b| a.spread.total_cmp(&b.spread));
    let chained: Vec<String> =
        measured.chained_line_ns.iter().map(|ns| format!("{:.1}", ns.value * cycles_per_ns)).collect();
    let how = format!("walks along memory; where each load waits for the one before: {} cycles", chained.join(", "));
    noted(sources, "streams.line", worst, &how);
    let mut nearer = 0.0;
    let mut place = |(i, wait): (usize, f64)| {
        let own = measured.line_ns.get(i).filter(|_| whole).map_or(wait * TYPICAL_SHARE, |ns| ns.value * cycles_per_ns);
        nearer = (own * 100.0).round().max(nearer * 100.0) / 100.0;
        nearer = nearer.min(wait);
        nearer
    };
    waits.enumerate().map(&mut place).collect()
}
