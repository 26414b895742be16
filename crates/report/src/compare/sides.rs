//! Two sides of a comparison: figures of each run become their means, and the noise that they show.

use nearmiss_gate::difference;
use nearmiss_record::comparison::Figures;

/// Runs of side A and of side B.
pub type Sides<'a, R> = [&'a [R]; 2];

/// One figure of each run of both sides.
pub fn both<R>(sides: Sides<'_, R>, figure: impl Fn(&R) -> u64) -> Figures {
    figures(&sides.map(|runs| runs.iter().map(&figure).collect()))
}

/// Figures of the runs of both sides, as one.
pub fn figures(counts: &[Vec<u64>; 2]) -> Figures {
    let [before, after] = counts;
    if let ([before], [after]) = (&before[..], &after[..]) {
        return Figures::new(*before, *after);
    }
    let found = difference(before, after);
    let whole = |mean: f64| mean.round() as u64;
    Figures { noise: Some(found.noise.ceil() as u64), ..Figures::new(whole(found.old), whole(found.new)) }
}

/// The names of the runs of both sides: A and B, or A1, A2 …
pub fn letters(counts: [usize; 2]) -> [Vec<String>; 2] {
    let names = |letter: &str, count: usize| match count {
        0 | 1 => vec![letter.to_owned()],
        _ => (1..=count).map(|at| format!("{letter}{at}")).collect(),
    };
    [names("A", counts[0]), names("B", counts[1])]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_a_side_has_no_noise_that_is_known() {
        assert_eq!(figures(&[vec![10], vec![14]]), Figures::new(10, 14));
    }

    #[test]
    fn several_runs_become_means_with_students_interval() {
        // Three and three, each with a variance of 100: t(4) at 99.95% is 8.610.
        let found = figures(&[vec![90, 100, 110], vec![190, 200, 210]]);
        assert_eq!(found, Figures { noise: Some(71), ..Figures::new(100, 200) });
        assert_eq!(figures(&[vec![7, 7], vec![9]]), Figures { noise: Some(0), ..Figures::new(7, 9) });
    }

    #[test]
    fn runs_are_numbered_where_a_side_has_several() {
        assert_eq!(letters([1, 2]), [vec!["A".to_owned()], vec!["B1".to_owned(), "B2".to_owned()]]);
    }
}
