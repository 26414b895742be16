//! The rates of a load in words.

use nearmiss_record::verdict::{Comparison, Outcome, Rates, SideRate, Verdict};
use nearmiss_record::words::{grouped, percent};

fn rate(per_second: f64) -> String {
    if per_second >= 100.0 { format!("{}/s", grouped(per_second.round() as u64)) } else { format!("{per_second:.1}/s") }
}

/// The rates at which a figure was taken; nothing for a figure that is the rate itself, or is of something else.
pub fn beside(verdict: &Verdict, comparison: &Comparison) -> String {
    let of_load = comparison.metric == verdict.comparison.metric || verdict.judged.contains(&comparison.metric);
    let Some(Rates { without, with, .. }) = verdict.rates.filter(|_| of_load) else { return String::new() };
    match without.offered {
        Some(offered) => {
            format!(" (at {} and {} of {} offered)", rate(without.achieved), rate(with.achieved), rate(offered))
        }
        None if comparison.metric == "achieved_per_s" => String::new(),
        None => format!(" (at {} and {})", rate(without.achieved), rate(with.achieved)),
    }
}

const NO_WORK_PRINTED: &str = "the load prints neither its requests nor its rate, and a side that did less work spends less: \
                      name them by --work REGEX or --achieved REGEX, or use `nearmiss-webload rate`";

/// Returns why no verdict stands: which side did not do its work, or that nothing shows it.
pub fn why_none(verdict: &Verdict) -> Option<String> {
    if verdict.outcome == Outcome::Undecided {
        return Some(NO_WORK_PRINTED.to_owned());
    }
    let rates = verdict.rates?;
    let names = match verdict.remedy {
        Some(_) => ("without the remedy", "with the remedy"),
        None => ("against A", "against B"),
    };
    let short = [(rates.without, names.0), (rates.with, names.1)];
    let short: Vec<String> =
        short.iter().filter_map(|(side, name)| shortfall(side, name, verdict.pairs, &rates)).collect();
    if short.is_empty() {
        return Some(format!(
            "the load waits for answers, and got {} {} and {} {}, so that less was requested: compare at a fixed rate \
             (`nearmiss-webload rate`)",
            rate(rates.without.achieved),
            names.0,
            rate(rates.with.achieved),
            names.1
        ));
    }
    Some(format!(
        "the load {}: the two sides did not do the same work, so no ratio here is a verdict",
        short.join(", and ")
    ))
}

fn shortfall(side: &SideRate, name: &str, runs: usize, rates: &Rates) -> Option<String> {
    let tolerance = percent(rates.tolerance);
    if side.missed > 0 {
        let offered = side.offered.map_or_else(String::new, |offered| format!("offered {} and ", rate(offered)));
        let got = rate(side.achieved);
        return Some(format!("{offered}got {got} {name} (over {tolerance} less in {} of {runs} runs)", side.missed));
    }
    (side.failed > 0)
        .then(|| format!("had over {tolerance} of its requests fail {name} in {} of {runs} runs", side.failed))
}
