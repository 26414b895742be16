//! The class of a run, after P1: CPU-busy, CPU-idle or lock-contended, phase by phase.

use super::phases::split;
use nearmiss_record::observed::{LEAST_CLASSIFIED_NS, Observed, Phase, Task, Tick};
use nearmiss_record::words::fixed_percent;

/// A run that spends at least this share of its active time waiting for locks is lock-contended.
const LOCK_BORDER: f64 = 0.20;
/// And at least this share of the time someone waits for one: where next to nothing happens, a share of it means nothing.
const LOCK_FLOOR: f64 = 0.05;
/// A run that needs a CPU at least this share of the time it could need one is CPU-busy.
const BUSY_BORDER: f64 = 0.70;
/// Least share of the time for which delays of woken tasks are reported.
const WORTH_REPORTING: f64 = 0.10;
/// A task counts among those that could use a CPU when it has at least this share of all CPU time.
const WORKER_SHARE: f64 = 0.02;

/// Classifies an observation, a phase a row. Empty when nothing decisive was measured, or for too short a time.
pub fn classify(observed: &Observed) -> Vec<Phase> {
    if observed.duration_ns < LEAST_CLASSIFIED_NS || observed.timeline.is_empty() {
        return Vec::new();
    }
    let run = Run::of(observed);
    let signals: Vec<[f64; 3]> = observed.timeline.iter().map(|tick| run.signals(tick)).collect();
    let mut phases: Vec<Phase> = Vec::new();
    for range in split(&signals) {
        let ticks = observed.timeline.get(range).unwrap_or(&[]);
        let phase = run.phase(ticks);
        match phases.last_mut() {
            Some(last) if last.class == phase.class => {
                let together: Vec<Tick> = observed
                    .timeline
                    .iter()
                    .filter(|t| t.at_ns > last.from_ns && t.at_ns <= phase.to_ns)
                    .copied()
                    .collect();
                *last = run.phase(&together);
            }
            _ => phases.push(phase),
        }
    }
    phases
}

/// Figures of the whole run for each of its steps.
struct Run {
    cpus: f64,
    workers: usize,
    /// Time wanting a CPU for each nanosecond that had one, where switches were not watched.
    wanted_per_used: Option<f64>,
    /// Share of futex waits that were contention.
    futex_contention: f64,
    bound_by: String,
}

impl Run {
    fn of(observed: &Observed) -> Self {
        let tasks = &observed.tasks;
        let cpu: u64 = tasks.iter().map(|t| t.cpu_ns).sum();
        let workers = tasks.iter().filter(|t| t.cpu_ns as f64 >= WORKER_SHARE * cpu as f64).count().max(1);
        let futexes = |contended: Option<bool>| {
            let of = observed.locks.iter().filter(|l| l.process.is_some());
            of.filter(|l| contended.is_none_or(|c| l.contended == c)).map(|l| l.total_ns).sum::<u64>() as f64
        };
        Run {
            cpus: f64::from(observed.cpus.max(1)),
            workers,
            wanted_per_used: (!tasks.iter().any(|t| t.life_ns > 0)).then(|| wanted_per_used(tasks)),
            futex_contention: if futexes(None) > 0.0 { futexes(Some(true)) / futexes(None) } else { 0.0 },
            bound_by: bound_by(observed),
        }
    }

    /// Returns for some steps: share of the CPUs wanted, share of active time in lock waits, share of time with block
    /// I/O.
    fn shares(&self, ticks: &[Tick]) -> [f64; 3] {
        let sum = |of: fn(&Tick) -> u64| ticks.iter().map(of).sum::<u64>() as f64;
        let wall = sum(|t| t.length_ns).max(1.0);
        let used = sum(|t| t.cpu_ns);
        let wanted = self.wanted_per_used.map_or_else(|| used + sum(|t| t.preempted_ns), |each| used * each);
        let locks = sum(|t| t.lock_wait_ns) + sum(|t| t.futex_wait_ns) * self.futex_contention;
        let with_io =
            ticks.iter().filter(|t| t.in_flight > 0 || t.io_done > 0).map(|t| t.length_ns).sum::<u64>() as f64;
        let capacity = wall * self.cpus.min(self.workers as f64);
        let active = wanted + locks;
        let lock = if active > 0.0 && locks >= LOCK_FLOOR * wall { locks / active } else { 0.0 };
        [(wanted / capacity).min(1.0), lock, with_io / wall]
    }

