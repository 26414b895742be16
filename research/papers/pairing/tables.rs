//! The tables: theirs and ours.

use super::cost;
use super::figures;
use super::goals;
use super::hand;
use super::mix::{KINDS, TASKS};
use super::rates::{Beside, Rate};
use super::run::{Class, Counts};
use super::study::{self, Extent, Mixed, OF_MIXES, PRODUCT, SCHEDULERS, Scheduler, Study, by_scheduler};
use super::summary::{
    Value, change, changed, correlation, judged, least, losses, mean, misses, most, most_of_ten, percent, seconds, sum,
};
use crate::PaperError;
use crate::record::{Grid, GridRow, Row, Shape, Table, Theirs, Unit};
use crate::text::figure;

pub fn table(name: &str, title: &str, source: &str) -> Table {
    Table {
        name: name.to_owned(),
        title: title.to_owned(),
        source: source.to_owned(),
        rows: Vec::new(),
        grid: None,
        shapes: Vec::new(),
        known: None,
        notes: Vec::new(),
    }
}

fn grid(columns: &[&str], unit: Unit, mark: &str, rows: Vec<GridRow>) -> Option<Grid> {
    Some(Grid { columns: columns.iter().map(|c| (*c).to_owned()).collect(), unit, mark: mark.to_owned(), rows })
}

fn line(of: &str, what: &str, cells: Vec<f64>) -> GridRow {
    GridRow { of: of.to_owned(), what: what.to_owned(), cells, from: None }
}

/// Table a: the model's figures of a thread.
pub fn rates(extent: Extent, done: &(dyn Fn() + Sync)) -> Result<Vec<Table>, PaperError> {
    let machine = crate::machine(super::MACHINE)?;
    let (mut times, mut missed) = (Vec::new(), Vec::new());
    for element in [PRODUCT.element, 8] {
        let rates = study::load(extent, element).rates(&machine, done)?;
        let of = |value: fn(&Rate) -> f64| KINDS_BESIDE.map(|kind| value(&rates.mean(kind)));
        let (cycles, misses) = (of(|rate| rate.cycles), of(|rate| rate.misses));
        let name = format!("{element}-byte elements");
        times.push(line(&name, "", cycles.map(|each| each / cycles[0]).to_vec()));
        missed.push(line(&name, "", misses.map(|each| each * 1000.0 / rates.instructions).to_vec()));
    }
    let columns = ["alone", "beside its group", "beside the other"];
    let title = "One thread of the product, by who is on the core's other hardware thread";
    let mut first = table("a1", &format!("{title}: time"), "section 4.1");
    first.grid = grid(&columns, Unit::Times, "of alone", times);
    first.notes.push(
        "A block is 479 KB with 4-byte elements, close to the second level's 512 KB as section 4.1 has it, and 957 KB with \
         8-byte elements; all runs have 4."
            .to_owned(),
    );
    let mut second = table("a2", &format!("{title}: L2 misses of 1,000 instructions"), "section 4.1");
    second.grid = grid(&columns, Unit::Count, "misses", missed);
    Ok(vec![first, second])
}

const KINDS_BESIDE: [Beside; 3] = [Beside::Nobody, Beside::Same, Beside::Other];

/// Table b: figures 5 to 8 and 10.
pub fn times(study: &Study) -> Vec<Table> {
    vec![seconds_table(study), changes_table(study), cost_table(study)]
}

fn seconds_table(study: &Study) -> Table {
    let rows = SCHEDULERS.iter().zip(&study.runs).map(|(scheduler, runs)| {
        let of =
            |value: &Value| vec![mean(runs, value), most_of_ten(runs, value), most(runs, value), least(runs, value)];
        [line(scheduler.name(), "run time, s", of(&seconds)), line(scheduler.name(), "L2 misses, 1,000 M", of(&misses))]
    });
    let mut table = table("b1", "Run times and misses of the product", "figures 5, 6 and 7 (pictures)");
    let columns = ["mean", "most of 10", "most of all", "least of all"];
    let mark = format!(
        "{} runs of each, the same seeds; most of 10: mean over series of ten, as the paper has",
        study.runs[0].len()
    );
    table.grid = grid(&columns, Unit::Count, &mark, rows.flatten().collect());
    table
}

