//! The class of a run, after P1: CPU-busy, CPU-idle or lock-contended, phase by phase.

use nearmiss_record::observed::{Lock, Observed, Phase};

/// A run that spends at least this share of its active time waiting for locks is lock-contended.
const LOCK_BORDER: f64 = 0.20;
/// A run that uses at least this share of the CPUs it could use is CPU-busy.
const BUSY_BORDER: f64 = 0.70;
/// A task counts among those that could use a CPU when it has at least this share of all CPU time.
const WORKER_SHARE: f64 = 0.02;

/// Classifies an observation. Empty when nothing was measured that could tell.
pub fn classify(observed: &Observed) -> Vec<Phase> {
    let wall = observed.duration_ns as f64;
    let cpu: u64 = observed.timeline.iter().map(|t| t.cpu_ns).sum();
    if wall <= 0.0 || observed.timeline.is_empty() {
        return Vec::new();
    }
    let shares = Shares::new(observed, 0, observed.duration_ns, cpu);
    vec![shares.phase(0, observed.duration_ns)]
}

/// What a stretch of time was spent on.
struct Shares {
    cpu: f64,
    lock: f64,
    io: f64,
    bound_by: String,
    workers: usize,
}

impl Shares {
    fn new(observed: &Observed, from: u64, to: u64, cpu_ns: u64) -> Self {
        let wall = (to - from) as f64;
        let cpu = cpu_ns as f64;
        let runnable: u64 = observed.tasks.iter().map(|t| t.wait_ns).sum();
        let io_wait = off(observed, "block I/O");
        let lock_wait: u64 = observed.locks.iter().filter(|l| is_lock(l)).map(|l| l.total_ns).sum();
        let most = observed.tasks.iter().map(|t| t.cpu_ns).sum::<u64>() as f64;
        let workers = observed.tasks.iter().filter(|t| t.cpu_ns as f64 >= WORKER_SHARE * most).count().max(1);
        let capacity = wall * workers.min(observed.cpus.max(1) as usize) as f64;
        let active = cpu + runnable as f64 + io_wait as f64 + lock_wait as f64;
        let share = |part: f64| if active > 0.0 { part / active } else { 0.0 };
        Shares {
            cpu: (cpu / capacity).min(1.0),
            lock: share(lock_wait as f64),
            io: share(io_wait as f64),
            bound_by: bound_by(observed),
            workers,
        }
    }

    fn phase(&self, from_ns: u64, to_ns: u64) -> Phase {
        let (class, margin, evidence) = if self.lock >= LOCK_BORDER {
            let text = format!(
                "{:.0}% of its active time went into waiting for locks (border {:.0}%)",
                self.lock * 100.0,
                LOCK_BORDER * 100.0
            );
            ("lock-contended", self.lock - LOCK_BORDER, text)
        } else if self.cpu >= BUSY_BORDER {
            let text = format!(
                "it used {:.0}% of what its {} busy task{} could use (border {:.0}%), and {:.1}% of its active time went into locks",
                self.cpu * 100.0,
                self.workers,
                if self.workers == 1 { "" } else { "s" },
                BUSY_BORDER * 100.0,
                self.lock * 100.0
            );
            ("CPU-busy", (self.cpu - BUSY_BORDER).min(LOCK_BORDER - self.lock), text)
        } else {
            let text = format!(
                "it used {:.0}% of what its busy tasks could use (border {:.0}%); the rest it waited{}",
                self.cpu * 100.0,
                BUSY_BORDER * 100.0,
                if self.bound_by.is_empty() { String::new() } else { format!(" for {}", self.bound_by) }
            );
            ("CPU-idle", (BUSY_BORDER - self.cpu).min(LOCK_BORDER - self.lock), text)
        };
        Phase {
            from_ns,
            to_ns,
            class: class.to_owned(),
            bound_by: if class == "CPU-idle" { self.bound_by.clone() } else { String::new() },
            cpu_share: self.cpu,
            lock_share: self.lock,
            io_share: self.io,
            margin_points: margin * 100.0,
            evidence,
        }
    }
}

/// Whether waiting for it is contention, rather than waiting for work to do.
fn is_lock(lock: &Lock) -> bool {
    !lock.kind.starts_with("futex") || matches!(lock.name.as_str(), "mutex" | "rwlock") || lock.kind.contains("priority")
}

fn off(observed: &Observed, reason: &str) -> u64 {
    observed.tasks.iter().flat_map(|t| &t.off).filter(|o| o.0 == reason).map(|o| o.1).sum()
}

/// What the busiest tasks wait for, in the words of the report.
fn bound_by(observed: &Observed) -> String {
    let total = observed.tasks.iter().map(|t| t.cpu_ns).sum::<u64>() as f64;
    let mut sums: Vec<(&str, u64)> = Vec::new();
    for task in observed.tasks.iter().filter(|t| t.cpu_ns as f64 >= WORKER_SHARE * total) {
        for (reason, ns, _) in &task.off {
            let word = match reason.as_str() {
                "preempted" | "kernel thread" => continue,
                "block I/O" | "fsync" | "fdatasync" | "sync" | "syncfs" | "sync_file_range" => "the device",
                "nanosleep" | "clock_nanosleep" | "pause" => "its own sleep",
                "recvfrom" | "recvmsg" | "accept" | "accept4" | "connect" | "sendto" | "sendmsg" | "epoll_wait"
                | "epoll_pwait" | "poll" | "ppoll" | "select" | "pselect6" => "the network or another process",
                "read" | "write" | "readv" | "writev" | "wait4" | "waitid" => "another process, a file or a terminal",
                "futex" => "its own threads",
                "page fault" => "memory",
                _ => "other calls",
            };
            match sums.iter_mut().find(|(w, _)| *w == word) {
                Some((_, sum)) => *sum += ns,
                None => sums.push((word, *ns)),
            }
        }
    }
    sums.into_iter().max_by_key(|(_, ns)| *ns).map(|(word, _)| word.to_owned()).unwrap_or_default()
}
