//! `nearmiss trace` on a program with a branch that no predictor knows, and on one that it knows.

#![allow(clippy::unwrap_used)]

use crate::cores::machine_with_cores;
use crate::guest_slots::for_a_guest;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Ten thousand times a branch by a bit of a word: of a shuffled one, or of the number of the turn.
const SOURCE: &str = "
int main(void)
{
    unsigned x = 1, sum = 0;
    for (int i = 0; i < 10000; i++) {
        x = x * 1664525u + 1013904223u;
        if ((WORD) & 1)
            __asm__ volatile(\"add $3, %0\" : \"+r\"(sum));
    }
    return sum == 0;
}
";

/// Cycles of the way of mispredicted branches, modelled.
fn mispredicted(place: &Path, word: &str) -> u64 {
    let source = place.join("program.c");
    std::fs::write(&source, SOURCE.replace("WORD", word)).unwrap();
    let built = Command::new("cc").current_dir(place).args(["-O1", "-o", "program", "program.c"]).status().unwrap();
    assert!(built.success());
    let machine = ["trace", "-q", "-m", "cores.toml", "--cpus", "1"];
    let words = [machine.as_slice(), &["--only", "user", "--json", "model.json", "--", "./program"]].concat();
    let output = Command::new(env!("CARGO_BIN_EXE_nearmiss")).current_dir(place).args(words).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let model: Value = serde_json::from_slice(&std::fs::read(place.join("model.json")).unwrap()).unwrap();
    let whole = model["stalls"]["mispredicted"].as_u64().unwrap_or_else(|| panic!("{model:#}"));
    let tallies = model["functions"].as_array().unwrap().iter().map(|row| &row["tally"]);
    let by_function: u64 = tallies.map(|tally| tally["mispredicted_cycles"].as_u64().unwrap()).sum();
    assert_eq!([by_function, model["totals"]["mispredicted_cycles"].as_u64().unwrap()], [whole; 2]);
    whole
}

#[test]
fn a_branch_by_chance_costs_and_a_regular_one_does_not() {
    let Some(_guest) = for_a_guest() else { return };
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("cores.toml"), machine_with_cores()).unwrap();
    let [chance, regular] = ["x >> 31", "i"].map(|word| mispredicted(place.path(), word));
    // Half of 10,000 branches, 15 cycles each; what the C library does before counts in both.
    assert!((60_000..90_000).contains(&(chance - regular)), "{chance} and {regular} cycles");
}
