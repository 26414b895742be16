//! `nearmiss trace` of commands that turn on their guest: the report shows it, and the next trace is not affected.

use crate::places::{self, for_a_guest};
use nearmiss_tap::guest::KernelImage;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A directory with runs, a cache of its own and `native/agent/tests/port.c`, built.
struct Place(TempDir, #[allow(dead_code, reason = "held while the guest runs")] places::Place);

/// `None`, and one line with the reason, where this machine cannot.
fn place() -> Option<Place> {
    let guest = for_a_guest()?;
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can turn on the agent");
        return None;
    }
    let place = Place(tempfile::tempdir().expect("a temporary directory"), guest);
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
    Some(place)
}

impl Place {
    fn cache(&self) -> PathBuf {
        self.0.path().join("cache/nearmiss/kernel/6.12.0-test")
    }

    fn trace(&self, options: &[&str], command: &[&str]) -> (Option<i32>, String) {
        let output: Output = Command::new(env!("CARGO_BIN_EXE_nearmiss"))
            .current_dir(self.0.path())
            .env("XDG_CACHE_HOME", self.0.path().join("cache"))
            .args(["trace", "--timeout", "5m", "--no-trace", "--no-curve"])
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
    // A machine with fixed figures, since the test looks for a function of the kernel among the heaviest ones.
    let options = ["--memory", "1GiB", "-m", "zen3-milan"];
    let (status, said) = place.trace(&options, &["./port", "files"]);
    assert_eq!(status, Some(125), "{said}");
    let why = "cut: a program in the guest took the agent's channel, which only root can, and sent symbols or types of \
               the kernel, which nobody asked for";
    assert!(flat(&said).contains(why), "{said}");
    let (status, said) = place.trace(&options, &["true"]);
    assert_eq!(status, Some(0), "{said}");
    let of_kernel = said.lines().filter(|line| line.contains("[kernel]")).count();
    assert!(of_kernel > 3 && said.contains("clear_page"), "{said}");
    // A file left by an attack on an earlier nearmiss, or by a full disk, is no obstacle.
    for file in ["btf", "kallsyms", "facts.json", "vmlinux"] {
        fs::write(place.cache().join(file), "0000 T forged\n").expect("a damaged file");
    }
    let (status, said) = place.trace(&options, &["true"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("clear_page") && !said.contains("forged"), "{said}");
}

#[test]
fn a_command_that_closes_the_window_is_said_in_the_head() {
    let Some(place) = place() else { return };
    let (status, said) = place.trace(&["--memory", "1GiB"], &["./port", "window"]);
    assert_eq!(status, Some(0), "{said}");
    let said = flat(&said);
    assert!(said.contains("; exit status 0; cut: the command closed the window itself (process "), "{said}");
    let (status, said) = place.trace(&["--memory", "1GiB", "-q"], &["./port", "window"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.starts_with("nearmiss: the command closed the window itself (process "), "{said}");
}

#[test]
fn a_halted_guest_ends_the_trace() {
    let Some(place) = place() else { return };
    let (status, said) = place.trace(&["--memory", "1GiB"], &["./port", "halt"]);
    assert_eq!(status, Some(125), "{said}");
    assert!(flat(&said).contains("cut: the command halted the guest"), "{said}");
}

#[test]
fn a_command_killed_for_memory_is_told_so_with_the_option_that_helps() {
    let Some(place) = place() else { return };
    let options = ["--memory", "256MiB", "--only", "user"];
    let (status, said) = place.trace(&options, &["tail", "/dev/zero"]);
    assert_eq!(status, Some(128 + 9), "{said}");
    let why = "killed by signal 9; the guest ran out of memory and killed a process: give it more with --memory";
    assert!(flat(&said).contains(why), "{said}");
    let (status, said) = place.trace(&[&options[..], &["-q"]].concat(), &["tail", "/dev/zero"]);
    assert_eq!(status, Some(128 + 9), "{said}");
    assert!(said.starts_with("nearmiss: the guest ran out of memory and killed a process"), "{said}");
}
