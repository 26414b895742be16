//! Binds the tasks of a program that loads no library: each new one as soon as the kernel tells of it.

use crate::CannotEngage;
use crate::follow::{Follower, Follows};
use std::time::Duration;

/// How often a follower looks whether it is to end.
const LOOK: Duration = Duration::from_millis(20);

/// Binds tasks to the CPUs of a plan in turn.
#[derive(Debug)]
pub struct Binder {
    plan: Vec<usize>,
    turn: usize,
    bound: u64,
}

impl Binder {
    /// Of a process that has not run yet and is bound to the plan's first CPU.
    pub fn start(pid: i32, plan: Vec<usize>) -> Result<Follower<Self>, CannotEngage> {
        Ok(Follower::of_forks(pid, LOOK, Binder { plan, turn: 0, bound: 0 })?)
    }

    /// How many tasks it bound.
    pub fn bound(&self) -> u64 {
        self.bound
    }
}

impl Follows for Binder {
    fn look(&mut self, started: &[i32]) {
        for task in started {
            self.turn += 1;
            self.bound += u64::from(bind(*task, self.plan[self.turn % self.plan.len()]));
        }
    }
}

/// A task that has ended by then needs no CPU.
fn bind(task: i32, cpu: usize) -> bool {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    rustix::process::Pid::from_raw(task).is_some_and(|task| rustix::thread::sched_setaffinity(Some(task), &set).is_ok())
}
