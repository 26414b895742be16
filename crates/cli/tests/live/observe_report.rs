//! Report of `nearmiss observe` on a writer and on the whole machine, line by line, and its terminal view in 80×24.

#![allow(clippy::unwrap_used)]

use crate::observing::alone;
use regex::Regex;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const NEARMISS: &str = env!("CARGO_BIN_EXE_nearmiss");

const TIME: &str = r"[\d.]+ (?:ns|µs|ms|s)";
const BYTES: &str = r"[\d.]+ (?:B|KiB|MiB|GiB)";

/// Finds each pattern in a line of its own, in this order, and at the beginning of that line.
fn assert_lines(text: &str, patterns: &[&str]) {
    let mut lines = text.lines();
    for pattern in patterns {
        let filled = pattern.replace("TIME", TIME).replace("BYTES", BYTES).replace("PERCENT", r"[\d.]+%");
        let regex = Regex::new(&format!("^{filled}")).unwrap();
        assert!(lines.any(|line| regex.is_match(line)), "no line like `{filled}`, in its place, in\n{text}");
    }
}

fn bpf() -> bool {
    match nearmiss_observe::bpf::usable() {
        Ok(()) => true,
        Err(why) => {
            println!("skipped: {why}");
            false
        }
    }
}

fn observe(directory: &Path, arguments: &[&str]) -> Output {
    let runs = directory.join("runs");
    Command::new(NEARMISS).args(["observe", "--runs", runs.to_str().unwrap()]).args(arguments).output().unwrap()
}

#[test]
fn a_writer_line_by_line() {
    let _alone = alone();
    if !bpf() {
        return;
    }
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = format!("of={}", directory.path().join("f").display());
    let out = observe(directory.path(), &["--", "dd", "if=/dev/zero", &file, "bs=1M", "count=500", "conv=fsync"]);
    let text = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{text}");
    assert_lines(
        &text,
        &[
            "500\\+0 records out",
            "observed  dd if=/dev/zero of=/",
            r"measured  TIME on \d+ CPUs?, TIME of CPU time \(PERCENT of one CPU\)",
            r"class     (?:.*: )?(CPU-busy|CPU-idle|lock-contended), margin \d+ points",
            "          ",
            r"Where time goes \((?:cpu-clock|cycles), [\d,]+ samples at 499 Hz, 0 lost",
            "    self   with  function +in",
            // The copy from user memory leads; its name differs by kernel.
            r" +PERCENT +PERCENT  \S*(?:copy|movs|clear|iov_iter|zero)\S* +\[kernel\]",
            r"  \S+ is called by \S+ PERCENT",
            "Lock waits: [\\d,]+, TIME in all, PERCENT of run time",
            "Polls: 0 calls, 0.0/s, 0.00 events a call, PERCENT of one CPU in them",
            "Block I/O: [\\d,]+ requests, BYTES",
            "Tasks: 1; [\\d,]+ switches, \\d+ migrations, TIME waiting for a CPU",
            "    on CPU runnable  waiting   in all switches  moves  task, waiting for",
            " +TIME +TIME +TIME +TIME +[\\d,]+ +\\d+  dd \\d+",
            "Notes",
            "  the instruments held BYTES of memory",
            "run       .*-observe-dd",
        ],
    );
    if text.contains("no misses") {
        assert_lines(&text, &["  no misses: "]);
        let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(joined.contains("model misses: nearmiss trace -- CMD"), "{text}");
    } else {
        assert_lines(&text, &["Where misses go", r"  \S+ has \d+% of references, \d+% of misses"]);
    }
}

/// A fresh ext4 on a loop device, unmounted when dropped.
struct Ext4 {
    directory: tempfile::TempDir,
}

impl Ext4 {
    fn new() -> Option<Ext4> {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let ext4 = Ext4 { directory };
        let line = "truncate -s 700M image && mkfs.ext4 -q image && mkdir at && mount -o loop image at";
        let out = Command::new("sh").args(["-c", line]).current_dir(ext4.directory.path()).output().unwrap();
        if !out.status.success() {
            println!("skipped: no ext4 on a loop device: {}", String::from_utf8_lossy(&out.stderr).trim());
            return None;
        }
        Some(ext4)
    }
}

impl Drop for Ext4 {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.directory.path().join("at")).stderr(Stdio::null()).status();
    }
}

