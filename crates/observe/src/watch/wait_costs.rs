//! CPU time of a wait on this machine: one that a timer ends, and one that another thread ends.
//!
//! Two threads of the observer measure that while the target runs, so that CPUs which idle or are busy count as they are.
//! The observer is no part of what it observes.

use nearmiss_record::observed::WaitCosts;
use rustix::buffer::spare_capacity;
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd, poll};
use rustix::fd::OwnedFd;
use rustix::io::Result;
use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Waits measured of each kind.
const MOST: usize = 100;
/// Least waits measured, even if the observation ends before; they take some ten milliseconds.
const LEAST: usize = 15;
/// Time from one wait to the next: a hundred are spread over two seconds.
const PAUSE: Duration = Duration::from_millis(20);
const SLEEP: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000 };
/// Longest wait for another thread; long, as those of servers are.
const LONGEST: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };
/// Increments of the bell's count; the last one is more than all others together.
const RING: u64 = 1;
const LAST_RING: u64 = 1 << 32;

/// The measurement under way.
pub(super) struct Measuring {
    sleeper: JoinHandle<Result<Vec<u64>>>,
    woken: JoinHandle<Result<Vec<u64>>>,
    ending: Arc<AtomicBool>,
}

impl Measuring {
    /// Begins; none where this machine grants no threads or descriptors.
    pub fn start() -> Option<Self> {
        let ending = Arc::new(AtomicBool::new(false));
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).ok()?);
        let (waits_for, is_ending) = (bell.clone(), ending.clone());
        let woken = thread::Builder::new().spawn(move || costs_when_woken(&waits_for));
        let sleeper = thread::Builder::new().spawn(move || costs_of_sleeps(&bell, &is_ending));
        Some(Measuring { sleeper: sleeper.ok()?, woken: woken.ok()?, ending })
    }

    /// The medians; none where a call failed.
    pub fn finish(self) -> Option<WaitCosts> {
        self.ending.store(true, Ordering::Relaxed);
        self.sleeper.thread().unpark();
        let [slept, woken] = [self.sleeper, self.woken].map(|thread| thread.join().ok()?.ok().and_then(median));
        Some(WaitCosts { sleep_cpu_ns: slept?, woken_cpu_ns: woken? })
    }
}

/// Sleeps, and rings after each sleep, so that the other thread waits as long. Its last ring comes after any failure.
fn costs_of_sleeps(bell: &OwnedFd, ending: &AtomicBool) -> Result<Vec<u64>> {
    let mut costs = Vec::with_capacity(MOST);
    let mut measured = Ok(());
    while measured.is_ok() && costs.len() < MOST && (costs.len() < LEAST || !ending.load(Ordering::Relaxed)) {
        measured = cost_of(|| poll(&mut [], Some(&SLEEP))).and_then(|cost| {
            costs.push(cost);
            ring(bell, RING)
        });
        if !ending.load(Ordering::Relaxed) {
            thread::park_timeout(PAUSE);
        }
    }
    ring(bell, LAST_RING)?;
    measured.map(|()| costs)
}

fn ring(bell: &OwnedFd, count: u64) -> Result<()> {
    rustix::io::write(bell, &count.to_ne_bytes()).map(drop)
}

fn costs_when_woken(bell: &OwnedFd) -> Result<Vec<u64>> {
    let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&set, bell, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
    let mut costs = Vec::with_capacity(MOST);
    let mut events = Vec::with_capacity(1);
    loop {
        events.clear();
        let cost = cost_of(|| epoll::wait(&set, spare_capacity(&mut events), Some(&LONGEST)))?;
        let mut count = [0; 8];
        rustix::io::read(bell, &mut count)?;
        if u64::from_ne_bytes(count) >= LAST_RING {
            return Ok(costs);
        }
        costs.push(cost);
    }
}

/// Returns the CPU time, in nanoseconds, that this thread takes for a wait.
fn cost_of<T>(wait: impl FnOnce() -> Result<T>) -> Result<u64> {
    let before = cpu_ns();
    wait()?;
    Ok(cpu_ns().saturating_sub(before))
}

fn cpu_ns() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

fn median(mut costs: Vec<u64>) -> Option<u64> {
    costs.sort_unstable();
    costs.get(costs.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::time::Instant;

    #[test]
    fn an_observation_that_ends_at_once_has_the_costs_too() {
        let started = Instant::now();
        let costs = Measuring::start().unwrap().finish().unwrap();
        assert!(started.elapsed() >= LEAST as u32 * Duration::from_micros(500));
        // The CPU is given away for most of a wait.
        for cost in [costs.sleep_cpu_ns, costs.woken_cpu_ns] {
            assert!((100..400_000).contains(&cost), "{costs:?}");
        }
    }

    #[test]
    fn the_measurement_ends_by_itself() {
        let measuring = Measuring::start().unwrap();
        let sleeps = measuring.sleeper.join().unwrap().unwrap();
        let woken = measuring.woken.join().unwrap().unwrap();
        assert_eq!(sleeps.len(), MOST);
        // A thread that comes late finds two rings as one.
        assert!(woken.len() > MOST / 2 && woken.len() <= MOST, "{}", woken.len());
    }

    #[test]
    fn the_median_is_the_middle_one() {
        assert_eq!((median(vec![9, 1, 5]), median(vec![4, 2]), median(vec![])), (Some(5), Some(4), None));
    }
}
