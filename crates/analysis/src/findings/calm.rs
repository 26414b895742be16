//! A run without a finding: nothing to remedy, or waits that no remedy explains.

use crate::{Case, Remedy, Traced};
use nearmiss_record::finding::{LEAST_GAIN, Unexplained};
use nearmiss_record::model::ModelRecord;
use nearmiss_record::waits::{Reason, Waits};
use nearmiss_record::words::{duration, listed, percent};

/// Waits that something could save, below this share of the command's cycles, leave nothing to remedy.
const LEAST_WAIT: f64 = 0.05;
/// Waits that are named.
const NAMED: usize = 3;

/// Results of the remedies when none of them helps.
pub(crate) struct Rehearsed {
    /// Suspicions.
    pub suspected: usize,
    /// The largest that a suspicion could save, as it was modelled.
    pub most: f64,
    /// Largest possible saving in the least favourable order of the CPUs, at the dearest price.
    pub bound: f64,
    /// The largest gain that a rehearsal predicted.
    pub best: f64,
    /// A gain was found that one recorded part makes alone.
    pub doubtful: bool,
    /// Results under other limits.
    pub otherwise: Vec<String>,
}

/// Verdict of a run without a helpful remedy.
pub(crate) enum Calm {
    Healthy(String),
    Unexplained(Unexplained),
}

impl Calm {
    pub(crate) fn of(case: &Case, consulted: &[&Remedy], rehearsed: Rehearsed) -> Self {
        let seen = seen(consulted, &rehearsed);
        let Some(traced) = &case.traced else { return Calm::Healthy(format!("{seen}.")) };
        let why = format!("{}; {seen}.", waiting(traced));
        if can_be_saved(&traced.model) < LEAST_WAIT {
            return Calm::Healthy(why);
        }
        let consulted = consulted.iter().map(|remedy| remedy.name.to_owned()).collect();
        Calm::Unexplained(Unexplained { consulted, why, waits: Waits::new(&traced.model).heaviest(NAMED) })
    }
}

/// Describes the remedies' results.
fn seen(consulted: &[&Remedy], rehearsed: &Rehearsed) -> String {
    if rehearsed.suspected == 0 {
        consulted.iter().map(|remedy| remedy.nothing_found).collect::<Vec<_>>().join(", ")
    } else if rehearsed.bound < LEAST_GAIN {
        format!("what looks like something to remedy costs {} at most", percent(rehearsed.bound))
    } else if rehearsed.most < LEAST_GAIN {
        let waits = percent(rehearsed.most);
        format!(
            "what looks like something to remedy waits {waits} of the cycles as modelled, and may wait longer where the \
            CPUs run in another order"
        )
    } else {
        let best = match percent(rehearsed.best) {
            gain if rehearsed.best > 0.0 => format!("the best remedy that was rehearsed would gain {gain}"),
            _ if rehearsed.doubtful => "what would gain does so in one recorded part alone (see the note)".to_owned(),
            _ => "no remedy that was rehearsed would gain anything".to_owned(),
        };
        [&best].into_iter().chain(&rehearsed.otherwise).map(String::as_str).collect::<Vec<_>>().join("; ")
    }
}

/// Share of the command's cycles in waits that something could save.
fn can_be_saved(model: &ModelRecord) -> f64 {
    let parts = Waits::new(model).of(&model.totals);
    let saved = Reason::ALL.into_iter().filter(|reason| reason.can_be_saved()).map(|reason| parts[reason as usize]);
    saved.sum::<u64>() as f64 / model.totals.cycles.max(1) as f64
}

/// Describes how much was recorded, and what of it waits for which reasons.
fn waiting(traced: &Traced) -> String {
    let (model, totals) = (&traced.model, &traced.model.totals);
    let share = |cycles: u64| percent(cycles as f64 / totals.cycles.max(1) as f64);
    let time = duration(traced.cpu_ns());
    let recorded = match traced.manifest.covered {
        Some(covered) if covered.ended => format!("the {time} of CPU time that were recorded, of a longer run"),
        Some(covered) if covered.has_pauses() => format!("the {time} of CPU time that were recorded"),
        _ => format!("its {time} of CPU time"),
    };
    let reasons = Waits::new(model).reasons(totals);
    let named = reasons.iter().filter(|(_, cycles)| cycles * 100 >= totals.cycles).take(NAMED);
    let named: Vec<String> = named.map(|(words, cycles)| format!("{} for {words}", share(*cycles))).collect();
    let named = if named.is_empty() { String::new() } else { format!(": {}", listed(&named, "and")) };
    let waits = share(totals.stall_cycles);
    let what = if totals.mispredicted_cycles * 100 >= totals.cycles {
        "caches, memory and branches"
    } else {
        "caches and memory"
    };
    format!("{waits} of {recorded} (modelled{}) waits for {what}{named}", beyond_the_parts(model))
}

/// Clause on the share of the waits where what was not recorded counts as well.
fn beyond_the_parts(model: &ModelRecord) -> String {
    let range = model.ranges.as_ref().map(|ranges| ranges.all);
    range.map_or(String::new(), |all| format!("; {} with what lay between the parts", all.words()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(most: f64, bound: f64, best: f64) -> String {
        seen(&[], &Rehearsed { suspected: 1, most, bound, best, doubtful: false, otherwise: Vec::new() })
    }

    #[test]
    fn a_bound_is_printed_where_it_holds_in_every_order_alone() {
        assert_eq!(outcome(0.002, 0.015, 0.0), "what looks like something to remedy costs 1.5% at most");
        let unbounded = outcome(0.002, 0.4, 0.0);
        assert!(unbounded.contains("waits 0.2% of the cycles as modelled") && !unbounded.contains("at most"));
    }

    #[test]
    fn remedies_that_would_lose_are_left_out() {
        assert_eq!(outcome(0.5, 0.5, 0.011), "the best remedy that was rehearsed would gain 1.1%");
        assert_eq!(outcome(0.5, 0.5, -0.49), "no remedy that was rehearsed would gain anything");
    }
}
