//! Pages that the kernel gave out in all of a run of which parts were recorded.

use crate::traced::Traced;
use nearmiss_record::finding::{EvidenceLine, SavingRange};

/// Halvings of an interval in which a ratio of pages is looked for.
const HALVINGS: usize = 50;

/// How many pages the kernel cleared in a stretch of a run, by those that it cleared in one of its recorded parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountedPages {
    /// The ratio, *measured*.
    pub counted: f64,
    /// The ratio as far as the spread of the parts allows.
    pub allowed: f64,
}

impl CountedPages {
    /// Returns the ratio of a run; none where all of it was recorded, or nothing was counted.
    pub fn of(case: &Traced) -> Option<Self> {
        case.manifest.covered?.cleared_by_recorded().map(Self::as_counted)
    }

    /// Returns this ratio, all of which is allowed.
    pub fn as_counted(counted: f64) -> Self {
        CountedPages { counted, allowed: counted }
    }

    /// Limits the ratio to one at which the gain lies between these ends, `gain_at` a ratio. A phase of page faults that a
    /// remedy does not save, such as a set-up, may lie in a pause. Parts that are alike hold the ratio near one.
    pub fn within(self, ends: SavingRange, gain_at: impl Fn(f64) -> f64) -> Self {
        let allows = |times: f64| (ends.low..=ends.high).contains(&gain_at(times));
        let (mut allowed, mut beyond) = (1.0, self.counted);
        if allows(beyond) {
            return self;
        }
        if !allows(allowed) {
            return CountedPages { allowed, ..self };
        }
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(allowed, beyond);
            *(if allows(middle) { &mut allowed } else { &mut beyond }) = middle;
        }
        CountedPages { allowed, ..self }
    }

    /// Returns what the ratio does to a gain.
    pub fn line(&self) -> EvidenceLine {
        let CountedPages { counted, allowed } = self;
        let gain = match (counted - allowed).abs() < 0.005 {
            true => "that of all the run".to_owned(),
            false => format!("that of {allowed:.2} times, which the spread of the parts allows"),
        };
        let text = format!(
            "the kernel cleared {counted:.2} times as many pages in a second of the run as in one of its recorded \
             parts; the gain is {gain}."
        );
        EvidenceLine::new("Run", text)
    }
}

/// Parts with page faults from which on their spread is known.
const LEAST_PARTS: usize = 3;

/// Returns pages that came back, by part. Their spread is that of the whole run's figure.
///
/// Page faults come in bursts, which parts have by chance. Where their number is known, only the share of the pages that
/// came back is a sample: each part has that of the run, and what its own pages have beyond (ratio estimate with a known
/// total: Cochran, Sampling Techniques, 6.2).
pub fn pages_by_part(
    again: &[u64],
    first_touches: &[u64],
    instructions: &[u64],
    counted: Option<CountedPages>,
) -> Vec<f64> {
    let sum = |figures: &[u64]| figures.iter().sum::<u64>() as f64;
    let times = counted.map_or(1.0, |counted| counted.allowed);
    let with_faults = first_touches.iter().filter(|pages| **pages > 0).count();
    if counted.is_none() || with_faults < LEAST_PARTS {
        return again.iter().map(|pages| *pages as f64 * times).collect();
    }
    let share = sum(again) / sum(first_touches);
    let an_instruction = times * sum(again) / sum(instructions).max(1.0);
    let parts = again.iter().zip(first_touches).zip(instructions);
    parts
        .map(|((again, first_touches), instructions)| {
            an_instruction * *instructions as f64 + times * (*again as f64 - share * *first_touches as f64)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(counted: f64) -> Option<CountedPages> {
        Some(CountedPages::as_counted(counted))
    }

    #[test]
    fn parts_with_a_burst_by_chance_have_the_pages_of_the_run() {
        let (instructions, first_touches) = ([100; 4], [0, 60, 20, 40]);
        assert_eq!(pages_by_part(&[0, 30, 10, 20], &first_touches, &instructions, None), [0.0, 30.0, 10.0, 20.0]);
        assert_eq!(
            pages_by_part(&[0, 30, 10, 20], &first_touches, &instructions, times(2.0)),
            [30.0; 4],
            "half of them"
        );
        let unlike = pages_by_part(&[0, 60, 0, 0], &first_touches, &instructions, times(1.0));
        assert_eq!(unlike, [15.0, 45.0, 5.0, -5.0], "one burst came back, the others did not");
    }

    #[test]
    fn counted_pages_make_no_more_of_the_parts_than_their_spread_allows() {
        let allowed = |counted, (low, high)| {
            let ends = SavingRange { low, high, ..SavingRange::default() };
            CountedPages::as_counted(counted).within(ends, |times| times / 10.0).allowed
        };
        assert_eq!(allowed(5.0, (0.0, 0.5)), 5.0, "as counted");
        assert!((allowed(5.0, (0.05, 0.12)) - 1.2).abs() < 1e-12);
        assert!((allowed(0.2, (0.05, 0.12)) - 0.5).abs() < 1e-12);
        assert_eq!(allowed(5.0, (0.3, 0.4)), 1.0, "the parts' own gain is not between the ends");
    }

    #[test]
    fn few_parts_with_page_faults_do_not_show_the_spread() {
        assert_eq!(pages_by_part(&[0, 30, 0], &[0, 60, 60], &[100; 3], times(2.0)), [0.0, 60.0, 0.0]);
    }
}
