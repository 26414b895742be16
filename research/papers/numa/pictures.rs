//! The paper's figures 5, 6 and 8 to 13, drawn from our figures, with what its text gives of them as diamonds.

use super::Kernel;
use super::clock::Counts;
use super::figures::Theirs;
use super::load::Function;
use super::replica::Runs;
use super::tables::NAMES;
use crate::record::Picture;
use nearmiss_record::model::BusTally;
use nearmiss_report::plot::figure::{Marks, Panel, Series, picture};

fn named(number: u32, title: &str, note: &str, panel: Panel) -> Picture {
    let title = format!("Figure {number}: {title}");
    Picture { file: format!("figure-{number}.svg"), svg: picture(&title, note, &[panel]), title }
}

fn panel(title: &str, y_title: &str, places: Vec<String>, marks: Marks, series: Vec<Series>) -> Panel {
    let (title, y_title) = (title.to_owned(), y_title.to_owned());
    Panel { title, x_title: String::new(), y_title, places, marks, series }
}

/// Four pictures of a benchmark, by their numbers: time of the base kernel, time of all kernels, functions, classes.
pub fn of(name: &str, [base, all, third, last]: [u32; 4], runs: &Runs, theirs: Theirs) -> [Picture; 4] {
    [
        base_time(name, base, runs, theirs),
        time(name, all, runs, theirs),
        functions(name, third, runs),
        classes(name, last, runs),
    ]
}

/// A part of the time, by its name.
type TimePart = (&'static str, fn(&Counts) -> f64);

/// OS and user time of the base kernel, each against its own on one node.
fn base_time(name: &str, number: u32, runs: &Runs, theirs: Theirs) -> Picture {
    let parts: [TimePart; 3] = [("time", Counts::total), ("OS", Counts::kernel), ("user", Counts::user)];
    let one = runs.of(Kernel::Base, 1);
    let of = |nodes| parts.iter().map(|(_, part)| part(&runs.of(Kernel::Base, nodes)) / one.total()).collect();
    let mut two = Series::new("NUMA", of(2));
    two.paper[0] = Some(1.0 + theirs.overhead[0] / 100.0);
    let of_one = |part: fn(&Counts) -> f64| part(&runs.of(Kernel::Base, 2)) / part(&one);
    let places = parts.iter().map(|(name, part)| format!("{name} ({:.2})", of_one(*part))).collect();
    let panel = panel("time of a request", "time (UMA = 1)", places, Marks::Bars, vec![Series::new("UMA", of(1)), two]);
    let note = "Bars: modelled; in brackets, two nodes against one. Diamond: the paper's overhead.";
    named(number, &format!("{name}, performance of the base kernel"), note, panel)
}

/// OS and user time.
fn time(name: &str, number: u32, runs: &Runs, theirs: Theirs) -> Picture {
    let one = runs.of(Kernel::Base, 1).total();
    let sides: Vec<(Kernel, usize)> = [1, 2].into_iter().flat_map(|n| Kernel::ALL.map(|kernel| (kernel, n))).collect();
    let of = |part: fn(&Counts) -> f64| sides.iter().map(|&(k, n)| part(&runs.of(k, n)) / one).collect::<Vec<f64>>();
    let mut all = Series::new("time", of(Counts::total));
    let bound = runs.of(Kernel::PoolsBound, 1).total() / one;
    all.paper[3] = Some(1.0 + theirs.overhead[0] / 100.0);
    all.paper[5] = Some(bound * (1.0 + theirs.overhead[1] / 100.0));
    let series = vec![all, Series::new("OS", of(Counts::kernel)), Series::new("user", of(Counts::user))];
    let places = sides.iter().map(|&(kernel, nodes)| NAMES[kernel as usize][nodes - 1].to_owned()).collect();
    let note = "Bars: modelled. Diamonds: the paper's overheads, put on ours of one node.";
    let panel = panel("time of a request", "time (UMA = 1)", places, Marks::Bars, series);
    named(number, &format!("{name}, performance"), note, panel)
}

/// Time by function on two nodes.
fn functions(name: &str, number: u32, runs: &Runs) -> Picture {
    let one = runs.of(Kernel::Base, 1);
    let shown: Vec<Function> = Function::ALL.into_iter().filter(|&f| f != Function::User && one.of(f) > 0.0).collect();
    let of = |kernel, nodes| shown.iter().map(|&f| runs.of(kernel, nodes).of(f) * 100.0 / one.total()).collect();
    let series = vec![
        Series::new("UMA", of(Kernel::Base, 1)),
        Series::new("NUMA", of(Kernel::Base, 2)),
        Series::new("NUMA-MP", of(Kernel::PoolsBound, 2)),
    ];
    let places = shown.iter().map(|f| f.name().replace('_', "_\n")).collect();
    let panel = panel("time by function", "of UMA's time (%)", places, Marks::Bars, series);
    named(
        number,
        &format!("{name}, functions of the kernel"),
        "Modelled. The paper's is a picture without numbers.",
        panel,
    )
}

/// Bus reads by class on two nodes.
fn classes(name: &str, number: u32, runs: &Runs) -> Picture {
    let base = runs.of(Kernel::Base, 2);
    let all = base.each(base.bus.reads());
    let classes: [fn(&BusTally) -> u64; 4] =
        [|bus| bus.read_remote, |bus| bus.read_local_none, |bus| bus.read_local_shared, |bus| bus.read_local_modified];
    let of = |kernel| {
        let counts = runs.of(kernel, 2);
        classes.iter().map(|count| counts.each(count(&counts.bus)) * 100.0 / all).collect()
    };
    let series = Kernel::ALL.into_iter().map(|kernel| Series::new(NAMES[kernel as usize][1], of(kernel))).collect();
    let places = ["r", "l-n", "l-s", "l-m"].map(str::to_owned).to_vec();
    let panel = panel("bus reads by class", "of NUMA's reads (%)", places, Marks::Bars, series);
    named(number, &format!("{name}, memory accesses"), "Modelled. The paper's is a picture without numbers.", panel)
}
