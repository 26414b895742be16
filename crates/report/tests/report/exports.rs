//! The exports, read by the tools they are for.

#![allow(clippy::unwrap_used)]

use crate::support;
use nearmiss_report::{callgrind, pprof};
use std::io::Write;
use std::process::Command;

fn tool(program: &str, arguments: &[&str], file: &[u8]) -> Option<String> {
    let mut temporary = tempfile::NamedTempFile::new().unwrap();
    temporary.write_all(file).unwrap();
    let output = match Command::new(program)
        .args(arguments)
        .arg(temporary.path())
        .env("PPROF_TMPDIR", std::env::temp_dir())
        .output()
    {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            println!("skipped: no {program} in PATH");
            return None;
        }
        output => output.unwrap(),
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The numbers of the line that holds `name`, without percentages.
fn numbers(text: &str, name: &str) -> Vec<String> {
    let line = text.lines().find(|l| l.contains(name)).unwrap_or_else(|| panic!("no `{name}` in {text}"));
    line.split_whitespace().filter(|w| w.starts_with(|c: char| c.is_ascii_digit())).map(str::to_owned).collect()
}

#[test]
fn callgrind_annotate_shows_the_totals() {
    let report = support::run_queue().report();
    let Some(text) =
        tool("callgrind_annotate", &["--show-percs=no", "--threshold=100"], callgrind::render(&report).as_bytes())
    else {
        return;
    };
    let totals = &report.model.totals;
    let g = nearmiss_report::number::grouped;
    let shown = numbers(&text, "PROGRAM TOTALS");
    for figure in [totals.instructions, totals.loads, totals.stores, totals.cycles, totals.stall_cycles] {
        assert!(shown.contains(&g(figure)), "{} in {shown:?}", g(figure));
    }
    assert_eq!(shown[4], "2,774,964", "L1 load misses");
    let schedule = &report.model.functions.iter().find(|f| f.name == "schedule").unwrap().tally;
    assert!(numbers(&text, "kernel/sched.c:schedule").contains(&g(schedule.stall_cycles)));
}

#[test]
fn the_cost_of_a_call_is_not_the_callers_own() {
    let report = support::run_queue().report();
    let arguments = ["--show-percs=no", "--threshold=100", "--show=Ir,Stall", "--sort=Ir"];
    let Some(text) = tool("callgrind_annotate", &arguments, callgrind::render(&report).as_bytes()) else { return };
    let main = &report.model.functions.iter().find(|f| f.name == "main").unwrap().tally;
    assert_eq!(numbers(&text, ":main ["), [nearmiss_report::number::grouped(main.instructions), "0".to_owned()]);
}

#[test]
fn callgrind_annotate_knows_what_calls_cost() {
    let report = support::run_queue().report();
    let arguments = ["--show-percs=no", "--inclusive=yes", "--show=Stall", "--sort=Stall"];
    let Some(text) = tool("callgrind_annotate", &arguments, callgrind::render(&report).as_bytes()) else { return };
    assert_eq!(numbers(&text, ":main ["), [nearmiss_report::number::grouped(report.model.totals.stall_cycles)]);
}

#[test]
fn callgrind_names_are_never_syntax() {
    let mut builder = support::run_queue();
    builder.model.functions[1].name = "(7) copy\nfn=(1) evil".into();
    let text = callgrind::render(&builder.report());
    assert!(text.contains("fn=(2) (7) copy\\u{a}fn=(1) evil\n"));
    assert!(!text.lines().any(|l| l == "fn=(1) evil"));
}

#[test]
fn pprof_shows_the_totals() {
    let report = support::run_queue().report();
    let file = pprof::render(&report).unwrap();
    assert_eq!(file, pprof::render(&report).unwrap(), "equal runs give equal files");
    let Some(text) = tool("go", &["tool", "pprof", "-top", "-unit=cycles", "-nodecount=50"], &file) else { return };
    let stalls = report.model.totals.stall_cycles;
    assert!(text.contains(&format!("of {stalls}cycles total")), "{text}");
    assert!(text.contains("schedule"));
}
