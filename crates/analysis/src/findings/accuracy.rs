//! Base of a predicted gain: measured cycles if there are any, else modelled cycles with their known error.

use crate::placements::AGREED_BY_THREE;
use nearmiss_record::finding::{EvidenceKind, Finding, LEAST_GAIN, Measured, Prediction};
use nearmiss_record::machine::Machine;
use nearmiss_record::words::percent;

/// Modelled cycles beside measured ones, over a suite of programs on one CPU: a line of `source`, which a test compares.
struct Accuracy {
    cpu: &'static str,
    source: &'static str,
    programs: u32,
    /// Programs with modelled cycles within 30% of the measured ones.
    near: u32,
    median_error_percent: u32,
}

const ZEN_5: &str = "experiments/cycles/zen5.txt";
const EMERALD_RAPIDS: &str = "experiments/cycles/emerald-rapids.txt";
/// One share of each miss is hidden.
const OVERLAP: &[Accuracy] =
    &[Accuracy { cpu: "a Zen 5", source: ZEN_5, programs: 20, near: 2, median_error_percent: 64 }];
/// Cores are modelled.
const CORES: &[Accuracy] = &[
    Accuracy { cpu: "a Zen 5", source: ZEN_5, programs: 20, near: 16, median_error_percent: 13 },
    Accuracy { cpu: "an Emerald Rapids", source: EMERALD_RAPIDS, programs: 20, near: 16, median_error_percent: 10 },
];

/// Modelled cycles by measured ones beyond which a gain is no figure to the digit.
const COMPARABLE: std::ops::RangeInclusive<f64> = 0.5..=2.0;

/// Caps a gain at its bound: savings of its replays beyond it have other causes.
pub(crate) fn within_its_bound(finding: &mut Finding, most_gain: f64) {
    let bound = most_gain.max(finding.evidence.most_gain);
    let prediction = &mut finding.prediction;
    if finding.known == EvidenceKind::Measured || prediction.gain.max(prediction.high) <= bound {
        return;
    }
    prediction.approximate.push(format!(
        "its replays save {}, more than the {} that wait for what it remedies: the rest is chance",
        percent(prediction.gain.max(prediction.high)),
        percent(bound)
    ));
    for share in [&mut prediction.gain, &mut prediction.low, &mut prediction.high] {
        *share = share.min(bound);
    }
}

/// A gain that one part makes to this share, and no other part has, is no finding where the whole run may have none.
const BY_ONE_PART: f64 = 2.0 / 3.0;
/// A smaller gain is none where the whole run may have none, in however many parts it is made.
const SURE: f64 = 0.1;

/// Widens a gain's range by the uncertainty of the recorded parts about the whole run. Returns the sentence that
/// replaces the finding where they leave open whether there is a gain, and it is small or one part makes most of it.
pub(crate) fn for_the_whole_run(finding: &mut Finding) -> Option<String> {
    let prediction = &mut finding.prediction;
    let whole = prediction.of_whole_run.take()?;
    if prediction.gain < LEAST_GAIN {
        return None;
    }
    let (low, high) = (percent(whole.low), percent(whole.high.min(1.0)));
    let is_by_one_part = whole.by_one_part > BY_ONE_PART && whole.gaining_parts < 2;
    if whole.low <= 0.0 && (is_by_one_part || prediction.gain < SURE) {
        return Some(format!(
            "{} would save {} of the recorded parts' cycles, {} of that in one part: of the whole run it saves anything from \
             {low} to {high} (95% confidence), so it is no finding yet. Record more: --within 5m.",
            finding.remedy,
            percent(prediction.gain),
            percent(whole.by_one_part.min(1.0)),
        ));
    }
    prediction.approximate.push(format!(
        "the recorded parts are a sample of what the guest ran: of all of that {low} to {high} are saved (95% \
         confidence)"
    ));
    prediction.low = prediction.low.min(whole.low);
    prediction.high = prediction.high.max(whole.high.min(1.0));
    None
}

/// Notes that others' load moves a gain, where its placements lie apart: in each second one they are at rest.
pub(crate) fn beside_others(prediction: &mut Prediction, machine: &Machine) {
    let Some(shared) = machine.caches.iter().find(|cache| cache.others_lines > 0) else { return };
    if prediction.placements.len() > 1 && prediction.high - prediction.low > AGREED_BY_THREE {
        prediction.approximate.push(format!(
            "others push lines out of L{}, and rest in each second placement: at another hour the gain may lie anywhere \
             in its range",
            shared.level
        ));
    }
}

