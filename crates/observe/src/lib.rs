//! Records what a program does: the tap, counters, BPF.

<<<<<<< HEAD
pub mod bpf;
pub mod perf;
=======
pub mod symbols;
>>>>>>> main
pub mod tap;
pub mod watch;
