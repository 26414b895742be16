//! A thread's log under one interval after another, and which of them to take.

use super::logs::ReplayedLog;
use super::replay::{Log, Replayed};
use super::words::time;
use nearmiss_pace::LEAST_GAIN;
use nearmiss_record::figures::{Cell, Table};
use nearmiss_record::observed::WaitCosts;
use nearmiss_record::words::percent;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// Usual intervals, from what timers can keep to where people notice.
const USUAL_NS: [u64; 10] =
    [50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000, 20_000_000, 40_000_000];
/// Attempts at the longest interval within the budget, and what the attempts are multiples of.
const ATTEMPTS: usize = 6;
const STEP_NS: u64 = 10_000;
/// Error of a sleep's CPU time, as lowest and highest factor.
const SLEEP_COSTS: [f64; 2] = [0.7, 1.5];

/// Inputs of the replays beside the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Basis {
    /// The command's CPU time.
    pub cpu_ns: u64,
    /// The thread's own, by which the rules judge sleeps.
    pub thread_cpu_ns: u64,
    /// Costs of waits on the machine of the observation; none: not measured.
    pub waits: Option<WaitCosts>,
    /// Time that may be added to one event of a hundred.
    pub budget_ns: u64,
    /// Intervals to try; of none, the usual ones.
    pub intervals: Vec<u64>,
}

/// Receives the number of steps done, and of all.
pub type ReplayProgress<'a> = &'a dyn Fn(usize, usize);

/// The replays of one thread.
pub struct Tried {
    of: Arc<ReplayedLog>,
    basis: Basis,
    replays: Vec<(u64, Replayed)>,
}

/// The interval that saves most within the budget.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The interval; the shortest one where none is within the budget.
    pub interval_ns: u64,
    /// Share of the command's CPU time.
    pub saved: f64,
    /// Saved share if a sleep costs more, and if it costs less.
    pub saved_between: [f64; 2],
    /// Added time that one event of a hundred reaches or exceeds.
    pub added_p99_ns: u64,
    /// CPU time of a call.
    pub cost_ns: u64,
    /// The budget that it was chosen within.
    pub budget_ns: u64,
    /// Next interval that was tried, where a call takes more than the budget.
    pub beyond: Option<Beyond>,
}

/// Effect of an interval that is longer than the budget.
#[derive(Clone, Debug, PartialEq)]
pub struct Beyond {
    /// The interval.
    pub interval_ns: u64,
    /// Share of the command's CPU time.
    pub saved: f64,
    /// Added time that one event of a hundred reaches or exceeds.
    pub added_p99_ns: u64,
}

/// The usual intervals, and the longest one that the budget allows, which a live thread would be given.
fn usual(of: &ReplayedLog, budget_ns: u64, on_progress: ReplayProgress<'_>) -> Vec<u64> {
    let intervals: BTreeSet<u64> = USUAL_NS.into_iter().chain(longest_within(of, budget_ns, on_progress)).collect();
    intervals.into_iter().collect()
}

/// Down from the budget by what is added beyond it.
fn longest_within(of: &ReplayedLog, budget_ns: u64, on_progress: ReplayProgress<'_>) -> Option<u64> {
    let mut interval_ns = budget_ns;
    for attempt in 1..=ATTEMPTS {
        let beyond_ns = of.replay(interval_ns).added_p99_ns.saturating_sub(budget_ns);
        on_progress(attempt, ATTEMPTS + USUAL_NS.len() + 1);
        if beyond_ns == 0 {
            return Some(interval_ns);
        }
        interval_ns =
            interval_ns.checked_sub(beyond_ns.next_multiple_of(STEP_NS)).filter(|left| *left >= USUAL_NS[0])?;
    }
    None
}

impl Tried {
    /// Replays the log, as far as it was not. `on_progress` receives the number of replays done, and of all at most.
    pub fn new(of: Arc<ReplayedLog>, basis: Basis, on_progress: ReplayProgress<'_>) -> Self {
        let requested = basis.intervals.clone();
        let intervals = if requested.is_empty() { usual(&of, basis.budget_ns, on_progress) } else { requested };
        let (mut done, whole) = (ATTEMPTS, ATTEMPTS + intervals.len());
        let mut replay = |interval| {
            let replayed = of.replay(interval);
            done += 1;
            on_progress(done, whole);
            (interval, replayed)
        };
        let replays = intervals.into_iter().map(&mut replay).collect();
        Tried { of, basis, replays }
    }

