//! A performance test that needs no counters: figures of a command's recordings before and after a change, compared
//! with limits, with the noise that the recordings show, and with the causes of what is beyond a limit.
//!
//! Everything here is a pure function of records. A [`Sample`] is one recording's figures, a
//! [`Side`](nearmiss_record::baseline::Side) a command's recordings, [`judge`] compares two sides, and [`difference`] two
//! sides of one figure.

mod causes;
mod events;
mod figure;
mod interval;
mod judge;
mod limits;
mod notes;
mod parts;
mod plan;
mod sample;
mod side;

pub use interval::{CONFIDENCE, Difference, difference};
pub use judge::judge;
pub use limits::{LimitError, Limits};
pub use notes::notes;
pub use plan::{LEAST_TO_FAIL, Next, Plan};
pub use sample::{Recording, Sample};
pub use side::{side, to_keep};
