//! Pages that came back by recorded part, where the kernel's pages were counted over all of the run.

/// Parts with page faults from which on their spread is known.
const LEAST_PARTS: usize = 3;

/// Returns pages that came back, by part. Their spread is that of the whole run's figure.
///
/// Page faults come in bursts, which parts have by chance. `by_recorded` is the number of pages that the kernel cleared in
/// a stretch of the run, by that in one of its parts. Where it is known, only the share of the pages that came back is a
/// sample: each part has that of the run, and what its own pages have beyond (ratio estimate with a known total: Cochran,
/// Sampling Techniques, 6.2).
pub fn pages_by_part(again: &[u64], first_touches: &[u64], instructions: &[u64], by_recorded: Option<f64>) -> Vec<f64> {
    let sum = |figures: &[u64]| figures.iter().sum::<u64>() as f64;
    let times = by_recorded.unwrap_or(1.0);
    let with_faults = first_touches.iter().filter(|pages| **pages > 0).count();
    if by_recorded.is_none() || with_faults < LEAST_PARTS {
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

    #[test]
    fn parts_with_a_burst_by_chance_have_the_pages_of_the_run() {
        let (instructions, first_touches) = ([100; 4], [0, 60, 20, 40]);
        assert_eq!(pages_by_part(&[0, 30, 10, 20], &first_touches, &instructions, None), [0.0, 30.0, 10.0, 20.0]);
        assert_eq!(
            pages_by_part(&[0, 30, 10, 20], &first_touches, &instructions, Some(2.0)),
            [30.0; 4],
            "half of them"
        );
        let unlike = pages_by_part(&[0, 60, 0, 0], &first_touches, &instructions, Some(1.0));
        assert_eq!(unlike, [15.0, 45.0, 5.0, -5.0], "one burst came back, the others did not");
    }

    #[test]
    fn few_parts_with_page_faults_do_not_show_the_spread() {
        assert_eq!(pages_by_part(&[0, 30, 0], &[0, 60, 60], &[100; 3], Some(2.0)), [0.0, 60.0, 0.0]);
    }
}
