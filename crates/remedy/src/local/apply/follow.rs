//! Binds the tasks of a program that loads no library: each new one as soon as the kernel tells of it.

use crate::CannotEngage;
use nearmiss_workload::Forks;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often a follower looks whether it is to end.
const LOOK: Duration = Duration::from_millis(20);

/// A thread that binds, while one launch of the command lasts.
#[derive(Debug)]
pub struct Follower {
    ended: Arc<AtomicBool>,
    bound: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Follower {
    /// Of a process that has not run yet and is bound to the plan's first CPU.
    pub fn start(pid: i32, plan: Vec<usize>) -> Result<Self, CannotEngage> {
        let mut forks = Forks::of_process(pid)?;
        let (ended, bound) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stop, count) = (Arc::clone(&ended), Arc::clone(&bound));
        let thread = std::thread::spawn(move || {
            let mut turn = 0usize;
            while !stop.load(Ordering::Relaxed) {
                for task in forks.wait(LOOK) {
                    turn += 1;
                    count.fetch_add(u64::from(bind(task, plan[turn % plan.len()])), Ordering::Relaxed);
                }
            }
        });
        Ok(Follower { ended, bound, thread: Some(thread) })
    }

    /// Ends it. How many tasks it bound.
    pub fn end(mut self) -> u64 {
        self.stop();
        self.bound.load(Ordering::Relaxed)
    }

    fn stop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It cannot panic.
            drop(thread.join());
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A task that has ended by then needs no CPU.
fn bind(task: i32, cpu: usize) -> bool {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    rustix::process::Pid::from_raw(task).is_some_and(|task| rustix::thread::sched_setaffinity(Some(task), &set).is_ok())
}
