//! The number of recordings: until every figure is decided, or more recordings would not decide it.

use crate::interval::narrower;
use crate::limits::allowed;
use nearmiss_record::gate::{JudgedFigure, Ruling};

/// A gate fails after no fewer recordings of a side. A figure that has one of two values by chance is apart in three and
/// three recordings once in 32 times, in five and five once in 512.
pub const LEAST_TO_FAIL: usize = 5;

/// Next step after the recordings so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Another recording of each side.
    Record,
    /// The verdict stands.
    Stop,
}

/// Bounds on the recordings of a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// At least.
    pub least: usize,
    /// At most.
    pub most: usize,
    /// The recordings of the old side are those of a baseline: so many. `None`: it is recorded as often as the new side.
    pub kept: Option<usize>,
}

impl Plan {
    /// Returns the next step after so many recordings of the new side.
    pub fn next(&self, judged: &[JudgedFigure], recordings: usize) -> Next {
        if recordings >= self.most {
            return Next::Stop;
        }
        let undecided = judged.iter().any(|figure| self.is_undecided(figure, recordings));
        if recordings < self.least || undecided { Next::Record } else { Next::Stop }
    }

    /// The mean is beyond the limit: it may be so certainly, after more recordings.
    fn is_undecided(&self, figure: &JudgedFigure, recordings: usize) -> bool {
        let over = figure.difference - allowed(figure.limit, figure.old);
        if figure.ruling == Ruling::Beyond {
            return recordings < LEAST_TO_FAIL;
        }
        let sides = |new| [self.kept.unwrap_or(new), new];
        over > 0.0 && over > figure.noise * narrower(sides(recordings), sides(self.most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearmiss_record::gate::Limit;

    const PLAN: Plan = Plan { least: 3, most: 10, kept: None };

    fn judged(difference: f64, noise: f64, ruling: Ruling) -> JudgedFigure {
        let (name, limit) = ("user.l2".to_owned(), Limit::Share(0.02));
        JudgedFigure { name, old: 1e4, new: 1e4 + difference, difference, noise, limit, ruling, causes: vec![] }
    }

    #[test]
    fn recordings_go_on_until_a_mean_beyond_its_limit_is_certain() {
        let same = || judged(0.0, 0.0, Ruling::NoDifference);
        let at = |recordings, figure: JudgedFigure| PLAN.next(&[same(), figure], recordings);
        assert_eq!(at(2, same()), Next::Record, "at least three");
        assert_eq!(at(3, judged(100.0, 10.0, Ruling::Within)), Next::Stop, "inside the limit");
        assert_eq!(at(3, judged(-5000.0, 1.0, Ruling::Better)), Next::Stop);
        // After ten recordings the noise of three is a quarter of what it was, and may be three fifths of that.
        assert_eq!(
            at(3, judged(300.0, 660.0, Ruling::NoDifference)),
            Next::Record,
            "100 too many, noise of 99 to come"
        );
        assert_eq!(at(3, judged(300.0, 680.0, Ruling::NoDifference)), Next::Stop, "no recordings would decide it");
        assert_eq!(at(9, judged(300.0, 102.0, Ruling::Unclear)), Next::Record);
        assert_eq!(at(10, judged(300.0, 110.0, Ruling::Unclear)), Next::Stop, "at most ten");
        let beyond = || judged(300.0, 0.0, Ruling::Beyond);
        assert_eq!([at(4, beyond()), at(5, beyond())], [Next::Record, Next::Stop]);
    }

    #[test]
    fn the_noise_of_a_baseline_stays() {
        let kept = Plan { kept: Some(3), ..PLAN };
        let figure = [judged(300.0, 500.0, Ruling::NoDifference)];
        assert_eq!([PLAN.next(&figure, 3), kept.next(&figure, 3)], [Next::Record, Next::Stop]);
    }
}
