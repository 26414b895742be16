//! A server under a load: start it, wait until it answers, run the load against it, charge it with its CPU time
//! meanwhile, stop it.

use crate::ready::Readiness;
use crate::{CpuClock, Error, Finished, Ready, Running, Status, Suspended, Tree, Workload};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Interval of the checks whether a server answers.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// A server that can take datagrams for so long, and does not listen for connections, answers.
const DATAGRAMS_ALONE: Duration = Duration::from_millis(300);
/// Time that a load, and a server that is no longer needed, may take to end after the request.
const GRACE: Duration = Duration::from_secs(2);
/// Grace period while the user waits for our end.
const SHORT_GRACE: Duration = Duration::from_millis(100);

/// Why a server could not be put under its load.
#[derive(Debug, thiserror::Error)]
pub enum ServingError {
    /// The system refused a step.
    #[error(transparent)]
    Workload(#[from] Error),
    /// Somebody else answers where the server is to answer.
    #[error("{} already answers; another process holds it: end that process, or let the server use another address", .0.address())]
    Taken(Ready),
    /// The server ended by itself.
    #[error("the server {} {when}{}", .status.in_words(), hint(*.status))]
    ServerEnded {
        /// How.
        status: Status,
        /// When that was.
        when: &'static str,
    },
    /// The server did not answer in time.
    #[error(
        "the server {} within {} (--ready-within); name where it answers with --ready HOST:PORT or --ready PATH",
        .ready.in_words(), in_seconds(*.within)
    )]
    NotReady {
        /// Condition that did not come true.
        ready: Ready,
        /// Time that was waited.
        within: Duration,
    },
    /// The load ended in failure.
    #[error("the load {}", .0.in_words())]
    LoadFailed(Status),
    /// The load took too long.
    #[error("the load took more than {} and was stopped", in_seconds(*.0))]
    LoadTookTooLong(Duration),
    /// A request to stop ended the wait for the server, or the load.
    #[error("interrupted")]
    Interrupted,
}

fn in_seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

/// Returns a likely cause where a server ended well that should have stayed.
fn hint(status: Status) -> &'static str {
    if status.success() { "; a server that puts itself in the background must be run in the foreground" } else { "" }
}

/// How to put a server under a load.
#[derive(Clone, Debug)]
pub struct Load {
    /// The load. It ends by itself.
    pub workload: Workload,
    /// Condition that shows that the server answers.
    pub ready: Ready,
    /// The server has so long until it answers.
    pub ready_within: Duration,
    /// The longest that the load may take.
    pub limit: Option<Duration>,
}

/// Why a load was stopped before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// A request to stop.
    Interrupted,
    /// The load took longer than this.
    TookTooLong(Duration),
}

/// Result of a load, and its cost to the server.
#[derive(Clone, Copy, Debug)]
pub struct Loaded {
    /// How the load ended, and its own times.
    pub load: Finished,
    /// Time that the server and all it started spent on CPUs meanwhile, in nanoseconds.
    pub server_cpu_ns: u64,
    /// Why the load did not end by itself, if it did not.
    pub cut: Option<Cut>,
}

impl Loaded {
    /// Returns the result of a load that ended well, by itself; else the error.
    pub fn whole(self) -> Result<Self, ServingError> {
        match self.cut {
            Some(Cut::Interrupted) => Err(ServingError::Interrupted),
            Some(Cut::TookTooLong(limit)) => Err(ServingError::LoadTookTooLong(limit)),
            None if !self.load.status.success() => Err(ServingError::LoadFailed(self.load.status)),
            None => Ok(self),
        }
    }
}

/// A server that runs. Dropping it kills all of its processes.
pub struct Serving {
    /// `None` once it has ended.
    server: Option<Running>,
    tree: Tree,
    clock: CpuClock,
}

