//! A machine with cores and two levels of translation, whose figures are the same everywhere.

#![allow(clippy::unwrap_used)]

use std::process::Command;

/// Beside a machine's other figures.
const CORES: &str = "
[tlb]
entries = 64
miss_cycles = 7

[tlb.second]
entries = 512
walk_cycles = 40
large_walk_cycles = 30

[core]
window_instructions = 224
fill_buffers = 16
store_buffer = 64
width = 6
forwarding_cycles = 6
mispredict_cycles = 15

[sources]";

/// A machine file.
pub fn machine_with_cores() -> String {
    let words = ["machine", "show", "zen4-genoa"];
    let shown = Command::new(env!("CARGO_BIN_EXE_nearmiss")).args(words).output().unwrap();
    let with_cores = String::from_utf8(shown.stdout).unwrap().replace("\n[sources]", CORES);
    with_cores.lines().filter(|line| !line.starts_with("overlap")).map(|line| format!("{line}\n")).collect()
}
