//! Two sides, figure by figure.

use crate::causes::causes;
use crate::figure::rank;
use crate::interval::difference;
use crate::limits::{Limits, allowed};
use nearmiss_record::baseline::Side;
use nearmiss_record::gate::{JudgedFigure, Ruling};
use std::collections::BTreeSet;

/// Figures in the order in which they are read; those beyond their limit with their causes.
pub fn judge(old: &Side, new: &Side, limits: &Limits) -> Vec<JudgedFigure> {
    let names: BTreeSet<&String> = old.figures.keys().chain(new.figures.keys()).collect();
    let mut figures: Vec<JudgedFigure> = names.into_iter().map(|name| figure(name, old, new, limits)).collect();
    figures.sort_by(|a, b| rank(&a.name).cmp(&rank(&b.name)));
    figures
}

fn figure(name: &str, old: &Side, new: &Side, limits: &Limits) -> JudgedFigure {
    // A system call that a side never makes is counted 0 times there.
    let counts = |side: &Side| side.figures.get(name).cloned().unwrap_or_else(|| vec![0; side.recordings()]);
    let found = difference(&counts(old), &counts(new));
    let (limit, difference) = (limits.of(name), found.new - found.old);
    let ruling = ruling(difference, found.noise, allowed(limit, found.old));
    let causes = if ruling == Ruling::Beyond { causes(name, difference, old, new) } else { Vec::new() };
    JudgedFigure {
        name: name.to_owned(),
        old: found.old,
        new: found.new,
        difference,
        noise: found.noise,
        limit,
        ruling,
        causes,
    }
}

fn ruling(difference: f64, noise: f64, allowed: f64) -> Ruling {
    match difference {
        d if d - noise > allowed => Ruling::Beyond,
        d if d.abs() <= noise || d == 0.0 => Ruling::NoDifference,
        d if d < 0.0 => Ruling::Better,
        d if d > allowed => Ruling::Unclear,
        _ => Ruling::Within,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn side(figures: &[(&str, &[u64])]) -> Side {
        Side {
            figures: figures.iter().map(|(name, counts)| ((*name).to_owned(), counts.to_vec())).collect(),
            ..Side::default()
        }
    }

    #[test]
    fn a_difference_inside_the_noise_is_none() {
        assert_eq!(ruling(30.0, 31.0, 20.0), Ruling::NoDifference);
        assert_eq!(ruling(30.0, 15.0, 20.0), Ruling::Unclear);
        assert_eq!(ruling(30.0, 5.0, 20.0), Ruling::Beyond);
        assert_eq!(ruling(10.0, 5.0, 20.0), Ruling::Within);
        assert_eq!(ruling(-10.0, 5.0, 20.0), Ruling::Better);
        assert_eq!([ruling(0.0, 0.0, 0.0), ruling(1.0, 0.0, 0.0)], [Ruling::NoDifference, Ruling::Beyond]);
        assert_eq!(ruling(20.0, 0.0, 20.0), Ruling::Within, "the limit itself is allowed");
    }

    #[test]
    fn a_system_call_that_is_new_was_made_no_times_before() {
        let old = side(&[("user.instructions", &[1000, 1000, 1000])]);
        let new = side(&[("user.instructions", &[1010, 1010, 1010]), ("syscalls.read", &[3, 3, 3])]);
        let judged = judge(&old, &new, &Limits::default());
        let seen: Vec<_> = judged.iter().map(|it| (it.name.as_str(), it.old, it.new, it.ruling)).collect();
        assert_eq!(
            seen,
            [("user.instructions", 1000.0, 1010.0, Ruling::Within), ("syscalls.read", 0.0, 3.0, Ruling::Beyond)]
        );
    }
}
