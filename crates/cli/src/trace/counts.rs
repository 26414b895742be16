//! `nearmiss trace --counts`: misses counted on one CPU and nothing kept, for those who want no causes.

use super::options::{Clock, Only};
use super::{Args, Subject, filter, tap_config};
use crate::output::terminal_width_of_stderr;
use crate::table::{lines, table};
use crate::{exit, interrupt};
use anyhow::Context;
use comfy_table::CellAlignment;
use nearmiss_analysis::ModelTotals;
use nearmiss_machine::describe;
use nearmiss_record::counts::{ByKind, CacheCounts, CountsRecord, SCHEMA};
use nearmiss_record::machine::{CacheKind, Machine};
use nearmiss_record::run::{self, Filter};
use nearmiss_record::side::{INSN_ATOMIC, SideTables};
use nearmiss_record::words::{grouped, miss_ratio, quoted};
use nearmiss_tap::guest::CommandStatus;
use nearmiss_tap::session::{Recorded, Session, TapConfig};
use nearmiss_workload::Workload;

/// Runs the command and reports how often each cache missed. Returns its exit status, if it came to one.
pub fn count(args: &Args) -> anyhow::Result<Option<CommandStatus>> {
    let subject = &Subject::of(args);
    // The guest would report it too, after its boot.
    Workload::new(args.command.iter().cloned()).program()?;
    let machine = describe::cut(&nearmiss_host::load(&args.machine)?, 1);
    let filter = match args.one_line_filter {
        true => Filter { contexts: false, heap: false, ..filter(subject, &machine) },
        false => describe::filter_for_counts(&machine),
    };
    let clock = if args.deterministic { Clock::Instructions } else { args.record.clock };
    let config = TapConfig { heap_shim: None, ..tap_config(subject, &machine, filter, clock)? };
    let (words, window) = super::served::recorded(subject, &machine, &config.kernel)?;
    let session = Session::new(config)?.within(window);
    let filter = session.header().filter; // not all that was requested goes with every emulator
    let inexact = describe::approximate_misses(filter, &machine);
    let mut notes: Vec<_> = inexact.into_iter().map(|note| note.sentence().to_owned()).collect();
    let command = args.record.warm.command(&words)?;
    let signals = interrupt::for_others(super::FOR_THE_COMMAND);
    let (recorded, totals) =
        nearmiss_analysis::count_misses(session, command, &machine).map_err(super::not_recorded)?;
    drop(signals);
    if args.record.only.is_none() {
        notes.push(
            "Counted is all that the CPU executed: of the kernel, timer ticks, idling and the guest's own init too; \
             --only user leaves them out."
                .to_owned(),
        );
    }
    notes.extend(super::served::notes(subject));
    notes.extend(super::note_of_kernel(args));
    notes.extend(super::warm::notes(&recorded));
    notes.extend(recorded.notes.iter().cloned());
    let record = record(args, machine, filter, &recorded, &totals, notes);
    if let Some(file) = &args.json {
        let mut bytes = serde_json::to_vec(&record).context("record of counts")?;
        bytes.push(b'\n');
        run::write_whole(file, &bytes)?;
    }
    if !args.quiet {
        crate::output::print_to_stderr(&format!("{}\n", text(&record)));
    }
    if let Some(cut) = &recorded.cut {
        exit::print_message(&format!("{cut}; counted is what was until then"));
    }
    Ok(recorded.exit.status)
}

fn record(
    args: &Args,
    machine: Machine,
    filter: Filter,
    recorded: &Recorded,
    totals: &ModelTotals,
    notes: Vec<String>,
) -> CountsRecord {
    let (exit_status, signal) = nearmiss_analysis::ends(recorded.exit.status);
    CountsRecord {
        schema: SCHEMA.to_owned(),
        nearmiss: env!("CARGO_PKG_VERSION").to_owned(),
        command: args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        exit_status,
        signal,
        cut: recorded.cut.clone(),
        only_user: args.record.only == Some(Only::User),
        filter,
        records: totals.records,
        window_ns: recorded.window.as_nanos() as u64,
        instructions: totals.sum().instructions,
        caches: caches(&machine, totals, &recorded.side),
        machine,
        notes,
    }
}

/// Returns each cache's counts; references that the filter dropped went to the first level, and hit there.
fn caches(machine: &Machine, totals: &ModelTotals, side: &SideTables) -> Vec<CacheCounts> {
    let sum = totals.sum();
    let mut all = ByKind { loads: sum.loads, stores: sum.stores, fetches: sum.instructions };
    for insn in &side.insns {
        all.loads += insn.load_hits;
        // An atomic is one load.
        *(if insn.flags & INSN_ATOMIC != 0 { &mut all.loads } else { &mut all.stores }) += insn.store_hits;
    }
    let references = |level: u8| match usize::from(level).checked_sub(2) {
        Some(nearer) => (&sum.levels[nearer]).into(),
        None => all,
    };
    totals
        .caches
        .iter()
        .map(|cache| CacheCounts {
            name: cache.name.clone(),
            level: cache.level,
            references: served(kind(machine, &cache.name), references(cache.level)),
            misses: (&cache.references).into(),
            fills: cache.fills,
            dirty_evictions: cache.dirty_evictions,
        })
        .collect()
}

fn kind(machine: &Machine, name: &str) -> CacheKind {
    machine.caches.iter().find(|cache| cache.name() == name).map_or(CacheKind::Unified, |cache| cache.kind)
}

/// Returns those of some references that go to a cache of a kind.
fn served(kind: CacheKind, references: ByKind) -> ByKind {
    match kind {
        CacheKind::Unified => references,
        CacheKind::Data => ByKind { fetches: 0, ..references },
        CacheKind::Instruction => ByKind { fetches: references.fetches, ..ByKind::default() },
    }
}

/// Describes the run and its machine, with a row for each kind of reference that a cache serves.
fn text(record: &CountsRecord) -> String {
    let part = if record.only_user { " of the command's user mode" } else { "" };
    let mut rows = table(&["cache", "kind", "references", "misses", "of them"], terminal_width_of_stderr() as u16);
    for cache in &record.caches {
        let kinds = [
            ("loads", cache.references.loads, cache.misses.loads),
            ("stores", cache.references.stores, cache.misses.stores),
            (if cache.level == 1 { "instructions" } else { "fetches" }, cache.references.fetches, cache.misses.fetches),
        ];
        let kind = kind(&record.machine, &cache.name);
        let served = match kind {
            CacheKind::Unified => &kinds[..],
            CacheKind::Data => &kinds[..2],
            CacheKind::Instruction => &kinds[2..],
        };
        for (what, references, misses) in served {
            let ratio = miss_ratio(*misses, *references);
            rows.add_row([cache.name.clone(), (*what).to_owned(), grouped(*references), grouped(*misses), ratio]);
        }
    }
    rows.column_iter_mut().skip(2).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    let notes: String = record.notes.iter().map(|note| format!("\n{note}")).collect();
    let caution = record.machine.caution().map(|caution| format!("\nCaution: {caution}")).unwrap_or_default();
    format!(
        "Misses modelled on {}, one CPU, classes not distinguished: {}{caution}\n{} instructions{part}\n\n{}\n{notes}",
        record.machine.name,
        quoted(&record.command),
        grouped(record.instructions),
        lines(&rows),
    )
    .trim_end()
    .to_owned()
}