impl Serving {
    /// Lets a server go; it should be a [`whole_tree`](Workload::whole_tree). Errors: the address where the load waits
    /// for it is taken.
    pub fn start(suspended: Suspended, load: &Load) -> Result<Self, ServingError> {
        if load.ready.connects() {
            return Err(ServingError::Taken(load.ready.clone()));
        }
        let (tree, clock) = (suspended.tree(), CpuClock::of(&suspended));
        Ok(Serving { server: Some(suspended.resume()?), tree, clock })
    }

    /// A server that runs already.
    pub fn of(server: Running) -> Self {
        let tree = Tree::of(server.pid());
        Serving { server: Some(server), tree, clock: CpuClock::Accounts(tree) }
    }

    /// Waits until the server answers, or `stop` is set.
    pub fn wait_until_ready(&mut self, load: &Load, stop: &AtomicBool) -> Result<(), ServingError> {
        let begun = Instant::now();
        let mut datagrams_since = None;
        loop {
            self.still_there("before it answered")?;
            let answers = match load.ready.look(self.tree) {
                Readiness::Answers => true,
                Readiness::Datagrams => datagrams_since.get_or_insert_with(Instant::now).elapsed() >= DATAGRAMS_ALONE,
                Readiness::Silent => false,
            };
            if answers {
                // Somebody else may have answered at that address.
                return self.still_there("before it answered");
            }
            if stop.load(Ordering::Relaxed) {
                return Err(ServingError::Interrupted);
            }
            if begun.elapsed() >= load.ready_within {
                return Err(ServingError::NotReady { ready: load.ready.clone(), within: load.ready_within });
            }
            std::thread::sleep(CHECK_INTERVAL);
        }
    }

    /// Runs the load to its end. `meanwhile` is called again and again, and returns the wait until the next call.
    pub fn under(
        &mut self,
        load: &Load,
        stop: &AtomicBool,
        mut meanwhile: impl FnMut() -> Duration,
    ) -> Result<Loaded, ServingError> {
        let before = self.clock.read()?;
        let mut running = load.workload.launch_suspended()?.resume()?;
        let begun = Instant::now();
        loop {
            running = match running.wait_for(meanwhile())? {
                Ok(finished) => {
                    let server_cpu_ns = self.clock.read()?.saturating_sub(before);
                    self.still_there("while the load ran")?;
                    return Ok(Loaded { load: finished, server_cpu_ns, cut: None });
                }
                Err(still) => still,
            };
            if let Err(why) = self.still_there("while the load ran") {
                running.terminate(GRACE)?;
                return Err(why);
            }
            let (cut, grace) = match load.limit.filter(|limit| begun.elapsed() >= *limit) {
                _ if stop.load(Ordering::Relaxed) => (Cut::Interrupted, SHORT_GRACE),
                Some(limit) => (Cut::TookTooLong(limit), GRACE),
                None => continue,
            };
            let server_cpu_ns = self.clock.read()?.saturating_sub(before);
            return Ok(Loaded { load: running.terminate(grace)?, server_cpu_ns, cut: Some(cut) });
        }
    }

    /// The server's processes that live now.
    pub fn processes(&self) -> Vec<i32> {
        self.tree.processes()
    }

    /// Whether children that their parents do not wait for are missing in the CPU time.
    pub fn may_miss_children(&self) -> bool {
        matches!(self.clock, CpuClock::Accounts(_))
    }

    /// Requests the server's end (SIGTERM), and kills what is left of it after `grace`. Nothing of it runs when this
    /// returns.
    pub fn stop(self, grace: Duration) -> Result<(), Error> {
        self.server.map_or(Ok(()), |server| server.terminate(grace).map(drop))
    }

    fn still_there(&mut self, when: &'static str) -> Result<(), ServingError> {
        let Some(server) = self.server.take() else { return Ok(()) };
        match server.wait_for(Duration::ZERO)? {
            Ok(finished) => Err(ServingError::ServerEnded { status: finished.status, when }),
            Err(still) => {
                self.server = Some(still);
                Ok(())
            }
        }
    }
}
