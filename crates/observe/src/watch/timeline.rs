//! The time line: what the counters did, step by step.

use crate::bpf::Figures;
use nearmiss_record::observed::{Profile, Sample, Tick};
use std::fs;

/// CPU time of the whole machine so far: busy, and idle with a task waiting for block I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MachineTime {
    busy_ns: u64,
    iowait_ns: u64,
    cpus: u64,
}

impl MachineTime {
    /// Reads `/proc/stat`, which counts in hundredths of a second.
    pub fn now() -> Self {
        Self::parse(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let line = text.lines().next().unwrap_or_default();
        let cpus = text.lines().skip(1).take_while(|line| line.starts_with("cpu")).count() as u64;
        let fields: Vec<u64> = line.split_whitespace().skip(1).filter_map(|f| f.parse().ok()).collect();
        let at = |i: usize| fields.get(i).copied().unwrap_or(0) * 10_000_000;
        // user, nice, system, idle, iowait, irq, softirq, steal.
        MachineTime { busy_ns: at(0) + at(1) + at(2) + at(5) + at(6), iowait_ns: at(4), cpus }
    }

    /// Returns the busy time since `before`, at most that of all CPUs for `length_ns`: the kernel counts in hundredths
    /// of a second, a step may be shorter.
    fn busy_since(&self, before: &Self, length_ns: u64) -> u64 {
        self.busy_ns.saturating_sub(before.busy_ns).min(length_ns.saturating_mul(self.cpus))
    }
}

/// Builds the time line.
pub struct Timeline {
    started_ns: u64,
    last_ns: u64,
    machine: MachineTime,
    figures: Figures,
    ticks: Vec<Tick>,
}

impl Timeline {
    /// Begins now.
    pub fn new(started_ns: u64, figures: Figures) -> Self {
        Timeline { started_ns, last_ns: started_ns, machine: MachineTime::now(), figures, ticks: Vec::new() }
    }

    /// Whether the step under way is as long as a step should be, or nearly.
    pub fn is_due(&self, now_ns: u64, step: std::time::Duration) -> bool {
        u128::from(now_ns.saturating_sub(self.last_ns)) * 10 >= step.as_nanos() * 9
    }

    /// Ends a step.
    pub fn tick(&mut self, now_ns: u64, figures: Figures) {
        let machine = MachineTime::now();
        let length_ns = now_ns.saturating_sub(self.last_ns);
        let (lock_wait_ns, futex_wait_ns) = figures.lock_waits_since(&self.figures);
        let (cpu_ns, runnable_ns, preempted_ns) = figures.cpu_since(&self.figures);
        let (polls, events) = figures.polls();
        let (polls_before, events_before) = self.figures.polls();
        let (done, bytes) = figures.io();
        let (done_before, bytes_before) = self.figures.io();
        self.ticks.push(Tick {
            at_ns: now_ns.saturating_sub(self.started_ns),
            length_ns,
            cpu_ns,
            runnable_ns,
            preempted_ns,
            machine_cpu_ns: machine.busy_since(&self.machine, length_ns),
            iowait_ns: machine.iowait_ns.saturating_sub(self.machine.iowait_ns),
            lock_wait_ns,
            futex_wait_ns,
            poll_calls: polls - polls_before,
            poll_events: events - events_before,
            io_done: done - done_before,
            io_bytes: bytes - bytes_before,
            in_flight: figures.in_flight,
            switches: figures.switches() - self.figures.switches(),
        });
        self.last_ns = now_ns;
        self.machine = machine;
        self.figures = figures;
    }

    /// CPU time used by anyone so far.
    pub fn machine_cpu_ns(&self) -> u64 {
        self.ticks.iter().map(|t| t.machine_cpu_ns).sum()
    }

    /// CPU time used by the target so far, where switches were watched.
    pub fn cpu_ns(&self) -> u64 {
        self.ticks.iter().map(|t| t.cpu_ns).sum()
    }

    /// The steps, as they were counted.
    pub fn counted(self) -> Vec<Tick> {
        self.ticks
    }

    /// The steps, with the target's CPU time spread over them as the clock samples fell; evenly without samples.
    pub fn spread(mut self, profile: Option<&Profile>, cpu_ns: u64) -> Vec<Tick> {
        let mut weights: Vec<u64> = vec![0; self.ticks.len()];
        let last = self.ticks.len().saturating_sub(1);
        for sample in profile.into_iter().flat_map(clock_samples) {
            let step = self.ticks.partition_point(|t| t.at_ns < sample.at_ns).min(last);
            if let Some(weight) = weights.get_mut(step) {
                *weight += sample.weight;
            }
        }
        if weights.iter().all(|w| *w == 0) {
            weights = self.ticks.iter().map(|t| t.length_ns).collect();
        }
        let total: u64 = weights.iter().sum();
        for (tick, weight) in self.ticks.iter_mut().zip(weights) {
            tick.cpu_ns = (u128::from(weight) * u128::from(cpu_ns) / u128::from(total.max(1))) as u64;
        }
        self.ticks
    }
}

/// Samples of the clock event, without those of the idle task.
pub fn clock_samples(profile: &Profile) -> impl Iterator<Item = &Sample> {
    let clock = profile.events.iter().position(|e| e.role == "clock");
    let idle = |s: &Sample| profile.threads.get(s.thread as usize).is_some_and(|t| t.1 == 0);
    profile.samples.iter().filter(move |s| Some(s.event as usize) == clock && !idle(s))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_time_is_read_by_field() {
        let time = MachineTime::parse("cpu  100 1 50 9000 7 2 3 99 0 0\ncpu0 1 1 1\n");
        assert_eq!(time, MachineTime { busy_ns: 156 * 10_000_000, iowait_ns: 70_000_000, cpus: 1 });
    }

    #[test]
    fn a_short_step_is_not_busier_than_all_cpus() {
        let time = |busy_ns| MachineTime { busy_ns, iowait_ns: 0, cpus: 2 };
        assert_eq!(time(30_000_000).busy_since(&time(10_000_000), 4_000_000), 8_000_000);
        assert_eq!(time(30_000_000).busy_since(&time(10_000_000), 100_000_000), 20_000_000);
    }
}
