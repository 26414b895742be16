//! Findings as text: what is wrong, what would remedy it, and what that would gain.

use crate::name::wrapped;
use crate::number::{counted, duration, grouped};
use nearmiss_record::finding::{EvidenceKind, Finding, Findings, Measured, Moments, Prediction, Reach, Unexplained};
use nearmiss_record::words::{listed, percent, quoted};

const LABEL: usize = 11;

/// The page, `width` columns wide.
pub fn render(findings: &Findings, width: usize) -> String {
    let mut page = Page { width: width.clamp(60, 160), out: String::new() };
    let how = match findings.known {
        EvidenceKind::Modelled => "modelled",
        EvidenceKind::Measured => "observed",
    };
    let command = match findings.command.join(" ") {
        none if none.is_empty() => "A running process".to_owned(),
        command => command,
    };
    page.text(&format!("{command}, {how} on {}", findings.machine));
    if let Some(caution) = &findings.caution {
        page.labelled("Caution", caution);
    }
    if let Some(measured) = &findings.measured {
        page.text(&how_measured(measured));
    }
    for (number, finding) in findings.findings.iter().enumerate() {
        page.out.push('\n');
        page.finding(number + 1, finding);
    }
    if let Some(why) = &findings.healthy {
        page.out.push('\n');
        page.labelled(known(findings.known), &format!("nothing to remedy: {why}"));
    }
    if let Some(unexplained) = &findings.unexplained {
        page.out.push('\n');
        page.unexplained(findings.known, unexplained);
    }
    page.advice(&findings.advice);
    page.notes(&findings.notes);
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

    /// Changes that no remedy rehearses, below the findings.
    fn advice(&mut self, advice: &[String]) {
        if !advice.is_empty() {
            self.out.push('\n');
        }
        advice.iter().for_each(|advice| self.labelled("Advice", &format!("{advice}.")));
    }

    /// Facts that a reader must know, below all else.
    fn notes(&mut self, notes: &[String]) {
        if !notes.is_empty() {
            self.out.push('\n');
        }
        notes.iter().for_each(|note| self.labelled("Note", note));
    }

    /// Commands are not wrapped: they are to be copied.
    fn command(&mut self, label: &str, argv: &[String]) {
        self.out.push_str(&format!("{label:LABEL$}{}\n", quoted(argv)));
    }

    fn finding(&mut self, number: usize, finding: &Finding) {
        let author = if matches!(finding.reach, Reach::Inside { .. }) { "; a change of the program" } else { "" };
        self.text(&format!("{number}. {}: {}{author}.", finding.remedy, gain(&finding.prediction)));
        self.labelled(known(finding.known), &format!("{}.", finding.symptom));
        for line in &finding.evidence.lines {
            self.labelled(&line.label, &line.text);
        }
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

    fn unexplained(&mut self, how: EvidenceKind, unexplained: &Unexplained) {
        let consulted = listed(&unexplained.consulted, "or");
        self.labelled(known(how), &format!("no remedy ({consulted}) explains its waits: {}", unexplained.why));
        for (i, wait) in unexplained.waits.iter().enumerate() {
            self.labelled(if i == 0 { "Waits" } else { "" }, &format!("{}.", wait.words()));
        }
    }

    fn prediction(&mut self, prediction: &Prediction) {
        self.labelled("Predicted", &predicted(prediction));
        for reason in &prediction.approximate {
            self.labelled("", &as_sentence(reason));
        }
    }
}

/// The gain, and what it rests on, in sentences.
pub(crate) fn predicted(prediction: &Prediction) -> String {
    let mut text = gain(prediction);
    if !prediction.placements.is_empty() {
        let seeds: Vec<String> = prediction.placements.iter().map(u64::to_string).collect();
        let placements = counted(seeds.len() as u64, "page placement");
        text += &format!(", over {placements} (seeds {})", seeds.join(", "));
    }
    match prediction.overlap {
        Some(overlap) => {
            let hidden = percent(overlap);
            text += &format!("; assumes that {hidden} of a miss is hidden behind other work (overlap).");
        }
        None => text.push('.'),
    }
    if let Some(function) = &prediction.function {
        let (gain, cycles) = (percent(function.gain), grouped(function.cycles_before));
        text += &format!(" `{}` alone: {gain} of its {cycles} modelled cycles", function.name);
        if prediction.overlap.is_some() {
            let dependent = percent(function.dependent_gain);
            text += &format!("; {dependent} if each access waits for the one before");
        }
        text.push('.');
    }
    text += &prediction.moments.as_ref().map(at_moments).unwrap_or_default();
    text
}

/// ` Found at 10.0 s, 1 of 3 moments: 21% of the whole run, if each moment stands for the stretches with its functions.`
fn at_moments(moments: &Moments) -> String {
    let at: Vec<String> = moments.at_ns.iter().map(|ns| duration(*ns)).collect();
    format!(
        " Found at {}, {} of {}: {} of the whole run, if each moment stands for the stretches with its functions.",
        listed(&at, "and"),
        at.len(),
        counted(moments.of.into(), "moment"),
        percent(moments.whole_gain)
    )
}

/// `measured 48 ms of CPU time, modelled 52 ms (1.08); 5 runs took 47 ms to 50 ms`
pub(crate) fn how_measured(measured: &Measured) -> String {
    let time = if measured.only_user { "time in user mode" } else { "CPU time" };
    let modelled = measured.cpu_ns as f64 * measured.ratio();
    let runs = counted(measured.runs.into(), "run");
    format!(
        "measured {} of {time}, modelled {} ({:.2}); {runs} took {} to {}",
        duration(measured.cpu_ns),
        duration(modelled as u64),
        measured.ratio(),
        duration(measured.least_ns),
        duration(measured.most_ns),
    )
}

pub(crate) fn known(known: EvidenceKind) -> &'static str {
    match known {
        EvidenceKind::Modelled => "Modelled",
        EvidenceKind::Measured => "Measured",
    }
}

/// `predicted gain 31% of the cycles (28% to 35%)`.
pub(crate) fn gain(prediction: &Prediction) -> String {
    format!(
        "predicted gain {} of {} ({} to {})",
        percent(prediction.gain),
        prediction.of,
        percent(prediction.low),
        percent(prediction.high)
    )
}

pub(crate) fn as_sentence(sentence: &str) -> String {
    let mut letters = sentence.chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}{}", letters.as_str(), if sentence.ends_with('.') { "" } else { "." })
}
