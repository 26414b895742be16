//! Figures 5 to 8 and the paper's table as rows, ours beside.

use super::plan::{Group, Pace, Plan};
use super::{Curve, figures};
use crate::record::{Grid, GridRow, Row, Shape, Table, Theirs, Unit};

/// An interval of the paper's that it found best.
const BEST: Pace = Pace::Interval(10);
/// Least figure of a CPU in full use, beside what the load takes from it.
const WHOLE_CPU_PERCENT: f64 = 80.0;

/// The tables of one group.
pub fn of(name: &str, group: Group, plan: Plan, curves: &[Curve]) -> Vec<Table> {
    let (sockets, times, cpu) = match group {
        Group::Closing => ("a connection a request", "figure 5", "figure 7"),
        Group::Keeping => ("7,000 kept connections", "figure 6", "figure 8"),
        Group::Today => ("epoll, 7,000 kept connections", "not in the paper", "not in the paper"),
    };
    let table = |part: &str, title: &str, source: &str, grid: Grid| Table {
        name: format!("{name}{part}"),
        title: format!("{title}, {sockets}"),
        source: source.to_owned(),
        rows: Vec::new(),
        grid: Some(grid),
        shapes: Vec::new(),
        known: None,
        notes: Vec::new(),
    };
    vec![
        Table {
            rows: highest(group, plan, curves),
            shapes: shapes(group, curves),
            ..table("1", "response time (mean)", times, response(plan, curves))
        },
        table("2", "CPU of the accelerator", cpu, cpu_grid(plan, curves)),
    ]
}

fn columns(plan: Plan) -> Vec<String> {
    plan.rates.iter().map(|rate| format!("{rate}/s")).collect()
}

