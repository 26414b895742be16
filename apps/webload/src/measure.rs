//! Counts and times of one phase of a run. Figures of several processes add up.

use crate::clock::SECOND;
use crate::load::{Answer, Fault, Served};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Longer times count as this long.
const LONGEST_NS: u64 = 600 * SECOND;
/// Three digits of every time are kept.
const DIGITS: u8 = 3;

/// Times in nanoseconds, kept to three digits.
#[derive(Clone, Debug)]
pub struct Times(Histogram<u64>);

impl Times {
    /// Makes room for times; recording one allocates nothing.
    pub fn new() -> Times {
        // The bounds are constants that the library accepts; were they not, a histogram that grows serves as well.
        let fixed = Histogram::new_with_bounds(1_000, LONGEST_NS, DIGITS);
        Times(fixed.or_else(|_| Histogram::new(DIGITS)).unwrap_or_else(|_| unreachable!("three digits are allowed")))
    }

    /// Adds a time.
    pub fn record(&mut self, nanoseconds: u64) {
        self.0.saturating_record(nanoseconds);
    }

    /// Adds another process's times.
    pub fn add(&mut self, counts: &[(u64, u64)]) {
        for (nanoseconds, count) in counts {
            self.0.saturating_record_n(*nanoseconds, *count);
        }
    }

    /// Every time kept with how often it came.
    pub fn counts(&self) -> Vec<(u64, u64)> {
        self.0.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value())).collect()
    }

    /// Returns how many times were recorded.
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// The mean in milliseconds.
    pub fn mean_ms(&self) -> f64 {
        self.0.mean() / 1e6
    }

    /// The time in milliseconds that this share of the times does not exceed.
    pub fn quantile_ms(&self, quantile: f64) -> f64 {
        self.0.value_at_quantile(quantile) as f64 / 1e6
    }

    /// The longest time in milliseconds.
    pub fn max_ms(&self) -> f64 {
        self.0.max() as f64 / 1e6
    }
}

impl Serialize for Times {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.counts().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Times {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Times, D::Error> {
        let mut times = Times::new();
        times.add(&Vec::<(u64, u64)>::deserialize(deserializer)?);
        Ok(times)
    }
}

/// Counts of one phase. "Due" figures belong to requests due in the phase, whenever they were answered.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Requests due in the phase.
    pub due: u64,
    /// Right answers that came during the phase, whenever they were due.
    pub answered_in_time: u64,
    /// Right answers to requests due in the phase.
    pub right: u64,
    /// Hits of a cache among these.
    pub hits: u64,
    /// Misses among these.
    pub misses: u64,
    /// Plain requests (GET without condition or reload) answered right, with hit or miss reported.
    pub plain: u64,
    /// Hits among these.
    pub plain_hits: u64,
    /// Answers "not modified".
    pub not_modified: u64,
    /// Right answers without a value: keys that a store does not have.
    pub absent: u64,
    /// Bytes of bodies.
    pub bytes: u64,
    /// Requests that had to wait because every connection was in use.
    pub waited: u64,
    /// Requests sent a second time because the server had ended the kept connection meanwhile.
    pub sent_again: u64,
    /// Requests without a right answer, by [`Fault::ALL`].
    pub faults: [u64; Fault::ALL.len()],
    /// Nanoseconds that the phase lasted.
    pub lasted_ns: u64,
    /// Nanoseconds of CPU time that the generator used in the phase.
    pub cpu_ns: u64,
}

/// One phase's figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measure {
    /// Counts of the phase.
    pub counts: Counts,
    /// From due to the last byte of the answer.
    pub all: Times,
    /// Times of hits.
    pub hits: Times,
    /// Times of misses.
    pub misses: Times,
    /// From due to sent: what the generator and busy connections add.
    pub late: Times,
    /// From due to when the generator saw it: what the generator alone adds.
    pub behind: Times,
}

impl Default for Measure {
    fn default() -> Measure {
        let times = Times::new();
        Measure {
            counts: Counts::default(),
            all: times.clone(),
            hits: times.clone(),
            misses: times.clone(),
            late: times.clone(),
            behind: times,
        }
    }
}

