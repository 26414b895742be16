//! Moments that stand for a whole run: each stretch of it is stood for by one that ran the same functions.
//!
//! The method is SimPoint's (Sherwood, Perelman, Hamerly, Calder: Automatically Characterizing Large Scale Program
//! Behavior, ASPLOS 2002): vectors of code, their Manhattan distances, and shares of the run as weights. Functions with
//! their sampled CPU time take the place of counted basic blocks. Candidates are so few that every choice is compared.

use nearmiss_record::observed::Profile;
use std::collections::HashMap;
use std::time::Duration;

/// Moments that are recorded, and how many where the stretches of a run are more unlike.
const MOMENTS: usize = 3;
const MOST_MOMENTS: usize = 4;
/// One moment more must stand for so much of the run that the others did not stand for.
const WORTH_ONE_MORE: f64 = 0.1;
/// Weight of the distance in time beside that in code: among like stretches the middle ones are chosen.
const OF_TIME: f64 = 0.05;

/// A moment that was chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    /// Index of the moment among the candidates.
    pub at: usize,
    /// Share of the run that the moment stands for.
    pub share: f64,
}

/// Returns at most four of the candidates, in their order: their times ascend. Stretches
/// of a run of this length are alike unless samples are of other code.
pub fn standing(candidates: &[Duration], whole: Duration, profile: &Profile) -> Vec<Standing> {
    let stretches = stretches(candidates, whole, profile);
    let best = |many: usize| {
        let all = choices(stretches.len(), many).into_iter().map(|chosen| (cost(&stretches, &chosen), chosen));
        all.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default()
    };
    let (cost_of_few, few) = best(MOMENTS.min(candidates.len()));
    let (cost_of_more, more) = best(MOST_MOMENTS.min(candidates.len()));
    let chosen = if cost_of_few - cost_of_more >= WORTH_ONE_MORE { more } else { few };
    let mut standing: Vec<Standing> = chosen.iter().map(|at| Standing { at: *at, share: 0.0 }).collect();
    for stretch in &stretches {
        if let Some((nearest, _)) = nearest(&stretches, &chosen, stretch) {
            standing[nearest].share += stretch.share;
        }
    }
    standing
}

/// The part of a run that is nearest to one candidate.
struct Stretch {
    /// Time of the candidate, as a share of the run.
    at: f64,
    /// The stretch's share of the run's CPU time.
    share: f64,
    /// Share of each function in the stretch's CPU time.
    functions: HashMap<(String, String), f64>,
}

fn stretches(candidates: &[Duration], whole: Duration, profile: &Profile) -> Vec<Stretch> {
    let whole_ns = (whole.as_nanos() as f64).max(1.0);
    let at = |moment: &Duration| moment.as_nanos() as f64 / whole_ns;
    let mut stretches: Vec<Stretch> =
        candidates.iter().map(|moment| Stretch { at: at(moment), share: 0.0, functions: HashMap::new() }).collect();
    let clock = profile.events.iter().position(|event| event.role == "clock");
    for sample in profile.samples.iter().filter(|sample| Some(sample.event as usize) == clock) {
        let time = sample.at_ns as f64 / whole_ns;
        let nearest = stretches.iter_mut().min_by(|a, b| (a.at - time).abs().total_cmp(&(b.at - time).abs()));
        let leaf = profile.stacks.get(sample.stack as usize).and_then(|stack| stack.first());
        let (Some(stretch), Some(frame)) = (nearest, leaf.and_then(|leaf| profile.frames.get(*leaf as usize))) else {
            continue;
        };
        stretch.share += sample.weight as f64;
        *stretch.functions.entry((frame.module.clone(), frame.function.clone())).or_default() += sample.weight as f64;
    }
    for stretch in &mut stretches {
        stretch.functions.values_mut().for_each(|time| *time /= stretch.share);
    }
    let time: f64 = stretches.iter().map(|stretch| stretch.share).sum();
    let equal = 1.0 / stretches.len().max(1) as f64;
    stretches.iter_mut().for_each(|stretch| stretch.share = if time > 0.0 { stretch.share / time } else { equal });
    stretches
}

/// How unlike two stretches are: 0 with the same functions in equal shares, 1 without a common one; little more with
/// time between them.
fn unlike(a: &Stretch, b: &Stretch) -> f64 {
    let of = |stretch: &Stretch, function| stretch.functions.get(function).copied().unwrap_or(0.0);
    let common: f64 = a.functions.iter().map(|(function, share)| share.min(of(b, function))).sum();
    let code = if a.functions.is_empty() && b.functions.is_empty() { 0.0 } else { 1.0 - common };
    code + OF_TIME * (a.at - b.at).abs()
}

