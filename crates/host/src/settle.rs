//! Rule for a measured figure: takes until five in a row lie close together. Also the size at which a series of times
//! jumps.

use super::quiet;
use serde::{Deserialize, Serialize};

/// Takes that must agree.
const AGREEING: usize = 5;
/// Most takes; an unsettled figure is then used as it is, and marked.
const MOST_TAKES: usize = 10;
/// Largest spread of the agreeing takes, as a share of their median.
const STABLE: f64 = 0.10;

/// A measured figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settled {
    /// Median of the last takes.
    pub value: f64,
    /// Spread of these takes, as a share of the median.
    pub spread: f64,
}

impl Settled {
    /// The takes agree.
    pub fn stable(&self) -> bool {
        self.spread < STABLE
    }

    /// Returns these takes in another unit.
    pub fn times(self, factor: f64) -> Settled {
        Settled { value: self.value * factor, ..self }
    }

    /// Returns the median of all takes and their spread.
    pub fn of(takes: &[f64]) -> Option<Settled> {
        let mut sorted: Vec<f64> = takes.iter().copied().filter(|take| take.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (least, most) = (*sorted.first()?, *sorted.last()?);
        let value = sorted[sorted.len() / 2];
        // Takes around nothing lie apart by all that they are; a share that is no number could not be stored.
        let spread = Some((most - least) / value.abs()).filter(|spread| spread.is_finite()).unwrap_or(1.0);
        Some(Settled { value, spread: if most > least { spread } else { 0.0 } })
    }
}

/// Takes that anything else on the machine can only lengthen: their median, or the least where they lie farther apart than
/// the median is large. A cost that only some takes show is no ground for a predicted gain.
pub fn lengthened(takes: &[f64]) -> Option<Settled> {
    let settled = Settled::of(takes)?;
    let least = takes.iter().copied().filter(|take| take.is_finite()).fold(settled.value, f64::min);
    Some(if settled.spread > 1.0 { Settled { value: least, ..settled } } else { settled })
}

/// Takes until five in a row agree, or there are ten. A take without a figure, or one within which the hypervisor took
/// a CPU away, counts as a take and gives no figure.
pub fn settled(take: impl FnMut() -> Option<f64>) -> Option<Settled> {
    settled_beside(quiet::stolen, take)
}

fn settled_beside(stolen: impl Fn() -> Option<u64>, mut take: impl FnMut() -> Option<f64>) -> Option<Settled> {
    let mut kept: Vec<f64> = Vec::new();
    for _ in 0..MOST_TAKES {
        let before = stolen();
        kept.extend(take().filter(|_| stolen() == before));
        let last = &kept[kept.len().saturating_sub(AGREEING)..];
        if let Some(figure) = Settled::of(last).filter(|figure| last.len() == AGREEING && figure.stable()) {
            return Some(figure);
        }
    }
    Settled::of(&kept[kept.len().saturating_sub(AGREEING)..])
}

/// Returns the size at which the times of a rising series jump: the last below the middle between the series' first
/// times and its last. `None` if the series rises by less than `least`, as a share of the first times.
pub fn jump(series: &[(u32, f64)], least: f64) -> Option<u32> {
    const EDGE: usize = 3;
    let median = |part: &[(u32, f64)]| Settled::of(&part.iter().map(|at| at.1).collect::<Vec<_>>());
    let low = median(series.get(..EDGE)?)?.value;
    let high = median(series.get(series.len() - EDGE..)?)?.value;
    if high < low * (1.0 + least) {
        return None;
    }
    let below = |at: &&(u32, f64)| at.1 < (low + high) / 2.0;
    series.iter().rev().find(below).map(|at| at.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_that_only_some_takes_show_is_the_least() {
        assert_eq!(lengthened(&[0.1, 3.4, 6.6, 0.2]).map(|figure| figure.value), Some(0.1));
        assert_eq!(lengthened(&[20.0, 24.0, 30.0]).map(|figure| figure.value), Some(24.0));
        assert_eq!(lengthened(&[]), None);
    }

    fn settle(takes: &[f64], stolen: &[u64]) -> Option<Settled> {
        let mut left = takes.iter().copied();
        let looks = std::cell::Cell::new(0);
        let look = || {
            looks.set(looks.get() + 1);
            stolen.get((looks.get() - 1) / 2).map(|ticks| ticks + (looks.get() as u64 - 1) % 2 * ticks)
        };
        settled_beside(look, || left.next())
    }

    #[test]
    fn five_takes_that_agree_are_enough() {
        let figure = settle(&[100.0, 101.0, 99.0, 102.0, 100.5, 500.0], &[]).expect("a figure");
        assert_eq!((figure.value, figure.stable()), (100.5, true));
        assert!((figure.spread - 3.0 / 100.5).abs() < 1e-12);
    }

    #[test]
    fn a_disturbed_beginning_is_waited_out() {
        let figure = settle(&[300.0, 250.0, 100.0, 101.0, 99.0, 102.0, 100.0, 9.0], &[]).expect("a figure");
        assert_eq!((figure.value, figure.spread), (100.0, 0.03));
    }

    #[test]
    fn takes_that_never_agree_are_marked() {
        let takes = [10.0, 20.0, 10.0, 20.0, 10.0, 20.0, 10.0, 20.0, 10.0, 20.0, 15.0];
        let figure = settle(&takes, &[]).expect("a figure");
        assert_eq!((figure.value, figure.spread, figure.stable()), (20.0, 0.5, false));
        assert_eq!(settle(&[], &[]), None);
    }

    #[test]
    fn a_take_from_which_a_cpu_was_taken_does_not_count() {
        // Each number is how many ticks were stolen within a take.
        let figure = settle(&[90.0, 100.0, 100.0, 100.0, 100.0, 100.0], &[7, 0, 0, 0, 0, 0]).expect("a figure");
        assert_eq!((figure.value, figure.spread), (100.0, 0.0));
    }

    #[test]
    fn a_series_jumps_where_it_passes_the_middle_for_good() {
        let series = [(32, 100.0), (64, 101.0), (96, 160.0), (128, 102.0), (160, 190.0), (192, 200.0), (224, 201.0)];
        assert_eq!(jump(&series, 0.3), Some(128));
        assert_eq!(jump(&series, 1.5), None);
        assert_eq!(jump(&series[..2], 0.3), None);
    }
}
