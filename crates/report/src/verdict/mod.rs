//! The verdict of `verify` in words. Every figure here was *measured*, or *modelled* in recordings, except predictions;
//! each is labelled.

mod rates;
mod recordings;

use crate::name::plain;
use nearmiss_record::verdict::{Comparison, MODELLED, Outcome, Predicted, Verdict};

/// The verdict as text, line by line.
pub fn render(verdict: &Verdict) -> String {
    let mut lines = vec![headline(verdict)];
    if verdict.remedy.is_none() {
        lines.push(format!("  A  {}", plain(&verdict.sides.without)));
        lines.push(format!("  B  {}", plain(&verdict.sides.with)));
    }
    lines.push(format!("  {}", comparison(verdict, &verdict.comparison)));
    lines.extend(why(verdict).map(|why| format!("  {why}")));
    lines.extend(verdict.others.iter().map(|other| format!("  {}", judged(verdict, other))));
    lines.extend(verdict.neighbour().map(|(other, outcome)| format!("  neighbour, {}: {outcome}", other.metric)));
    lines.extend(start(verdict));
    if let (Some(required), Some(reached)) = (verdict.required_gain, verdict.required_gain_met) {
        let word = if reached { "reached" } else { "not reached" };
        lines.push(format!("  required gain of {:.1}%: {word}", required * 100.0));
    }
    lines.extend(verdict.engaged.iter().flat_map(|text| text.lines()).map(|line| format!("  {}", plain(line))));
    lines.extend(verdict.notes.iter().map(|note| format!("  note: {}", plain(note))));
    lines.push(order(verdict));
    if let Some(predicted) = &verdict.predicted {
        lines.push(format!("\n{}", beside(predicted, &verdict.comparison, &plain(&verdict.kind))));
    }
    lines.join("\n") + "\n"
}

fn headline(verdict: &Verdict) -> String {
    let subject = match &verdict.remedy {
        Some(remedy) => format!(" ({})", plain(remedy)),
        None => format!(": `{}` against `{}`", plain(&verdict.sides.with), plain(&verdict.sides.without)),
    };
    if verdict.kind == MODELLED {
        return format!("{}{subject}, {}", verdict.outcome, recordings::how_many(verdict));
    }
    let pairs = format!("pair{}", if verdict.pairs == 1 { "" } else { "s" });
    format!("{}{subject}, measured in {} {pairs}", verdict.outcome, verdict.pairs)
}

/// One metric of both sides, and by how much they differ.
pub fn comparison(verdict: &Verdict, comparison: &Comparison) -> String {
    let (without, with) = if verdict.remedy.is_some() { ("without", "with") } else { ("A", "B") };
    if verdict.kind == MODELLED {
        return recordings::ranges(comparison, without, with);
    }
    let of_medians = comparison.with.median / comparison.without.median;
    let rates = rates::beside(verdict, comparison);
    let medians = format!(
        "{}: {} {without}, {} {with}{rates}",
        plain(&comparison.metric),
        four_digits(comparison.without.median),
        four_digits(comparison.with.median),
    );
    let Some((low, high)) = comparison.interval else { return format!("{medians}; too few pairs for a ratio") };
    let (figures, interval) =
        (format!("{medians}; {}", change(comparison.ratio)), format!("[{}, {}]", change(low), change(high)));
    match (of_medians < 1.0) != (comparison.ratio < 1.0) && change(of_medians) != change(comparison.ratio) {
        true => format!("{figures} {interval} by pairs; the medians differ by {}", change(of_medians)),
        false => format!("{figures} {interval}"),
    }
}

/// Describes a comparison, with its outcome where it has a verdict of its own.
fn judged(verdict: &Verdict, other: &Comparison) -> String {
    let text = comparison(verdict, other);
    let whole = !matches!(verdict.outcome, Outcome::Void | Outcome::NothingToActOn);
    let own = whole && other.interval.is_some() && verdict.judged.contains(&other.metric);
    if own { format!("{text}: {}", other.outcome(verdict.resolution)) } else { text }
}

/// A ratio as a change, `+4.2%`; a change too small to be seen has no sign.
pub(super) fn change(ratio: f64) -> String {
    let text = format!("{:+.1}%", (ratio - 1.0) * 100.0);
    if ["+0.0%", "-0.0%"].contains(&text.as_str()) { "0.0%".to_owned() } else { text }
}

