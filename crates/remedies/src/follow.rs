//! A thread beside a command: it receives each new task from the kernel, and looks round now and then.

use nearmiss_workload::{Error, Forks};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Work of a thread during one launch of a command.
pub(crate) trait Follows: Send + 'static {
    /// Looks at the tasks that were started since the last look; there may be none.
    fn look(&mut self, started: &[i32]);
}

/// A thread beside a command, which a drop ends.
#[derive(Debug)]
pub(crate) struct Follower<F: Follows> {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<F>>,
}

impl<F: Follows> Follower<F> {
    /// Follows a process that has not run yet: it looks whenever a task is started, and this often at least.
    pub(crate) fn of_forks(pid: i32, every: Duration, follows: F) -> Result<Self, Error> {
        let mut forks = Forks::of_process(pid)?;
        Ok(Self::start(follows, move || forks.wait(every)))
    }

    /// Follows without the kernel's records of forks: it looks this often.
    pub(crate) fn of_time(every: Duration, follows: F) -> Self {
        Self::start(follows, move || {
            std::thread::park_timeout(every);
            Vec::new()
        })
    }

    /// Follows without the kernel's records of forks: it looks after this time, then later and later.
    pub(crate) fn of_growing_time(first: Duration, longest: Duration, follows: F) -> Self {
        let mut every = first;
        Self::start(follows, move || {
            std::thread::park_timeout(every);
            every = (every * 3 / 2).min(longest);
            Vec::new()
        })
    }

    fn start(mut follows: F, mut wait: impl FnMut() -> Vec<i32> + Send + 'static) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&ended);
        let thread = std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                follows.look(&wait());
            }
            follows
        });
        Follower { ended, thread: Some(thread) }
    }

    /// Ends it. Returns what it was given, as it is now.
    pub(crate) fn end(mut self) -> Option<F> {
        self.stop()
    }

    fn stop(&mut self) -> Option<F> {
        self.ended.store(true, Ordering::Relaxed);
        let thread = self.thread.take()?;
        thread.thread().unpark();
        thread.join().ok()
    }
}

impl<F: Follows> Drop for Follower<F> {
    fn drop(&mut self) {
        self.stop();
    }
}
