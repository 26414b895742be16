//! The tables of functions, objects, source lines, tasks, CPUs and nodes.

use super::Section;
use crate::function_name::folded;
use crate::levels::{Level, class_name, level, misses, references};
use crate::load::Report;
use crate::name::{file_name, fitted, plain};
use crate::number::{bytes, grouped, percent_of, percentage};
use crate::plot::chart::pct;
use crate::ranking::Ranking;
use crate::text::kind_name;
use maud::{Markup, html};
use nearmiss_record::model::{FunctionRow, LineRow, MissClass, ObjectKind, ObjectRow, Tally, TaskRow};

const NAME_WIDTH: usize = 100;

/// A column of figures.
struct Column<'a> {
    title: String,
    figure: Box<dyn Fn(&Tally) -> u64 + 'a>,
    /// Misses of this level: a bar by class goes with the number.
    level: Option<&'a Level>,
}

fn column<'a>(title: &str, figure: impl Fn(&Tally) -> u64 + 'a) -> Column<'a> {
    Column { title: title.to_owned(), figure: Box::new(figure), level: None }
}

fn level_columns(levels: &[Level]) -> impl Iterator<Item = Column<'_>> {
    levels.iter().map(|l| Column {
        title: format!("{} misses", l.name),
        figure: Box::new(move |t| misses(t, l.index)),
        level: Some(l),
    })
}

