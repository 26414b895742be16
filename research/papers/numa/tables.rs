//! Tables (a) and (b): the replica's figures beside the paper's.

use super::Kernel;
use super::clock::Counts;
use super::figures::{SERVER_REMOTE_CHANGE, Theirs as Benchmark, WEB_READS_CHANGE};
use super::load::Function;
use super::replica::Runs;
use crate::record::{Grid, GridRow, Row, Shape, Table, Theirs, Unit};
use crate::text::figure;
use nearmiss_record::model::BusTally;

/// Names of the kernels on one node and on two.
pub const NAMES: [[&str; 2]; 3] = [["UMA", "NUMA"], ["UMA-M", "NUMA-M"], ["UMA-MP", "NUMA-MP"]];

/// A class of bus reads: its name, and how many there are.
pub type Class = (&'static str, fn(&BusTally) -> u64);

/// Change of a count a request on two nodes, from one kernel to another, in percent.
pub fn change(runs: &Runs, from: Kernel, to: Kernel, count: impl Fn(&BusTally) -> u64) -> f64 {
    let each = |counts: Counts| counts.each(count(&counts.bus));
    (each(runs.of(to, 2)) / each(runs.of(from, 2)).max(1e-9) - 1.0) * 100.0
}

fn common(runs: &Runs, theirs: Benchmark, fitted: [bool; 4]) -> Vec<Row> {
    let row = |of: &str, what: &str, unit, paper: f64, ours| Row::new(of, what, unit, Theirs::Figure(paper), ours);
    let fit = |row: Row, used: bool| if used { row.fitted() } else { row };
    let overhead = "time on two nodes against one";
    let change = Unit::ChangePercent;
    let mut rows = vec![
        fit(row("base", overhead, change, theirs.overhead[0], runs.overhead(Kernel::Base)), fitted[0]),
        fit(row("M and P", overhead, change, theirs.overhead[1], runs.overhead(Kernel::PoolsBound)), fitted[1]),
    ];
    for (nodes, saved) in theirs.saved.into_iter().enumerate() {
        let what = format!("OS time by M and P, {}", NAMES[0][nodes]);
        let ours = -runs.saved(Kernel::PoolsBound, nodes + 1);
        rows.push(fit(row("M and P", &what, change, -saved, ours), fitted[2]));
    }
    for (kernel, locality) in Kernel::ALL.into_iter().zip(theirs.locality) {
        let ours = runs.locality(kernel);
        let row = row(NAMES[kernel as usize][1], "node locality of bus reads", Unit::Percent, locality, ours);
        rows.push(fit(row, fitted[3] && kernel.binds()));
    }
    rows
}

/// WebBench.
pub fn web(runs: &Runs, theirs: Benchmark) -> Table {
    let mut rows = common(runs, theirs, [true, false, false, false]);
    let by_m = |count: fn(&BusTally) -> u64| change(runs, Kernel::Base, Kernel::Pools, count);
    for (class, ours) in [("r", by_m(|bus| bus.read_remote)), ("l-m", by_m(|bus| bus.read_local_modified))] {
        let what = format!("bus reads of class {class} by M");
        rows.push(Row::new("NUMA-M", what, Unit::ChangePercent, Theirs::Figure(WEB_READS_CHANGE), ours).fitted());
    }
    let text = |value| figure(value, Unit::ChangePercent);
    let order = ["csum_partial_copy_generic", "stext_lock"];
    let mut shapes = vec![
        Shape {
            claim: "binding adds nothing to M (within 2% of the time)".to_owned(),
            holds: binding(runs).abs() < 2.0,
            ours: text(binding(runs)),
        },
        Shape {
            claim: "M saves more of the OS time on two nodes than on one".to_owned(),
            holds: runs.saved(Kernel::Pools, 2) > runs.saved(Kernel::Pools, 1),
            ours: format!("{:.1}% and {:.1}%", runs.saved(Kernel::Pools, 2), runs.saved(Kernel::Pools, 1)),
        },
    ];
    shapes.push(faster(runs, &order, &[Function::CsumCopy, Function::LockWait, Function::Kmalloc, Function::Kfree]));
    shapes.push(kernel_alone(runs));
    table("a", "WebBench: 64 httpd, static pages", "figures 5, 8, 10 and 12, table 3, section 4.1", rows, runs, shapes)
}

/// ServerBench.
pub fn server(runs: &Runs, theirs: Benchmark) -> Table {
    let mut rows = common(runs, theirs, [true, false, false, true]);
    let by = |from, to, count: fn(&BusTally) -> u64| change(runs, from, to, count);
    let by_p = |count| by(Kernel::Pools, Kernel::PoolsBound, count);
    let remote = by_p(|bus| bus.read_remote);
    let paper = Theirs::Figure(SERVER_REMOTE_CHANGE);
    rows.push(Row::new("NUMA-MP", "bus reads of class r by P", Unit::ChangePercent, paper, remote));
    let text = |value| figure(value, Unit::ChangePercent);
    let (shared, none) = (by_p(|bus| bus.read_local_shared), by_p(|bus| bus.read_local_none));
    let pools = by(Kernel::Base, Kernel::Pools, |bus| bus.reads());
    let shapes = vec![
        Shape {
            claim: "binding: l-s falls and l-n rises".to_owned(),
            holds: shared < 0.0 && none > 0.0,
            ours: format!("{} and {}", text(shared), text(none)),
        },
        Shape {
            claim: "M alone hardly changes the bus reads (within 5%)".to_owned(),
            holds: pools.abs() < 5.0,
            ours: text(pools),
        },
        Shape {
            claim: "binding saves more time than M".to_owned(),
            holds: binding(runs) < total_change(runs, Kernel::Base, Kernel::Pools),
            ours: format!("{} and {}", text(binding(runs)), text(total_change(runs, Kernel::Base, Kernel::Pools))),
        },
        Shape {
            claim: "of the kernel's functions, file_read_actor takes most, and M does not shorten it (within 5%)"
                .to_owned(),
            holds: file_read(runs).abs() < 5.0 && leads(runs, Function::FileRead),
            ours: text(file_read(runs)),
        },
        faster(runs, &[], &[Function::CsumCopy, Function::Kmalloc, Function::Kfree]),
        kernel_alone(runs),
    ];
    table("b", "ServerBench: 16 processes", "figures 6, 9, 11 and 13, table 3, section 4.1", rows, runs, shapes)
}

fn total_change(runs: &Runs, from: Kernel, to: Kernel) -> f64 {
    (runs.of(to, 2).total() / runs.of(from, 2).total() - 1.0) * 100.0
}

fn binding(runs: &Runs) -> f64 {
    total_change(runs, Kernel::Pools, Kernel::PoolsBound)
}

fn file_read(runs: &Runs) -> f64 {
    let of = |kernel| runs.of(kernel, 2).of(Function::FileRead);
    (of(Kernel::Pools) / of(Kernel::Base) - 1.0) * 100.0
}

/// Returns whether a function takes most of the named functions' time, on one node.
fn leads(runs: &Runs, function: Function) -> bool {
    let base = runs.of(Kernel::Base, 1);
    let named = [Function::CsumCopy, Function::LockWait, Function::FileRead, Function::Kmalloc, Function::Kfree];
    named.into_iter().all(|other| base.of(other) <= base.of(function))
}

/// M shortens functions on two nodes.
fn faster(runs: &Runs, leading: &[&str], functions: &[Function]) -> Shape {
    let of = |kernel, function| runs.of(kernel, 2).of(function);
    let change = |function| (of(Kernel::Pools, function) / of(Kernel::Base, function) - 1.0) * 100.0;
    let change_text =
        |&function: &Function| format!("{} {}", function.name(), figure(change(function), Unit::ChangePercent));
    let names: Vec<_> = functions.iter().map(|function| function.name()).collect();
    let first = functions.first().copied().unwrap_or(Function::CsumCopy);
    Shape {
        claim: format!("NUMA: M shortens {}", names.join(", ")),
        holds: functions.iter().all(|&function| change(function) < 0.0) && (leading.is_empty() || leads(runs, first)),
        ours: functions.iter().map(change_text).collect::<Vec<_>>().join(", "),
    }
}

/// The overhead is the kernel's.
fn kernel_alone(runs: &Runs) -> Shape {
    let [one, two] = [1, 2].map(|nodes| runs.of(Kernel::Base, nodes));
    let [kernel, user] = [two.kernel() / one.kernel(), two.user() / one.user()].map(|times| (times - 1.0) * 100.0);
    Shape {
        claim: "two nodes: OS time rises by more than user time".to_owned(),
        holds: kernel > user,
        ours: format!("{} and {}", figure(kernel, Unit::ChangePercent), figure(user, Unit::ChangePercent)),
    }
}

/// Time by part and reads by class, under all kernels; the base kernel on one node is 100.
fn grid(runs: &Runs) -> Grid {
    let one = runs.of(Kernel::Base, 1);
    let sides: Vec<(Kernel, usize)> = [1, 2].into_iter().flat_map(|n| Kernel::ALL.map(|kernel| (kernel, n))).collect();
    let row = |of: &str, what: &str, cell: &dyn Fn(Counts) -> f64| GridRow {
        of: of.to_owned(),
        what: what.to_owned(),
        cells: sides.iter().map(|&(kernel, nodes)| cell(runs.of(kernel, nodes))).collect(),
        from: None,
    };
    let time = |cycles: f64| cycles * 100.0 / one.total();
    let mut rows =
        vec![row("time", "OS", &|counts| time(counts.kernel())), row("time", "user", &|counts| time(counts.user()))];
    for function in Function::ALL.into_iter().filter(|&f| f != Function::User && one.of(f) > 0.0) {
        rows.push(row("of that", function.name(), &|counts| time(counts.of(function))));
    }
    let reads = one.each(one.bus.reads());
    let classes: [Class; 4] = [
        ("r", |bus| bus.read_remote),
        ("l-n", |bus| bus.read_local_none),
        ("l-s", |bus| bus.read_local_shared),
        ("l-m", |bus| bus.read_local_modified),
    ];
    for (class, count) in classes {
        rows.push(row("bus reads", class, &|counts| counts.each(count(&counts.bus)) * 100.0 / reads));
    }
    Grid {
        columns: sides.iter().map(|&(kernel, nodes)| NAMES[kernel as usize][nodes - 1].to_owned()).collect(),
        unit: Unit::Count,
        mark: "time and bus reads of UMA are 100 each (the paper has these as pictures only)".to_owned(),
        rows,
    }
}

fn table(name: &str, title: &str, source: &str, rows: Vec<Row>, runs: &Runs, shapes: Vec<Shape>) -> Table {
    Table {
        name: name.to_owned(),
        title: title.to_owned(),
        source: source.to_owned(),
        rows,
        grid: Some(grid(runs)),
        shapes,
        known: None,
        notes: Vec::new(),
    }
}
