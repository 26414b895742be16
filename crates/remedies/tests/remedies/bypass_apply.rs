//! Copies of the sites that were named go past the caches, all others are the C library's, and every byte lies where
//! memcpy would have put it. Copies are counted exactly.
#![cfg(target_arch = "x86_64")]
#![allow(clippy::unwrap_used)]

use crate::probes;
use nearmiss_remedies::bypass::copies::{Options, Report, apply};
use nearmiss_workload::{Finished, Status, Stdio, Workload};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const BYTES: u64 = 10_000;
/// Copies of `calls.c` that no test names: 30 of `chosen`, 1 of `other`, 2 of `filling`, 18 of `overlapping`, 1 by a jump,
/// 3 of `shared`, 3 of the library that is opened later.
const ALL: u64 = 30 + 1 + 2 + 18 + 1 + 3 + 3;

fn build(source: &str, output: &str, flags: &[&str]) -> PathBuf {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../native/preload/bypass/tests");
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bypass-probes");
    std::fs::create_dir_all(&directory).unwrap();
    let output = directory.join(output);
    let mut command = Command::new("cc");
    command.args(["-O2", "-g", "-Wall", "-Wextra", "-o"]).arg(&output).arg(sources.join(source)).args(flags);
    assert!(command.status().unwrap().success(), "{source}");
    output
}

/// The program of calls and the library that it opens.
fn probes() -> &'static (PathBuf, PathBuf) {
    static BUILT: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();
    BUILT.get_or_init(|| (build("calls.c", "calls", &[]), build("late.c", "late.so", &["-shared", "-fPIC"])))
}

fn options(sites: &[&str]) -> Options {
    Options { sites: sites.iter().map(|site| site.parse().unwrap()).collect(), ..Options::default() }
}

fn run(workload: Workload, options: &Options) -> (String, Finished, Report) {
    let (workload, engagement) = apply(workload, options).unwrap();
    let (text, pid, finished) = probes::run(workload.stderr(Stdio::Null));
    (text, finished, engagement.report(pid).unwrap())
}

/// Runs the program of calls, and checks all of its results. Returns the report of the copies.
fn calls(sites: &[&str]) -> Report {
    let (program, library) = probes();
    let (text, finished, report) = run(Workload::new([program, library]), &options(sites));
    assert!(finished.status.success() && text == "good\n", "{sites:?}: {text}");
    report
}

/// Calls by site.
fn counts(report: &Report) -> Vec<u64> {
    report.sites.iter().map(|site| site.calls).collect()
}

#[test]
fn copies_write_what_memcpy_would_have_written() {
    for width in [16, 32, 64] {
        let flags = ["-I", concat!(env!("CARGO_MANIFEST_DIR"), "/../../native/include")];
        let program = build("streams.c", &format!("streams-{width}"), &flags);
        let ran = Command::new(program).arg(width.to_string()).output().unwrap();
        let text = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success() && text.starts_with("width "), "{width}: {text}");
        if text != format!("width {width}\n") {
            println!("skipped: this CPU has no stores of {width} bytes; {}", text.trim());
        }
    }
}

#[test]
fn without_a_site_nothing_changes_and_large_copies_are_counted() {
    let report = calls(&[]);
    assert_eq!((report.calls(), report.left, report.left_bytes), (0, ALL, ALL * BYTES));
    assert!(report.to_string().contains("changed nothing, because no --site was named; 58 copies"), "{report}");
}

#[test]
fn a_function_s_copies_are_chosen_in_all_their_forms() {
    let report = calls(&["chosen", "filling", "nobody"]);
    assert_eq!((counts(&report), report.left), (vec![30, 2, 0], ALL - 32));
    assert_eq!(report.sites[0].bytes, 30 * BYTES);
    // The compiler may have split a function; each part is a place.
    assert_eq!(report.sites.iter().map(|site| site.places > 0).collect::<Vec<_>>(), [true, true, false]);
    assert!(report.to_string().contains("nobody: 0 copies of 0 B (no program"), "{report}");
}

#[test]
fn overlapping_copies_go_through_the_caches() {
    let report = calls(&["overlapping"]);
    assert_eq!((counts(&report), report.overlapping, report.calls()), (vec![18], 18, 0));
}

