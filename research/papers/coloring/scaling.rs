//! Table (c): more CPUs (P0, chapter 5, figures 9 and 10, table 3).

use super::clock::Counts;
use super::figures::{self, COLORS, Contended, TABLE_3_CPUS};
use super::walk::{change, rate};
use super::web::{Sleep, Web};
use super::{AWAY_MICROS, Kernel, SEED, WEB_WORK};
use crate::parallel::simulate_all;
use crate::record::{Grid, GridRow, Row, Shape, Table, Theirs, Unit};
use crate::text::figure;
use crate::{PaperError, machine};
use nearmiss_report::plot::figure::{Marks, Panel, Series};

/// CPUs tried.
pub const CPUS: [usize; 5] = [1, 2, 4, 6, 8];
/// Schedulers tried.
pub const KERNELS: [Kernel; 3] = [Kernel::Standard, Kernel::Colored(COLORS), Kernel::Constant];
/// Threads of Chat: 30 rooms of 20 users of 4 threads.
pub const CHAT_THREADS: usize = 2400;
/// Threads of Chat asleep: the paper has "more than 1,000 on average" on the queue.
pub const CHAT_ASLEEP: usize = 1200;
/// Counted on each CPU.
const SLICES: u64 = 96;
const WEB_PROCESSES: usize = 256;
const MACHINE: &str = "pentium3-xeon-8way";

/// Which load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Benchmark {
    /// 256 `httpd`, of which those sleep that wait for the network and a client.
    WebBench,
    /// [`CHAT_THREADS`], of which [`CHAT_ASLEEP`] sleep. A slice is as long as one of WebBench.
    Chat,
}

impl Benchmark {
    /// Table 3.
    fn contended(self) -> Contended {
        match self {
            Benchmark::WebBench => figures::WEB_CONTENDED,
            Benchmark::Chat => figures::CHAT_CONTENDED,
        }
    }

    /// CPUs at which the paper gives the gain of coloring in numbers, and the gain in percent.
    fn gain(self) -> (usize, f64) {
        match self {
            Benchmark::WebBench => (8, figures::WEB_GAIN_PERCENT),
            Benchmark::Chat => (6, figures::CHAT_GAIN_PERCENT),
        }
    }
}

/// One load over kernels and CPUs.
#[derive(Clone, Debug)]
pub struct Scaling {
    /// Which load.
    pub benchmark: Benchmark,
    /// Counts by [`KERNELS`], then [`CPUS`].
    pub counts: Vec<Vec<Counts>>,
}

/// How many simulations [`scalings`] makes.
pub const PARTS: usize = 2 * KERNELS.len() * CPUS.len();

/// Simulates all.
pub fn scalings(done: &(dyn Fn() + Sync)) -> Result<Vec<Scaling>, PaperError> {
    let mut inputs = Vec::new();
    for benchmark in [Benchmark::WebBench, Benchmark::Chat] {
        for kernel in KERNELS {
            inputs.extend(CPUS.map(|cpus| (benchmark, kernel, cpus)));
        }
    }
    let counts = simulate_all(&inputs, done, |&(benchmark, kernel, cpus)| {
        let (processes, sleep) = match benchmark {
            Benchmark::WebBench => (WEB_PROCESSES, Sleep::Micros(AWAY_MICROS)),
            Benchmark::Chat => (CHAT_THREADS, Sleep::Turns(CHAT_ASLEEP)),
        };
        Web { processes, sleep, kernel, cpus, work: WEB_WORK, seed: SEED, slices: SLICES }.run(&machine(MACHINE)?)
    })?;
    let by_benchmark = counts.chunks(KERNELS.len() * CPUS.len());
    let scalings = [Benchmark::WebBench, Benchmark::Chat].into_iter().zip(by_benchmark);
    Ok(scalings
        .map(|(benchmark, counts)| Scaling {
            benchmark,
            counts: counts.chunks(CPUS.len()).map(<[_]>::to_vec).collect(),
        })
        .collect())
}

