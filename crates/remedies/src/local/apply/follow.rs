//! Binds the tasks of programs that load no library: each new one as soon as the kernel announces it.

use super::libraries::REFUSALS;
use crate::follow::{Follower, Follows};
use crate::preload::loads_libraries;
use nearmiss_analysis::CannotEngage;
use std::path::PathBuf;
use std::time::Duration;

/// How often a follower looks whether it is to end.
const LOOK: Duration = Duration::from_millis(20);

/// Binds tasks to the CPUs of a plan in turn.
#[derive(Debug)]
pub struct Binder {
    plan: Vec<usize>,
    /// The library that binds the tasks of programs that have loaded it; none: no program does.
    library: Option<&'static str>,
    turn: usize,
    bound: u64,
}

impl Binder {
    /// Starts the binder of a process that has not run yet and is bound to the plan's first CPU.
    pub fn start(pid: i32, plan: Vec<usize>, library: Option<&'static str>) -> Result<Follower<Self>, CannotEngage> {
        Ok(Follower::of_forks(pid, LOOK, Binder { plan, library, turn: 0, bound: 0 })?)
    }

    /// Whether the library binds this task: its program has loaded it, or the one that it was forked from, or the
    /// program is just being executed and will load it. A task that is gone counts as unknown, and needs no CPU.
    fn is_the_library_s(&self, task: i32) -> bool {
        let Some(library) = self.library else { return false };
        let maps = std::fs::read_to_string(format!("/proc/{task}/maps")).unwrap_or_default();
        let program = PathBuf::from(format!("/proc/{task}/exe"));
        maps.lines().any(|line| line.ends_with(library)) || loads_libraries(&program, &REFUSALS).unwrap_or(true)
    }

    /// How many tasks it bound.
    pub fn bound(&self) -> u64 {
        self.bound
    }
}

impl Follows for Binder {
    fn look(&mut self, started: &[i32]) {
        for task in started {
            if self.is_the_library_s(*task) {
                continue;
            }
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
