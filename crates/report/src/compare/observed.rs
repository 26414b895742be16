//! Two observed runs: what was measured in each.

use super::join::{By, Row, columns, list, table};
use crate::name::file_name;
use crate::number::duration;
use crate::observe::{event_of, hottest};
use nearmiss_record::comparison::{ComparedTable, Figures, UNATTRIBUTED, Unit};
use nearmiss_record::observed::{BlockIo, Event, Lock, Observed, Poll, Profile};
use nearmiss_record::run::Manifest;

/// All tables: times, functions by each event, locks, polls, block I/O; of what both runs measured.
pub fn tables(before: &Observed, after: &Observed) -> Vec<ComparedTable> {
    let mut tables = vec![totals(before, after)];
    if let (Some(a), Some(b)) = (&before.profile, &after.profile) {
        tables.extend(
            shared_events(a, b).into_iter().map(|(event, ours, theirs)| functions(event, (a, ours), (b, theirs))),
        );
    }
    let ran = |name: &str| [before, after].iter().all(|o| o.instruments.iter().any(|i| i.name == name && i.on));
    if ran("locks") {
        tables.push(locks(("locks", "Lock waits"), true, before, after));
        tables.push(locks(("waits", "Waits between threads"), false, before, after));
    }
    if ran("polls") {
        tables.push(polls(before, after));
    }
    if ran("io") {
        tables.push(block(before, after));
    }
    tables
}

fn totals(before: &Observed, after: &Observed) -> ComparedTable {
    let row = |name: &str, of: fn(&Observed) -> u64| (name.to_owned(), vec![Figures::new(of(before), of(after))]);
    let rows = [row("wall time", |o| o.duration_ns), row("CPU time", |o| o.cpu_ns)];
    list(("totals", "The run"), columns([("time", Unit::Nanoseconds)]), rows)
}

/// Events that both runs sampled, with their numbers in each: clocks and misses by what they stand for, others by name.
fn shared_events<'a>(before: &'a Profile, after: &Profile) -> Vec<(&'a Event, u32, u32)> {
    let twin = |event: &Event| match event.role.as_str() {
        "other" => after.events.iter().position(|e| e.name == event.name).and_then(|at| u32::try_from(at).ok()),
        role => event_of(after, role),
    };
    (0..).zip(&before.events).filter_map(|(ours, event)| Some((event, ours, twin(event)?))).collect()
}

fn functions(event: &Event, before: (&Profile, u32), after: (&Profile, u32)) -> ComparedTable {
    let rows = |(profile, event): (&Profile, u32)| {
        let row = |hot: crate::observe::Hot| Row {
            name: hot.name,
            detail: file_name(&hot.module).to_owned(),
            figures: vec![hot.samples, hot.weight],
        };
        hottest(profile, event).into_iter().map(row).collect::<Vec<_>>()
    };
    let word = if event.role == "other" { &event.name } else { &event.role };
    let (name, title) = (format!("functions-{word}"), format!("Functions by {}", event.name));
    let columns = columns([("samples", Unit::Count), ("events", Unit::Count)]);
    table((&name, &title), columns, By::NameWhereDetailsDiffer, rows(before), rows(after))
}

fn locks(title: (&str, &str), contended: bool, before: &Observed, after: &Observed) -> ComparedTable {
    let row = |lock: &Lock| Row {
        name: lock_name(lock),
        detail: lock.kind.clone(),
        figures: vec![lock.total_ns, lock.count],
    };
    let rows = |o: &Observed| o.locks.iter().filter(|l| l.contended == contended).map(row).collect::<Vec<_>>();
    let columns = columns([("time waited", Unit::Nanoseconds), ("waits", Unit::Count)]);
    table(title, columns, By::NameAndDetail, rows(before), rows(after))
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

fn polls(before: &Observed, after: &Observed) -> ComparedTable {
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
    table(("polls", "Polls"), columns, By::NameAndDetail, rows(before), rows(after))
}

fn block(before: &Observed, after: &Observed) -> ComparedTable {
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
    table(("io", "Block I/O"), columns, By::NameAndDetail, rows(before), rows(after))
}

/// Lists what makes the two less comparable than their tables look.
pub fn notes(before: &(Manifest, Observed), after: &(Manifest, Observed)) -> Vec<String> {
    let (a, b) = (&before.1, &after.1);
    let mut notes = vec![
        "One run a side: `nearmiss verify commands` separates a difference from noise, this comparison does not."
            .to_owned(),
    ];
    if a.cpus != b.cpus {
        notes.push(format!(
            "A had {} CPUs, B {}: the machines differ, and their differences are in every table.",
            a.cpus, b.cpus
        ));
    }
    let timed = [before, after].iter().any(|(manifest, _)| manifest.command.is_empty());
    if timed && a.duration_ns.abs_diff(b.duration_ns) > a.duration_ns / 100 {
        let spans = (duration(a.duration_ns), duration(b.duration_ns));
        notes.push(format!("A was observed for {}, B for {}: sums grow with time.", spans.0, spans.1));
    }
    notes.extend(one_sided(a, b));
    notes.extend(rates(a, b));
    for (side, o) in [("A", a), ("B", b)] {
        notes.extend(o.lost.iter().map(|(what, n)| format!("{side} lost {n} {what}.")));
    }
    notes
}

/// Instruments that only one run had.
fn one_sided(before: &Observed, after: &Observed) -> Vec<String> {
    let on = |o: &Observed| o.instruments.iter().filter(|i| i.on).map(|i| i.name.clone()).collect::<Vec<_>>();
    let (a, b) = (on(before), on(after));
    let only = |side: &str, here: &[String], there: &[String]| -> Vec<String> {
        let missing = here.iter().filter(|name| !there.contains(name));
        missing.map(|name| format!("Only {side} measured {name}: not compared.")).collect()
    };
    [only("A", &a, &b), only("B", &b, &a)].concat()
}

/// Samples of different events or rates are not counted alike.
fn rates(before: &Observed, after: &Observed) -> Vec<String> {
    let (Some(a), Some(b)) = (&before.profile, &after.profile) else { return Vec::new() };
    let rate = |e: &Event| match e.period {
        0 => format!("{} at {} Hz", e.name, e.frequency_hz),
        period => format!("{} one in {period}", e.name),
    };
    let differing = |(event, _, theirs): (&Event, u32, u32)| {
        let (ours, theirs) = (rate(event), rate(b.events.get(theirs as usize)?));
        (ours != theirs).then(|| format!("A sampled {ours}, B {theirs}: numbers of samples do not compare."))
    };
    shared_events(a, b).into_iter().filter_map(differing).collect()
}
