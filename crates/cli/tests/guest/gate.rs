//! `nearmiss gate` on a program with a planted regression: 1% more instructions, in one function.

use crate::guest_slots::for_a_guest;
use nearmiss_record::gate::{GateRecord, JudgedFigure, Ruling};
use std::path::Path;
use std::process::{Command, Output};

const SOURCE: &str = r"
#include <stdio.h>
static unsigned table[4096];
static unsigned touched[PAGES << 10];
static volatile int checks = CHECKS;
__attribute__((noinline)) unsigned checksum(unsigned x)
{
    const int turns = checks;
    for (int i = 0; i < turns; i++)
        x = x * 1103515245 + 12345;
    return x;
}
__attribute__((noinline)) unsigned work(unsigned x)
{
    for (int i = 0; i < 40; i++)
        x = x * 1664525 + 1013904223, table[x >> 20] ^= x;
    return x;
}
int main(void)
{
    unsigned x = 1;
    for (int i = 0; i < PAGES; i++)
        x ^= touched[i << 10], touched[i << 10] = x;
    for (int i = 0; i < CALLS; i++)
        x = checksum(work(x));
    printf(REPORT, x);
}
";

/// Calls of `checksum`.
const CALLS: u64 = 30_000;
/// Pages that are read and then written: 4 MiB, in which a large page would fit.
const PAGES: u32 = 1024;

/// Builds the program so that `checksum` has so many turns.
fn build(place: &Path, name: &str, checks: u32) {
    let source = place.join("program.c");
    std::fs::write(&source, SOURCE).expect("a source");
    let counts = [("CHECKS", checks.into()), ("CALLS", CALLS), ("PAGES", PAGES.into())];
    let defines = counts.map(|(name, count): (&str, u64)| format!("-D{name}={count}"));
    let built = Command::new("cc")
        .args(["-O1", "-g", "-o"])
        .arg(place.join(name))
        .arg(&source)
        .args(defines)
        .arg("-DREPORT=\"%u\\n\"")
        .status();
    assert!(built.expect("cc runs").success());
}

/// Two recordings a side, because figures of user mode repeat.
fn gate(place: &Path, arguments: &[&str]) -> Output {
    let always = ["gate", "--memory", "1GiB", "--cpus", "1", "--recordings", "2", "--at-most", "2"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_nearmiss"));
    command.current_dir(place).args(always).args(arguments).output().expect("nearmiss runs")
}

fn of<'a>(record: &'a GateRecord, name: &str) -> &'a JudgedFigure {
    record.figures.iter().find(|figure| figure.name == name).expect("the figure")
}

#[test]
fn the_same_program_passes_and_one_percent_more_is_found_with_its_function() {
    let Some(_guest) = for_a_guest() else { return };
    let place = tempfile::tempdir().expect("a temporary directory");
    let place = place.path();
    build(place, "old", 4);
    build(place, "new", 5);
    let written = gate(place, &["--write", "base.json", "--", "./old"]);
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));

    let against = ["--max-worse", "50%,user.instructions=0.5%", "--json", "--against", "base.json", "--"];
    let same = gate(place, &[&against[..], &["./old"]].concat());
    assert_eq!(same.status.code(), Some(0), "{}", String::from_utf8_lossy(&same.stderr));
    let record: GateRecord = serde_json::from_slice(&same.stdout).expect("a record, nothing else");
    let instructions = of(&record, "user.instructions");
    assert!(record.passed && instructions.difference.abs() <= 4.0, "{instructions:?}");
    assert_eq!(of(&record, "user.stores").ruling, Ruling::NoDifference);
    assert!(of(&record, "syscalls.write").old >= 1.0);
    // No large page stands for any of them: each is mapped to be read, and again to be written. The agent's own faults are
    // separated by an estimate.
    let faults = of(&record, "faults");
    assert!(faults.old >= f64::from(2 * PAGES) && faults.difference.abs() <= 4.0, "{faults:?}");

    let worse = gate(place, &[&against[..], &["./new"]].concat());
    assert_eq!(worse.status.code(), Some(1), "{}", String::from_utf8_lossy(&worse.stderr));
    let record: GateRecord = serde_json::from_slice(&worse.stdout).expect("a record, nothing else");
    let beyond: Vec<_> = record.figures.iter().filter(|figure| figure.ruling == Ruling::Beyond).collect();
    assert_eq!(beyond.iter().map(|figure| figure.name.as_str()).collect::<Vec<_>>(), ["user.instructions"]);
    let cause = &beyond[0].causes[0];
    assert_eq!((cause.name.as_str(), cause.calls), ("checksum", (CALLS, CALLS)));
    // A turn of the loop more in each call: as many instructions as the compiler gave it, in each call alike.
    let turn = cause.difference() / CALLS as i64;
    assert!((3..=6).contains(&turn) && cause.difference() == turn * CALLS as i64, "{cause:?}");
    // The loader hashes other names.
    assert!((beyond[0].difference - cause.difference() as f64).abs() <= 100.0, "{:?}", beyond[0]);
    assert!(cause.file.ends_with("program.c") && (5..=11).contains(&cause.line), "{cause:?}");
    assert_eq!(cause.caller, "main");
}
