//! Table (b): how many colors for how many processes (P0, section 4.3, figure 8).

use super::clock::Counts;
use super::figures::{SIZES, least_colors};
use super::walk::{change, per_slice, rate, web};
use super::{Kernel, grouped};
use crate::parallel::simulate_all;
use crate::record::{Grid, GridRow, Shape, Table, Unit};
use crate::text::figure;
use crate::{PaperError, machine};

/// Colors tried.
pub const COLORS: [u32; 4] = [4, 8, 16, 32];
/// Processes tried.
pub const PROCESSES: [usize; 3] = [256, 512, 1024];
/// The paper leaves out the smallest cache.
const SMALLEST: usize = 1;

/// One number of processes on one size.
#[derive(Clone, Debug)]
pub struct Series {
    /// Second level, KB.
    pub kilobytes: u64,
    /// `httpd` processes.
    pub processes: usize,
    /// 2.4 as it was.
    pub standard: Counts,
    /// Counts by [`COLORS`].
    pub colored: Vec<Counts>,
}

/// How many simulations [`series`] makes.
pub const PARTS: usize = (SIZES.len() - SMALLEST) * PROCESSES.len() * (1 + COLORS.len());

/// Simulates all.
pub fn series(done: &(dyn Fn() + Sync)) -> Result<Vec<Series>, PaperError> {
    let kernels: Vec<Kernel> =
        std::iter::once(Kernel::Standard).chain(COLORS.iter().map(|c| Kernel::Colored(*c))).collect();
    let mut inputs = Vec::new();
    for (_, name) in &SIZES[SMALLEST..] {
        for processes in PROCESSES {
            inputs.extend(kernels.iter().map(|kernel| (*name, processes, *kernel)));
        }
    }
    let counts =
        simulate_all(&inputs, done, |(name, processes, kernel)| web(*processes, *kernel).run(&machine(name)?))?;
    let cells = SIZES[SMALLEST..].iter().flat_map(|(kilobytes, _)| PROCESSES.map(|p| (*kilobytes, p)));
    let series = cells.zip(counts.chunks(kernels.len())).map(|((kilobytes, processes), counts)| Series {
        kilobytes,
        processes,
        standard: counts[0],
        colored: counts[1..].to_vec(),
    });
    Ok(series.collect())
}

impl Series {
    /// Equation 2's number.
    pub fn least(&self) -> u64 {
        least_colors(self.processes as u64, self.kilobytes)
    }

    /// Change of requests a second, by number of colors.
    pub fn requests_percent(&self) -> Vec<f64> {
        self.colored.iter().map(|c| change(rate(&self.standard), rate(c))).collect()
    }

    /// Change of all bus transactions a request, by number of colors.
    pub fn transactions_percent(&self) -> Vec<f64> {
        let count = |c: &Counts| c.all.transactions();
        self.colored.iter().map(|c| change(per_slice(&self.standard, &count), per_slice(c, &count))).collect()
    }

    fn cells(&self) -> Vec<(u32, f64, f64)> {
        let both = self.requests_percent().into_iter().zip(self.transactions_percent());
        COLORS.iter().zip(both).map(|(colors, (requests, transactions))| (*colors, requests, transactions)).collect()
    }

    fn name(&self) -> String {
        format!("{} KB, {} processes", grouped(self.kilobytes), grouped(self.processes as u64))
    }
}

/// Returns the table of the paper's words and our figures.
pub fn table(series: &[Series]) -> Table {
    let mut rows = Vec::new();
    for s in series {
        let from = COLORS.iter().position(|c| u64::from(*c) >= s.least());
        let row = |what: &str, cells| GridRow { of: s.name(), what: what.to_owned(), cells, from };
        rows.push(row("requests/s", s.requests_percent()));
        rows.push(row("bus transactions", s.transactions_percent()));
    }
    Table {
        name: "b".to_owned(),
        title: "colors against processes, change against standard".to_owned(),
        source: "section 4.3, figure 8; the text gives no numbers beside the thresholds".to_owned(),
        rows: Vec::new(),
        grid: Some(Grid {
            columns: COLORS.iter().map(|c| format!("{c} colors")).collect(),
            unit: Unit::ChangePercent,
            mark: "| = from here on equation 2 (colors ≥ processes / (size / 8 KB)) is satisfied".to_owned(),
            rows,
        }),
        shapes: shapes(series),
        known: None,
        notes: Vec::new(),
    }
}

fn shapes(series: &[Series]) -> Vec<Shape> {
    let all: Vec<_> = series.iter().flat_map(|s| s.cells().into_iter().map(move |cell| (s, cell))).collect();
    let enough: Vec<_> = all.iter().filter(|(s, (colors, ..))| u64::from(*colors) >= s.least()).collect();
    let too_few: Vec<_> = all.iter().filter(|(s, (colors, ..))| u64::from(*colors) < s.least()).collect();
    let worst_gain = enough.iter().map(|(_, (_, requests, _))| *requests).fold(f64::INFINITY, f64::min);
    let most_traffic = enough.iter().map(|(.., (_, _, traffic))| *traffic).fold(f64::NEG_INFINITY, f64::max);
    let list = |value: &dyn Fn(&(u32, f64, f64)) -> f64| {
        let each = too_few
            .iter()
            .map(|(s, cell)| format!("{} with {}: {}", s.name(), cell.0, figure(value(cell), Unit::ChangePercent)));
        each.collect::<Vec<_>>().join(", ")
    };
    let traffic_grows = |kilobytes: u64| {
        let largest = too_few.iter().filter(|(s, _)| s.kilobytes == kilobytes && s.processes == 1024);
        largest.into_iter().all(|(_, (_, _, traffic))| *traffic > 0.0)
    };
    let steady = |s: &Series| {
        let gains: Vec<f64> = s.cells().iter().filter(|c| u64::from(c.0) >= s.least()).map(|c| c.1).collect();
        gains.windows(2).all(|g| g[1] > g[0] - 2.0)
    };
    vec![
        Shape {
            claim: "with as many colors as equation 2 requires, or more, requests/s rise".to_owned(),
            holds: worst_gain > 1.0,
            ours: format!("least gain {}", figure(worst_gain, Unit::ChangePercent)),
        },
        Shape {
            claim: "and bus transactions fall".to_owned(),
            holds: most_traffic < 0.0,
            ours: format!("least change {}", figure(most_traffic, Unit::ChangePercent)),
        },
        Shape {
            claim: "1,024 processes, 512 KB, too few colors: transactions grow, misses only move to more lines"
                .to_owned(),
            holds: traffic_grows(512),
            ours: list(&|cell| cell.2),
        },
        Shape { claim: "likewise at 1,024 KB".to_owned(), holds: traffic_grows(1024), ours: "as above".to_owned() },
        Shape {
            claim: "and with too few requests/s hardly change (within 5%)".to_owned(),
            holds: too_few.iter().all(|(_, (_, requests, _))| requests.abs() < 5.0),
            ours: list(&|cell| cell.1),
        },
        Shape {
            claim: "from equation 2's number on, more colors are no worse (by more than 2 points)".to_owned(),
            holds: series.iter().all(steady),
            ours: "each row from the mark to the right".to_owned(),
        },
    ]
}