/// How it was decided, and what it would have seen.
fn why(verdict: &Verdict) -> impl Iterator<Item = String> {
    if verdict.kind == MODELLED {
        return [Some(recordings::why(verdict)), None, None].into_iter().flatten();
    }
    if verdict.outcome == Outcome::NothingToActOn {
        let did = "the remedy did nothing in the first two runs under it, so no further runs were made";
        return [Some(did.to_owned()), None, None].into_iter().flatten();
    }
    if matches!(verdict.outcome, Outcome::Void | Outcome::Undecided) {
        return [rates::why_none(verdict), None, None].into_iter().flatten();
    }
    let by_cpu = verdict.comparison.metric == "cpu_s" && verdict.others.iter().any(|other| other.metric == "wall_s");
    let by_cpu = by_cpu
        .then(|| "the CPU time decides: the wall time is too noisy to decide, and may have changed as much".to_owned());
    [by_cpu, Some(looks(verdict)), could_have_seen(verdict)].into_iter().flatten()
}

fn looks(verdict: &Verdict) -> String {
    let confidence = (1.0 - verdict.error_rate) * 100.0;
    let looks: Vec<String> = verdict.looks.iter().map(usize::to_string).collect();
    format!("intervals of the pairs' ratios, {confidence:.0}% over all looks (after {} pairs)", looks.join(", "))
}

/// Describes what the comparison would have seen, where it saw nothing.
fn could_have_seen(verdict: &Verdict) -> Option<String> {
    match (verdict.outcome, verdict.comparison.smallest_detectable) {
        (Outcome::NoDifference, Some(seen)) => {
            Some(format!("smallest difference that this run could have seen: {:.1}%", seen * 100.0))
        }
        (Outcome::TooNoisy, seen) => {
            let seen = seen.map_or("nothing".to_owned(), |seen| format!("{:.1}% or more", seen * 100.0));
            Some(format!(
                "this run could have seen {seen}; {:.1}% was requested: give it more time, or a quieter machine",
                verdict.resolution * 100.0
            ))
        }
        _ => None,
    }
}

/// Describes the cost of the remedy's start, and whether there is more to a difference than that.
fn start(verdict: &Verdict) -> Vec<String> {
    let Some(start) = &verdict.start else { return Vec::new() };
    let ms = |seconds: f64| format!("{:.3}", seconds * 1e3);
    let time = [&verdict.comparison].into_iter().chain(&verdict.others).find(|c| c.tolerated_loss > 0.0);
    let share = time.map_or(String::new(), |time| {
        format!("; {:.1}% of a run without", start.seconds / time.without.median * 100.0)
    });
    let mut lines = vec![format!(
        "  the remedy's start: {} ms of CPU time a program [{}, {}], measured on `{}`{share}",
        ms(start.seconds),
        ms(start.low_seconds),
        ms(start.high_seconds),
        plain(&start.program)
    )];
    let slower = |c: &Comparison| c.gain_interval().is_some_and(|(_, high)| high < 0.0);
    if !verdict.outcome.is_claim() && slower(&verdict.comparison) {
        lines.push("  the command is slower by no more than that start, which is not called a loss".to_owned());
    }
    lines
}

fn order(verdict: &Verdict) -> String {
    let ab = verdict.order.iter().filter(|pair| *pair == "AB").count();
    format!("  seed {}; A ran first in {ab} of {} pairs", verdict.seed, verdict.order.len())
}

/// Predicted against measured.
fn beside(predicted: &Predicted, measured: &Comparison, known: &str) -> String {
    let percent = |share: f64| format!("{:.0}%", share * 100.0);
    let (what, hidden) = match &predicted.function {
        Some(function) => (format!("`{}`", plain(function)), " to none"),
        None => ("the command".to_owned(), ""),
    };
    let overlap = predicted.overlap.map_or(String::new(), |share| format!(" (overlap {}{hidden})", percent(share)));
    format!(
        "predicted for {what}: {} to {} saved{overlap}\n{known}, {}: {} saved; {:.0} points from what was predicted",
        percent(predicted.low),
        percent(predicted.high),
        plain(&measured.metric),
        percent(measured.saved()),
        predicted.apart(measured.saved()) * 100.0
    )
}

/// Four digits that count, never in powers of ten.
pub(super) fn four_digits(figure: f64) -> String {
    let whole = figure.abs().max(1e-9).log10().floor() as i32 + 1;
    format!("{figure:.*}", (4 - whole).clamp(0, 9) as usize)
}
