//! Number of descriptors in an epoll set: its calls lack it, the kernel's description of the descriptor has it.

use super::layout::{POLL_CALLS, PollStat};
use super::poll_rows;
use aya::Ebpf;
use std::collections::HashMap;
use std::fs;

/// The sets that were looked at.
#[derive(Default)]
pub struct Sets {
    sizes: HashMap<(u32, u32), u64>,
}

impl Sets {
    /// Looks at the set of each thread that waits on one.
    pub fn look(&mut self, ebpf: &Ebpf) {
        let Ok(stats) = poll_rows::in_use(ebpf) else { return };
        for stat in stats.iter().filter(|stat| is_epoll(stat)) {
            if let Some(size) = size(stat.tgid, stat.set) {
                self.sizes.insert((stat.tid, stat.kind), size);
            }
        }
    }

    /// Descriptors in the set of a thread's last call that was looked at; zero where none was.
    pub fn of(&self, stat: &PollStat) -> u64 {
        self.sizes.get(&(stat.tid, stat.kind)).copied().unwrap_or(0)
    }
}

fn is_epoll(stat: &PollStat) -> bool {
    POLL_CALLS.get(stat.kind as usize).is_some_and(|name| name.starts_with("epoll"))
}

fn size(process: u32, descriptor: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/fdinfo/{descriptor}")).ok()?;
    let size = text.lines().filter(|line| line.starts_with("tfd:")).count() as u64;
    (size > 0).then_some(size)
}