impl Measure {
    /// Counts a right answer that came so many nanoseconds after it was due.
    pub fn answer(&mut self, answer: &Answer, nanoseconds: u64) {
        let counts = &mut self.counts;
        counts.right += 1;
        counts.bytes += answer.bytes;
        counts.not_modified += u64::from(answer.is_not_modified);
        counts.absent += u64::from(answer.is_absent);
        self.all.record(nanoseconds);
        let Some(served) = answer.served else { return };
        counts.plain += u64::from(answer.is_plain);
        match served {
            Served::Hit => {
                counts.hits += 1;
                counts.plain_hits += u64::from(answer.is_plain);
                self.hits.record(nanoseconds);
            }
            Served::Miss => {
                counts.misses += 1;
                self.misses.record(nanoseconds);
            }
        }
    }

    /// Counts a request without a right answer.
    pub fn fault(&mut self, fault: Fault) {
        self.counts.faults[fault as usize] += 1;
    }

    /// Adds the same phase of another process, which ran at the same time.
    pub fn add(&mut self, other: &Measure) {
        let (to, from) = (&mut self.counts, &other.counts);
        let sums: [(&mut u64, u64); 13] = [
            (&mut to.due, from.due),
            (&mut to.answered_in_time, from.answered_in_time),
            (&mut to.right, from.right),
            (&mut to.hits, from.hits),
            (&mut to.misses, from.misses),
            (&mut to.plain, from.plain),
            (&mut to.plain_hits, from.plain_hits),
            (&mut to.not_modified, from.not_modified),
            (&mut to.absent, from.absent),
            (&mut to.bytes, from.bytes),
            (&mut to.waited, from.waited),
            (&mut to.sent_again, from.sent_again),
            (&mut to.cpu_ns, from.cpu_ns),
        ];
        sums.into_iter().for_each(|(to, from)| *to += from);
        to.faults.iter_mut().zip(from.faults).for_each(|(to, from)| *to += from);
        to.lasted_ns = to.lasted_ns.max(from.lasted_ns);
        for (to, from) in [
            (&mut self.all, &other.all),
            (&mut self.hits, &other.hits),
            (&mut self.misses, &other.misses),
            (&mut self.late, &other.late),
            (&mut self.behind, &other.behind),
        ] {
            to.add(&from.counts());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(served: Option<Served>, is_plain: bool) -> Answer {
        Answer { served, is_plain, is_not_modified: false, is_absent: false, keeps_connection: true, bytes: 10 }
    }

    #[test]
    fn answers_are_counted_as_what_they_are() {
        let mut measure = Measure::default();
        measure.answer(&answer(Some(Served::Hit), true), 1_000_000);
        measure.answer(&answer(Some(Served::Miss), true), 3_000_000);
        measure.answer(&answer(Some(Served::Hit), false), 1_000_000);
        measure.answer(&answer(None, true), 1_000_000);
        let counts = measure.counts;
        assert_eq!((counts.right, counts.hits, counts.misses), (4, 2, 1));
        assert_eq!((counts.plain, counts.plain_hits, counts.bytes), (2, 1, 40));
        assert!((measure.all.mean_ms() - 1.5).abs() < 0.01 && (measure.misses.max_ms() - 3.0).abs() < 0.01);
    }

    #[test]
    fn processes_add_up_after_a_way_through_json() {
        let mut first = Measure::default();
        first.answer(&answer(Some(Served::Hit), true), 1_000_000);
        first.counts.lasted_ns = 5;
        first.fault(Fault::Body);
        let text = serde_json::to_string(&first).expect("writes");
        let read: Measure = serde_json::from_str(&text).expect("reads");
        first.add(&read);
        assert_eq!((first.all.len(), first.hits.len(), first.misses.len()), (2, 2, 0));
        assert_eq!((first.counts.right, first.counts.lasted_ns), (2, 5));
        assert_eq!(first.counts.faults[Fault::Body as usize], 2);
        assert!((first.all.quantile_ms(0.99) - 1.0).abs() < 0.001);
    }
}