/// P1's load: a sequential writer to ext4. Its form with shares of misses is tested on a fixture in `nearmiss-report`.
#[test]
fn a_sequential_writer_to_ext4_on_a_loop_device() {
    let _alone = alone();
    let Some(ext4) = Ext4::new() else { return };
    let file = format!("of={}", ext4.directory.path().join("at/file").display());
    let out = observe(
        ext4.directory.path(),
        &["--clock", "--misses", "--", "dd", "if=/dev/zero", &file, "bs=1M", "count=500"],
    );
    let text = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{text}");
    let form: &[&str] = if nearmiss_observe::perf::has_pmu() {
        &[
            "Where misses go",
            r" +PERCENT +PERCENT  \S*(?:copy|movs|iov_iter)",
            r"  \S+ has \d+% of references, \d+% of misses",
        ]
    } else {
        println!("skipped: the shares of misses, since there is no performance-monitoring unit");
        &[
            "    self   with  function",
            r" +PERCENT +PERCENT  \S*(?:copy|movs|clear|iov_iter|zero)",
            r"  \S+ is called by \S+ PERCENT",
            "  its shares of references and of misses: modelled by nearmiss trace -- CMD,",
        ]
    };
    assert_lines(&text, &["Where time goes"]);
    assert_lines(&text, form);
}

#[test]
fn the_whole_machine_line_by_line() {
    let _alone = alone();
    if !bpf() {
        return;
    }
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    // Something to see, whoever else is on the machine: it comes before all others.
    let mut busy = Command::new("nice").args(["-n", "-20", "sh", "-c", "while :; do :; done"]).spawn().unwrap();
    let out = observe(directory.path(), &["-a", "--for", "2s"]);
    busy.kill().unwrap();
    busy.wait().unwrap();
    let text = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{text}");
    let shell = format!(r" +TIME +TIME +TIME +TIME +[\d,]+ +\d+  sh {}", busy.id());
    assert_lines(
        &text,
        &[
            "observed  the whole machine",
            r"measured  2\.\d+ s on \d+ CPUs?, TIME of CPU time \([\d.]+% of one CPU\)",
            r"class     (?:.*: )?(CPU-busy|CPU-idle|lock-contended), margin \d+ points",
            r"Where time goes \((?:cpu-clock|cycles), [\d,]+ samples at 499 Hz, \d+ lost",
            r" +PERCENT +PERCENT  \S+",
            r"Lock waits: [\d,]+, TIME in all, PERCENT of run time",
            r"Polls: [\d,]+ calls, [\d,.]+/s, [\d.]+ events a call, PERCENT of one CPU in them",
            r"Block I/O: [\d,]+ requests, BYTES",
            r"Tasks: \d+; [\d,]+ switches, \d+ migrations, TIME waiting for a CPU",
            &shell,
            "Notes",
            "run       .*-observe-the-whole-machine",
        ],
    );
}

/// A terminal of 80×24 with the view in it; what it shows once `until` is there.
fn in_tmux(command: &str, until: &str) -> Option<Vec<String>> {
    if Command::new("tmux").arg("-V").stdout(Stdio::null()).status().is_err() {
        println!("skipped: no tmux (scripts/setup.sh --tests installs it)");
        return None;
    }
    let socket = format!("nearmiss-test-{}", std::process::id());
    let tmux = |arguments: &[&str]| {
        let out = Command::new("tmux").args(["-L", &socket, "-f", "/dev/null"]).args(arguments).output().unwrap();
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    tmux(&["new-session", "-d", "-x", "80", "-y", "24", command]);
    let started = Instant::now();
    let mut shown = String::new();
    while !shown.contains(until) && started.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(200));
        shown = tmux(&["capture-pane", "-p"]);
    }
    tmux(&["send-keys", "q"]);
    let left = Instant::now();
    while Command::new("tmux").args(["-L", &socket, "has-session"]).stderr(Stdio::null()).status().unwrap().success() {
        assert!(left.elapsed() < Duration::from_secs(10), "q does not leave: {shown}");
        std::thread::sleep(Duration::from_millis(100));
    }
    Some(shown.lines().map(str::to_owned).collect())
}

#[test]
fn the_terminal_view_in_80_by_24() {
    let _alone = alone();
    if !bpf() {
        return;
    }
    let command = format!("{NEARMISS} observe --top -- sh -c 'while :; do :; done'");
    let Some(shown) = in_tmux(&command, "last 1.0") else { return };
    let text = shown.join("\n");
    assert_eq!(shown.len(), 24, "{text}");
    assert!(shown.iter().all(|line| line.chars().count() <= 80), "{text}");
    assert_lines(
        &text,
        &[
            r"nearmiss observe  sh -c while :; do :; done  last 1\.\d+ s",
            r"Functions by time \(\d+ samples\)",
            r" +PERCENT  \S+",
            "Lock waits: TIME in all",
            "Polls: [\\d,]+ calls, [\\d.]+ events a call",
            "Block I/O: [\\d,]+ requests",
            "q: leave",
        ],
    );
}