    fn log(&self) -> &Log {
        &self.of.log
    }

    /// Calls in the log.
    pub fn calls(&self) -> u64 {
        self.log().calls
    }

    /// CPU time of a sleep of this thread: that of its waits, which sleep too, and what a timer takes beyond.
    fn sleep_ns(&self) -> u64 {
        let timer = self.basis.waits.map_or(0, |waits| waits.sleep_cpu_ns.saturating_sub(waits.woken_cpu_ns));
        self.log().waiting_ns() + timer
    }

    /// Share of the command's CPU time, where a sleep costs so many times what it should.
    fn saved(&self, replayed: &Replayed, times: f64) -> f64 {
        self.saved_ns(replayed, times) / self.basis.cpu_ns.max(1) as f64
    }

    /// Whether the rules would let the thread go on sleeping: their trial requires savings of a part of its CPU time.
    fn pays(&self, replayed: &Replayed) -> bool {
        let wanted = self.basis.thread_cpu_ns as f64 / LEAST_GAIN as f64;
        replayed.sleeps > 0 && self.saved_ns(replayed, 1.0) > wanted
    }

    fn saved_ns(&self, replayed: &Replayed, times: f64) -> f64 {
        let ready = (replayed.calls - replayed.waits) * self.log().ready_ns();
        let calls = ready + replayed.waits * self.log().waiting_ns();
        let sleeps = replayed.sleeps as f64 * self.sleep_ns() as f64 * times;
        let batches = (self.log().calls as f64 - replayed.calls as f64) * self.batch_ns();
        self.log().on_cpu_ns() as f64 - calls as f64 - sleeps + batches
    }

    /// CPU time of a batch of events beside that of the events.
    fn batch_ns(&self) -> f64 {
        self.log().batches.apart_from_events_ns(self.basis.thread_cpu_ns.saturating_sub(self.log().on_cpu_ns()))
    }

    /// Returns the interval within the budget that saves most; the shorter one of equals.
    pub fn choice(&self) -> Choice {
        let within = self.replays.iter().filter(|(_, replayed)| replayed.added_p99_ns <= self.basis.budget_ns);
        let best = within
            .max_by(|(a, one), (b, other)| self.saved(one, 1.0).total_cmp(&self.saved(other, 1.0)).then(b.cmp(a)));
        let saves = best.filter(|(_, replayed)| self.pays(replayed));
        let saved = |times| saves.map_or(0.0, |(_, replayed)| self.saved(replayed, times));
        Choice {
            interval_ns: saves.map_or(USUAL_NS[0], |(interval, _)| *interval),
            saved: saved(1.0),
            saved_between: [saved(SLEEP_COSTS[1]), saved(SLEEP_COSTS[0])],
            added_p99_ns: saves.map_or(0, |(_, replayed)| replayed.added_p99_ns),
            cost_ns: self.log().cost_ns(),
            budget_ns: self.basis.budget_ns,
            beyond: self.beyond(),
        }
    }

    /// No interval within the budget is longer than a call that takes more than it.
    fn beyond(&self) -> Option<Beyond> {
        let cost_ns = self.log().cost_ns();
        let longer = self.replays.iter().filter(|(interval, _)| *interval > cost_ns);
        let next = longer.min_by_key(|(interval, _)| *interval).filter(|_| cost_ns > self.basis.budget_ns);
        next.map(|(interval_ns, replayed)| Beyond {
            interval_ns: *interval_ns,
            saved: self.saved(replayed, 1.0),
            added_p99_ns: replayed.added_p99_ns,
        })
    }

    /// The least that an event of a hundred must wait beyond the budget for sleeps to pay, and what is saved then.
    pub fn beyond_budget(&self) -> Option<(u64, f64)> {
        let beyond = self.replays.iter().map(|(_, replayed)| replayed);
        let pay = beyond.filter(|replayed| replayed.added_p99_ns > self.basis.budget_ns && self.pays(replayed));
        pay.map(|replayed| (replayed.added_p99_ns, self.saved(replayed, 1.0))).min_by_key(|(added, _)| *added)
    }