fn changes_table(study: &Study) -> Table {
    let mut table = table("b2", "The same against the standard scheduler", "section 4.2");
    table.rows = changes_rows(study);
    table.shapes = time_shapes(study);
    table
}

/// Returns the change of each scheduler against the standard one, and the dependence of that one's run times.
pub fn changes_rows(study: &Study) -> Vec<Row> {
    let [standard, theirs, ours, optimum] = by_scheduler(study);
    let compared = [(Scheduler::Theirs, theirs), (Scheduler::Ours, ours), (Scheduler::Optimum, optimum)];
    let mut rows: Vec<Row> =
        compared.into_iter().flat_map(|(scheduler, runs)| changes_of(scheduler, runs, standard)).collect();
    let pearson = correlation(standard, &seconds, &|counts| counts.sharing());
    let what = "run time against share of time in pairs that share";
    rows.push(Row::new("standard", what, Unit::Correlation, Theirs::Figure(figures::CORRELATION), pearson));
    rows
}

fn changes_of(scheduler: Scheduler, runs: &[Counts], standard: &[Counts]) -> [Row; 4] {
    let mean_of = |value: &Value| change(mean(runs, value), mean(standard, value));
    let most_of = |value: &Value| change(most_of_ten(runs, value), most_of_ten(standard, value));
    let row = |what: &str, paper: f64, value: f64| {
        let paper = if scheduler == Scheduler::Theirs { Theirs::Figure(paper) } else { Theirs::None };
        Row::new(scheduler.name(), what, Unit::ChangePercent, paper, value)
    };
    [
        row("mean run time", figures::MEAN_TIME_CHANGE_PERCENT, mean_of(&seconds)),
        row("longest of 10", figures::LONGEST_TIME_CHANGE_PERCENT, most_of(&seconds)),
        row("mean misses", figures::MEAN_MISSES_CHANGE_PERCENT, mean_of(&misses)),
        row("most misses of 10", figures::MOST_MISSES_CHANGE_PERCENT, most_of(&misses)),
    ]
}

fn time_shapes(study: &Study) -> Vec<Shape> {
    let [standard, theirs, ..] = by_scheduler(study);
    let spread = |runs: &[Counts]| most(runs, &seconds) - least(runs, &seconds);
    let shape = |claim: &str, holds, ours| Shape { claim: claim.to_owned(), holds, ours };
    vec![
        shape(
            "the paper's method narrows the range of run times",
            spread(theirs) < spread(standard),
            format!("{:.0} s against {:.0} s", spread(theirs), spread(standard)),
        ),
        shape(
            "the standard's shortest run is shorter than the paper's method's",
            least(standard, &seconds) < least(theirs, &seconds),
            format!("{:.0} s against {:.0} s", least(standard, &seconds), least(theirs, &seconds)),
        ),
        goals::near_the_optimum(study),
        goals::under_the_standards_longest(study),
    ]
}

fn cost_table(study: &Study) -> Table {
    let mut table = table("b3", "What the scheduler costs", "figure 8");
    let kinds = [
        (cost::Scheduler::Standard, Scheduler::Standard, Some(0)),
        (cost::Scheduler::Theirs, Scheduler::Theirs, Some(1)),
        (cost::Scheduler::Ours, Scheduler::Ours, None),
    ];
    for ((kind, scheduler, paper), runs) in kinds.into_iter().zip(&study.runs) {
        let cycles = cost::call_cycles(kind, &study.machine);
        let share = cost::percent(cycles, &study.machine, runs);
        let papers = |of: [f64; 2]| paper.map_or(Theirs::None, |at| Theirs::Figure(of[at]));
        let row = Row::new(scheduler.name(), "cycles of a call", Unit::Count, papers(figures::CALL_CYCLES), cycles);
        table.rows.push(if kind == cost::Scheduler::Standard { row.fitted() } else { row });
        let papers = paper.map_or(Theirs::None, |at| Theirs::Figure(figures::CALL_PERCENT[at] * 1e4));
        table.rows.push(Row::new(scheduler.name(), "of the time, millionths", Unit::Count, papers, share * 1e4));
    }
    table.notes.push(
        "Lines that a call touches, counted by hand from the tables' layout, each from memory, and accesses to counters. Our \
         plan is not the kernel's: a program makes one every 1 to 16 s."
            .to_owned(),
    );
    table
}

