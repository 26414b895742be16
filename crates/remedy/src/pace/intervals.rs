//! A thread's log under one interval after another, and which of them to take.

use super::BUDGET_NS;
use super::replay::{Log, Replayed};
use super::rules::DEAR_TIMES;
use super::words::time;
use nearmiss_record::figures::{Cell, Table};
use nearmiss_record::words::percent;
use std::fmt;

/// From what timers can keep to where people notice.
const USUAL_NS: [u64; 10] =
    [50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000, 20_000_000, 40_000_000];

/// The replays of one thread.
pub struct Tried {
    log: Log,
    cpu_ns: u64,
    replays: Vec<(u64, Replayed)>,
}

/// The interval that saves most within the budget.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The interval; the shortest one where none is within the budget.
    pub interval_ns: u64,
    /// Share of the command's CPU time.
    pub saved: f64,
    /// The same if a sleep costs as much as a call.
    pub saved_at_least: f64,
    /// What it adds to one event of a hundred at least.
    pub added_p99_ns: u64,
    /// CPU time of a call.
    pub cost_ns: u64,
}

impl Tried {
    /// `cpu_ns`: the command's CPU time. Of no intervals, the usual ones.
    pub fn new(log: Log, cpu_ns: u64, intervals: &[u64]) -> Self {
        let intervals = if intervals.is_empty() { &USUAL_NS } else { intervals };
        let replays = intervals.iter().map(|interval| (*interval, log.replay(*interval))).collect();
        Tried { log, cpu_ns, replays }
    }

    /// Calls in the log.
    pub fn calls(&self) -> u64 {
        self.log.calls
    }

    fn saved(&self, calls: u64) -> f64 {
        let saved = self.log.calls as f64 - calls as f64;
        saved * self.log.cost_ns() as f64 / self.cpu_ns.max(1) as f64
    }

    /// Of those within the budget, the interval that saves most; the shorter one of equals.
    pub fn choice(&self) -> Choice {
        let within = |replay: &&(u64, Replayed)| replay.1.added_p99_ns <= BUDGET_NS;
        let fewest = self.replays.iter().filter(within).min_by_key(|(_, replayed)| replayed.calls);
        let nothing = (USUAL_NS[0], Replayed { calls: self.log.calls, ..Replayed::default() });
        let (interval_ns, replayed) = fewest.unwrap_or(&nothing);
        Choice {
            interval_ns: *interval_ns,
            saved: self.saved(replayed.calls),
            saved_at_least: self.saved(replayed.calls + replayed.sleeps),
            added_p99_ns: replayed.added_p99_ns,
            cost_ns: self.log.cost_ns(),
        }
    }

    /// A row an interval; the first row is the log.
    pub fn table(&self) -> Table {
        let columns = ["interval", "calls", "sleeps", "CPU saved", "added, mean", "added, p99"];
        let logged = (0, Replayed { calls: self.log.calls, ..Replayed::default() });
        let row = |(interval, replayed): &(u64, Replayed)| {
            vec![
                Cell::Nanos(*interval),
                Cell::Count(replayed.calls),
                Cell::Count(replayed.sleeps),
                Cell::Share(self.saved(replayed.calls)),
                Cell::Nanos(replayed.added_mean_ns),
                Cell::Nanos(replayed.added_p99_ns),
            ]
        };
        Table {
            title: "intervals".to_owned(),
            columns: columns.map(str::to_owned).to_vec(),
            rows: [&logged].into_iter().chain(&self.replays).map(row).collect(),
        }
    }
}

impl Choice {
    /// For a line that goes on.
    pub fn in_short(&self) -> String {
        if self.saved <= 0.0 {
            return format!("no interval that adds {} at most, at the 99th percentile, saves a call", time(BUDGET_NS));
        }
        let (interval, budget) = (time(self.interval_ns), time(BUDGET_NS));
        format!("{interval} saves most of those that add {budget} at most, at the 99th percentile")
    }

    fn is_dear(&self) -> bool {
        self.cost_ns * DEAR_TIMES > BUDGET_NS
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (interval, added) = (time(self.interval_ns), time(self.added_p99_ns));
        if self.saved > 0.0 {
            write!(out, "{interval} would save {} and add {added} at the 99th percentile.", percent(self.saved))?;
        } else {
            write!(out, "No interval saves a call within {} at the 99th percentile.", time(BUDGET_NS))?;
        }
        if self.is_dear() {
            let cost = time(self.cost_ns);
            write!(
                out,
                " A call takes {cost}: only an interval of {DEAR_TIMES} times as much and more changes something."
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearmiss_record::logs::PollCall;

    /// 10,000 events a second, each with a call of 2 µs.
    fn log() -> Log {
        let call = |n: u64| PollCall {
            enter_ns: 1_000_000 + n * 100_000,
            exit_ns: 1_090_000 + n * 100_000,
            blocked_ns: 88_000,
            on_cpu_ns: 2000,
            events: 1,
            ..PollCall::default()
        };
        Log::new((0..10_000).map(call).collect())
    }

    #[test]
    fn the_longest_interval_within_the_budget_is_taken() {
        let tried = Tried::new(log(), 100_000_000, &[]);
        let choice = tried.choice();
        assert_eq!(choice.interval_ns, 1_000_000);
        // 9,000 of 10,000 calls of 2 µs, of 100 ms; 8,000 where the sleeps are paid too.
        assert!((choice.saved - 0.18).abs() < 0.001, "{choice:?}");
        assert!((choice.saved_at_least - 0.16).abs() < 0.002, "{choice:?}");
        let rows = tried.table().rows;
        assert_eq!(rows.len(), 11);
        assert_eq!(rows[0][..3], [Cell::Nanos(0), Cell::Count(10_000), Cell::Count(0)]);
    }

    #[test]
    fn what_saves_nothing_is_said() {
        let choice = Tried::new(log(), 100_000_000, &[20_000_000]).choice();
        assert_eq!((choice.interval_ns, choice.saved), (50_000, 0.0));
        assert_eq!(choice.to_string(), "No interval saves a call within 1 ms at the 99th percentile.");
        let dear = Choice { cost_ns: 1_400_000, ..choice };
        let said = dear.to_string();
        assert!(
            said.ends_with("A call takes 1.4 ms: only an interval of 4 times as much and more changes something."),
            "{said}"
        );
    }
}
