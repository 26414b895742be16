//! `nearmiss trace` of commands that turn on their guest: the report shows it, and the next trace is not affected.

use crate::guest_slots::{self, for_a_guest};
use nearmiss_tap::guest::KernelImage;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A directory with runs, a cache of its own and `native/agent/tests/port.c`, built.
struct HostileGuest(TempDir, #[allow(dead_code, reason = "held while the guest runs")] guest_slots::GuestSlot);

/// `None`, and one line with the reason, where this machine cannot.
fn place() -> Option<HostileGuest> {
    let guest = for_a_guest()?;
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can turn on the agent");
        return None;
    }
    let place = HostileGuest(tempfile::tempdir().expect("a temporary directory"), guest);
    let native = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../native");
    let built = Command::new("cc")
        .args(["-std=gnu11", "-O1", "-I"])
        .args([&native.join("include"), Path::new("-o"), &place.0.path().join("port")])
        .arg(native.join("agent/tests/port.c"))
        .status();
    if !built.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no C compiler");
        return None;
    }
    let kernel = KernelImage::newest().expect("a kernel");
    fs::create_dir_all(place.cache()).expect("a cache");
    for file in ["vmlinuz", "vmlinux", "vmlinux.sum", "overlay.ko"] {
        if kernel.directory().join(file).exists() {
            fs::copy(kernel.directory().join(file), place.cache().join(file)).expect("a copy");
        }
    }
    // The kernel is the same as elsewhere, so saved guests are shared.
    let saved = nearmiss_tap::guest::saved_guests();
    fs::create_dir_all(&saved).expect("a folder of saved guests");
    std::os::unix::fs::symlink(saved, place.0.path().join("cache/nearmiss/guests")).expect("a link");
    Some(place)
}

impl HostileGuest {
    fn cache(&self) -> PathBuf {
        self.0.path().join("cache/nearmiss/kernel/6.12.0-test")
    }

    /// On a machine with fixed figures, since a test looks for a function of the kernel among the heaviest ones.
    fn trace(&self, options: &[&str], command: &[&str]) -> (Option<i32>, String) {
        let output: Output = Command::new(env!("CARGO_BIN_EXE_nearmiss"))
            .current_dir(self.0.path())
            .env("XDG_CACHE_HOME", self.0.path().join("cache"))
            .args(["trace", "--timeout", "5m", "--no-trace", "--no-curve"])
            .args(["-m", "zen3-milan", "--cpus", "1"])
            .args(options)
            .arg("--")
            .args(command)
            .output()
            .expect("nearmiss runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// A text of a report without its breaks of lines.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn forged_symbols_cut_their_own_run_and_no_other() {
    let Some(place) = place() else { return };
    let options = ["--memory", "1GiB"];
    let (status, stderr) = place.trace(&options, &["./port", "files"]);
    assert_eq!(status, Some(125), "{stderr}");
    let why = "cut: a program in the guest took the agent's channel, which only root can, and sent symbols or types of \
               the kernel without a request";
    assert!(flat(&stderr).contains(why), "{stderr}");
    let (status, stderr) = place.trace(&options, &["true"]);
    assert_eq!(status, Some(0), "{stderr}");
    let of_kernel = stderr.lines().filter(|line| line.contains("[kernel]")).count();
    assert!(of_kernel > 3 && stderr.contains("clear_page"), "{stderr}");
    // A file left by an attack on an earlier nearmiss, or by a full disk, is no obstacle.
    for file in ["btf", "kallsyms", "facts.json", "vmlinux"] {
        fs::write(place.cache().join(file), "0000 T forged\n").expect("a damaged file");
    }
    let (status, stderr) = place.trace(&options, &["true"]);
    assert_eq!(status, Some(0), "{stderr}");
    assert!(stderr.contains("clear_page") && !stderr.contains("forged"), "{stderr}");
}

#[test]
fn a_command_that_closes_the_window_is_named_in_the_head() {
    let Some(place) = place() else { return };
    let (status, stderr) = place.trace(&["--memory", "1GiB"], &["./port", "window"]);
    assert_eq!(status, Some(0), "{stderr}");
    let stderr = flat(&stderr);
    assert!(stderr.contains("; exit status 0; cut: the command closed the window itself (process "), "{stderr}");
    let (status, stderr) = place.trace(&["--memory", "1GiB", "-q"], &["./port", "window"]);
    assert_eq!(status, Some(0), "{stderr}");
    assert!(stderr.starts_with("nearmiss: the command closed the window itself (process "), "{stderr}");
}

#[test]
fn a_halted_guest_ends_the_trace() {
    let Some(place) = place() else { return };
    let (status, stderr) = place.trace(&["--memory", "1GiB"], &["./port", "halt"]);
    assert_eq!(status, Some(125), "{stderr}");
    assert!(flat(&stderr).contains("cut: the command halted the guest"), "{stderr}");
}

#[test]
fn a_command_killed_for_memory_is_reported_with_the_option_that_helps() {
    let Some(place) = place() else { return };
    let options = ["--memory", "256MiB", "--only", "user"];
    let (status, stderr) = place.trace(&options, &["tail", "/dev/zero"]);
    assert_eq!(status, Some(128 + 9), "{stderr}");
    let why = "killed by signal 9; the guest ran out of memory and killed a process: give it more with --memory";
    assert!(flat(&stderr).contains(why), "{stderr}");
    let (status, stderr) = place.trace(&[&options[..], &["-q"]].concat(), &["tail", "/dev/zero"]);
    assert_eq!(status, Some(128 + 9), "{stderr}");
    assert!(stderr.starts_with("nearmiss: the guest ran out of memory and killed a process"), "{stderr}");
}
