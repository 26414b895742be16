//! Mappings by process and time, from the bytes of the guest's perf rings that the stream carries.
//!
//! [`Decoder`] reads `PERF_RECORD_*` out of the bytes of one ring; [`MapLog`] keeps them, so that an instruction of the
//! run's table can be named long after its process is gone.

mod log;
mod perf;

pub use log::{InsnPlace, MapLog};
pub use perf::{Decoder, Event, Mapping, MapsError};
