//! A thread beside the command: the memory of the command's process that lies in large pages, the most at once.

use crate::follow::{Follower, Follows};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// The file is read this soon after the begin, then later and later: reading it holds up the process for a moment.
const FIRST: Duration = Duration::from_millis(2);
/// Longest time from one reading to the next.
const LONGEST: Duration = Duration::from_secs(5);

/// See the module's text.
#[derive(Debug)]
pub struct Watch {
    file: PathBuf,
    most_bytes: u64,
}

impl Watch {
    /// Watches a process that has not run yet.
    pub fn start(pid: i32) -> Follower<Self> {
        let file = PathBuf::from(format!("/proc/{pid}/smaps_rollup"));
        Follower::of_growing_time(FIRST, LONGEST, Watch { file, most_bytes: 0 })
    }

    /// Most bytes in large pages at once.
    pub fn most_bytes(&self) -> u64 {
        self.most_bytes
    }
}

impl Follows for Watch {
    fn look(&mut self, _: &[i32]) {
        let bytes = fs::read_to_string(&self.file).ok().and_then(|text| large_bytes(&text));
        self.most_bytes = self.most_bytes.max(bytes.unwrap_or(0));
    }
}

/// `AnonHugePages:   65536 kB`.
fn large_bytes(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("AnonHugePages:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// When the kernel makes free blocks of 2 MiB: its word.
pub fn defrag() -> String {
    let text = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/defrag").unwrap_or_default();
    let word = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    word.map_or("unknown".to_owned(), |(word, _)| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_bytes_are_read_from_the_sum_of_a_process() {
        let text = "Rss:  70000 kB\nAnonHugePages:     65536 kB\nShmemPmdMapped:        0 kB\n";
        assert_eq!(large_bytes(text), Some(64 << 20));
        assert_eq!(large_bytes("Rss: 1 kB\n"), None);
    }
}
