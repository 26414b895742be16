//! Small blocks get lines of their own and every promise of malloc is kept; what was moved is counted exactly.
#![allow(clippy::unwrap_used)]

use crate::probes;
use nearmiss_remedies::apart::apply::{Options, Report, apply};
use nearmiss_workload::Workload;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Compiles a probe of the preloaded libraries' tests into a directory of this process, under a name of this call: while
/// one test runs a file, another one cannot write it.
fn probe(source: &str, flags: &[&str]) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("apart-probes");
    std::fs::create_dir_all(&directory).unwrap();
    static BUILT: AtomicU32 = AtomicU32::new(0);
    let output = directory.join(format!("{}-{}", BUILT.fetch_add(1, Ordering::Relaxed), source.replace('/', "-")));
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../native/preload").join(source);
    let mut command = Command::new("cc");
    command.args(["-O1", "-g", "-pthread", "-Wall", "-Wextra", "-o"]).arg(&output).arg(from).args(flags);
    assert!(command.status().unwrap().success(), "{source}");
    output
}

fn run(workload: Workload, options: &Options) -> (String, Report) {
    let (workload, engagement) = apply(workload, options).unwrap();
    let (text, pid, finished) = probes::run(workload);
    assert!(finished.status.success(), "{:?}", finished.status);
    (text, engagement.report(pid).unwrap())
}

fn only_24() -> Options {
    Options { line_bytes: 64, sizes: (24, 24) }
}

#[test]
fn blocks_of_the_chosen_sizes_lie_alone_and_others_stay() {
    let small = probe("apart/tests/small.c", &[]);
    let first_only = || Workload::new([small.as_os_str(), "first".as_ref()]);
    let (text, report) = run(first_only(), &only_24());
    assert_eq!(text, "alone 200\n");
    assert_eq!((report.moved, report.added_bytes, report.left), (200, 200 * 40, 0));
    assert_eq!((report.programs, report.programs_with_own_malloc), (1, 0));
    let (text, report) = run(first_only(), &Options { sizes: (25, 4096), ..only_24() });
    assert_ne!(text, "alone 200\n");
    assert!(report.moved < 10, "{report}");
}

#[test]
fn every_promise_of_malloc_is_kept_in_all_threads() {
    let small = probe("apart/tests/small.c", &[]);
    let (_, report) = run(Workload::new([small]), &Options { line_bytes: 64, sizes: (1, 200) });
    // Four threads of 20,000 sizes from 1 to 300 bytes; what has its lines for itself and fits stays there.
    assert!(report.moved > 10_000, "{report}");
    assert!(report.to_string().contains("blocks of 1 to 200 bytes on lines of their own"), "{report}");
}

#[test]
fn an_allocator_of_the_program_s_own_is_reported() {
    let own = probe("color/tests/own_malloc.c", &["-rdynamic"]);
    let (_, report) = run(Workload::new([own]), &only_24());
    assert_eq!((report.programs, report.programs_with_own_malloc, report.moved), (1, 1, 0));
    assert!(report.to_string().contains("bring their own malloc"));
}

#[test]
fn allocators_that_are_called_early_and_programs_at_a_fixed_address_are_survived() {
    for (source, flags) in [("color/tests/early.c", &[][..]), ("color/tests/fixed.c", &["-no-pie", "-fno-pie"])] {
        let (_, report) = run(Workload::new([probe(source, flags)]), &Options { sizes: (1, 128), ..only_24() });
        assert_eq!((report.programs, report.programs_with_own_malloc), (1, 0), "{source}");
    }
}
