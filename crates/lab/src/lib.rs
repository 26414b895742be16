//! Experiments as matrices: workloads by axes by repetitions, run in an order that favours no cell, kept so that any
//! interruption costs one cell.
//!
//! - A [`Spec`] is read from TOML. [`MatrixCase`]s are the combinations of a workload and one level of each axis that the
//!   workload takes; a *cell* is one repetition of a case, and its identifier follows from names alone.
//! - Every repetition is a round: all cases once, in an order shuffled from a printed seed. So what drifts favours no
//!   case, and two cases of one round are a pair in an order that a coin decided, as `verify` needs them.
//! - An [`Executor`] chooses where cells run: [`Local`]ly, on a cluster ([`Slurm`]), or in a guest, which who runs the
//!   lab hands in.
//! - A cell works in a temporary directory. Its artifacts are renamed into place whole, and then the journal gets one
//!   line. [`Lab::open`] takes away what a killed lab left unfinished, and goes on with the cells that the journal lacks.
//! - Cases of wide spread are marked, and repeated in further rounds up to a limit.
//!
//! [`Show`] sets any axes as rows against an axis as columns: medians, and ratios with intervals from `verify`.

mod case;
mod changed;
mod check;
mod command;
mod ended;
mod error;
mod executor;
mod export;
mod figure;
mod file_system;
mod host;
mod hotplug;
mod journal;
mod lab;
mod left;
mod loop_device;
mod page_cache;
mod placeholder;
mod queue;
mod reading;
mod rounds;
mod run_cell;
mod show;
mod site;
mod slurm;
mod spec;

pub use case::{Cell, MatrixCase};
pub use ended::{Ended, Ending};
pub use error::Error;
pub use executor::{CellSink, Executor, Local};
pub use lab::{About, Event, Lab, SCHEMA};
pub use reading::Changes;
pub use show::{Entry, MetricTable, Ratio, Row, Selection, Show, Totals};
pub use site::Site;
pub use slurm::Slurm;
pub use spec::{Guest, Spec};
