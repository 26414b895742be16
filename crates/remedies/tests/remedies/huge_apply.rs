//! Memory that the program allocates lies in large pages, all of it or that of one call, and the kernel's word is
//! counted; where the kernel gives none, the remedy is refused.
#![allow(clippy::unwrap_used)]

use crate::probes::run_with;
use clap::{Args as _, FromArgMatches as _};
use nearmiss_analysis::Engagement;
use nearmiss_remedies::huge::apply::{Args, Report, apply};
use nearmiss_workload::{LargePages, Workload};
use std::path::{Path, PathBuf};
use std::process::Command;

const WAYS: [&str; 7] = ["first", "malloc", "calloc", "realloc", "mmap", "zeros", "heap"];

/// Compiles the probe under a name of its own.
fn probe(name: &str, flags: &[&str]) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("huge-probes");
    std::fs::create_dir_all(&directory).unwrap();
    let output = directory.join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../native/preload/huge/tests/large.c");
    let mut command = Command::new("cc");
    command.args(["-O1", "-g", "-Wall", "-Wextra", "-o"]).arg(&output).arg(source).args(flags);
    assert!(command.status().unwrap().success(), "{name}");
    output
}

fn args(words: &[&str]) -> Args {
    let command = Args::augment_args(clap::Command::new("huge"));
    Args::from_arg_matches(&command.get_matches_from([&["huge"], words].concat())).unwrap()
}

/// Returns the command's output, and the report on it.
fn run(workload: Workload, args: &Args) -> (String, Report) {
    let (workload, mut around) = apply(workload, args).unwrap();
    let (text, pid, finished) = run_with(workload, |pid| around.started(pid).unwrap());
    assert!(finished.status.success(), "{text}{:?}", finished.status);
    (text, around.report(pid).unwrap())
}

/// Whether there is something to test: programs get large pages where they request them, and only there.
fn gives_on_request() -> bool {
    let setting = LargePages::here();
    if setting != Some(LargePages::Madvise) {
        eprintln!("skipped: {} is not `madvise`", LargePages::FILE);
    }
    setting == Some(LargePages::Madvise)
}

fn lines(large: impl Fn(&str) -> bool) -> String {
    WAYS.map(|way| format!("{way} {}\n", if large(way) { "large" } else { "small" })).concat()
}

#[test]
fn every_way_to_allocate_gets_large_pages_and_they_are_counted() {
    if !gives_on_request() {
        return;
    }
    let probe = probe("large", &[]);
    for words in [vec![probe.as_os_str()], vec![probe.as_os_str(), "early".as_ref()]] {
        let (text, report) = run(Workload::new(words), &args(&[]));
        assert_eq!(text, lines(|_| true));
        // Seven times 16 MiB, but for what is not aligned.
        assert!((7 * 5..=7 * 8 + 2).contains(&report.large_pages()), "{report}");
        assert_eq!((report.refused, report.programs, report.old_libc), (0, 1, 0));
        assert!(report.requested >= 6, "{report}");
    }
}

#[test]
fn a_site_gets_large_pages_alone() {
    if !gives_on_request() {
        return;
    }
    let probe = probe("large-site", &[]);
    let site = Command::new(&probe).arg("where").output().unwrap().stdout;
    let site = String::from_utf8(site).unwrap();
    let (text, report) = run(Workload::new([&probe]), &args(&["--site", site.trim()]));
    assert_eq!(text, lines(|way| way == "first"));
    assert_eq!((report.requested, report.refused), (1, 0));
    assert!((7..=8).contains(&report.large_pages()), "{report}");
    let (text, report) = run(Workload::new([&probe]), &args(&["--site", "absent+0x1"]));
    assert_eq!((text, report.requested, report.large_pages()), (lines(|_| false), 0, 0));
    assert!(report.to_string().contains("no large page was seen"), "{report}");
}

#[test]
fn a_static_program_is_refused() {
    if !gives_on_request() {
        return;
    }
    let probe = probe("large-static", &["-static"]);
    let why = apply(Workload::new([probe]), &args(&[])).err().unwrap().to_string();
    assert!(why.contains("or call madvise(MADV_HUGEPAGE) in the program"), "{why}");
}
