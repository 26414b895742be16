//! The C probes of `native/preload/color/tests`, compiled once, and ways to run them.

#![allow(clippy::unwrap_used)]

use nearmiss_remedies::color::apply::{Options, Report, apply};
use nearmiss_workload::{Finished, Stdio, Workload};
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

fn build(directory: &Path, source: &str, output: &str, flags: &[&str]) {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../native/preload/color/tests");
    let status = Command::new("cc")
        .args(["-O1", "-g", "-pthread", "-Wall", "-Wextra", "-o"])
        .arg(directory.join(output))
        .arg(sources.join(source))
        .args(flags)
        .status()
        .unwrap();
    assert!(status.success(), "{source}");
}

/// The directory of the compiled probes.
pub fn directory() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("color-probes");
        std::fs::create_dir_all(&directory).unwrap();
        build(&directory, "frees.c", "libfrees.so", &["-shared", "-fPIC"]);
        for probe in ["blocks", "stacks", "stress", "early"] {
            build(&directory, &format!("{probe}.c"), probe, &[]);
        }
        build(&directory, "loader.c", "loader", &["-Wl,-rpath,$ORIGIN", "-Wl,--enable-new-dtags"]);
        build(&directory, "early.c", "static", &["-static"]);
        directory
    })
}

/// Builds one probe more, with flags.
pub fn variant(source: &str, output: &str, flags: &[&str]) -> PathBuf {
    build(directory(), source, output, flags);
    directory().join(output)
}

pub fn probe(name: &str) -> Workload {
    Workload::new([directory().join(name)])
}

pub fn default_options() -> Options {
    Options { colors: 32, line_bytes: 64, stacks: true, block_bytes: Some(128 * 1024) }
}

/// Runs a command under coloring to its end; its output and what was colored.
pub fn colored(workload: Workload, options: &Options) -> (String, Finished, Report) {
    let (workload, coloring) = apply(workload, options).unwrap();
    let (text, pid, finished) = run(workload);
    assert!(finished.status.success(), "{:?}: {text}", finished.status);
    (text, finished, coloring.report(pid).unwrap())
}

/// Longest that a probe may take, on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs a command to its end; its output and process number.
pub fn run(workload: Workload) -> (String, i32, Finished) {
    run_with(workload, |_| ())
}

/// Runs a command to its end, after `started` has had its process number; its output and process number.
pub fn run_with(workload: Workload, started: impl FnOnce(i32)) -> (String, i32, Finished) {
    let mut output = tempfile::tempfile().unwrap();
    let workload = workload.stdin(Stdio::Null).stdout(output.try_clone().unwrap());
    let suspended = workload.launch_suspended().unwrap();
    let pid = suspended.pid();
    started(pid);
    let running = suspended.resume().unwrap();
    let finished = running.wait_for(LIMIT).unwrap().unwrap_or_else(|_| panic!("{:?} hangs", workload.argv()));
    let mut text = String::new();
    output.rewind().unwrap();
    output.read_to_string(&mut text).unwrap();
    (text, pid, finished)
}
