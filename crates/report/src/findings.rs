//! Findings as text: what is wrong, what would remedy it, and what that would gain.

use crate::name::wrapped;
use crate::number::{bytes, counted, grouped};
use nearmiss_record::finding::{Evidence, Finding, Findings, Prediction, Reach};
use nearmiss_record::words::percent;

const LABEL: usize = 11;

/// The page, `width` columns wide.
pub fn render(findings: &Findings, width: usize) -> String {
    let mut page = Page { width: width.clamp(60, 160), out: String::new() };
    page.text(&format!("{}, modelled on {}", findings.command.join(" "), findings.machine));
    for (number, finding) in findings.findings.iter().enumerate() {
        page.out.push('\n');
        page.finding(number + 1, finding);
    }
    if let Some(why) = &findings.healthy {
        page.out.push('\n');
        page.labelled("Modelled", &format!("nothing to remedy: {why}"));
    }
    page.out
}

struct Page {
    width: usize,
    out: String,
}

impl Page {
    fn text(&mut self, text: &str) {
        for line in wrapped(text, self.width) {
            self.out.push_str(line.trim_end());
            self.out.push('\n');
        }
    }

    /// `Label  text`, wrapped and indented under itself.
    fn labelled(&mut self, label: &str, text: &str) {
        for (i, line) in wrapped(text, self.width - LABEL).iter().enumerate() {
            let line = format!("{:LABEL$}{line}", if i == 0 { label } else { "" });
            self.out.push_str(line.trim_end());
            self.out.push('\n');
        }
    }

    /// Commands are not wrapped: they are to be copied.
    fn command(&mut self, label: &str, command: &str) {
        self.out.push_str(&format!("{label:LABEL$}{command}\n"));
    }

    fn finding(&mut self, number: usize, finding: &Finding) {
        self.text(&format!("{number}. {}: {}.", finding.remedy, gain(&finding.prediction)));
        self.labelled("Modelled", &format!("{}.", finding.symptom));
        self.evidence(&finding.evidence);
        self.labelled("Cause", &finding.cause);
        self.labelled("Remedy", &format!("{}.", finding.treatment));
        if let Reach::Inside { why, change } = &finding.reach {
            self.labelled("", &format!("Not remediable from outside: {why}. In the program: {change}."));
        }
        self.prediction(&finding.prediction);
        for (i, reason) in finding.unless.iter().enumerate() {
            self.labelled(if i == 0 { "Unless" } else { "" }, &format!("{reason}."));
        }
        if let Some(command) = &finding.apply {
            self.command("Apply", command);
        }
        if let Some(command) = &finding.verify {
            self.command("Verify", command);
        }
    }

    fn evidence(&mut self, evidence: &Evidence) {
        for (i, object) in evidence.objects.iter().enumerate() {
            let size = object.size_bytes.map_or(String::new(), |b| format!(" of {}", bytes(b)));
            let from = match object.allocated_at.as_slice() {
                [] => String::new(),
                calls => format!(", allocated by {}", calls.join(" > ")),
            };
            let text = format!(
                "`{}`: {}{size}{from}; {} of the {}",
                object.name,
                counted(object.count, "object"),
                percent(object.miss_share),
                if evidence.levels.is_empty() { "loads" } else { "misses" }
            );
            self.labelled(if i == 0 { "Objects" } else { "" }, &text);
        }
        for level in &evidence.levels {
            let text = format!(
                "{} conflict misses ({} of its data misses), {:.0} lines for each of {} of {} ({} ways): {}",
                grouped(level.conflict_misses),
                percent(level.miss_share),
                level.lines_a_set,
                grouped(level.sets),
                counted(level.of_sets, "set"),
                level.ways,
                level.verdict
            );
            self.labelled(&level.cache, &format!("{text}."));
        }
        let functions: Vec<&str> = evidence.functions.iter().map(|(name, _)| name.as_str()).collect();
        self.labelled(
            "Cycles",
            &format!(
                "{} of the command's modelled cycles wait for these {}, in {}.",
                percent(evidence.cycles_share),
                if evidence.levels.is_empty() { "stores" } else { "misses" },
                functions.join(", ")
            ),
        );
    }

    fn prediction(&mut self, prediction: &Prediction) {
        let mut text = format!(
            "{}, over {} (seeds {}); assumes that {} of a miss is hidden behind other work (overlap).",
            gain(prediction),
            counted(prediction.placements.len() as u64, "page placement"),
            prediction.placements.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
            percent(prediction.overlap)
        );
        if let Some(function) = &prediction.function {
            text += &format!(
                " `{}` alone: {} of its {} modelled cycles; {} if each access waits for the one before.",
                function.name,
                percent(function.gain),
                grouped(function.cycles_before),
                percent(function.dependent_gain)
            );
        }
        self.labelled("Predicted", &text);
        for reason in &prediction.approximate {
            self.labelled("", &capital(reason));
        }
    }
}

/// `predicted gain 31% of the cycles (28% to 35%)`.
fn gain(prediction: &Prediction) -> String {
    format!(
        "predicted gain {} of the cycles ({} to {})",
        percent(prediction.gain),
        percent(prediction.low),
        percent(prediction.high)
    )
}

fn capital(sentence: &str) -> String {
    let mut letters = sentence.chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}{}", letters.as_str(), if sentence.ends_with('.') { "" } else { "." })
}
