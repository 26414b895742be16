//! Which cells come next.
//!
//! Round `n` is the `n`th repetition of every case, shuffled. After the requested rounds come those of the cases with
//! repetitions that differ much so far. A round follows from the seed and from the rounds before, so that a lab that
//! was interrupted goes on as if it had not been.

use crate::Ended;
use crate::case::MatrixCase;
use crate::spec::{Spec, Spread};
use nearmiss_verify::summary;
use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;

/// The cells that have ended, by identifier.
pub(crate) type EndedCells = BTreeMap<String, Ended>;

/// A cell: the index of its case, and the repetition.
pub(crate) type Cell = (usize, u32);

/// The cells of a round, in order. None: the lab has ended.
pub(crate) fn round(spec: &Spec, cases: &[MatrixCase], ended: &EndedCells, round: u32) -> Option<Vec<Cell>> {
    let wanted = |index: &usize| round <= spec.repetitions || is_wide(&spec.spread, &cases[*index], ended, round);
    let mut order: Vec<usize> = match round <= spec.most_repetitions() {
        true => (0..cases.len()).filter(wanted).collect(),
        false => Vec::new(),
    };
    // Every round has numbers of its own: the orders are independent.
    let seed = spec.seed.wrapping_add(u64::from(round).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    order.shuffle(&mut Pcg64Mcg::seed_from_u64(seed));
    (!order.is_empty()).then(|| order.into_iter().map(|case| (case, round)).collect())
}

/// The cells that have not ended, from a round on, as far as they are known to come: the requested repetitions, then a
/// round at a time.
pub(crate) fn left(spec: &Spec, cases: &[MatrixCase], ended: &EndedCells, from: u32) -> Vec<Cell> {
    let left_of = |number| -> Option<Vec<Cell>> {
        let cells = round(spec, cases, ended, number)?;
        Some(cells.into_iter().filter(|(case, n)| !ended.contains_key(&cases[*case].cell(*n))).collect())
    };
    let first = (from..).map_while(|number| Some((number, left_of(number)?))).find(|(_, cells)| !cells.is_empty());
    let Some((number, mut cells)) = first else { return Vec::new() };
    cells.extend((number + 1..=spec.repetitions).filter_map(left_of).flatten());
    cells
}

/// Whether the repetitions before a round differ so much that more are needed.
pub(crate) fn is_wide(rule: &Spread, case: &MatrixCase, ended: &EndedCells, before: u32) -> bool {
    let cells = (1..before).filter_map(|repetition| ended.get(&case.cell(repetition)));
    let of = summary(cells.filter_map(|cell| cell.figure(&rule.metric)).collect());
    of.is_some_and(|of| of.largest - of.least > rule.wide * of.median.abs())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::Changes;
    use crate::case::cases;
    use std::path::Path;

    fn spec(seed: u64) -> Spec {
        let text = format!(
            "name = 'x'\nseed = {seed}\nrepetitions = 3\nspread = {{ wide = 0.5, repetitions = 5 }}\n\
             [[workload]]\nname = 'a'\ncommand = ['true']\n[[workload]]\nname = 'b'\ncommand = ['true']\n\
             [[axis]]\nname = 'v'\n[[axis.level]]\nname = '0'\nenv = {{ V = '0' }}\n[[axis.level]]\nname = '1'\nenv = {{ V = '1' }}\n"
        );
        Spec::parse(Path::new("x"), &text, &Changes::default()).unwrap()
    }

    fn cell(case: &MatrixCase, repetition: u32, wall: f64) -> (String, Ended) {
        let ended = serde_json::json!({
            "cell": case.cell(repetition), "case": case.name, "workload": "", "levels": {}, "repetition": repetition,
            "how": "done", "exit": 0, "took_s": wall, "figures": { "wall_s": wall },
        });
        (case.cell(repetition), serde_json::from_value(ended).unwrap())
    }

    #[test]
    fn every_round_has_every_case_once_in_an_order_of_its_own() {
        let (spec, other) = (spec(1), spec(2));
        let cases = cases(&spec);
        let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names, ["a,v=0", "a,v=1", "b,v=0", "b,v=1"]);
        let of = |spec: &Spec, n| round(spec, &cases, &EndedCells::new(), n).unwrap();
        let rounds: Vec<_> = (1..=3).map(|n| of(&spec, n)).collect();
        for (round, n) in rounds.iter().zip(1..) {
            let mut sorted = round.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..4).map(|case| (case, n)).collect::<Vec<_>>());
        }
        assert_eq!(of(&spec, 2), rounds[1]);
        let orders = |spec: &Spec| (1..=3).map(|n| of(spec, n)).collect::<Vec<_>>();
        assert_ne!(orders(&spec), orders(&other));
    }

    #[test]
    fn only_what_is_wide_is_repeated_and_only_up_to_the_limit() {
        let spec = spec(1);
        let cases = cases(&spec);
        let mut ended = EndedCells::new();
        for case in &cases {
            // For case 1 the largest is half above the least, of the median 1.0 exactly: no more than allowed.
            ended.extend([cell(case, 1, 1.0), cell(case, 2, 1.0), cell(case, 3, 1.0)]);
        }
        assert_eq!(round(&spec, &cases, &ended, 4), None);
        ended.extend([cell(&cases[1], 3, 1.5), cell(&cases[2], 3, 1.6)]);
        assert_eq!(round(&spec, &cases, &ended, 4), Some(vec![(2, 4)]));
        assert_eq!(round(&spec, &cases, &ended, 5), Some(vec![(2, 5)]));
        assert_eq!(round(&spec, &cases, &ended, 6), None);
        // The rest is known a round at a time; a cell in the midst is not forgotten.
        assert_eq!(left(&spec, &cases, &ended, 1), [(2, 4)]);
        ended.extend([cell(&cases[2], 4, 1.0)]);
        assert_eq!(left(&spec, &cases, &ended, 2), [(2, 5)]);
        ended.extend([cell(&cases[2], 5, 1.0)]);
        assert_eq!(left(&spec, &cases, &ended, 1), []);
        ended.remove(&cases[3].cell(2));
        assert_eq!(left(&spec, &cases, &ended, 1), [(3, 2)]);
        assert_eq!(left(&spec, &cases, &EndedCells::new(), 1).len(), 12);
    }
}
