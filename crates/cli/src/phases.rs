//! Time of each part of an answer: *measured*, printed on standard error and written to no record.

use nearmiss_record::run::Manifest;
use nearmiss_record::words::bytes;
use std::time::{Duration, Instant};

/// Memory that is worth a word.
const LARGE: u64 = 1 << 30;

/// The parts so far.
pub struct Phases {
    begun: Instant,
    latest: Instant,
    parts: Vec<(&'static str, Duration)>,
}

impl Phases {
    /// Nothing has been done yet.
    pub fn begin() -> Self {
        let begun = Instant::now();
        Phases { begun, latest: begun, parts: Vec::new() }
    }

    /// A part is over, at a time after the one before it.
    pub fn ended(&mut self, what: &'static str, at: Instant) {
        self.parts.push((what, at.saturating_duration_since(self.latest)));
        self.latest = at;
    }

    /// A recording is over: its boot, its window, and what was left to do.
    pub fn recorded(&mut self, manifest: &Manifest) {
        let now = Instant::now();
        let all = now.saturating_duration_since(self.latest);
        let warm = manifest.warm.as_ref().map_or(0, |warm| warm.time_ns);
        let mut rest = all;
        let parts = [
            ("boot", manifest.boot_ns),
            ("warm-up", warm),
            ("start", manifest.ahead_ns),
            ("trace", manifest.window_ns),
        ];
        for (what, ns) in parts.into_iter().filter(|(what, ns)| *ns > 0 || *what != "start") {
            let part = Duration::from_nanos(ns).min(rest);
            rest -= part;
            self.parts.push((what, part));
        }
        self.parts.push(("names", rest));
        self.latest = now;
    }

    /// `took 24 s: boot 4, trace 9, model 2, rehearsals 9`, with the most memory that nearmiss had where that was large.
    pub fn line(&self) -> String {
        let parts: Vec<String> = self.parts.iter().map(|(what, time)| format!("{what} {}", seconds(*time))).collect();
        let took = seconds(self.latest.saturating_duration_since(self.begun));
        let memory = peak_bytes().filter(|bytes| *bytes >= LARGE);
        let memory = memory.map_or(String::new(), |most| format!("; {} of memory at most", bytes(most)));
        format!("took {took} s: {}{memory}", parts.join(", "))
    }
}

/// Formats a time in seconds: under ten of them to the tenth.
fn seconds(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 9.95 { format!("{seconds:.1}") } else { format!("{seconds:.0}") }
}

/// Returns the most memory that this process had at a time, where the kernel reports it.
fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_is_printed_with_its_time() {
        let mut phases = Phases::begin();
        let after = |ms| phases.begun + Duration::from_millis(ms);
        let times = [after(250), after(250 + 12_000)];
        phases.ended("model", times[0]);
        phases.ended("rehearsals", times[1]);
        assert_eq!(phases.line(), "took 12 s: model 0.2, rehearsals 12");
        assert_eq!(seconds(Duration::from_millis(9_960)), "10");
        assert!(peak_bytes().is_some_and(|bytes| bytes > 0));
    }
}