    fn signals(&self, tick: &Tick) -> [f64; 3] {
        let [cpu, lock, io] = self.shares(std::slice::from_ref(tick));
        [cpu, lock, io * 0.3]
    }

    fn phase(&self, ticks: &[Tick]) -> Phase {
        let [cpu, lock, io] = self.shares(ticks);
        let percent = |share: f64| fixed_percent(share, 0);
        let tasks =
            if self.workers == 1 { "its one busy task".to_owned() } else { format!("its {} busy tasks", self.workers) };
        let woken = ticks.iter().map(|t| t.runnable_ns - t.preempted_ns.min(t.runnable_ns)).sum::<u64>() as f64;
        let wall = ticks.iter().map(|t| t.length_ns).sum::<u64>().max(1) as f64;
        let delayed = if woken >= WORTH_REPORTING * wall {
            format!("; woken tasks waited {:.2} s for CPUs that others had", woken / 1e9)
        } else {
            String::new()
        };
        let (class, margin, evidence) = if lock >= LOCK_BORDER {
            let text = format!(
                "{} of its active time went into waiting for locks (border {})",
                percent(lock),
                percent(LOCK_BORDER)
            );
            ("lock-contended", lock - LOCK_BORDER, text)
        } else if cpu >= BUSY_BORDER {
            let text = format!(
                "{tasks} ran or waited for a CPU {} of the time (border {}); {} of active time went into locks",
                percent(cpu),
                percent(BUSY_BORDER),
                percent(lock)
            );
            ("CPU-busy", (cpu - BUSY_BORDER).min(LOCK_BORDER - lock), text)
        } else {
            let rest = if self.bound_by.is_empty() { String::new() } else { format!(", mostly for {}", self.bound_by) };
            let text = format!(
                "{tasks} ran or waited for a CPU {} of the time (border {}); else it waited{rest}",
                percent(cpu),
                percent(BUSY_BORDER)
            );
            ("CPU-idle", (BUSY_BORDER - cpu).min(LOCK_BORDER - lock), text + &delayed)
        };
        Phase {
            from_ns: ticks.first().map_or(0, |t| t.at_ns.saturating_sub(t.length_ns)),
            to_ns: ticks.last().map_or(0, |t| t.at_ns),
            class: class.to_owned(),
            bound_by: if class == "CPU-idle" { self.bound_by.clone() } else { String::new() },
            cpu_share: cpu,
            lock_share: lock,
            io_share: io,
            margin_points: margin * 100.0,
            evidence,
        }
    }
}

/// Returns the time that tasks needed a CPU for each nanosecond that they had one, by their accounts. A wait counts by
/// the share of the times at which another task had taken the CPU: a task that was woken and has to wait for a CPU that
/// others have would else look busy while it sleeps.
fn wanted_per_used(tasks: &[Task]) -> f64 {
    let taken = |t: &Task| t.wait_ns as f64 * (t.involuntary as f64 / t.runs.max(1) as f64).min(1.0);
    let cpu: u64 = tasks.iter().map(|t| t.cpu_ns).sum();
    if cpu > 0 { (cpu as f64 + tasks.iter().map(taken).sum::<f64>()) / cpu as f64 } else { 1.0 }
}