/// A kernel's name.
pub fn name(kernel: Kernel) -> &'static str {
    match kernel {
        Kernel::Standard => "standard",
        Kernel::Colored(_) => "32 colors",
        Kernel::Constant => "O(1)",
    }
}

impl Scaling {
    /// The load's name.
    pub fn name(&self) -> &'static str {
        match self.benchmark {
            Benchmark::WebBench => "WebBench",
            Benchmark::Chat => "Chat",
        }
    }

    /// Throughput of a kernel by CPUs, one CPU of the standard kernel being 1.
    pub fn throughput(&self, kernel: usize) -> Vec<f64> {
        let one = self.counts[0].first().map_or(1.0, rate);
        self.counts[kernel].iter().map(|c| rate(c) / one).collect()
    }

    /// The paper's gain of coloring, put on our standard kernel's throughput, by CPUs.
    pub fn papers_gain(&self, kernel: usize) -> Vec<Option<f64>> {
        let (cpus, gain) = self.benchmark.gain();
        let on_standard = CPUS.into_iter().zip(self.throughput(0));
        on_standard.map(|(c, t)| (kernel == 1 && c == cpus).then_some(t * (1.0 + gain / 100.0))).collect()
    }

    /// Table 3 as a picture.
    pub fn contention_panel(&self) -> Panel {
        let Contended { standard, colored } = self.benchmark.contended();
        let series = [standard, colored].into_iter().enumerate().map(|(kernel, theirs)| {
            let ours = TABLE_3_CPUS.iter().map(|cpus| self.contended_percent(kernel, *cpus)).collect();
            Series { paper: theirs.map(Some).to_vec(), ..Series::new(name(KERNELS[kernel]), ours) }
        });
        Panel {
            title: "run-queue lock contended".to_owned(),
            x_title: "CPUs".to_owned(),
            y_title: "calls that found it taken (%)".to_owned(),
            places: TABLE_3_CPUS.iter().map(usize::to_string).collect(),
            marks: Marks::Bars,
            series: series.collect(),
        }
    }

    fn contended_percent(&self, kernel: usize, cpus: usize) -> f64 {
        let at = CPUS.iter().position(|c| *c == cpus);
        at.and_then(|at| self.counts[kernel].get(at)).map_or(0.0, |c| super::percentage(c.contended, c.schedules))
    }

    fn gains_percent(&self, kernel: usize, against: usize) -> Vec<f64> {
        let both = self.throughput(kernel).into_iter().zip(self.throughput(against));
        both.map(|(kernel, against)| change(against, kernel)).collect()
    }

    fn gain_percent(&self, kernel: usize, against: usize, cpus: usize) -> f64 {
        let gains = CPUS.into_iter().zip(self.gains_percent(kernel, against));
        gains.into_iter().find(|(c, _)| *c == cpus).map_or(0.0, |(_, gain)| gain)
    }
}

