//! Records what a live program does: performance counters and samples, and the kernel's events by BPF.

pub mod bpf;
pub mod perf;
mod rights;
pub mod watch;
