//! The verdict of `verify` in words. Every figure here was *measured*, but for what was predicted, which says so.

use crate::name::plain;
use nearmiss_record::verdict::{Comparison, Outcome, Predicted, Verdict};

/// The verdict as text, line by line.
pub fn render(verdict: &Verdict) -> String {
    let mut lines = vec![headline(verdict)];
    if verdict.remedy.is_none() {
        lines.push(format!("  A  {}", plain(&verdict.sides.without)));
        lines.push(format!("  B  {}", plain(&verdict.sides.with)));
    }
    lines.push(format!("  {}", comparison(verdict, &verdict.comparison)));
    lines.push(looks(verdict));
    lines.extend(could_have_seen(verdict));
    lines.extend(verdict.others.iter().map(|other| format!("  {}", comparison(verdict, other))));
    lines.extend(verdict.neighbour().map(|(other, outcome)| format!("  neighbour, {}: {outcome}", other.metric)));
    if let (Some(required), Some(met)) = (verdict.required_gain, verdict.required_gain_met) {
        let word = if met { "met" } else { "not met" };
        lines.push(format!("  required gain of {:.1}%: {word}", required * 100.0));
    }
    lines.extend(verdict.engaged.iter().flat_map(|text| text.lines()).map(|line| format!("  {}", plain(line))));
    lines.extend(verdict.notes.iter().map(|note| format!("  note: {}", plain(note))));
    lines.push(format!("  seed {}, order {}", verdict.seed, verdict.order.join(" ")));
    if let Some(predicted) = &verdict.predicted {
        lines.push(format!("\n{}", beside(predicted, &verdict.comparison)));
    }
    lines.join("\n") + "\n"
}

fn headline(verdict: &Verdict) -> String {
    let whose = match &verdict.remedy {
        Some(remedy) => format!(" ({})", plain(remedy)),
        None => format!(": `{}` against `{}`", plain(&verdict.sides.with), plain(&verdict.sides.without)),
    };
    format!("{}{whose}, measured in {} pairs", verdict.outcome, verdict.pairs)
}

/// One metric of both sides, and by how much they differ.
pub fn comparison(verdict: &Verdict, comparison: &Comparison) -> String {
    let (without, with) = if verdict.remedy.is_some() { ("without", "with") } else { ("A", "B") };
    let figures = format!(
        "{}: {} {without}, {} {with}; {:+.1}%",
        plain(&comparison.metric),
        four_digits(comparison.without.median),
        four_digits(comparison.with.median),
        (comparison.ratio - 1.0) * 100.0
    );
    match comparison.interval {
        Some((low, high)) => format!("{figures} [{:+.1}%, {:+.1}%]", (low - 1.0) * 100.0, (high - 1.0) * 100.0),
        None => format!("{figures} [too few pairs for an interval]"),
    }
}

fn looks(verdict: &Verdict) -> String {
    let confidence = (1.0 - verdict.error_rate) * 100.0;
    let looks: Vec<String> = verdict.looks.iter().map(usize::to_string).collect();
    format!("  interval of the median ratio, {confidence:.0}% over all looks (after {} pairs)", looks.join(", "))
}

/// What the comparison would have seen, where it saw nothing.
fn could_have_seen(verdict: &Verdict) -> Option<String> {
    match (verdict.outcome, verdict.comparison.smallest_detectable) {
        (Outcome::NoDifference, Some(seen)) => {
            Some(format!("  smallest difference that this run could have seen: {:.1}%", seen * 100.0))
        }
        (Outcome::TooNoisy, seen) => {
            let seen = seen.map_or("nothing".to_owned(), |seen| format!("{:.1}% or more", seen * 100.0));
            Some(format!(
                "  this run could have seen {seen}; {:.1}% was asked for: give it more time, or a quieter machine",
                verdict.resolution * 100.0
            ))
        }
        _ => None,
    }
}

/// Predicted against measured.
fn beside(predicted: &Predicted, measured: &Comparison) -> String {
    let percent = |share: f64| format!("{:.0}%", share * 100.0);
    let (what, hidden) = match &predicted.function {
        Some(function) => (format!("`{}`", plain(function)), " to none"),
        None => ("the command".to_owned(), ""),
    };
    let overlap = predicted.overlap.map_or(String::new(), |share| format!(" (overlap {}{hidden})", percent(share)));
    format!(
        "predicted for {what}: {} to {} saved{overlap}\nmeasured, {}: {} saved; {:.0} points from what was predicted",
        percent(predicted.low),
        percent(predicted.high),
        plain(&measured.metric),
        percent(measured.saved()),
        predicted.apart(measured.saved()) * 100.0
    )
}

/// Four digits that count, never in powers of ten.
fn four_digits(figure: f64) -> String {
    let whole = figure.abs().max(1e-9).log10().floor() as i32 + 1;
    format!("{figure:.*}", (4 - whole).clamp(0, 9) as usize)
}
