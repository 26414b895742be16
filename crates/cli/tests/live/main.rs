//! The tests of `nearmiss observe` on programs that run: most need root and BPF.

mod observe;
mod observe_left_over;
mod observe_report;
mod observe_sums;
mod observing;
#[path = "../support/running.rs"]
mod running;
mod snapshot;
