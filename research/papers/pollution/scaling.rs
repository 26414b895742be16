//! Table (c): pollution and more CPUs. The paper expects the link (section 4.5.1) and has not measured it.

use super::function::Function;
use super::replica::{Copies, Counts, Load};
use super::{MACHINE, WORK};
use crate::parallel::simulate_all;
use crate::record::{Grid, GridRow, Shape, Table, Unit};
use crate::text::figure;
use crate::{PaperError, machine};
use nearmiss_record::machine::Machine;

/// CPUs tried, a stream each. The most come first: they take longest.
const ORDER: [usize; 5] = [16, 8, 4, 2, 1];
/// CPUs tried, as columns.
pub const CPUS: [usize; 5] = [1, 2, 4, 8, 16];
/// Copies tried.
const COPIES: [Copies; 2] = [Copies::Cached, Copies::ChosenBypass];
/// How many simulations [`scaling`] makes.
pub const PARTS: usize = ORDER.len() * COPIES.len();

/// Counts over CPUs.
#[derive(Clone, Debug)]
pub struct Scaling {
    /// Counts of the kernel as it was, by [`CPUS`].
    pub cached: Vec<Counts>,
    /// Counts with copies into the page cache that bypass, by [`CPUS`].
    pub bypassing: Vec<Counts>,
    transaction_cycles: u32,
}

/// The machine with so many CPUs on its one bus.
fn with_cpus(machine: &Machine, cpus: usize) -> Machine {
    let mut machine = machine.clone();
    machine.topology.packages = cpus as u32;
    machine
}

/// Simulates all.
pub fn scaling(done: &(dyn Fn() + Sync)) -> Result<Scaling, PaperError> {
    let machine = machine(MACHINE)?;
    let inputs: Vec<_> = ORDER.into_iter().flat_map(|cpus| COPIES.map(|copies| (cpus, copies))).collect();
    let counts = simulate_all(&inputs, done, |&(cpus, copies)| {
        Load { cpus, piped: false, copies, work: WORK, blame: false }.run(&with_cpus(&machine, cpus))
    })?;
    let of = |wanted: Copies| {
        let with = inputs.iter().zip(&counts).rev().filter(|((_, copies), _)| *copies == wanted);
        with.map(|(_, counts)| counts.clone()).collect()
    };
    Ok(Scaling {
        cached: of(Copies::Cached),
        bypassing: of(Copies::ChosenBypass),
        transaction_cycles: machine.bus.transaction_cycles,
    })
}

impl Scaling {
    /// Records a cycle, one CPU of the original being 1.
    pub fn throughput(&self, counts: &[Counts]) -> Vec<f64> {
        let rate = |(cpus, counts): (&usize, &Counts)| *cpus as f64 / counts.each(counts.cycles);
        let one = self.cached.first().map_or(1.0, |one| rate((&1, one)));
        CPUS.iter().zip(counts).map(|both| rate(both) / one).collect()
    }

    /// Share of the time in which the bus is busy, in percent.
    pub fn bus_percent(&self, counts: &[Counts]) -> Vec<f64> {
        let busy = |(cpus, counts): (&usize, &Counts)| {
            let occupied = counts.each(counts.bus.transactions()) * f64::from(self.transaction_cycles);
            (*cpus as f64 * occupied / counts.each(counts.cycles) * 100.0).min(100.0)
        };
        CPUS.iter().zip(counts).map(busy).collect()
    }

    fn gains(&self) -> Vec<f64> {
        let both = self.throughput(&self.bypassing).into_iter().zip(self.throughput(&self.cached));
        both.map(|(bypassing, cached)| bypassing / cached).collect()
    }

    /// Misses that the copy caused in others, of the original's misses, in percent.
    fn caused_percent(&self) -> Vec<f64> {
        let both = self.cached.iter().zip(&self.bypassing);
        let caused = |(cached, bypassing): (&Counts, &Counts)| {
            let others = cached.misses() - cached.of(Function::Copy).misses;
            (cached.each(others) - bypassing.each(bypassing.misses())) / cached.each(cached.misses()) * 100.0
        };
        both.map(caused).collect()
    }
}

/// Ours: the paper has no figures.
pub fn tables(scaling: &Scaling) -> Vec<Table> {
    let columns = || CPUS.iter().map(|c| format!("{c} CPU{}", if *c > 1 { "s" } else { "" })).collect();
    let row = |of: &str, what: &str, cells| GridRow { of: of.to_owned(), what: what.to_owned(), cells, from: None };
    let table = |name: &str, title: &str, grid, shapes| Table {
        name: name.to_owned(),
        title: title.to_owned(),
        source: "not in the paper (section 4.5.1 expects it)".to_owned(),
        known: None,
        rows: Vec::new(),
        grid: Some(grid),
        shapes,
        notes: Vec::new(),
    };
    let throughput = Grid {
        columns: columns(),
        unit: Unit::Times,
        mark: "throughput: one CPU of the original is 1; a stream a CPU, no waiting for disks".to_owned(),
        rows: vec![
            row("original", "throughput", scaling.throughput(&scaling.cached)),
            row("chosen sites bypass", "throughput", scaling.throughput(&scaling.bypassing)),
            row("both", "bypassing against original", scaling.gains()),
        ],
    };
    let bus = Grid {
        columns: columns(),
        unit: Unit::Percent,
        mark: "bus busy: of the time; caused: L3 misses of others that the copy caused, of all of the original's"
            .to_owned(),
        rows: vec![
            row("original", "bus busy", scaling.bus_percent(&scaling.cached)),
            row("chosen sites bypass", "bus busy", scaling.bus_percent(&scaling.bypassing)),
            row("original", "caused by the copy", scaling.caused_percent()),
        ],
    };
    let title = "1 to 16 Xeon MP on one bus, copies through the caches and around them";
    vec![
        table("c1", &format!("{title}: throughput"), throughput, shapes(scaling)),
        table("c2", &format!("{title}: the bus"), bus, Vec::new()),
    ]
}

fn shapes(scaling: &Scaling) -> Vec<Shape> {
    let gains = scaling.gains();
    let list = |values: &[f64]| values.iter().map(|v| figure(*v, Unit::Times)).collect::<Vec<_>>().join(", ");
    let each_cpu = |counts: &[Counts]| -> Vec<f64> {
        scaling.throughput(counts).iter().zip(CPUS).map(|(all, cpus)| all / cpus as f64).collect()
    };
    let (cached, bypassing) = (each_cpu(&scaling.cached), each_cpu(&scaling.bypassing));
    let kept = |values: &[f64]| values.first().zip(values.last()).map_or(0.0, |(one, most)| most / one);
    vec![
        Shape {
            claim: "with less traffic on the bus, 16 CPUs gain more than one".to_owned(),
            holds: gains.first() < gains.last(),
            ours: list(&gains),
        },
        Shape {
            claim: "a CPU of 16 keeps more of what one alone does where copies bypass".to_owned(),
            holds: kept(&bypassing) > kept(&cached),
            ours: format!("{} against {}", figure(kept(&bypassing), Unit::Times), figure(kept(&cached), Unit::Times)),
        },
    ]
}