/// The chosen one that is least unlike, as its position among them, and how unlike it is.
fn nearest(stretches: &[Stretch], chosen: &[usize], of: &Stretch) -> Option<(usize, f64)> {
    let distances = chosen.iter().map(|at| unlike(&stretches[*at], of)).enumerate();
    distances.min_by(|a, b| a.1.total_cmp(&b.1))
}

/// Share of the run that no chosen moment stands for.
fn cost(stretches: &[Stretch], chosen: &[usize]) -> f64 {
    let of = |stretch: &Stretch| nearest(stretches, chosen, stretch).map_or(1.0, |(_, unlike)| unlike);
    stretches.iter().map(|stretch| stretch.share * of(stretch)).sum()
}

/// All choices of so many of `of` indices, each ascending.
fn choices(of: usize, many: usize) -> Vec<Vec<usize>> {
    match many {
        0 => vec![Vec::new()],
        _ => (many - 1..of)
            .flat_map(|last| {
                choices(last, many - 1).into_iter().map(move |mut before| {
                    before.push(last);
                    before
                })
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearmiss_record::observed::{Event, Frame, Sample};

    /// A sample in the middle of each second of a run, in the function of this letter.
    fn profile(letters: &str) -> Profile {
        let frame = |name: char| Frame { function: name.to_string(), ..Frame::default() };
        let sample = |(second, letter): (usize, char)| Sample {
            at_ns: second as u64 * 1_000_000_000 + 500_000_000,
            stack: letter as u32 - 'a' as u32,
            weight: 1_000_000,
            ..Sample::default()
        };
        Profile {
            events: vec![Event { role: "clock".to_owned(), ..Event::default() }],
            frames: ('a'..='z').map(frame).collect(),
            stacks: (0..26).map(|frame| vec![frame]).collect(),
            samples: letters.chars().enumerate().map(sample).collect(),
            ..Profile::default()
        }
    }

    /// Seconds of the chosen moments and the shares of the run in percent.
    fn chosen(letters: &str, candidates: &[u64]) -> Vec<(u64, u64)> {
        let times: Vec<Duration> = candidates.iter().map(|second| Duration::from_secs(*second)).collect();
        let whole = Duration::from_secs(letters.len() as u64);
        let standing = standing(&times, whole, &profile(letters));
        standing.iter().map(|one| (candidates[one.at], (100.0 * one.share).round() as u64)).collect()
    }

    #[test]
    fn each_phase_has_a_moment_however_short_it_is() {
        // Equal parts of the run would have missed `b`.
        assert_eq!(chosen("aaaaaaaaaabbcccccc", &[1, 3, 5, 7, 9, 11, 13, 15, 17]), [(5, 56), (11, 11), (15, 33)]);
    }

    #[test]
    fn a_run_of_one_phase_has_its_moments_in_the_middles_of_its_parts() {
        let middles = [(3, 33), (9, 33), (15, 33)];
        assert_eq!(chosen("aaaaaaaaaaaaaaaaaa", &[1, 3, 5, 7, 9, 11, 13, 15, 17]), middles);
        let times = [1, 3, 5, 7, 9, 11, 13, 15, 17].map(Duration::from_secs);
        let unsampled = standing(&times, Duration::from_secs(18), &Profile::default());
        assert_eq!(unsampled.iter().map(|one| one.at).collect::<Vec<_>>(), [1, 4, 7]);
    }

    #[test]
    fn a_phase_that_comes_again_is_stood_for_once() {
        assert_eq!(chosen("aabbaabbaaccddaabb", &[1, 3, 5, 7, 9, 11, 13, 15, 17]).len(), 4);
        let of_three = chosen("aabbaabbaabbaabbcc", &[1, 3, 5, 7, 9, 11, 13, 15, 17]);
        assert_eq!(of_three.iter().map(|one| one.1).collect::<Vec<_>>(), [44, 44, 11]);
    }

    #[test]
    fn few_candidates_are_all_chosen() {
        assert_eq!(chosen("aab", &[1, 2]).len(), 2);
        assert_eq!(chosen("aab", &[]), []);
    }

    #[test]
    fn all_choices_are_compared() {
        assert_eq!(choices(3, 2), [vec![0, 1], vec![0, 2], vec![1, 2]]);
        assert_eq!((choices(11, 4).len(), choices(2, 0).len()), (330, 1));
    }
}