/// Returns the table of the paper's figures and ours.
pub fn table(scalings: &[Scaling]) -> Table {
    let mut rows = Vec::new();
    for s in scalings {
        let Contended { standard, colored } = s.benchmark.contended();
        for (kernel, theirs) in [standard, colored].into_iter().enumerate() {
            for (cpus, figure) in TABLE_3_CPUS.into_iter().zip(theirs) {
                let what = format!("lock contended, {}, {cpus} CPUs", name(KERNELS[kernel]));
                let ours = s.contended_percent(kernel, cpus);
                rows.push(Row::new(s.name(), what, Unit::Percent, Theirs::Figure(figure), ours));
            }
        }
        let (cpus, gain) = s.benchmark.gain();
        let constant = if s.benchmark == Benchmark::WebBench { "no difference" } else { "better still" };
        let row = |what: String, paper, ours| Row::new(s.name(), what, Unit::ChangePercent, paper, ours);
        let what = format!("throughput, 32 colors against standard, {cpus} CPUs");
        let gained = row(what, Theirs::Figure(gain), s.gain_percent(1, 0, cpus));
        rows.push(if s.benchmark == Benchmark::WebBench { gained.fitted() } else { gained });
        let what = format!("throughput, O(1) against 32 colors, {cpus} CPUs");
        rows.push(row(what, Theirs::Words(constant.to_owned()), s.gain_percent(2, 1, cpus)));
    }
    let mut cells = Vec::new();
    for s in scalings {
        for (i, kernel) in KERNELS.into_iter().enumerate() {
            let (of, what) = (s.name().to_owned(), format!("throughput, {}", name(kernel)));
            cells.push(GridRow { of, what, cells: s.throughput(i), from: None });
        }
    }
    Table {
        name: "c".to_owned(),
        title: "1 to 8 Pentium III Xeon: contention for the run queue's lock, and throughput".to_owned(),
        source: "chapter 5, figures 9 and 10, table 3".to_owned(),
        rows,
        grid: Some(Grid {
            columns: CPUS.iter().map(|c| format!("{c} CPU{}", if *c > 1 { "s" } else { "" })).collect(),
            unit: Unit::Times,
            mark: "one CPU of the standard kernel is 1 (the paper has these as pictures only)".to_owned(),
            rows: cells,
        }),
        shapes: scalings.iter().flat_map(shapes).collect(),
        known: None,
        notes: Vec::new(),
    }
}

fn shapes(s: &Scaling) -> Vec<Shape> {
    let list = |values: &[f64], unit| values.iter().map(|v| figure(*v, unit)).collect::<Vec<_>>().join(", ");
    let contended = |kernel| TABLE_3_CPUS.map(|cpus| s.contended_percent(kernel, cpus));
    let (standard, colored) = (contended(0), contended(1));
    let shape = |claim: String, holds, ours| Shape { claim: format!("{}: {claim}", s.name()), holds, ours };
    let mut shapes = vec![shape(
        "contention rises with the CPUs, and coloring lowers it at each number".to_owned(),
        [standard, colored].iter().all(|c| c.windows(2).all(|w| w[1] > w[0]))
            && standard.iter().zip(&colored).all(|(s, c)| c < s),
        format!("{} and {}", list(&standard, Unit::Percent), list(&colored, Unit::Percent)),
    )];
    let gains = s.gains_percent(1, 0);
    let beyond = s.gains_percent(2, 1);
    match s.benchmark {
        Benchmark::WebBench => {
            shapes.push(shape(
                "the gain of coloring is largest at 8 CPUs".to_owned(),
                gains.last().is_some_and(|last| gains.iter().all(|g| g <= last)),
                list(&gains, Unit::ChangePercent),
            ));
            shapes.push(shape(
                "O(1) and coloring hardly differ (within 10%)".to_owned(),
                beyond.iter().all(|b| b.abs() < 10.0),
                list(&beyond, Unit::ChangePercent),
            ));
        }
        Benchmark::Chat => {
            let throughput = s.throughput(0);
            let most = throughput.iter().fold(0.0_f64, |a, b| a.max(*b));
            let peak = throughput.iter().position(|t| *t == most).map_or(0, |at| CPUS[at]);
            shapes.push(shape(
                "standard: no gain beyond 4 CPUs (within 10%)".to_owned(),
                most <= throughput[2] * 1.1,
                list(&throughput, Unit::Times),
            ));
            shapes.push(shape(
                "standard: the peak is at 4 CPUs, then throughput falls".to_owned(),
                peak == 4,
                format!("peak at {peak} CPUs"),
            ));
            let colored = s.throughput(1);
            shapes.push(shape(
                "32 colors: throughput rises up to 6 CPUs".to_owned(),
                colored[..4].windows(2).all(|w| w[1] > w[0] * 1.1),
                list(&colored, Unit::Times),
            ));
            shapes.push(shape(
                "O(1) is better than coloring, more so with more CPUs".to_owned(),
                beyond.iter().all(|b| *b > 0.0) && beyond.windows(2).all(|w| w[1] > w[0]),
                list(&beyond, Unit::ChangePercent),
            ));
        }
    }
    shapes
}
