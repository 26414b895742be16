//! Observed runs: what was measured in each.

use super::join::{By, Row, columns, list, table};
use super::sides::{Sides, both, letters};
use crate::name::file_name;
use crate::number::duration;
use crate::observe::{event_of, hottest};
use nearmiss_record::comparison::{ComparedTable, UNATTRIBUTED, Unit};
use nearmiss_record::observed::{BlockIo, Event, Lock, Observed, Poll};
use nearmiss_record::run::Manifest;

/// A run's records.
pub type Run = (Manifest, Observed);

/// All tables: times, functions by each event, locks, polls, block I/O; of what all runs measured.
pub fn tables(sides: Sides<'_, Run>) -> Vec<ComparedTable> {
    let mut tables = vec![totals(sides)];
    let first = sides[0].first().and_then(|(_, run)| run.profile.as_ref());
    let events = first.map_or(&[][..], |profile| &profile.events);
    tables.extend(events.iter().filter_map(|event| functions(event, sides)));
    let ran = |name: &str| sides.into_iter().flatten().all(|(_, run)| is_on(run, name));
    if ran("locks") {
        tables.push(locks(("locks", "Lock waits"), true, sides));
        tables.push(locks(("waits", "Waits between threads"), false, sides));
    }
    if ran("polls") {
        tables.push(polls(sides));
    }
    if ran("io") {
        tables.push(block(sides));
    }
    tables
}

fn is_on(run: &Observed, name: &str) -> bool {
    run.instruments.iter().any(|instrument| instrument.name == name && instrument.on)
}

fn totals(sides: Sides<'_, Run>) -> ComparedTable {
    let row = |name: &str, of: fn(&Observed) -> u64| (name.to_owned(), vec![both(sides, |(_, run)| of(run))]);
    let rows = [row("wall time", |o| o.duration_ns), row("CPU time", |o| o.cpu_ns)];
    list(("totals", "The run"), columns([("time", Unit::Nanoseconds)]), rows)
}

/// The rows of each run.
fn each(sides: Sides<'_, Run>, rows: impl Fn(&Observed) -> Vec<Row>) -> [Vec<Vec<Row>>; 2] {
    sides.map(|runs| runs.iter().map(|(_, run)| rows(run)).collect())
}

/// Returns the number of the event that stands for the same in another run: clocks and misses by their role, others by name.
fn twin<'a>(event: &Event, run: &'a Observed) -> Option<(u32, &'a Event)> {
    let profile = run.profile.as_ref()?;
    let at = match event.role.as_str() {
        "other" => u32::try_from(profile.events.iter().position(|other| other.name == event.name)?).ok()?,
        role => event_of(profile, role)?,
    };
    Some((at, profile.events.get(at as usize)?))
}

/// Functions by an event; none where a run did not sample it.
fn functions(event: &Event, sides: Sides<'_, Run>) -> Option<ComparedTable> {
    let rows = |(_, run): &Run| -> Option<Vec<Row>> {
        let (at, _) = twin(event, run)?;
        let row = |hot: crate::observe::Hot| Row {
            name: hot.name,
            detail: file_name(&hot.module).to_owned(),
            figures: vec![hot.samples, hot.weight],
        };
        Some(hottest(run.profile.as_ref()?, at).into_iter().map(row).collect())
    };
    let [before, after] = sides.map(|runs| runs.iter().map(rows).collect::<Option<Vec<_>>>());
    let word = if event.role == "other" { &event.name } else { &event.role };
    let (name, title) = (format!("functions-{word}"), format!("Functions by {}", event.name));
    let columns = columns([("samples", Unit::Count), ("events", Unit::Count)]);
    Some(table((&name, &title), columns, By::NameWhereDetailsDiffer, [before?, after?]))
}

fn locks(title: (&str, &str), contended: bool, sides: Sides<'_, Run>) -> ComparedTable {
    let row = |lock: &Lock| Row {
        name: lock_name(lock),
        detail: lock.kind.clone(),
        figures: vec![lock.total_ns, lock.count],
    };
    let rows = |o: &Observed| o.locks.iter().filter(|l| l.contended == contended).map(row).collect::<Vec<_>>();
    let columns = columns([("time waited", Unit::Nanoseconds), ("waits", Unit::Count)]);
    table(title, columns, By::NameAndDetail, each(sides, rows))
}

/// Returns the symbol or variable of a lock, and who waits: an address is another in each run.
fn lock_name(lock: &Lock) -> String {
    let caller = lock.call_sites.first().map(|(frame, _)| frame).or_else(|| lock.stack.first());
    let caller = caller.map(|frame| format!("in {}", frame.function));
    let name = if lock.variable.is_empty() { lock.name.clone() } else { format!("{} `{}`", lock.name, lock.variable) };
    match (name.trim_start(), caller) {
        ("", None) => UNATTRIBUTED.to_owned(),
        ("", Some(caller)) => caller,
        (name, None) => name.to_owned(),
        (name, Some(caller)) => format!("{name}, {caller}"),
    }
}

