//! The logs and tables that an observation leaves beside its record, as typed rows in Parquet files.
//!
//! | file | row | contents |
//! |---|---|---|
//! | `polls-log.parquet` | [`PollCall`] | every poll by itself (`observe --log`) |
//! | `locks-log.parquet` | [`LockWait`] | every lock wait by itself (`observe --log`) |
//! | `polls.parquet` | [`PollTotals`] | polls by thread and call |
//! | `locks.parquet` | [`LockTotals`] | waits by lock and calling point |
//! | `io.parquet` | [`IoTotals`] | block requests by device, operation and submitter |
//! | `sched.parquet` | [`TaskTime`] | time of each task, on the CPU and off it by reason |
//! | `samples.parquet` | [`NamedSample`] | every sample with its names |
//!
//! A row type is declared once, by the macro `rows!`; [`Writer`] and [`Reader`] handle every row type through [`Row`].
//! All columns are 64-bit integers or text, and none may be null; a file may lack the columns that are younger than it
//! and that have a value for this. The file's metadata name the schema (`nearmiss/polls/1`).
//! Times are nanoseconds; instants are counted from the start of the observation.

mod cell;
mod error;
mod footer;
mod io;
mod lock;
mod pages;
mod poll;
mod reader;
mod row;
mod sample;
mod sched;
mod schema;
mod source;
mod writer;

pub use cell::{Address, Cell, Kind, MOST_TEXT_BYTES, Stored};
pub use error::LogError;
pub use io::IoTotals;
pub use lock::{LockTotals, LockWait};
pub use poll::{PollCall, PollTotals};
pub use reader::Reader;
pub use row::{Column, MOST_LOGGED, Next, Row, Sound};
pub use sample::NamedSample;
pub use sched::TaskTime;
pub use writer::{Writer, write};

/// Name of the schema in the metadata of a file.
const SCHEMA_KEY: &str = "nearmiss.schema";
