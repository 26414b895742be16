//! Load beside the measurement of `host`, as a user sees it: a noisy calibration is named and not kept.

use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Processes that do nothing but work. They end with this value, and with this test however it ends.
struct Busy(Vec<Child>);

impl Busy {
    fn start(count: usize) -> Busy {
        let busy = || {
            let mut shell = Command::new("sh");
            shell.args(["-c", "while kill -0 $PPID; do :; done"]).stdin(Stdio::null()).stderr(Stdio::null());
            shell.spawn().expect("sh")
        };
        Busy((0..count).map(|_| busy()).collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn a_host_measured_beside_six_busy_processes_carries_a_caution_and_keeps_nothing() {
    if !std::fs::read_to_string("/proc/stat").is_ok_and(|stat| stat.lines().any(|l| l.starts_with("procs_running"))) {
        println!("skipped: the kernel shows nothing of other work");
        return;
    }
    let cache = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let busy = Busy::start(6);
    let mut nearmiss = Command::new(env!("CARGO_BIN_EXE_nearmiss"));
    nearmiss.args(["machine", "host", "--json"]).env("XDG_CACHE_HOME", cache.path());
    let output = nearmiss.output().expect("nearmiss runs");
    drop(busy);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() == Some(3) {
        println!("skipped: {}", stderr.trim());
        return;
    }
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    let noise = &value["machine"]["noise"];
    let caution = noise["caution"].as_str().unwrap_or_else(|| panic!("no caution: {noise}"));
    assert!(caution.starts_with("host was calibrated beside other work (others kept "), "{noise}");
    assert!(caution.ends_with("; its figures are rough and not kept, run again when it is quiet"), "{noise}");
    assert_eq!(stderr, format!("nearmiss: {caution}\n"));
    assert!(!Path::new(cache.path()).join("nearmiss/calibration.json").exists());
}