/// A table of a ranking: `heads` name what `cells` fills, figures follow, the rest and the total close it.
fn table<T>(
    label: &str,
    ranking: &Ranking<'_, T>,
    noun: &str,
    heads: &[&str],
    cells: impl Fn(&T) -> Vec<Markup>,
    columns: &[Column<'_>],
) -> Markup {
    table_of(label, ranking, noun, heads, cells, columns, None)
}

/// A table with rows that are not all: the rest of the `whole` is a row with a name of its own.
fn table_of<T>(
    label: &str,
    ranking: &Ranking<'_, T>,
    noun: &str,
    heads: &[&str],
    cells: impl Fn(&T) -> Vec<Markup>,
    columns: &[Column<'_>],
    whole: Option<(&Tally, &str)>,
) -> Markup {
    let largest: Vec<u64> =
        columns.iter().map(|c| ranking.shown.iter().map(|(_, t)| (c.figure)(t)).max().unwrap_or(0)).collect();
    let figures = |tally: &Tally| html! { @for (c, max) in columns.iter().zip(&largest) { (cell(c, tally, *max)) } };
    let plain_figures = |tally: &Tally| html! { @for c in columns { td.n { (grouped((c.figure)(tally))) } } };
    html! {
        div.scroll tabindex="0" role="region" aria-label=(label) {
            table data-sort {
                thead { tr {
                    @for head in heads { th scope="col" { (head) } }
                    @for c in columns { th.n scope="col" { (c.title) } }
                } }
                tbody {
                    @for (row, tally) in &ranking.shown {
                        tr { @for c in cells(row) { (c) } (figures(tally)) }
                    }
                }
                tfoot {
                    @if ranking.rest_rows > 0 {
                        tr { th scope="row" colspan=(heads.len()) { "others (" (grouped(ranking.rest_rows as u64)) " " (noun) ")" } (plain_figures(&ranking.rest)) }
                    }
                    @if let Some((whole, name)) = whole {
                        tr { th scope="row" colspan=(heads.len()) { (name) } @for c in columns { td.n { (grouped((c.figure)(whole).saturating_sub((c.figure)(&ranking.total)))) } } }
                        tr { th scope="row" colspan=(heads.len()) { "total" } (plain_figures(whole)) }
                    } @else {
                        tr { th scope="row" colspan=(heads.len()) { "total" } (plain_figures(&ranking.total)) }
                    }
                }
            }
        }
    }
}

fn cell(column: &Column<'_>, tally: &Tally, largest: u64) -> Markup {
    let value = (column.figure)(tally);
    html! {
        td.n data-v=(value) {
            (grouped(value))
            @if let Some(of) = column.level.filter(|_| value > 0) {
                span.bar aria-hidden="true" {
                    @for class in MissClass::ALL {
                        @let part = level(tally, of.index).class(class);
                        @if part > 0 { span class={ "k" (class as usize) } style={ "width:" (pct(percentage(part, largest))) } title={ (class_name(class)) ": " (grouped(part)) } {} }
                    }
                }
            }
        }
    }
}

/// A table of the rows with every class of one level as a number: the figures of the bars.
fn by_class<T>(
    label: &str,
    ranking: &Ranking<'_, T>,
    noun: &str,
    name: impl Fn(&T) -> String,
    levels: &[Level],
) -> Markup {
    html! {
        @for l in levels {
            @let columns: Vec<Column<'_>> = MissClass::ALL.into_iter().map(|c| column(class_name(c), move |t| level(t, l.index).class(c))).collect();
            details {
                summary { "Table: " (l.name) " misses of " (label) " by class" }
                (table(&format!("{} misses of {label} by class", l.name), ranking, noun, &[noun], |row| vec![html! { td { code { (name(row)) } } }], &columns))
            }
        }
    }
}

fn class_legend() -> Markup {
    html! {
        ul.legend { @for class in MissClass::ALL { li { span.swatch.{ "k" (class as usize) } {} (class_name(class)) } } }
    }
}

pub(super) fn functions(report: &Report, top: usize) -> Option<Section> {
    let rows = &report.model.functions;
    let ranking = Ranking::new(rows, top, |r: &FunctionRow| r.tally.clone());
    let name = |r: &FunctionRow| fitted(&folded(&r.name), NAME_WIDTH);
    let cells = |r: &FunctionRow| {
        vec![
            html! { th scope="row" title=(plain(&r.name)) { code { (name(r)) } } },
            html! { td title=(plain(&r.module)) { (fitted(file_name(&r.module), 40)) } },
            html! { td { @if r.name.starts_with("[unattributed") { "–" } @else if r.kernel { span.mode.kernel { "kernel" } } @else { span.mode.user { "user" } } } },
        ]
    };
    let columns: Vec<Column<'_>> =
        [column("cycles", |t| t.cycles), column("waiting", |t| t.stall_cycles), column("references", references)]
            .into_iter()
            .chain(level_columns(&report.levels))
            .collect();
    let body = html! {
        p { "What each function did itself, callees not included; modelled, most waiting first. Bars: misses by class. A function with a far larger share of misses than of references pollutes the cache." }
        (class_legend())
        (table("Functions", &ranking, "functions", &["function", "module", "mode"], cells, &columns))
        (by_class("functions", &ranking, "functions", name, &report.levels))
    };
    Section::new("functions", "Functions that miss most", body)
}

pub(super) fn objects(report: &Report, top: usize) -> Option<Section> {
    let ranking = Ranking::new(&report.model.objects, top, |r: &ObjectRow| r.tally.clone());
    let name = |r: &ObjectRow| fitted(&r.name, NAME_WIDTH);
    let optional = |size: Option<u64>| html! { td.n data-v=(size.unwrap_or(0)) { @if let Some(b) = size { (bytes(b)) } @else { "–" } } };
    let cells = |r: &ObjectRow| {
        vec![
            html! { th scope="row" title=(plain(&r.name)) {
                code { (name(r)) }
                @if !r.allocated_at.is_empty() { details { summary { "allocated at" } ol { @for frame in &r.allocated_at { li { code { (fitted(frame, NAME_WIDTH)) } } } } } }
            } },
            html! { td { (kind_name(r.kind)) } },
            html! { td.n data-v=(r.count) { @if r.kind == ObjectKind::Unattributed { "–" } @else { (grouped(r.count)) } } },
            optional(r.size_bytes),
            optional(r.alignment_bytes),
        ]
    };
    let columns: Vec<Column<'_>> = [column("waiting", |t| t.stall_cycles), column("references", references)]
        .into_iter()
        .chain(level_columns(&report.levels))
        .collect();
    let body = html! {
        p { "Modelled, most waiting first; instruction fetches are the row of kind code. Alignment: the largest power of two that divides the address of every object of the row." }
        (class_legend())
        (table("Objects", &ranking, "objects", &["object", "kind", "count", "size", "alignment"], cells, &columns))
        (by_class("objects", &ranking, "objects", name, &report.levels))
    };
    Section::new("objects", "Objects that miss most", body)
}

pub(super) fn lines(report: &Report, top: usize) -> Option<Section> {
    // The record's row without a file is what the row of the unknown shows here.
    let known: Vec<LineRow> = report.model.lines.iter().filter(|r| !r.file.is_empty()).cloned().collect();
    if known.is_empty() {
        return None;
    }
    let ranking = Ranking::new(&known, top, |r: &LineRow| r.tally.clone());
    let cells = |r: &LineRow| {
        vec![
            html! { th scope="row" title=(plain(&r.file)) { code { (fitted(file_name(&r.file), 60)) ":" (r.line) } } },
            html! { td title=(plain(&r.function)) { code { (fitted(&folded(&r.function), NAME_WIDTH)) } } },
        ]
    };
    let columns: Vec<Column<'_>> = [column("waiting", |t| t.stall_cycles), column("references", references)]
        .into_iter()
        .chain(level_columns(&report.levels))
        .collect();
    let known = percent_of(references(&ranking.total), references(&report.model.totals));
    let body = html! {
        p { "Modelled. Source lines are known for " (known) " of the references." }
        (table_of("Source lines", &ranking, "lines", &["line", "function"], cells, &columns, Some((&report.model.totals, "no source line known"))))
    };
    Section::new("lines", "Source lines", body)
}

pub(super) fn tasks(report: &Report, top: usize) -> Option<Section> {
    let columns: Vec<Column<'_>> =
        [column("cycles", |t| t.cycles), column("waiting", |t| t.stall_cycles), column("references", references)]
            .into_iter()
            .chain(level_columns(&report.levels))
            .collect();
    let body = html! {
        (class_legend())
        (task_table(report, top, true, &columns))
        (kernel_and_user(report, &columns))
        @if report.model.others.cycles > 0 {
            h3 { "Other tasks" }
            p { "Modelled: the kernel's own threads, the guest's init, and interrupts on idle CPUs. No other table counts them." }
            (task_table(report, top, false, &columns))
            (other_functions(report, top, &columns))
        }
    };
    Section::new("tasks", "Tasks, kernel and user", body)
}

fn task_table(report: &Report, top: usize, of_command: bool, columns: &[Column<'_>]) -> Markup {
    let tasks = crate::split::tasks(&report.model, of_command);
    let ranking = Ranking::new(&tasks, top, |r: &TaskRow| crate::sums::sum([&r.user, &r.kernel]));
    let cells = |r: &TaskRow| {
        let kernel_cycles = r.kernel.cycles;
        vec![
            html! { th scope="row" { code { (fitted(&r.comm, 32)) } } },
            html! { td.n data-v=(r.tid) { (r.tid) } },
            html! { td.n data-v=(r.pid) { (r.pid) } },
            html! { td.n data-v=(kernel_cycles) { (grouped(kernel_cycles)) } },
        ]
    };
    let name = if of_command { "The command's tasks" } else { "Other tasks" };
    table(name, &ranking, "tasks", &["task", "thread id", "process id", "kernel cycles"], cells, columns)
}

fn other_functions(report: &Report, top: usize, columns: &[Column<'_>]) -> Markup {
    let ranking = Ranking::new(&report.model.other_functions, top, |r: &FunctionRow| r.tally.clone());
    let cells = |r: &FunctionRow| vec![html! { th scope="row" { code { (fitted(&r.name, NAME_WIDTH)) } } }];
    table("Functions of other tasks", &ranking, "functions", &["function"], cells, columns)
}

fn kernel_and_user(report: &Report, columns: &[Column<'_>]) -> Markup {
    let model = &report.model;
    let halves = [("kernel", crate::split::in_kernel(model)), ("user", crate::split::in_user(model))];
    let ranking = Ranking::new(&halves, 2, |h: &(&str, Tally)| h.1.clone());
    html! {
        h3 { "Kernel and user mode" }
        (table("Kernel and user mode", &ranking, "modes", &["mode"], |h| vec![html! { th scope="row" { span class={ "mode " (h.0) } { (h.0) } } }], columns))
    }
}

pub(super) fn processors(report: &Report) -> Option<Section> {
    let numbered = |tallies: &[Tally]| -> Vec<(usize, Tally)> { tallies.iter().cloned().enumerate().collect() };
    let (cpus, nodes) = (numbered(&report.model.cpus), numbered(&report.model.nodes));
    if cpus.is_empty() && nodes.is_empty() {
        return None;
    }
    let columns: Vec<Column<'_>> =
        [column("cycles", |t| t.cycles), column("waiting", |t| t.stall_cycles), column("references", references)]
            .into_iter()
            .chain(level_columns(&report.levels))
            .chain([column("bus transactions", |t| t.bus.transactions())])
            .collect();
    let cells = |r: &(usize, Tally)| vec![html! { th.n scope="row" data-v=(r.0) { (r.0) } }];
    const MOST: usize = 256;
    let body = html! {
        @if !cpus.is_empty() { (table("CPUs", &Ranking::new(&cpus, MOST, |r: &(usize, Tally)| r.1.clone()), "CPUs", &["CPU"], cells, &columns)) }
        @if !nodes.is_empty() {
            h3 { "Memory nodes" }
            p { "By node of the data: data references that missed the first level." }
            (table("Memory nodes", &Ranking::new(&nodes, MOST, |r: &(usize, Tally)| r.1.clone()), "nodes", &["node"], cells, &columns[1..]))
        }
    };
    Section::new("processors", "CPUs and memory nodes", body)
}
