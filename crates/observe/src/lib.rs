//! nearmiss observe.
pub mod bpf;
pub mod perf;
pub mod watch;
