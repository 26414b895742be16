//! Figures as people and programs read them. Every figure is measured by the clients.

use crate::clock::SECOND;
use crate::load::Fault;
use crate::measure::{Measure, Times};
use crate::outcome::Outcome;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Times of requests, from due to the last byte of the answer; without requests there are none.
#[derive(Clone, Debug, Serialize)]
pub struct Latency {
    /// How many.
    pub count: u64,
    /// The mean in milliseconds.
    pub mean_ms: Option<f64>,
    /// Half of them take no longer.
    pub p50_ms: Option<f64>,
    /// Nine of ten take no longer.
    pub p90_ms: Option<f64>,
    /// 99 of 100 take no longer.
    pub p99_ms: Option<f64>,
    /// 999 of 1,000 take no longer.
    pub p999_ms: Option<f64>,
    /// The longest.
    pub max_ms: Option<f64>,
}

impl Latency {
    fn of(times: &Times) -> Latency {
        let of_any = |time: f64| (times.len() > 0).then_some(time);
        Latency {
            count: times.len(),
            mean_ms: of_any(times.mean_ms()),
            p50_ms: of_any(times.quantile_ms(0.5)),
            p90_ms: of_any(times.quantile_ms(0.9)),
            p99_ms: of_any(times.quantile_ms(0.99)),
            p999_ms: of_any(times.quantile_ms(0.999)),
            max_ms: of_any(times.max_ms()),
        }
    }

    /// The figures that there are.
    fn figures(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let all = [
            ("mean", self.mean_ms),
            ("p50", self.p50_ms),
            ("p90", self.p90_ms),
            ("p99", self.p99_ms),
            ("p99.9", self.p999_ms),
            ("max", self.max_ms),
        ];
        all.into_iter().filter_map(|(name, figure)| Some((name, figure?)))
    }
}

/// One phase in a report.
#[derive(Clone, Debug, Serialize)]
pub struct PhaseReport {
    /// The phase's name.
    pub phase: String,
    /// Whether the phase counts towards the outcome.
    pub counts: bool,
    /// Seconds that the phase lasted.
    pub seconds: f64,
    /// Requested rate, in requests a second.
    pub wanted_per_second: f64,
    /// Requests a second that came due.
    pub offered_per_second: f64,
    /// Right answers a second.
    pub achieved_per_second: f64,
    /// Whether as many answers came as requests came due, within the tolerance.
    pub rate_held: bool,
    /// Requests that came due.
    pub requests: u64,
    /// Requests without a right answer.
    pub errors: u64,
    /// Errors by kind.
    pub errors_by_kind: BTreeMap<&'static str, u64>,
    /// All times.
    pub latency: Latency,
    /// Times of hits.
    pub hits: Latency,
    /// Times of misses.
    pub misses: Latency,
    /// From due to sent: what busy connections and the generator itself add to the times.
    pub late: Latency,
    /// Lateness that the generator alone adds.
    pub generator_late: Latency,
    /// Whether the generator adds little: at most a millisecond, or half of the times, at the 99th percentile.
    pub generator_kept_up: bool,
    /// Hits among plain requests (GET without condition or reload), where answers report hit or miss.
    pub hit_ratio: Option<f64>,
    /// Hits among all answers that report hit or miss.
    pub hit_ratio_of_all: Option<f64>,
    /// Answers "not modified".
    pub not_modified: u64,
    /// Right answers without a value.
    pub absent: u64,
    /// Megabits of bodies a second.
    pub body_megabits_per_second: f64,
    /// Requests that waited because every connection was in use.
    pub waited_for_connection: u64,
    /// Requests sent again because the server had ended a kept connection.
    pub sent_again: u64,
    /// CPU time of the generator, in cores.
    pub generator_cores: f64,
}

impl PhaseReport {
    /// Errors that a server too slow for the rate brings about.
    fn too_late(&self) -> u64 {
        [Fault::Timeout, Fault::Unanswered].iter().filter_map(|fault| self.errors_by_kind.get(fault.name())).sum()
    }