    /// Returns a sentence on the program's cost of each return beside the events; empty where the log lacks it.
    pub fn of_batches(&self) -> String {
        let batch_ns = self.batch_ns() as u64;
        if batch_ns == 0 {
            return String::new();
        }
        format!(" Each return takes the program {} beside its events.", time(batch_ns))
    }

    /// Returns a sentence on the cost of a sleep against a wait, or that it was not measured.
    pub fn of_sleeps(&self) -> String {
        let waiting = format!("A wait that has to block takes {} of CPU time", time(self.log().waiting_ns()));
        match self.basis.waits {
            Some(_) => format!("{waiting}, a sleep {} here.", time(self.sleep_ns())),
            None => format!("{waiting}; what a sleep takes was not measured, and counts as much."),
        }
    }

    /// A row an interval; the first row is the log.
    pub fn table(&self) -> Table {
        let columns = ["interval", "calls", "sleeps", "CPU saved", "pays", "added, mean", "added, p99"];
        let row = |(interval, replayed): &(u64, Replayed)| {
            vec![
                Cell::Nanos(*interval),
                Cell::Count(replayed.calls),
                Cell::Count(replayed.sleeps),
                Cell::Share(if replayed.sleeps == 0 { 0.0 } else { self.saved(replayed, 1.0) }),
                Cell::text(if self.pays(replayed) { "yes" } else { "no" }),
                Cell::Nanos(replayed.added_mean_ns),
                Cell::Nanos(replayed.added_p99_ns),
            ]
        };
        let logged = (0, Replayed { calls: self.log().calls, ..Replayed::default() });
        Table {
            title: "intervals".to_owned(),
            columns: columns.map(str::to_owned).to_vec(),
            rows: [&logged].into_iter().chain(&self.replays).map(row).collect(),
        }
    }
}