/// Notes how good the modelled cycles behind the gain are.
pub(crate) fn by_modelled_cycles(prediction: &mut Prediction) {
    let suites = if prediction.overlap.is_some() { OVERLAP } else { CORES };
    let on = |suite: &Accuracy| {
        let Accuracy { cpu, source, programs, near, median_error_percent } = suite;
        format!("in {near} of {programs} programs on {cpu} (median error {median_error_percent}%, {source})")
    };
    prediction.approximate.push(format!(
        "modelled cycles lie within 30% of measured ones {}; --measure runs the command here, and takes its own time",
        suites.iter().map(on).collect::<Vec<_>>().join(" and ")
    ));
}

/// Makes the gain a share of the measured cycles: only the saved cycles are modelled.
pub(crate) fn by_measured_cycles(prediction: &mut Prediction, measured: &Measured) {
    let ratio = prediction.modelled_cycles as f64 / measured.cycles.max(1) as f64;
    if prediction.high * ratio > 1.0 {
        prediction.approximate.push(format!(
            "the model saves up to {} of the measured cycles, which cannot be: it waits too long here",
            percent(prediction.high * ratio)
        ));
    }
    for share in [&mut prediction.gain, &mut prediction.low, &mut prediction.high] {
        *share = (*share * ratio).min(1.0);
    }
    if !COMPARABLE.contains(&ratio) {
        prediction.approximate.push(format!(
            "the model gives the command {ratio:.1} times the cycles that were measured, so that the gain is no figure to \
             the digit: it is rounded to tens"
        ));
        for share in [&mut prediction.gain, &mut prediction.low, &mut prediction.high] {
            *share = to_tens(*share);
        }
    }
    prediction.measured_cycles = Some(measured.cycles);
    prediction.of = std::mem::take(&mut prediction.of).measured();
}

