//! Machine descriptions and the model: caches, coherence, NUMA homes, SMT, bus.
//!
//! The model is a pure function of a stream of records, a machine and a policy.

pub mod aliasing;
pub mod attribution;
pub mod curve;
pub mod describe;
mod hashing;
pub mod model;
pub mod observer;
mod of_trace;
pub mod owner;
pub mod passing;
#[cfg(any(test, feature = "twin"))]
pub mod twin;