/// Returns the waits of the busiest tasks, in the words of the report.
fn bound_by(observed: &Observed) -> String {
    let total = observed.tasks.iter().map(|t| t.cpu_ns).sum::<u64>() as f64;
    let mut sums: Vec<(&str, u64)> = Vec::new();
    for task in observed.tasks.iter().filter(|t| t.cpu_ns as f64 >= WORKER_SHARE * total) {
        for (reason, ns, _) in &task.off {
            let word = match reason.as_str() {
                "kernel thread" => continue,
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

#[cfg(test)]
mod tests {
    use super::*;
    use nearmiss_record::observed::Lock;

    const STEP: u64 = 100_000_000;

    fn run(ticks: impl Iterator<Item = Tick>) -> Observed {
        let timeline: Vec<Tick> =
            ticks.enumerate().map(|(i, t)| Tick { at_ns: (i as u64 + 1) * STEP, length_ns: STEP, ..t }).collect();
        let cpu = timeline.iter().map(|t| t.cpu_ns).sum();
        Observed {
            cpus: 4,
            duration_ns: timeline.len() as u64 * STEP,
            cpu_ns: cpu,
            tasks: vec![Task { cpu_ns: cpu, off: vec![("fsync".into(), 1, 1)], ..Task::default() }],
            timeline,
            ..Observed::default()
        }
    }

    fn busy(share: f64) -> Tick {
        Tick { cpu_ns: (STEP as f64 * share) as u64, ..Tick::default() }
    }

    #[test]
    fn one_task_that_always_runs_is_busy_on_any_number_of_cpus() {
        let phases = classify(&run((0..30).map(|_| busy(0.98))));
        assert_eq!(phases.len(), 1);
        assert_eq!(phases[0].class, "CPU-busy");
        assert!((phases[0].margin_points - 20.0).abs() < 1.0, "the lock border is nearer: {}", phases[0].margin_points);
    }

    #[test]
    fn waiting_for_the_device_is_idle() {
        let phases = classify(&run((0..30).map(|_| busy(0.2))));
        assert_eq!((phases[0].class.as_str(), phases[0].bound_by.as_str()), ("CPU-idle", "the device"));
    }

    #[test]
    fn lock_waits_outweigh_a_busy_cpu() {
        let mut observed = run((0..30).map(|_| Tick { futex_wait_ns: STEP, ..busy(0.9) }));
        observed.locks = vec![Lock { process: Some(1), contended: true, total_ns: 1, ..Lock::default() }];
        assert_eq!(classify(&observed)[0].class, "lock-contended");
        observed.locks[0].contended = false;
        assert_eq!(classify(&observed)[0].class, "CPU-busy", "waits for work are no contention");
    }

    #[test]
    fn a_share_of_nothing_is_no_contention() {
        let observed = run((0..30).map(|_| Tick { lock_wait_ns: 400_000, ..busy(0.001) }));
        let phase = &classify(&observed)[0];
        assert_eq!(
            (phase.class.as_str(), phase.lock_share),
            ("CPU-idle", 0.0),
            "0.4 ms in 100 ms, beside all else that ran"
        );
    }

    #[test]
    fn a_sleeping_server_on_a_busy_machine_is_idle() {
        let woken = |runnable_ns, preempted_ns| Tick { runnable_ns, preempted_ns, ..busy(0.02) };
        let mut observed = run((0..30).map(|_| woken(STEP * 9 / 10, STEP / 100)));
        observed.tasks[0].life_ns = 30 * STEP;
        let phase = &classify(&observed)[0];
        assert_eq!(phase.class, "CPU-idle", "{phase:?}");
        assert!(phase.evidence.ends_with("; woken tasks waited 2.67 s for CPUs that others had"), "{}", phase.evidence);
        observed.timeline.iter_mut().for_each(|t| t.preempted_ns = t.runnable_ns);
        let phase = &classify(&observed)[0];
        assert_eq!(phase.class, "CPU-busy", "a task that others took the CPU from wants to run: {phase:?}");
    }

    #[test]
    fn without_switches_only_the_waits_of_preempted_tasks_count() {
        let mut observed = run((0..30).map(|_| busy(0.02)));
        let cpu = observed.tasks[0].cpu_ns;
        observed.tasks[0] = Task { wait_ns: 45 * cpu, runs: 1_000, involuntary: 10, ..observed.tasks[0].clone() };
        assert_eq!(classify(&observed)[0].class, "CPU-idle");
        observed.tasks[0].involuntary = 1_000;
        assert_eq!(classify(&observed)[0].class, "CPU-busy");
    }

    #[test]
    fn phases_are_separated() {
        let phases = classify(&run((0..60).map(|i| busy(if i < 25 { 0.95 } else { 0.1 }))));
        assert_eq!(phases.iter().map(|p| p.class.as_str()).collect::<Vec<_>>(), ["CPU-busy", "CPU-idle"]);
        assert_eq!(phases[0].to_ns, 25 * STEP);
        assert_eq!((phases[1].from_ns, phases[1].to_ns), (25 * STEP, 60 * STEP));
    }
}