impl Choice {
    /// Describes the choice for a line that goes on.
    pub fn in_short(&self) -> String {
        let budget = time(self.budget_ns);
        if self.saved <= 0.0 {
            return format!("no interval that adds {budget} at most, at the 99th percentile, saves CPU time");
        }
        let interval = time(self.interval_ns);
        format!("{interval} saves most of those that add {budget} at most, at the 99th percentile")
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (interval, added) = (time(self.interval_ns), time(self.added_p99_ns));
        if self.saved > 0.0 {
            write!(out, "{interval} would save {} and add {added} at the 99th percentile.", percent(self.saved))?;
        } else {
            write!(out, "No interval saves CPU time within {} at the 99th percentile.", time(self.budget_ns))?;
        }
        let Some(beyond) = &self.beyond else { return Ok(()) };
        let (cost, next, added) = (time(self.cost_ns), time(beyond.interval_ns), time(beyond.added_p99_ns));
        let saved = percent(beyond.saved.max(0.0));
        write!(out, " One call takes {cost}, more than that: {next} would save {saved} and add {added}.")
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

    /// Makes trials with sleeps that take so much more than waits.
    fn tried(timer_ns: Option<u64>, intervals: &[u64]) -> Tried {
        let waits = timer_ns.map(|timer| WaitCosts { sleep_cpu_ns: 7_000 + timer, woken_cpu_ns: 7_000 });
        let basis = Basis {
            cpu_ns: 100_000_000,
            thread_cpu_ns: 80_000_000,
            waits,
            budget_ns: 1_000_000,
            intervals: intervals.to_vec(),
        };
        Tried::new(ReplayedLog::of(log()), basis, &|_, _| ())
    }

    #[test]
    fn the_interval_that_saves_most_within_the_budget_is_taken() {
        let tried = tried(Some(2_000), &[]);
        let choice = tried.choice();
        assert_eq!(choice.interval_ns, 1_000_000);
        // 10,000 waits of 2 µs become 1,000 calls of 1 µs and as many sleeps of 4 µs, of 100 ms of CPU time.
        let near = |share: f64, expected: f64| (share - expected).abs() < 0.001;
        assert!(near(choice.saved, 0.15), "{choice:?}");
        assert!(near(choice.saved_between[0], 0.13) && near(choice.saved_between[1], 0.162), "{choice:?}");
        assert_eq!(tried.of_sleeps(), "A wait that has to block takes 2 µs of CPU time, a sleep 4 µs here.");
        let rows = tried.table().rows;
        assert_eq!(rows.len(), 11);
        assert_eq!(rows[0][..3], [Cell::Nanos(0), Cell::Count(10_000), Cell::Count(0)]);
    }

    #[test]
    fn the_time_of_batches_beside_their_events_is_saved_too() {
        // Each second call brings two events. 30 µs of work an event, and 40 µs a batch.
        let call = |n: u64| PollCall {
            enter_ns: 1_000_000 + n * 200_000 + 40_000 + (n % 2 + 1) * 30_000,
            exit_ns: 1_200_000 + n * 200_000,
            blocked_ns: 60_000,
            on_cpu_ns: 2000,
            events: ((n + 1) % 2 + 1) as u32,
            ..PollCall::default()
        };
        let basis = Basis {
            cpu_ns: 900_000_000,
            thread_cpu_ns: 900_000_000,
            waits: None,
            budget_ns: 5_000_000,
            intervals: vec![2_000_000],
        };
        let tried = Tried::new(ReplayedLog::of(Log::new((0..10_000).map(call).collect())), basis, &|_, _| ());
        assert_eq!(tried.of_batches(), " Each return takes the program 40 µs beside its events.");
        let replayed = &tried.replays[0].1;
        let batches = (10_000 - replayed.calls) as f64 * 40_000.0 / 900_000_000.0;
        let calls = (20_000_000 - replayed.waits * 2000 - (replayed.calls - replayed.waits) * 1000) as f64;
        let expected = batches + (calls - replayed.sleeps as f64 * 2000.0) / 900_000_000.0;
        assert!((tried.choice().saved - expected).abs() < 1e-4, "{:?} {expected}", tried.choice());
        assert!(expected > 0.4, "{expected}");
    }

    #[test]
    fn sleeps_that_cost_what_they_save_are_no_choice() {
        // Ten waits of 2 µs are one sleep of 19 µs and a call of 1 µs.
        assert_eq!(tried(Some(18_000), &[]).choice().saved, 0.0);
        // Two sleeps' worth above a 32nd of the thread's 80 ms, and below: its CPU clock would keep the thread awake.
        assert!(tried(Some(14_300), &[]).choice().saved > 0.0);
        let (awake, at_1_ms) = (tried(Some(14_700), &[1_000_000]), 1);
        assert_eq!(awake.choice().saved, 0.0);
        let Cell::Share(saved) = awake.table().rows[at_1_ms][3] else { panic!("no share") };
        assert!(saved > 0.0 && awake.table().rows[at_1_ms][4] == Cell::text("no"), "{saved}");
        let unknown = tried(None, &[]);
        assert!((unknown.choice().saved - 0.17).abs() < 0.001);
        assert!(unknown.of_sleeps().ends_with("was not measured, and counts as much."));
    }

    #[test]
    fn a_choice_that_saves_nothing_is_stated() {
        let choice = tried(None, &[20_000_000]).choice();
        assert_eq!((choice.interval_ns, choice.saved), (50_000, 0.0));
        assert_eq!(choice.to_string(), "No interval saves CPU time within 1 ms at the 99th percentile.");
        let beyond = Some(Beyond { interval_ns: 2_000_000, saved: 0.25, added_p99_ns: 3_400_000 });
        let sentence = Choice { cost_ns: 1_400_000, beyond, ..choice }.to_string();
        assert!(
            sentence.ends_with(" One call takes 1.4 ms, more than that: 2 ms would save 25% and add 3.4 ms."),
            "{sentence}"
        );
    }

    #[test]
    fn the_next_interval_is_proposed_where_a_call_takes_more_than_the_budget() {
        let call = |n: u64| PollCall {
            enter_ns: 1_000_000 + n * 2_000_000,
            exit_ns: 2_900_000 + n * 2_000_000,
            on_cpu_ns: 1_400_000,
            events: 20,
            ..PollCall::default()
        };
        let basis = Basis {
            cpu_ns: 1_000_000_000,
            thread_cpu_ns: 1_000_000_000,
            waits: None,
            budget_ns: 1_000_000,
            intervals: Vec::new(),
        };
        let dear = |budget_ns| {
            let log = ReplayedLog::of(Log::new((0..500).map(call).collect()));
            Tried::new(log, Basis { budget_ns, ..basis.clone() }, &|_, _| ()).choice().beyond
        };
        assert_eq!(dear(1_000_000).map(|beyond| beyond.interval_ns), Some(2_000_000));
        assert_eq!(dear(1_400_000), None);
    }
}
