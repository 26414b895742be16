//! Two traced runs: what the model counted in each.

use super::join::{By, Row, columns, list, table};
use crate::levels::{class_name, level, misses, references};
use crate::load::Report;
use crate::name::file_name;
use crate::sums::discrepancies;
use crate::text::kind_name;
use nearmiss_record::comparison::{ComparedColumn, ComparedTable, Figures, UNATTRIBUTED, Unit};
use nearmiss_record::model::{FunctionRow, MissClass, ModelRecord, ObjectKind, ObjectRow, Tally};

/// All tables: totals, what is beside them, levels, classes of each level, functions, objects.
pub fn tables(before: &Report, after: &Report) -> Vec<ComparedTable> {
    let depth = before.levels.len().max(after.levels.len());
    let mut tables = vec![totals(before, after), beside(before, after), levels(before, after, depth)];
    tables.extend((0..depth).map(|index| classes(before, after, index)));
    tables.push(functions(before, after, depth));
    tables.push(objects(before, after, depth));
    tables
}

fn totals(before: &Report, after: &Report) -> ComparedTable {
    let row = |name: &str, figure: fn(&Tally) -> u64| (name.to_owned(), vec![both(before, after, figure)]);
    let rows = [
        row("cycles", |t| t.cycles),
        row("of those waiting", |t| t.stall_cycles),
        row("instructions", |t| t.instructions),
        row("data references", references),
        row("bus transactions", |t| t.bus.transactions()),
    ];
    list(("totals", "The command"), columns([("count", Unit::Count)]), rows)
}

fn beside(before: &Report, after: &Report) -> ComparedTable {
    let row = |name: &str, part: fn(&ModelRecord) -> &Tally| {
        let figures = Figures::new(part(&before.model).cycles, part(&after.model).cycles);
        (name.to_owned(), vec![figures])
    };
    let rows = [row("other tasks", |m| &m.others), row("timer ticks", |m| &m.ticks)];
    list(("beside", "Beside it"), columns([("cycles", Unit::Count)]), rows)
}

fn both(before: &Report, after: &Report, figure: impl Fn(&Tally) -> u64) -> Figures {
    Figures::new(figure(&before.model.totals), figure(&after.model.totals))
}

fn levels(before: &Report, after: &Report, depth: usize) -> ComparedTable {
    let rows = (0..depth).map(|index| {
        let all = both(before, after, |t| misses(t, index));
        let data = both(before, after, |t| level(t, index).data_misses());
        let fetches = both(before, after, |t| level(t, index).fetch_misses.iter().sum());
        (format!("L{}", index + 1), vec![all, data, fetches])
    });
    let columns = columns([("misses", Unit::Count), ("of data", Unit::Count), ("of instructions", Unit::Count)]);
    list(("levels", "Misses by level"), columns, rows)
}

fn classes(before: &Report, after: &Report, index: usize) -> ComparedTable {
    let rows = |report: &Report| {
        let tally = level(&report.model.totals, index);
        let row = |class| Row {
            name: class_name(class).to_owned(),
            detail: String::new(),
            figures: vec![tally.class(class)],
        };
        MissClass::ALL.map(row)
    };
    let name = format!("classes-l{}", index + 1);
    let title = format!("L{} by class", index + 1);
    let columns = columns([("misses", Unit::Count)]);
    table((&name, &title), columns, By::NameAndDetail, rows(before), rows(after))
}

fn functions(before: &Report, after: &Report, depth: usize) -> ComparedTable {
    let row = |r: &FunctionRow| Row {
        name: r.name.clone(),
        detail: if r.name == UNATTRIBUTED { String::new() } else { file_name(&r.module).to_owned() },
        figures: figures(&r.tally, depth),
    };
    let rows = |report: &Report| report.model.functions.iter().map(row).collect::<Vec<_>>();
    let by = By::NameWhereDetailsDiffer;
    table(("functions", "Functions"), figure_columns(depth), by, rows(before), rows(after))
}

fn objects(before: &Report, after: &Report, depth: usize) -> ComparedTable {
    let row = |r: &ObjectRow| {
        let known = r.kind != ObjectKind::Unattributed;
        Row {
            name: if known { r.name.clone() } else { UNATTRIBUTED.to_owned() },
            detail: if known { kind_name(r.kind).to_owned() } else { String::new() },
            figures: figures(&r.tally, depth),
        }
    };
    let rows = |report: &Report| report.model.objects.iter().map(row).collect::<Vec<_>>();
    table(("objects", "Objects"), figure_columns(depth), By::NameAndDetail, rows(before), rows(after))
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

/// Lists what makes the two less comparable than their tables look, and what does not add up.
pub fn notes(before: &Report, after: &Report) -> Vec<String> {
    let (a, b) = (&before.model, &after.model);
    let mut notes = Vec::new();
    if a.machine.name != b.machine.name {
        notes.push(format!(
            "A was modelled on {}, B on {}: differences are the machines' too; `nearmiss report RUN -m MACHINE` models a \
             run on another.",
            a.machine.name, b.machine.name
        ));
    } else if a.machine != b.machine {
        notes.push(format!("The machine {} was described differently for A and B.", a.machine.name));
    }
    for (letter, machine) in [("A", &a.machine), ("B", &b.machine)] {
        notes.extend(machine.caution().map(|caution| format!("{letter}: {caution}.")));
    }
    let differ = [
        (a.only_user != b.only_user, "Only one of the runs was limited to the command's user mode."),
        (
            a.order != b.order,
            "The records of several CPUs are in the recorded order in one run, modelled in the other.",
        ),
        (a.policy != b.policy, "The runs were replayed under different policies."),
        (
            before.manifest.clock != after.manifest.clock,
            "The guests' clocks were different: ticks may differ for that.",
        ),
    ];
    notes.extend(differ.into_iter().filter(|(differ, _)| *differ).map(|(_, note)| note.to_owned()));
    for (side, report) in [("A", before), ("B", after)] {
        notes.extend(report.manifest.cut.iter().map(|why| format!("{side} ends before its command did: {why}")));
        notes.extend(discrepancies(&report.model).into_iter().map(|found| format!("{side}: {found}")));
    }
    notes
}
