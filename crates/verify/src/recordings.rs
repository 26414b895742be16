//! Compares two sides by recordings of each on the model of a machine, where no clock here can measure them.
//!
//! A recording is dear and its figures are counted, so there are few: the verdict is that of their ranges. The ranges
//! of three and three are apart in one case of ten if the two sides do not differ.

use crate::order::{Coin, Side};
use crate::pairs::summary;
use crate::{Better, Comparison, Error, Outcome, Sample, Stopped, Verdict};
use nearmiss_record::verdict::{MODELLED, SCHEMA, Sides};

/// Recordings of each side, and how often they are apart by chance: 2 of the 20 orders of three and three.
pub const RECORDINGS: usize = 3;
const BY_CHANCE: f64 = 0.1;
/// Ranges that overlap and are no wider than this show no difference.
const RESOLUTION: f64 = 0.03;

/// Records both sides in turn, as a coin from the seed orders each pair, and judges the metric `about`; less is better
/// of all metrics.
pub fn compare_recordings(
    about: &str,
    seed: u64,
    mut record: impl FnMut(Side) -> Result<Sample, Error>,
) -> Result<Verdict, Error> {
    let mut coin = Coin::new(seed);
    let (mut without, mut with, mut order) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RECORDINGS {
        let pair = coin.next_pair();
        for side in pair {
            let sample = record(side)?;
            if side == Side::Without { &mut without } else { &mut with }.push(sample);
        }
        order.push(if pair[0] == Side::Without { "AB" } else { "BA" }.to_owned());
    }
    let of = |metric: &str| ranges(metric, &without, &with);
    let missing = || Error::Parameters(format!("{about}: not every recording has it"));
    let comparison = of(about).ok_or_else(missing)?;
    let names = without.first().into_iter().flat_map(Sample::keys);
    let others = names.filter(|name| *name != about).filter_map(|name| of(name)).collect();
    Ok(Verdict {
        schema: SCHEMA.to_owned(),
        kind: MODELLED.to_owned(),
        remedy: None,
        sides: Sides::default(),
        outcome: outcome(&comparison),
        comparison,
        resolution: RESOLUTION,
        error_rate: BY_CHANCE,
        pairs: RECORDINGS,
        looks: vec![RECORDINGS],
        stopped: Stopped::PlannedEnd,
        seed,
        order,
        others,
        judged: Vec::new(),
        rates: None,
        required_gain: None,
        required_gain_met: None,
        engaged: None,
        start: None,
        predicted: None,
        notes: Vec::new(),
        without,
        with,
    })
}

fn ranges(metric: &str, without: &[Sample], with: &[Sample]) -> Option<Comparison> {
    let values =
        |samples: &[Sample]| samples.iter().map(|sample| sample.get(metric).copied()).collect::<Option<Vec<_>>>();
    let (without, with) = (summary(values(without)?)?, summary(values(with)?)?);
    Some(Comparison {
        metric: metric.to_owned(),
        better: Better::Lower,
        ratio: with.median / without.median,
        interval: None,
        confidence: 1.0 - BY_CHANCE,
        smallest_detectable: None,
        tolerated_loss: 0.0,
        without,
        with,
    })
}

fn outcome(of: &Comparison) -> Outcome {
    let wide = |side: &crate::Summary| side.largest / side.least - 1.0;
    match (of.with.largest < of.without.least, of.without.largest < of.with.least) {
        (true, _) => Outcome::Gain,
        (_, true) => Outcome::Loss,
        _ if wide(&of.without).max(wide(&of.with)) <= RESOLUTION => Outcome::NoDifference,
        _ => Outcome::TooNoisy,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn judged(without: [f64; 3], with: [f64; 3]) -> Verdict {
        let (mut a, mut b) = (without.into_iter(), with.into_iter());
        let next = |side| {
            let value = if side == Side::Without { a.next() } else { b.next() };
            Ok(Sample::from([("cycles".to_owned(), value.unwrap()), ("share".to_owned(), 0.5)]))
        };
        compare_recordings("cycles", 7, next).unwrap()
    }

    #[test]
    fn ranges_that_are_apart_decide_and_others_do_not() {
        assert_eq!(judged([10.0, 11.0, 12.0], [7.0, 8.0, 9.9]).outcome, Outcome::Gain);
        assert_eq!(judged([10.0, 11.0, 12.0], [12.1, 14.0, 13.0]).outcome, Outcome::Loss);
        assert_eq!(judged([10.0, 11.0, 12.0], [7.0, 8.0, 10.0]).outcome, Outcome::TooNoisy);
        assert_eq!(judged([10.0, 10.1, 10.2], [10.1, 10.0, 10.25]).outcome, Outcome::NoDifference);
    }

    #[test]
    fn a_verdict_is_marked_modelled_and_keeps_every_recording() {
        let verdict = judged([10.0, 11.0, 12.0], [7.0, 8.0, 9.0]);
        assert_eq!((verdict.kind.as_str(), verdict.pairs, verdict.order.len()), ("modelled", 3, 3));
        assert_eq!((verdict.comparison.without.median, verdict.comparison.with.median), (11.0, 8.0));
        assert_eq!(verdict.others.len(), 1);
        assert!(compare_recordings("absent", 1, |_| Ok(Sample::new())).is_err());
    }
}
