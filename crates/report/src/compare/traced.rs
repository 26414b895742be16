//! Traced runs: what the model counted in each.

use super::join::{By, Row, columns, list, table};
use super::sides::{Sides, both, letters};
use crate::levels::{class_name, level, misses, references};
use crate::load::Report;
use crate::name::file_name;
use crate::sums::discrepancies;
use crate::text::kind_name;
use nearmiss_record::comparison::{ComparedColumn, ComparedTable, UNATTRIBUTED, Unit};
use nearmiss_record::model::{FunctionRow, MissClass, ModelRecord, ObjectKind, ObjectRow, Tally};

/// All tables: totals, what is beside them, levels, classes of each level, functions, objects.
pub fn tables(sides: Sides<'_, Report>) -> Vec<ComparedTable> {
    let depth = sides.iter().flat_map(|runs| runs.iter()).map(|run| run.levels.len()).max().unwrap_or(0);
    let mut tables = vec![totals(sides), beside(sides), levels(sides, depth)];
    tables.extend((0..depth).map(|index| classes(sides, index)));
    tables.push(functions(sides, depth));
    tables.push(objects(sides, depth));
    tables
}

fn totals(sides: Sides<'_, Report>) -> ComparedTable {
    let row =
        |name: &str, figure: fn(&Tally) -> u64| (name.to_owned(), vec![both(sides, |run| figure(&run.model.totals))]);
    let rows = [
        row("cycles", |t| t.cycles),
        row("of those waiting", |t| t.stall_cycles),
        row("instructions", |t| t.instructions),
        row("data references", references),
        row("bus transactions", |t| t.bus.transactions()),
    ];
    list(("totals", "The command"), columns([("count", Unit::Count)]), rows)
}

fn beside(sides: Sides<'_, Report>) -> ComparedTable {
    let row = |name: &str, part: fn(&ModelRecord) -> &Tally| {
        (name.to_owned(), vec![both(sides, |run| part(&run.model).cycles)])
    };
    let rows = [row("other tasks", |m| &m.others), row("timer ticks", |m| &m.ticks)];
    list(("beside", "Beside it"), columns([("cycles", Unit::Count)]), rows)
}

fn levels(sides: Sides<'_, Report>, depth: usize) -> ComparedTable {
    let rows = (0..depth).map(|index| {
        let all = both(sides, |run| misses(&run.model.totals, index));
        let data = both(sides, |run| level(&run.model.totals, index).data_misses());
        let fetches = both(sides, |run| level(&run.model.totals, index).fetch_misses.iter().sum());
        (format!("L{}", index + 1), vec![all, data, fetches])
    });
    let columns = columns([("misses", Unit::Count), ("of data", Unit::Count), ("of instructions", Unit::Count)]);
    list(("levels", "Misses by level"), columns, rows)
}

fn classes(sides: Sides<'_, Report>, index: usize) -> ComparedTable {
    let rows = |report: &Report| {
        let tally = level(&report.model.totals, index);
        let row = |class| Row {
            name: class_name(class).to_owned(),
            detail: String::new(),
            figures: vec![tally.class(class)],
        };
        MissClass::ALL.map(row).into()
    };
    let name = format!("classes-l{}", index + 1);
    let title = format!("L{} by class", index + 1);
    let columns = columns([("misses", Unit::Count)]);
    table((&name, &title), columns, By::NameAndDetail, each(sides, rows))
}

fn functions(sides: Sides<'_, Report>, depth: usize) -> ComparedTable {
    let row = |r: &FunctionRow| Row {
        name: r.name.clone(),
        detail: if r.name == UNATTRIBUTED { String::new() } else { file_name(&r.module).to_owned() },
        figures: figures(&r.tally, depth),
    };
    let rows = |report: &Report| report.model.functions.iter().map(row).collect::<Vec<_>>();
    let by = By::NameWhereDetailsDiffer;
    table(("functions", "Functions"), figure_columns(depth), by, each(sides, rows))
}

fn objects(sides: Sides<'_, Report>, depth: usize) -> ComparedTable {
    let row = |r: &ObjectRow| {
        let known = r.kind != ObjectKind::Unattributed;
        Row {
            name: if known { r.name.clone() } else { UNATTRIBUTED.to_owned() },
            detail: if known { kind_name(r.kind).to_owned() } else { String::new() },
            figures: figures(&r.tally, depth),
        }
    };
    let rows = |report: &Report| report.model.objects.iter().map(row).collect::<Vec<_>>();
    table(("objects", "Objects"), figure_columns(depth), By::NameAndDetail, each(sides, rows))
}

/// The rows of each run.
fn each(sides: Sides<'_, Report>, rows: impl Fn(&Report) -> Vec<Row>) -> [Vec<Vec<Row>>; 2] {
    sides.map(|runs| runs.iter().map(&rows).collect())
}

fn figure_columns(depth: usize) -> Vec<ComparedColumn> {
    let mut columns = columns([("cycles waited", Unit::Count), ("references", Unit::Count)]);
    columns.extend((1..=depth).map(|l| ComparedColumn { name: format!("L{l} misses"), unit: Unit::Count }));
    columns
}

fn figures(tally: &Tally, depth: usize) -> Vec<u64> {
    let misses = (0..depth).map(|index| misses(tally, index));
    [tally.stall_cycles, references(tally)].into_iter().chain(misses).collect()
}

/// Lists what makes the runs less comparable than their tables look, and what does not add up.
pub fn notes(sides: Sides<'_, Report>) -> Vec<String> {
    let letters = letters(sides.map(<[Report]>::len)).concat();
    let runs: Vec<(&str, &Report)> = letters.iter().map(String::as_str).zip(sides.into_iter().flatten()).collect();
    let Some((first, others)) = runs.split_first() else { return Vec::new() };
    let mut notes: Vec<String> = others.iter().flat_map(|other| differences(*first, *other)).collect();
    for (letter, run) in runs {
        notes.extend(run.model.machine.caution().map(|caution| format!("{letter}: {caution}.")));
        notes.extend(run.manifest.cut.iter().map(|why| format!("{letter} ends before its command did: {why}")));
        notes.extend(discrepancies(&run.model).into_iter().map(|found| format!("{letter}: {found}")));
    }
    notes
}

/// Lists what makes two runs less comparable.
fn differences((first, before): (&str, &Report), (other, after): (&str, &Report)) -> Vec<String> {
    let (a, b) = (&before.model, &after.model);
    let differ = [
        (
            a.machine.name != b.machine.name,
            format!(
                "{first} was modelled on {}, {other} on {}: differences are the machines' too; `nearmiss report RUN -m \
                 MACHINE` models a run on another.",
                a.machine.name, b.machine.name
            ),
        ),
        (
            a.machine.name == b.machine.name && a.machine != b.machine,
            format!("The machine {} was described differently for {first} and {other}.", a.machine.name),
        ),
        (
            a.only_user != b.only_user,
            format!("Only one of {first} and {other} was limited to the command's user mode."),
        ),
        (
            a.order != b.order,
            format!(
                "The records of several CPUs are in different orders in {first} and {other}: recorded, and modelled."
            ),
        ),
        (a.policy != b.policy, format!("{first} and {other} were replayed under different policies.")),
        (
            before.manifest.clock != after.manifest.clock,
            format!("The guests' clocks of {first} and {other} were different: ticks may differ for that."),
        ),
    ];
    differ.into_iter().filter(|(differ, _)| *differ).map(|(_, note)| note).collect()
}