#[test]
fn a_jump_shows_the_caller_s_caller() {
    assert_eq!(counts(&calls(&["jumping", "calls_the_jumping"])), [0, 1]);
}

#[test]
fn a_caller_distinguishes_the_copies_of_one_call() {
    assert_eq!(counts(&calls(&["shared@first", "shared@second", "shared@other"])), [2, 1, 0]);
    assert_eq!(counts(&calls(&["shared@second", "shared"])), [1, 2], "the first site that fits");
}

#[test]
fn a_wrong_caller_is_refused_with_the_right_ones() {
    let (program, _) = probes();
    let report = calls(&["shared@other", "shared@first", "nobody@first"]);
    let callers = |site: usize| report.sites[site].other_callers.join(" ");
    assert_eq!([callers(0), callers(1), callers(2)], ["first second", "second", ""]);
    let text = report.to_string();
    let hint =
        "shared@other: 0 copies of 0 B (no copy came by this caller; callers seen: first, second); shared@first: 2";
    assert!(text.contains(hint) && text.contains("nobody@first: 0 copies of 0 B (no program that loaded"), "{text}");
    // The output for a program without names is a site that can be typed, and is the right one.
    let stripped = program.with_file_name("stripped");
    assert!(Command::new("strip").arg("-o").arg(&stripped).arg(program).status().unwrap().success());
    let copy = call_in(program, "shared");
    let of = |site: &str| run(Workload::new([stripped.as_os_str()]), &options(&[site])).2;
    let wrong = of(&format!("stripped+{copy:#x}@nobody"));
    let seen = wrong.sites[0].other_callers.clone();
    assert_eq!((seen.len(), wrong.calls()), (3, 0), "{wrong}");
    let right: u64 = seen.iter().map(|caller| of(&format!("stripped+{copy:#x}@{caller}")).calls()).sum();
    assert_eq!(right, 3, "{seen:?}");
}

/// The library is in place in the shell alone.
#[test]
fn a_static_program_behind_a_shell_is_hinted_at() {
    let flags = ["-static", "-I", concat!(env!("CARGO_MANIFEST_DIR"), "/../../native/include")];
    let program = build("streams.c", "streams-static", &flags);
    let script = format!("{} 16 > /dev/null; true", program.display());
    let (_, _, report) = run(Workload::new(["sh", "-c", &script]), &options(&["chosen"]));
    assert!(report.to_string().contains("a static program never loads it"), "{report}");
    let refused = apply(Workload::new([program]), &options(&["chosen"])).map(drop).map_err(|error| error.to_string());
    assert!(refused.is_err_and(|why| why.contains("it is statically linked and loads no library")));
}

#[test]
fn a_library_that_is_opened_later_is_known_by_function_and_by_address() {
    let (program, library) = probes();
    assert_eq!(counts(&calls(&["late_copy"])), [3]);
    let (late, other) = (call_in(library, "late_copy"), call_in(program, "other"));
    let report =
        calls(&[&format!("late.so+{late:#x}"), &format!("calls+{other:#x}"), &format!("calls+{:#x}", other + 1)]);
    assert_eq!(counts(&report), [3, 1, 0]);
}

/// Address of the first call in a function, as objdump has it.
fn call_in(file: &Path, function: &str) -> u64 {
    let shown = Command::new("objdump").arg("-d").arg(format!("--disassemble={function}")).arg(file).output().unwrap();
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    let line = text.lines().find(|line| line.contains("call ") && line.contains("memcpy")).unwrap();
    u64::from_str_radix(line.trim().split(':').next().unwrap(), 16).unwrap()
}

#[test]
fn too_much_for_its_room_still_ends_the_program() {
    let (program, _) = probes();
    let workload = Workload::new([program.as_os_str(), "overflow".as_ref()]);
    let (_, finished, report) = run(workload, &options(&["main"]));
    assert_eq!((finished.status, report.calls()), (Status::Signaled(libc::SIGABRT), 0));
}

#[test]
fn small_copies_are_left_as_they_are() {
    let (program, library) = probes();
    let larger = Options { least_bytes: BYTES + 1, ..options(&["chosen"]) };
    let (_, _, report) = run(Workload::new([program, library]), &larger);
    assert_eq!((counts(&report), report.left), (vec![0], 0));
}