/// Rounds a share to tens of percent; a share below 10% stays.
fn to_tens(share: f64) -> f64 {
    if share.abs() < 0.1 { share } else { (share * 10.0).round() / 10.0 }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use nearmiss_record::finding::{Base, Evidence, Reach, SavingRange};

    fn finding(known: EvidenceKind, prediction: Prediction) -> Finding {
        Finding {
            remedy: "any".to_owned(),
            known,
            symptom: String::new(),
            cause: String::new(),
            evidence: Evidence { most_gain: 0.007, ..Evidence::default() },
            treatment: String::new(),
            reach: Reach::Outside,
            prediction,
            unless: Vec::new(),
            apply: None,
            verify: None,
        }
    }

    #[test]
    fn others_are_named_where_they_move_a_gain() {
        let mut machine = nearmiss_machine::describe::preset("zen4-genoa").unwrap().machine().unwrap();
        let noted = |machine: &Machine, low| {
            let placements = vec![1, 2, 3];
            let mut prediction = Prediction { gain: 0.6, low, high: 0.6, placements, ..Prediction::default() };
            beside_others(&mut prediction, machine);
            prediction.approximate.len()
        };
        assert_eq!(noted(&machine, 0.4), 0, "nobody else is there");
        machine.caches.last_mut().unwrap().others_lines = 900;
        assert_eq!((noted(&machine, 0.4), noted(&machine, 0.58)), (1, 0));
    }

    #[test]
    fn a_gain_that_the_whole_run_may_not_have_is_no_finding() {
        let of_gain = |gain, low, by_one_part, gaining_parts| {
            let of_whole_run = Some(SavingRange { low, high: 0.2, by_one_part, gaining_parts });
            let gain = Prediction { gain, low: 0.09, high: 0.11, of_whole_run, ..Prediction::default() };
            let mut finding = finding(EvidenceKind::Modelled, gain);
            let doubt = for_the_whole_run(&mut finding);
            (doubt.is_some(), finding.prediction.low, finding.prediction.high)
        };
        let of = |low, by_one_part, gaining_parts| of_gain(0.1, low, by_one_part, gaining_parts);
        assert_eq!(of_gain(0.09, -0.05, 0.4, 5), (true, 0.09, 0.11), "small, and perhaps none");
        assert_eq!(of_gain(0.09, 0.01, 0.4, 5), (false, 0.01, 0.2));
        assert_eq!(of(-0.05, 0.9, 1), (true, 0.09, 0.11));
        assert_eq!(of(-0.05, 0.9, 2), (false, -0.05, 0.2), "another part gains less");
        assert_eq!(of(-0.05, 0.4, 0), (false, -0.05, 0.2), "several parts gain");
        assert_eq!(of(0.02, 0.9, 1), (false, 0.02, 0.2), "the whole run gains something");
    }

    #[test]
    fn no_gain_exceeds_its_bound() {
        let of = |known, most_gain| {
            let gain = Prediction { gain: 0.058, low: -0.1, high: 0.06, ..Prediction::default() };
            let mut finding = finding(known, gain);
            within_its_bound(&mut finding, most_gain);
            let capped = finding.prediction;
            (capped.gain, capped.low, capped.high, capped.approximate.len())
        };
        assert_eq!(of(EvidenceKind::Modelled, 0.005), (0.007, -0.1, 0.007, 1));
        assert_eq!(of(EvidenceKind::Modelled, 0.06), (0.058, -0.1, 0.06, 0));
        assert_eq!(of(EvidenceKind::Measured, 0.005), (0.058, -0.1, 0.06, 0));
    }

    fn prediction() -> Prediction {
        Prediction {
            gain: 0.3,
            low: 0.2,
            high: 0.4,
            modelled_cycles: 1_000,
            of: Base::Cycles { measured: false, at_most: true },
            ..Prediction::default()
        }
    }

    #[test]
    fn the_saving_is_a_share_of_the_measured_cycles() {
        let mut scaled = prediction();
        by_measured_cycles(&mut scaled, &Measured { cycles: 2_000, ..Measured::default() });
        assert_eq!([scaled.gain, scaled.low, scaled.high], [0.15, 0.1, 0.2]);
        assert_eq!(
            (scaled.measured_cycles, scaled.of.to_string().as_str()),
            (Some(2_000), "the measured cycles at most")
        );
        assert!(scaled.approximate.is_empty());
    }

    #[test]
    fn no_more_is_saved_than_was_measured() {
        let mut scaled = prediction();
        by_measured_cycles(&mut scaled, &Measured { cycles: 320, ..Measured::default() });
        assert_eq!([scaled.gain, scaled.low, scaled.high], [0.9, 0.6, 1.0], "the model is three times too slow");
        assert!(scaled.approximate[0].starts_with("the model saves up to 125% of the measured cycles"));
    }

    #[test]
    fn how_good_the_model_is_follows_from_its_cores() {
        let note = |overlap| {
            let mut modelled = Prediction { overlap, ..prediction() };
            by_modelled_cycles(&mut modelled);
            assert_eq!((modelled.gain, modelled.measured_cycles), (0.3, None));
            modelled.approximate.remove(0)
        };
        assert!(
            note(Some(0.6))
                .contains(" in 2 of 20 programs on a Zen 5 (median error 64%, experiments/cycles/zen5.txt); ")
        );
        assert!(
            note(None)
                .contains(" in 16 of 20 programs on a Zen 5 (median error 13%, experiments/cycles/zen5.txt) and in ")
        );
        assert!(note(None).contains(" and in 16 of 20 programs on an Emerald Rapids (median error 10%, experiments/"));
    }

    /// `host: within 30%: 3 of 20; of memory-bound programs …; median error 73%`
    #[test]
    fn the_figures_are_those_of_the_suites() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let of = |machine, suites: &'static [Accuracy]| suites.iter().map(move |suite| (machine, suite));
        for (machine, suite) in of("host-overlap", OVERLAP).chain(of("host", CORES)) {
            let Accuracy { source, programs, near, median_error_percent, .. } = suite;
            let text = std::fs::read_to_string(root.join(source)).unwrap();
            let line = text.lines().find(|line| line.starts_with(&format!("{machine}: within"))).unwrap();
            assert!(line.contains(&format!("within 30%: {near} of {programs};")), "{line}");
            assert!(line.ends_with(&format!("median error {median_error_percent}%")), "{line}");
        }
    }
}
