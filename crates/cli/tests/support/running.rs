//! Processes that run while nearmiss takes snapshots of them.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// A program that computes until it is dropped.
pub struct Running(pub Child);

impl Running {
    /// Starts it in a session of its own with no file but its three streams, its output thrown away. In a container the
    /// tests' session and their other files may come from outside, and CRIU refuses both.
    pub fn start(words: &[&str]) -> Self {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // SAFETY: between fork and exec only two system calls are made.
        unsafe {
            command.pre_exec(|| {
                libc::setsid();
                libc::close_range(3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC as libc::c_int);
                Ok(())
            })
        };
        Running(command.spawn().expect("it starts"))
    }

    /// Returns the process's number.
    pub fn pid(&self) -> String {
        self.0.id().to_string()
    }

    /// States and tracers of its threads that do not simply run or wait.
    pub fn harmed(&self) -> Vec<String> {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.pid())).expect("it lives").flatten();
        let status = threads.map(|thread| std::fs::read_to_string(thread.path().join("status")).unwrap_or_default());
        let lines = status.flat_map(|text| {
            let wanted = |line: &&str| line.starts_with("State:") || line.starts_with("TracerPid:");
            text.lines().filter(wanted).map(str::to_owned).collect::<Vec<_>>()
        });
        let fine =
            |line: &String| ["State:\tR", "State:\tS", "TracerPid:\t0"].iter().any(|fine| line.starts_with(fine));
        lines.filter(|line| !fine(line)).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A process that has ended already needs no end.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns whether snapshots can be taken here; if not, one line is printed with the reason.
pub fn with_criu() -> bool {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: a snapshot of a running process needs root");
        return false;
    }
    match nearmiss_snapshot::Criu::fitting() {
        Ok(_) => true,
        Err(why) => {
            println!("skipped: {why}");
            false
        }
    }
}
