//! glibc's malloc keeps what is freed, in every thread, and the page faults that did not happen are counted; programs
//! with a malloc of their own, and static ones, stay as they are.
#![allow(clippy::unwrap_used)]

use crate::probes;
use nearmiss_remedies::keep::apply::{Args, Report, apply};
use nearmiss_workload::Workload;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Pages of the probe's blocks, and of all its rounds.
const PAGES: u64 = (40 << 20) / 4096;
const ROUNDS: u64 = 10;

/// Compiles the probe under a name of its own.
fn probe(name: &str, flags: &[&str]) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("keep-probes");
    std::fs::create_dir_all(&directory).unwrap();
    let output = directory.join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../native/preload/keep/tests/rounds.c");
    let mut command = Command::new("cc");
    command.args(["-O1", "-g", "-pthread", "-Wall", "-Wextra", "-o"]).arg(&output).arg(source).args(flags);
    assert!(command.status().unwrap().success(), "{name}");
    output
}

fn run(workload: Workload, args: &Args) -> (String, Report) {
    let (workload, keeping) = apply(workload, args).unwrap();
    let (text, pid, finished) = probes::run(workload);
    assert!(finished.status.success(), "{text}{:?}", finished.status);
    (text, keeping.report(pid).unwrap())
}

#[test]
fn freed_blocks_of_all_threads_come_back_without_page_faults() {
    let rounds = probe("rounds", &[]);
    let (alone, _, _) = probes::run(Workload::new([&rounds]));
    assert_eq!(alone, "sum 640, faults\n");
    for words in [vec![], vec!["thread"]] {
        let workload = Workload::new([&[rounds.to_str().unwrap()], &words[..]].concat());
        let (text, report) = run(workload, &Args::default());
        assert_eq!(text, "sum 640, no faults\n", "{words:?}");
        assert_eq!((report.programs, report.keeping, report.programs_with_own_malloc), (1, 1, 0));
        assert!((PAGES..2 * PAGES).contains(&report.page_faults), "{report}");
    }
}

#[test]
fn an_executable_at_a_fixed_address_keeps_too() {
    let rounds = probe("rounds-fixed", &["-no-pie", "-fno-pic"]);
    let (text, report) = run(Workload::new([&rounds]), &Args::default());
    assert_eq!((text.as_str(), report.keeping, report.programs_with_own_malloc), ("sum 640, no faults\n", 1, 0));
}

#[test]
fn a_limit_gives_a_larger_top_of_the_heap_back() {
    let rounds = probe("rounds-limited", &[]);
    let (text, report) = run(Workload::new([&rounds]), &Args { at_most: Some(8 << 20) });
    assert_eq!(text, "sum 640, faults\n");
    assert!(report.page_faults > ROUNDS / 2 * PAGES, "{report}");
    let (text, _) = run(Workload::new([&rounds]), &Args { at_most: Some(1 << 30) });
    assert_eq!(text, "sum 640, no faults\n");
}

#[test]
fn every_program_of_the_command_keeps() {
    let rounds = probe("rounds-of-children", &[]);
    let script = format!("'{0}' && '{0}' thread", rounds.display());
    let (text, report) = run(Workload::new(["sh", "-c", &script]), &Args::default());
    assert_eq!(text, "sum 640, no faults\n".repeat(2));
    // The shell too, which becomes its last command in some shells.
    assert!(report.keeping >= 2 && report.keeping == report.programs, "{report}");
}

#[test]
fn a_malloc_of_the_program_s_own_stays() {
    let own = "void *malloc(unsigned long n) { (void)n; return 0; } int main(void) { return malloc(1) != 0; }";
    let place = tempfile::tempdir().unwrap();
    let (source, program) = (place.path().join("own.c"), place.path().join("own"));
    std::fs::write(&source, own).unwrap();
    let built = Command::new("cc").args(["-w", "-rdynamic", "-fno-builtin", "-o"]).arg(&program).arg(&source).status();
    assert!(built.unwrap().success());
    let (_, report) = run(Workload::new([&program]), &Args::default());
    assert_eq!((report.keeping, report.programs_with_own_malloc), (0, 1));
}

#[test]
fn a_static_program_is_refused() {
    let rounds = probe("rounds-static", &["-static"]);
    let refused = apply(Workload::new([&rounds]), &Args::default()).unwrap_err().to_string();
    assert!(refused.contains("statically linked") && refused.contains("mallopt(M_TRIM_THRESHOLD, -1)"), "{refused}");
}
