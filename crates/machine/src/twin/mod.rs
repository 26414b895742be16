//! The model's slow twin: the same counting rules (see [`crate::model`]), written down as plainly as possible.
//!
//! It shares all but the caches with the model: the machine's plan, page placement, the bus's queues and the stream's
//! front. Any cache, shadow, copy, blame or buffer is searched for, step by step, in lists and sets.

mod buffer;
mod cache;
mod combining;
mod engine;
#[cfg(test)]
mod generate;
mod summary;
#[cfg(test)]
mod tests;

pub use engine::Slow;

/// A replay on the slow engine.
pub type Twin<O> = crate::model::Replay<Slow, O>;