/// Table c: figures 9 and 14 to 17, 19.
pub fn placements(study: &Study) -> Vec<Table> {
    vec![classes_table(study), judged_table(study), changes_of_class(study)]
}

fn classes_table(study: &Study) -> Table {
    let mut rows: Vec<GridRow> =
        SCHEDULERS.iter().zip(&study.runs).map(|(s, runs)| line(s.name(), "", classes(runs).to_vec())).collect();
    let dealt = [Class::Apart, Class::One, Class::Half].map(|class| hand::dealt(class) * 100.0);
    let random = dealt.into_iter().chain([hand::HALF_APART_DEALT * 100.0, f64::NAN]).collect();
    rows.push(line("dealt at random", "by hand", random));
    let title = "Where the threads are, and which run side by side: share of the time";
    let mut table = table("c1", title, "figures 11, 14 and 16 (pictures)");
    table.grid = grid(
        &["(1)", "(2)", "(3)", "(i) in (3)", "pairs that share"],
        Unit::Percent,
        "(1) a group a core, (2) one of each elsewhere, (3) half and half; (i) each group on one hardware thread",
        rows,
    );
    let [standard, theirs, ours, _] = by_scheduler(study).map(classes);
    table.shapes = class_shapes(standard, theirs, ours);
    for (at, of) in [standard, theirs].into_iter().enumerate() {
        let paper = Theirs::Figure(figures::HALF_APART_PERCENT[at]);
        table.rows.push(Row::new(SCHEDULERS[at].name(), "(i) in (3), figure 15", Unit::Percent, paper, of[3]));
    }
    table
}

/// Share of the time in (1), in (2) and in (3), of (i) within (3), and of pairs that share, in percent.
fn classes(runs: &[Counts]) -> [f64; 5] {
    let all = sum(runs, |c| c.classes.iter().sum());
    let class = |class: Class| percent(sum(runs, |c| c.classes[class as usize]), all);
    let halves = percent(sum(runs, |c| c.halves[0]), sum(runs, |c| c.halves[0] + c.halves[1]));
    let sharing = percent(sum(runs, |c| c.pairs[1]), sum(runs, |c| c.pairs[0] + c.pairs[1]));
    [class(Class::Apart), class(Class::One), class(Class::Half), halves, sharing]
}

fn class_shapes(then: [f64; 5], now: [f64; 5], ours: [f64; 5]) -> Vec<Shape> {
    let shape = |claim: &str, holds, ours| Shape { claim: claim.to_owned(), holds, ours };
    let pair = |at: usize| format!("{} against {}", figure(now[at], Unit::Percent), figure(then[at], Unit::Percent));
    vec![
        shape("the paper's method is in (1) and (2) for longer, and in (3) for less", now[2] < then[2], pair(2)),
        shape("with it pairs that share run for longer", now[4] > then[4], pair(4)),
        shape("ours: pairs that share run for longer still", ours[4] > now[4], figure(ours[4], Unit::Percent)),
    ]
}