    /// The report of a phase; `tolerance` is how much of the rate may be missed.
    pub fn of(phase: &str, counts: bool, wanted: f64, measure: &Measure, tolerance: f64) -> PhaseReport {
        let c = &measure.counts;
        let seconds = (c.lasted_ns as f64 / SECOND as f64).max(1e-9);
        let ratio = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        PhaseReport {
            phase: phase.to_owned(),
            counts,
            seconds,
            wanted_per_second: wanted,
            offered_per_second: c.due as f64 / seconds,
            achieved_per_second: c.answered_in_time as f64 / seconds,
            rate_held: c.answered_in_time as f64 >= (1.0 - tolerance) * c.due as f64 && c.due > 0,
            requests: c.due,
            errors: c.faults.iter().sum(),
            errors_by_kind: Fault::ALL.iter().zip(c.faults).map(|(fault, count)| (fault.name(), count)).collect(),
            latency: Latency::of(&measure.all),
            hits: Latency::of(&measure.hits),
            misses: Latency::of(&measure.misses),
            late: Latency::of(&measure.late),
            generator_late: Latency::of(&measure.behind),
            generator_kept_up: measure.behind.quantile_ms(0.99) <= (measure.all.quantile_ms(0.99) / 2.0).max(1.0),
            hit_ratio: ratio(c.plain_hits, c.plain),
            hit_ratio_of_all: ratio(c.hits, c.hits + c.misses),
            not_modified: c.not_modified,
            absent: c.absent,
            body_megabits_per_second: c.bytes as f64 * 8e-6 / seconds,
            waited_for_connection: c.waited,
            sent_again: c.sent_again,
            generator_cores: c.cpu_ns as f64 / c.lasted_ns.max(1) as f64,
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        // Writing into a string cannot fail.
        let mut line = |line: String| _ = writeln!(text, "{line}");
        line(format!(
            "phase {} of {:.1} s{}",
            self.phase,
            self.seconds,
            if self.counts { "" } else { ", not counted" }
        ));
        line(format!("offered {:.1} requests/s", self.offered_per_second));
        line(format!("achieved {:.1} requests/s", self.achieved_per_second));
        line(format!("rate {}", if self.rate_held { "held" } else { "MISSED" }));
        line(format!("requests {}", self.requests));
        line(format!("errors {}", self.errors));
        for (kind, count) in self.errors_by_kind.iter().filter(|(_, count)| **count > 0) {
            line(format!("errors of kind {kind} {count}"));
        }
        for (name, figure) in self.latency.figures() {
            line(format!("{name} {figure:.3} ms"));
        }
        for (what, latency) in [("hits", &self.hits), ("misses", &self.misses)] {
            for (name, figure) in latency.figures() {
                line(format!("{what} {name} {figure:.3} ms"));
            }
        }
        for (what, ratio) in [("plain requests", self.hit_ratio), ("all requests", self.hit_ratio_of_all)] {
            if let Some(ratio) = ratio {
                line(format!("hit ratio of {what} {:.2}%", 100.0 * ratio));
            }
        }
        for (what, count) in [
            ("not modified", self.not_modified),
            ("without a value", self.absent),
            ("waited for a connection", self.waited_for_connection),
            ("sent again", self.sent_again),
        ] {
            if count > 0 {
                line(format!("{what} {count}"));
            }
        }
        line(format!("bodies {:.1} Mbit/s", self.body_megabits_per_second));
        for (what, latency) in [("sent late", &self.late), ("generator late", &self.generator_late)] {
            if let Some(time) = latency.p99_ms {
                line(format!("{what} p99 {time:.3} ms"));
            }
        }
        line(format!("generator {:.3} cores", self.generator_cores));
        line(format!("generator {}", if self.generator_kept_up { "kept up" } else { "FELL BEHIND" }));
        text
    }
}

/// A whole run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The form of this record.
    pub version: u32,
    /// Origin of the figures.
    pub figures: &'static str,
    /// The load and its server.
    pub load: String,
    /// The seed of all random numbers.
    pub seed: u64,
    /// Number in its sequence of requests at which the load can go on.
    pub next_request: Option<u64>,
    /// Connections at once, at most.
    pub connections: usize,
    /// Processes that the load was split over.
    pub processes: usize,
    /// Descriptors that one process may have here.
    pub descriptors_per_process: u64,
    /// Remarks on the conditions for the reader.
    pub notes: Vec<String>,
    /// The phases in their order.
    pub phases: Vec<PhaseReport>,
}

impl Report {
    /// Returns the run's verdict on the server.
    pub fn outcome(&self) -> Outcome {
        let counted = || self.phases.iter().filter(|phase| phase.counts);
        if counted().any(|phase| phase.errors > phase.too_late()) {
            return Outcome::Faults;
        }
        if counted().any(|phase| !phase.rate_held) {
            return Outcome::MissedRate;
        }
        if counted().any(|phase| phase.errors > 0) { Outcome::Faults } else { Outcome::Good }
    }

    /// As text: one figure a line.
    pub fn text(&self) -> String {
        let mut text = format!("measured by the clients: {}\n", self.load);
        let processes = if self.processes == 1 { "process" } else { "processes" };
        let (connections, count, most) = (self.connections, self.processes, self.descriptors_per_process);
        text += &format!("connections {connections} of {count} {processes} with up to {most} descriptors each\n");
        text += &format!("seed {}\n", self.seed);
        if let Some(next) = self.next_request {
            text += &format!("next request {next}\n");
        }
        for note in &self.notes {
            text += &format!("note: {note}\n");
        }
        for phase in &self.phases {
            text += &phase.text();
        }
        text
    }

    /// As JSON.
    pub fn json(&self) -> String {
        // A record of numbers and strings always has a JSON form.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

#[cfg(test)]
mod tests;