fn polls(sides: Sides<'_, Run>) -> ComparedTable {
    let row = |poll: &Poll| Row {
        name: poll.name.clone(),
        detail: poll.call.clone(),
        figures: vec![poll.on_cpu_ns, poll.calls, poll.empty, poll.blocked_ns],
    };
    let rows = |o: &Observed| o.polls.iter().map(row).collect::<Vec<_>>();
    let columns = columns([
        ("on CPU", Unit::Nanoseconds),
        ("calls", Unit::Count),
        ("empty", Unit::Count),
        ("blocked", Unit::Nanoseconds),
    ]);
    table(("polls", "Polls"), columns, By::NameAndDetail, each(sides, rows))
}

fn block(sides: Sides<'_, Run>) -> ComparedTable {
    let row = |io: &BlockIo| Row {
        name: format!("{} {}", io.device, io.operation),
        detail: io.name.clone(),
        figures: vec![io.device_ns, io.queue_ns, io.count, io.bytes],
    };
    let rows = |o: &Observed| o.io.iter().map(row).collect::<Vec<_>>();
    let columns = columns([
        ("in device", Unit::Nanoseconds),
        ("queued", Unit::Nanoseconds),
        ("requests", Unit::Count),
        ("bytes", Unit::Bytes),
    ]);
    table(("io", "Block I/O"), columns, By::NameAndDetail, each(sides, rows))
}

/// Lists what makes the runs less comparable than their tables look.
pub fn notes(sides: Sides<'_, Run>) -> Vec<String> {
    let letters = letters(sides.map(<[_]>::len)).concat();
    let runs: Vec<Named<'_>> = letters.iter().map(String::as_str).zip(sides.into_iter().flatten()).collect();
    let Some((first, others)) = runs.split_first() else { return Vec::new() };
    let mut notes: Vec<String> = others.iter().flat_map(|other| differences(*first, *other)).collect();
    for (letter, (_, observed)) in runs {
        notes.extend(observed.lost.iter().map(|(what, n)| format!("{letter} lost {n} {what}.")));
    }
    notes
}

type Named<'a> = (&'a str, &'a Run);

/// Lists what makes two runs less comparable.
fn differences(first: Named<'_>, other: Named<'_>) -> Vec<String> {
    let ((letter, (manifest, a)), (letter_b, (manifest_b, b))) = (first, other);
    let mut notes = Vec::new();
    if a.cpus != b.cpus {
        notes.push(format!(
            "{letter} had {} CPUs, {letter_b} {}: the machines differ, and their differences are in every table.",
            a.cpus, b.cpus
        ));
    }
    let timed = manifest.command.is_empty() || manifest_b.command.is_empty();
    if timed && a.duration_ns.abs_diff(b.duration_ns) > a.duration_ns / 100 {
        let spans = (duration(a.duration_ns), duration(b.duration_ns));
        notes.push(format!("{letter} was observed for {}, {letter_b} for {}: sums grow with time.", spans.0, spans.1));
    }
    notes.extend(one_sided((letter, a), (letter_b, b)));
    notes.extend(rates((letter, a), (letter_b, b)));
    notes
}

/// Instruments that only one run had.
fn one_sided((letter, a): (&str, &Observed), (letter_b, b): (&str, &Observed)) -> Vec<String> {
    let only = |side: &str, here: &Observed, there: &Observed| -> Vec<String> {
        let missing = here.instruments.iter().filter(|it| it.on && !is_on(there, &it.name));
        missing.map(|it| format!("Only {side} measured {}: not compared.", it.name)).collect()
    };
    [only(letter, a, b), only(letter_b, b, a)].concat()
}

/// Samples of different events or rates are not counted alike.
fn rates((letter, a): (&str, &Observed), (letter_b, b): (&str, &Observed)) -> Vec<String> {
    let rate = |e: &Event| match e.period {
        0 => format!("{} at {} Hz", e.name, e.frequency_hz),
        period => format!("{} one in {period}", e.name),
    };
    let differing = |event: &Event| {
        let (ours, theirs) = (rate(event), rate(twin(event, b)?.1));
        (ours != theirs)
            .then(|| format!("{letter} sampled {ours}, {letter_b} {theirs}: numbers of samples do not compare."))
    };
    a.profile.iter().flat_map(|profile| &profile.events).filter_map(differing).collect()
}