type CellFigure = (&'static str, fn(&super::Cell) -> f64);

fn grid(plan: Plan, curves: &[Curve], unit: Unit, mark: &str, parts: &[CellFigure]) -> Grid {
    let rows = curves.iter().flat_map(|curve| {
        parts.iter().map(|(what, value)| GridRow {
            of: curve.subject.pace.name(),
            what: (*what).to_owned(),
            cells: curve.cells.iter().map(value).collect(),
            from: (curve.cells.iter()).position(|cell| !cell.held),
        })
    });
    Grid { columns: columns(plan), unit, mark: mark.to_owned(), rows: rows.collect() }
}

fn response(plan: Plan, curves: &[Curve]) -> Grid {
    let mark = "| where the rate was missed for the first time, or an answer was wrong";
    let parts: [CellFigure; 4] = [
        ("all", |cell| cell.mean_ms[0]),
        ("hits", |cell| cell.mean_ms[1]),
        ("misses", |cell| cell.mean_ms[2]),
        ("all, p99", |cell| cell.p99_ms),
    ];
    grid(plan, curves, Unit::Millis, mark, &parts)
}

fn cpu_grid(plan: Plan, curves: &[Curve]) -> Grid {
    let mark = "| as above; total and kernel: of one CPU, waits: of the kernel's part (– where BPF was refused)";
    let parts: [CellFigure; 3] = [
        ("total", |cell| cell.cpu_percent[0]),
        ("kernel", |cell| cell.cpu_percent[1]),
        ("waits", |cell| cell.waits_percent.unwrap_or(f64::NAN)),
    ];
    grid(plan, curves, Unit::Percent, mark, &parts)
}

/// The highest of the rates that was held.
fn highest_held(plan: Plan, curve: &Curve) -> f64 {
    let held = curve.cells.iter().zip(plan.rates).take_while(|(cell, _)| cell.held);
    held.last().map_or(0.0, |(_, rate)| f64::from(*rate))
}

fn highest(group: Group, plan: Plan, curves: &[Curve]) -> Vec<Row> {
    let theirs = |pace: Pace| match (group, pace) {
        (Group::Closing, Pace::Busy | Pace::Interval(5)) => Theirs::Words("<2,000/s".to_owned()),
        (Group::Closing, Pace::Interval(_)) => Theirs::Figure(figures::HIGHEST_CLOSING),
        (Group::Keeping, Pace::Busy) => Theirs::Figure(figures::HIGHEST_KEEPING[0]),
        (Group::Keeping, Pace::Interval(10 | 20)) => Theirs::Figure(figures::HIGHEST_KEEPING[1]),
        _ => Theirs::None,
    };
    let row = |curve: &Curve| {
        let pace = curve.subject.pace;
        let row = Row::new(
            pace.name(),
            "highest rate without errors",
            Unit::PerSecond,
            theirs(pace),
            highest_held(plan, curve),
        );
        // Another machine, twenty years later, at a few rates: no deviation means anything.
        Row { deviation_points: None, ..row }
    };
    curves.iter().map(row).collect()
}

fn by_pace(curves: &[Curve], pace: Pace) -> Option<&Curve> {
    curves.iter().find(|curve| curve.subject.pace == pace)
}

fn cpu(curve: &Curve) -> Vec<f64> {
    curve.cells.iter().map(|cell| cell.cpu_percent[0]).collect()
}

fn listed(values: &[f64]) -> String {
    values.iter().map(|value| format!("{value:.0}%")).collect::<Vec<_>>().join(", ")
}

fn shapes(group: Group, curves: &[Curve]) -> Vec<Shape> {
    if group == Group::Today {
        return Vec::new();
    }
    let busy = by_pace(curves, Pace::Busy).map(|curve| (cpu(curve), "interval 0"));
    let paced = by_pace(curves, BEST).map(|curve| (cpu(curve), "10 ms"));
    let burns = busy.map(|(cpu, name)| Shape {
        claim: "at interval 0 the CPU is used up at any rate".to_owned(),
        holds: cpu.iter().all(|percent| *percent >= WHOLE_CPU_PERCENT),
        ours: format!("{name}: {}", listed(&cpu)),
    });
    let follows = paced.map(|(cpu, name)| Shape {
        claim: "under an interval of 10 ms the CPU time follows the rate".to_owned(),
        holds: cpu.windows(2).all(|pair| pair[0] < pair[1]),
        ours: format!("{name}: {}", listed(&cpu)),
    });
    burns.into_iter().chain(follows).collect()
}

#[cfg(test)]
mod tests {
    use super::super::plan::{Scale, Subject};
    use super::*;
    use crate::pacing::Cell;

    fn curve(pace: Pace, cpu: [f64; 4], held: usize) -> Curve {
        let cell =
            |(n, percent): (usize, &f64)| Cell { held: n < held, cpu_percent: [*percent, *percent], ..Cell::default() };
        let subject = Subject { engine: "poll", pace, keep_alive: false };
        Curve { subject, cells: cpu.iter().enumerate().map(cell).collect() }
    }

    #[test]
    fn shapes_hold_for_curves_that_show_them() {
        let busy = curve(Pace::Busy, [99.0, 98.0, 99.0, 97.0], 2);
        let paced = curve(BEST, [10.0, 20.0, 35.0, 60.0], 4);
        let tables = of("a", Group::Closing, Plan::of(Scale::Small), &[busy, paced]);
        assert!(tables[0].shapes.iter().all(|shape| shape.holds), "{:?}", tables[0].shapes);
        // The second rate is the last before the first that was missed.
        assert_eq!(tables[0].rows.iter().map(|row| row.ours).collect::<Vec<_>>(), [1000.0, 4000.0]);
        assert_eq!(tables[1].grid.as_ref().map(|grid| grid.rows[0].from), Some(Some(2)));
        let idle = curve(Pace::Busy, [99.0, 50.0, 99.0, 97.0], 4);
        assert!(!of("a", Group::Closing, Plan::of(Scale::Small), &[idle])[0].shapes[0].holds);
    }
}
