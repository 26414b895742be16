//! Records what a program does: the tap, counters, BPF.

pub mod bpf;
pub mod perf;
mod rights;
pub mod symbols;
pub mod tap;
pub mod watch;
