//! Homes given from outside, once: no call sets another process's policy, but one moves the pages that it has by then.

use super::homes::{Named, Target};
use nearmiss_analysis::CannotEngage;
use nearmiss_workload::Tree;
use std::fs;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

const PAGE_BYTES: u64 = 4096;
/// Pages of one call.
const AT_ONCE: u64 = 4096;
/// From `linux/mempolicy.h`: pages that other processes share stay.
const MPOL_MF_MOVE: libc::c_int = 2;
/// Automatic balancing would move the pages again.
pub const BALANCING: &str = "/proc/sys/kernel/numa_balancing";

/// Homes to give.
#[derive(Clone, Debug)]
pub struct Plan {
    pub homes: Vec<(Named, Target)>,
    /// All nodes with memory.
    pub nodes: Vec<u32>,
    /// Time after the command's begin.
    pub after: Duration,
}

/// A thread that moves pages once, unless the command has ended by then.
#[derive(Debug)]
pub struct Mover {
    ended: Option<Sender<()>>,
    thread: Option<JoinHandle<u64>>,
}

impl Mover {
    /// Starts the mover of a command that begins now.
    pub fn start(pid: i32, plan: Plan) -> Self {
        let (ended, end) = channel();
        let thread = std::thread::spawn(move || move_later(pid, &plan, &end));
        Mover { ended: Some(ended), thread: Some(thread) }
    }

    /// Ends it. How many pages are where they should be.
    pub fn end(mut self) -> u64 {
        self.stop()
    }

    fn stop(&mut self) -> u64 {
        self.ended = None;
        self.thread.take().map_or(0, |thread| thread.join().unwrap_or(0))
    }
}

impl Drop for Mover {
    fn drop(&mut self) {
        self.stop();
    }
}

fn move_later(pid: i32, plan: &Plan, end: &Receiver<()>) -> u64 {
    match end.recv_timeout(plan.after) {
        Err(RecvTimeoutError::Timeout) => {
            Tree::of(pid).processes().into_iter().map(|process| move_process(process, plan)).sum()
        }
        _ => 0,
    }
}

/// The pages of one process that have moved, or were there.
pub fn move_process(pid: i32, plan: &Plan) -> u64 {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let mappings = maps.lines().filter_map(mapping);
    let chosen = mappings.filter_map(|(from, to, name)| {
        let home = plan.homes.iter().rev().find(|(named, _)| named.is(name))?;
        Some((from, to, home.1))
    });
    chosen.map(|(from, to, target)| move_mapping(pid, from, to, target, &plan.nodes)).sum()
}

/// Parses a line of `/proc/PID/maps` on the process's own pages: first address, address behind the last, name.
fn mapping(line: &str) -> Option<(u64, u64, &str)> {
    let mut words = line.splitn(6, ' ');
    let (from, to) = words.next()?.split_once('-')?;
    let private = words.next()?.ends_with('p');
    let name = words.nth(3).unwrap_or("").trim();
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some((number(from)?, number(to)?, name)).filter(|_| private)
}

fn move_mapping(pid: i32, from: u64, to: u64, target: Target, nodes: &[u32]) -> u64 {
    let starts = (from..to).step_by((AT_ONCE * PAGE_BYTES) as usize);
    starts.map(|start| move_some(pid, start, to.min(start + AT_ONCE * PAGE_BYTES), target, nodes)).sum()
}

fn move_some(pid: i32, from: u64, to: u64, target: Target, nodes: &[u32]) -> u64 {
    let pages: Vec<u64> = (from..to).step_by(PAGE_BYTES as usize).collect();
    let node = |page: &u64| match target {
        Target::Node(node) => node as i32,
        Target::Interleave => nodes[(page / PAGE_BYTES) as usize % nodes.len()] as i32,
    };
    let wanted: Vec<i32> = pages.iter().map(node).collect();
    let mut status = vec![-1i32; pages.len()];
    // SAFETY: three arrays of as many elements as given; the kernel reads the first two and writes the third.
    let done = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            pid,
            pages.len(),
            pages.as_ptr(),
            wanted.as_ptr(),
            status.as_mut_ptr(),
            MPOL_MF_MOVE,
        )
    };
    // Pages that were never touched have an error instead of a node.
    let there = status.iter().zip(&wanted).filter(|(is, wanted)| is == wanted).count() as u64;
    if done < 0 { 0 } else { there }
}

/// Returns the setting of automatic balancing, if it must be changed for as long as the command runs.
pub fn balancing_to_restore() -> Option<String> {
    fs::read_to_string(BALANCING).ok().filter(|setting| setting.trim() != "0")
}

/// Sets automatic balancing. Errors: a lack of rights, and what to do.
pub fn set_balancing(setting: &str) -> Result<(), CannotEngage> {
    fs::write(BALANCING, setting).map_err(|e| CannotEngage::system("set automatic NUMA balancing (be root)", e))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn private_mappings_are_recognised_by_their_names() {
        let line = "7f10-7f30 rw-p 00000000 00:00 0                          [heap]";
        assert_eq!(mapping(line), Some((0x7f10, 0x7f30, "[heap]")));
        assert_eq!(mapping("1000-2000 rw-p 00000000 00:00 0 "), Some((0x1000, 0x2000, "")));
        assert_eq!(mapping("1000-2000 r--p 00000000 08:01 77    /lib/a b.so"), Some((0x1000, 0x2000, "/lib/a b.so")));
        assert_eq!(mapping("1000-2000 rw-s 00000000 00:00 0 /dev/shm/x"), None);
    }

    #[test]
    fn touched_pages_are_moved_and_others_are_not() {
        let pages = 8u64;
        let mut memory = memmap2::MmapMut::map_anon((pages * PAGE_BYTES) as usize).unwrap();
        (0..5).for_each(|page| memory[page * PAGE_BYTES as usize] = 1);
        let from = memory.as_ptr() as u64;
        let own = std::process::id() as i32;
        let moved = move_mapping(own, from, from + pages * PAGE_BYTES, Target::Node(0), &[0]);
        // A kernel without nodes moves nothing.
        assert!(moved == 5 || moved == 0 && !std::path::Path::new("/sys/devices/system/node").exists(), "{moved}");
        assert_eq!(move_mapping(own, from, from + PAGE_BYTES, Target::Node(63), &[0]), 0);
    }
}
