//! Records what a program does: the tap, counters, BPF.

pub mod symbols;
pub mod tap;