fn judged_table(study: &Study) -> Table {
    let mut table = table("c2", "Pairs misjudged", "figure 9");
    let [_, theirs, ours, _] = by_scheduler(study);
    for (scheduler, runs) in [(Scheduler::Theirs, theirs), (Scheduler::Ours, ours)] {
        let row = |what: &str, paper: Option<f64>, value: f64| {
            let paper = paper.filter(|_| scheduler == Scheduler::Theirs).map_or(Theirs::None, Theirs::Figure);
            Row::new(scheduler.name(), what, Unit::Percent, paper, value)
        };
        table.rows.extend([
            row("do not share, judged high", Some(figures::LOW_JUDGED_HIGH_PERCENT), judged(runs, 0, 0)),
            row("do not share, not known", None, judged(runs, 0, 2)),
            row("share, judged low", Some(figures::HIGH_JUDGED_LOW_PERCENT), judged(runs, 1, 1)),
            row("share, not known", None, judged(runs, 1, 2)),
        ]);
    }
    table.shapes.push(goals::few_misjudged(study));
    table.notes.push("Of all judgements, one at each switch of a task that was seen for 3 s.".to_owned());
    table
}

fn changes_of_class(study: &Study) -> Table {
    let mut table = table("c3", "Changes of the placement a run", "figures 17 and 19 (19 is a picture)");
    for (at, (scheduler, runs)) in SCHEDULERS.iter().zip(&study.runs).enumerate() {
        let paper = figures::CHANGES.get(at).map_or(Theirs::None, |figure| Theirs::Figure(*figure));
        let row = Row::new(scheduler.name(), "changes", Unit::Count, paper.clone(), mean(runs, &changed));
        table.rows.push(if paper == Theirs::None { row } else { row.fitted() });
    }
    let ways = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)];
    let rows = SCHEDULERS.iter().zip(&study.runs).map(|(scheduler, runs)| {
        line(scheduler.name(), "", ways.map(|(from, to)| mean(runs, &move |c| c.changes[from][to] as f64)).to_vec())
    });
    let columns = ["(1)→(2)", "(1)→(3)", "(2)→(1)", "(2)→(3)", "(3)→(1)", "(3)→(2)"];
    table.grid =
        grid(&columns, Unit::Count, "mean of a run, while all threads run and both cores have four", rows.collect());
    let leaves = mean(by_scheduler(study)[1], &|c| c.changes[0][1] as f64);
    table.shapes = vec![
        Shape {
            claim: "the paper's method leaves the best placement, (1)→(2), again and again".to_owned(),
            holds: leaves > 1.0,
            ours: format!("{leaves:.1} a run"),
        },
        goals::few_changes(study),
    ];
    table
}

/// Table d: tasks that share nothing.
pub fn mixes(all: &[Mixed]) -> Vec<Table> {
    all.iter().enumerate().map(|(at, mixed)| mixes_on(at, mixed)).collect()
}

fn mixes_on(at: usize, mixed: &Mixed) -> Table {
    let title = format!("Tasks that share nothing, on {}, 2 cores of 2 hardware threads", mixed.machine);
    let mut table = table(&format!("d{}", at + 1), &title, "figure 18 (a picture)");
    for (tasks, runs) in TASKS.iter().zip(&mixed.runs) {
        for (scheduler, of) in OF_MIXES.iter().zip(runs).skip(1) {
            let [time, end] = losses(of, &runs[0]);
            let paper = match scheduler {
                Scheduler::Theirs if at == 0 && [8, 12].contains(tasks) => Theirs::Words("within 1%".to_owned()),
                _ => Theirs::None,
            };
            let name = format!("{tasks} tasks, {}", scheduler.name());
            table.rows.push(Row::new(name.clone(), "until all ended", Unit::ChangePercent, paper, time));
            table.rows.push(Row::new(name, "mean of the tasks", Unit::ChangePercent, Theirs::None, end));
        }
    }
    let rows = KINDS.iter().enumerate().map(|(kind, stream)| {
        line(stream.name, "", (0..KINDS.len()).map(|beside| mixed.paces.slower(kind, beside)).collect())
    });
    let columns = ["beside the first", "the second", "the third", "the fourth"];
    table.grid = grid(&columns, Unit::Times, "time of each kind beside each, of alone", rows.collect());
    table.shapes.push(goals::no_loss_without_sharing(mixed));
    table
}
