//! An observation that is looked at while it runs, for the terminal view.

use super::ObserveError;
use super::clock::monotonic_ns;
use super::instruments::{Instruments, Roots};
use super::observation::gone;
use super::options::{Options, Target};
use crate::bpf::merged_locks;
use crate::perf::{PerfSession, Symbolizer};
use nearmiss_record::observed::{BlockIo, Instrument, Lock, Observed, Poll, Queue, SCHEMA};
use nearmiss_workload::{ProcessGroup, Running, Workload};
use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// Record of the stretch since the last look.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The record, as of a whole observation, but of this stretch alone; without tasks and time line.
    pub observed: Observed,
    /// The target has ended.
    pub ended: bool,
}

/// Instruments that stay on while one looks at them.
pub struct Live {
    target: Target,
    instruments: Instruments,
    command: Option<Running>,
    symbolizer: Symbolizer,
    last_ns: u64,
    before: Observed,
}

impl Live {
    /// Starts the instruments; a command starts too, its output thrown away, since the view has the terminal.
    pub fn start(target: &Target, options: &Options) -> Result<Self, ObserveError> {
        let suspended = match target {
            Target::Command(argv) => {
                let workload = Workload::new(argv.iter().cloned()).group(ProcessGroup::Own);
                let quiet = workload
                    .stdin(nearmiss_workload::Stdio::Null)
                    .stdout(nearmiss_workload::Stdio::Null)
                    .stderr(nearmiss_workload::Stdio::Null);
                Some(quiet.launch_suspended()?)
            }
            _ => None,
        };
        let roots = Roots::of(target, suspended.as_ref());
        let mut instruments = Instruments::start(target, &roots, options)?;
        let last_ns = instruments.begin(suspended.is_some())?;
        let command = suspended.map(|s| s.resume()).transpose()?;
        Ok(Live {
            target: target.clone(),
            instruments,
            command,
            symbolizer: Symbolizer::default(),
            last_ns,
            before: Observed::default(),
        })
    }

    /// Returns which instruments run, and why others do not.
    pub fn instruments(&self) -> &[Instrument] {
        self.instruments.rows()
    }

    /// Keeps the buffers from filling until the time is up or `leave`, called several times a second, returns true.
    pub fn wait(&mut self, time: Duration, mut leave: impl FnMut(Duration) -> bool) {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now()).min(Duration::from_millis(100));
            if left.is_zero() || leave(left) {
                return;
            }
            self.instruments.drain();
        }
    }

    /// Returns the record of the stretch since the last call.
    pub fn snapshot(&mut self) -> Result<Snapshot, ObserveError> {
        self.instruments.drain();
        let now = monotonic_ns();
        let mut observed = Observed {
            schema: SCHEMA.to_owned(),
            target: self.target.describe(),
            duration_ns: now - self.last_ns,
            cpus: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
            instruments: self.instruments.rows().to_vec(),
            ..Observed::default()
        };
        self.last_ns = now;
        if let Some(bpf) = &mut self.instruments.bpf {
            let spaces = self.instruments.perf.as_ref().map(PerfSession::spaces);
            let counted = bpf.read(&mut self.symbolizer, spaces)?;
            let total = Observed {
                locks: counted.locks,
                polls: counted.polls,
                io: counted.io,
                queues: counted.queues,
                ..Observed::default()
            };
            observed.locks = merged_locks(since(&total.locks, &self.before.locks, lock_key, lock_minus));
            observed.polls = since(&total.polls, &self.before.polls, |p| (p.thread, p.call.clone()), poll_minus);
            observed.io = since(&total.io, &self.before.io, io_key, io_minus);
            observed.queues = since(&total.queues, &self.before.queues, |q| q.device.clone(), queue_minus);
            observed.polls.sort_by_key(|p| std::cmp::Reverse(p.calls));
            observed.io.sort_by_key(|i| std::cmp::Reverse(i.count));
            observed.lost = counted.lost;
            self.before = total;
        }
        if let Some(perf) = &mut self.instruments.perf {
            observed.profile = Some(perf.take_profile(&mut self.symbolizer));
        }
        Ok(Snapshot { ended: self.ended()?, observed })
    }

    fn ended(&mut self) -> Result<bool, ObserveError> {
        let Some(running) = self.command.take() else {
            return Ok(matches!(self.target, Target::Command(_)) || gone(&self.target));
        };
        match running.wait_for(Duration::ZERO)? {
            Ok(_) => Ok(true),
            Err(still) => {
                self.command = Some(still);
                Ok(false)
            }
        }
    }
}

/// Rows of `now` less what they were `before`; rows that did not move are left out.
fn since<T, K: Hash + Eq>(
    now: &[T],
    before: &[T],
    key: impl Fn(&T) -> K,
    minus: impl Fn(&T, Option<&T>) -> Option<T>,
) -> Vec<T> {
    let old: HashMap<K, &T> = before.iter().map(|row| (key(row), row)).collect();
    now.iter().filter_map(|row| minus(row, old.get(&key(row)).copied())).collect()
}

fn lock_key(lock: &Lock) -> (u64, String, Option<i32>, String) {
    let caller = lock.stack.iter().map(|f| f.address.to_string()).collect::<Vec<_>>().join(" ");
    // A futex has one row, with any stacks seen by now.
    (lock.address, lock.kind.clone(), lock.process, if lock.process.is_some() { String::new() } else { caller })
}

fn lock_minus(now: &Lock, before: Option<&Lock>) -> Option<Lock> {
    let (count, total) = before.map_or((0, 0), |b| (b.count, b.total_ns));
    let row =
        Lock { count: now.count.saturating_sub(count), total_ns: now.total_ns.saturating_sub(total), ..now.clone() };
    (row.count > 0).then_some(row)
}

fn poll_minus(now: &Poll, before: Option<&Poll>) -> Option<Poll> {
    let Some(b) = before else { return Some(now.clone()) };
    let row = Poll {
        calls: now.calls.saturating_sub(b.calls),
        descriptors: now.descriptors.saturating_sub(b.descriptors),
        events: now.events.saturating_sub(b.events),
        empty: now.empty.saturating_sub(b.empty),
        blocked_ns: now.blocked_ns.saturating_sub(b.blocked_ns),
        on_cpu_ns: now.on_cpu_ns.saturating_sub(b.on_cpu_ns),
        span_ns: now.span_ns.saturating_sub(b.span_ns),
        ..now.clone()
    };
    (row.calls > 0).then_some(row)
}

fn io_key(io: &BlockIo) -> (String, String, i32, String) {
    (io.device.clone(), io.operation.clone(), io.process, io.name.clone())
}

fn io_minus(now: &BlockIo, before: Option<&BlockIo>) -> Option<BlockIo> {
    let Some(b) = before else { return Some(now.clone()) };
    let row = BlockIo {
        count: now.count.saturating_sub(b.count),
        bytes: now.bytes.saturating_sub(b.bytes),
        queue_ns: now.queue_ns.saturating_sub(b.queue_ns),
        device_ns: now.device_ns.saturating_sub(b.device_ns),
        ..now.clone()
    };
    (row.count > 0).then_some(row)
}

fn queue_minus(now: &Queue, before: Option<&Queue>) -> Option<Queue> {
    let Some(b) = before else { return Some(now.clone()) };
    let row = Queue {
        requests: now.requests.saturating_sub(b.requests),
        seen: now.seen.saturating_sub(b.seen),
        busy_ns: now.busy_ns.saturating_sub(b.busy_ns),
        weighted_ns: now.weighted_ns.saturating_sub(b.weighted_ns),
        ..now.clone()
    };
    (row.requests > 0).then_some(row)
}
