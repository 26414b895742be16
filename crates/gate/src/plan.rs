//! How often both sides are recorded: until every figure is decided.

use crate::limits::allowed;
use nearmiss_record::gate::{Judged, Ruling};

/// A gate fails after no fewer recordings of a side. A figure that has one of two values by chance is apart in three and
/// three recordings once in 32 times, in five and five once in 512.
pub const LEAST_TO_FAIL: usize = 5;

/// What follows from the recordings so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Another recording of each side.
    Record,
    /// The verdict stands.
    Stop,
}

/// After so many recordings of the new side, of which there shall be at least and at most so many.
pub fn next(judged: &[Judged], recordings: usize, least: usize, most: usize) -> Next {
    if recordings >= most {
        return Next::Stop;
    }
    let undecided = judged.iter().any(|figure| is_undecided(figure, recordings));
    if recordings < least || undecided { Next::Record } else { Next::Stop }
}

/// The mean is beyond the limit: is it so certainly?
fn is_undecided(figure: &Judged, recordings: usize) -> bool {
    let beyond = figure.difference > allowed(figure.limit, figure.old);
    beyond && (figure.ruling != Ruling::Beyond || recordings < LEAST_TO_FAIL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearmiss_record::gate::Limit;

    fn judged(difference: f64, ruling: Ruling) -> Judged {
        let limit = Limit::Share(0.02);
        Judged {
            name: "user.l2".into(),
            old: 1e4,
            new: 1e4 + difference,
            difference,
            noise: 0.0,
            limit,
            ruling,
            causes: vec![],
        }
    }

    #[test]
    fn recordings_go_on_until_a_mean_beyond_its_limit_is_certain() {
        let at = |recordings, figure: Judged| next(&[judged(0.0, Ruling::NoDifference), figure], recordings, 3, 10);
        assert_eq!(at(2, judged(0.0, Ruling::NoDifference)), Next::Record, "at least three");
        assert_eq!(at(3, judged(100.0, Ruling::Within)), Next::Stop, "inside the limit");
        assert_eq!(at(3, judged(-5000.0, Ruling::Better)), Next::Stop);
        assert_eq!(at(3, judged(300.0, Ruling::NoDifference)), Next::Record, "noise may hide it");
        assert_eq!(at(9, judged(300.0, Ruling::Unclear)), Next::Record);
        assert_eq!(at(10, judged(300.0, Ruling::Unclear)), Next::Stop, "at most ten");
        assert_eq!(
            [at(4, judged(300.0, Ruling::Beyond)), at(5, judged(300.0, Ruling::Beyond))],
            [Next::Record, Next::Stop]
        );
    }
}
