//! The tool *verify*: a gain, measured by interleaved runs.

use super::runs;
use crate::Remedies;
use crate::mcp::request::Request;
use crate::mcp::size::Size;
use crate::mcp::tool::{Tool, option, place, plain, read, remedy, returns, takes};
use nearmiss_record::run::VERDICT;
use nearmiss_record::verdict::{Comparison, Verdict};
use nearmiss_record::words::{percent, quoted};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The tool.
pub const TOOL: Tool = Tool {
    name: "verify",
    about: "Measures whether a remedy helps a command, or whether the second of two commands is better than the \
            first: interleaved runs on this machine, and a verdict with an interval. Side effects of the command are \
            real. Give `remedy` and `command`, or `old` and `new`.",
    is_read_only: false,
    takes: takes::<Arguments>,
    returns: returns::<Answer>,
    request: |arguments, remedies| read::<Arguments>(arguments)?.request(remedies),
};

/// Arguments of *verify*.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Arguments {
    /// The remedy, as a finding names it.
    remedy: Option<String>,
    /// Options of the remedy, as a finding's `verify` has them.
    options: Vec<String>,
    /// The command and its arguments.
    command: Vec<String>,
    /// The command to compare with, instead of a remedy.
    old: Vec<String>,
    /// The command to judge.
    new: Vec<String>,
    /// Directory that the commands run in [default: the server's].
    cwd: Option<PathBuf>,
    /// Least number of pairs of runs, 8 or more [default: 10].
    pairs: Option<u16>,
    /// No new pair after this time, such as 30s [default: 2m].
    time_limit: Option<String>,
    /// Judge a number that the command prints: a regular expression with one group.
    metric: Option<String>,
    /// A higher number of `metric` is better.
    higher: bool,
    /// The gain that must be certain, such as 5%.
    require_gain: Option<String>,
    /// A diagnosed run: sets the verdict beside its prediction.
    against: Option<String>,
    /// Return the whole record too.
    full: bool,
}

/// The verdict.
#[derive(Serialize, JsonSchema)]
pub struct Answer {
    /// Directory with the verdict and the output of the runs.
    run: Option<String>,
    /// Kind of the figures: measured, or modelled.
    kind: String,
    /// One of gain, loss, no-difference, too-noisy, nothing-to-act-on, void, undecided.
    outcome: String,
    /// The figure that decides, with its gain and interval.
    decides: Gained,
    /// Other figures.
    others: Vec<Gained>,
    /// Pairs of runs.
    pairs: usize,
    /// Whether the required gain is certain, if one was required.
    is_required_gain_certain: Option<bool>,
    /// Effect of the remedy as its runs counted it.
    engaged: Option<String>,
    /// The prediction, as shares, if a run was named.
    predicted: Option<(f64, f64)>,
    /// Cautions on the figures.
    notes: Vec<String>,
}

/// A figure of both sides.
#[derive(Serialize, JsonSchema)]
struct Gained {
    /// Name of the figure.
    metric: String,
    /// Gain of the second side as a share; a loss is negative.
    gain: f64,
    /// Interval of the gain; none: too few runs.
    interval: Option<(f64, f64)>,
    /// Median of the first side.
    without: f64,
    /// Median of the second side.
    with: f64,
}

impl Arguments {
    fn request(self, remedies: Remedies) -> Result<Request, String> {
        let place = place(self.cwd.as_deref())?;
        let mut words = vec!["verify".to_owned()];
        let sides = self.sides(remedies, &mut words)?;
        words.push("--json".to_owned());
        words.extend(option("pairs", self.pairs));
        words.extend(option("time-limit", self.time_limit.as_ref()));
        words.extend(option("metric", self.metric.as_ref()));
        words.extend(self.higher.then(|| "--higher".to_owned()));
        words.extend(option("require-gain", self.require_gain.as_ref()));
        words.extend(option("against", self.against.as_ref()));
        words.extend(self.options);
        words.push("--".to_owned());
        words.extend(sides);
        let there = place.clone();
        Ok(Request::of_record(words, place, self.full, move |record, size| answer(record, size, &there)))
    }

    /// Adds the subcommand, and returns what stands behind `--`.
    fn sides(&self, remedies: Remedies, words: &mut Vec<String>) -> Result<Vec<String>, String> {
        match (&self.remedy, self.command.is_empty(), self.old.is_empty(), self.new.is_empty()) {
            (Some(name), false, true, true) => {
                words.push(remedy(name, remedies)?.name.to_owned());
                Ok(self.command.clone())
            }
            (None, true, false, false) => {
                words.push("commands".to_owned());
                [&self.old, &self.new].map(|side| plain("command", &quoted(side))).into_iter().collect()
            }
            _ => Err("give remedy and command, or old and new".to_owned()),
        }
    }
}

/// The answer on a verdict.
pub fn answer(verdict: &Verdict, size: Size, place: &Path) -> (String, Answer) {
    let answer = Answer {
        run: runs::with_record(place, VERDICT, verdict),
        kind: verdict.kind.clone(),
        outcome: verdict.outcome.to_string().replace(' ', "-"),
        decides: gained(&verdict.comparison),
        others: size.rows(&verdict.others, gained),
        pairs: verdict.pairs,
        is_required_gain_certain: verdict.required_gain_met,
        engaged: verdict.engaged.as_deref().map(|text| size.text(text)),
        predicted: verdict.predicted.as_ref().map(|it| (it.low, it.high)),
        notes: size.texts(&verdict.notes),
    };
    (text(&answer), answer)
}

fn gained(comparison: &Comparison) -> Gained {
    Gained {
        metric: comparison.metric.clone(),
        gain: comparison.gain(),
        interval: comparison.gain_interval(),
        without: comparison.without.median,
        with: comparison.with.median,
    }
}

fn text(answer: &Answer) -> String {
    let Gained { metric, gain, interval, .. } = &answer.decides;
    let range = interval.map_or(String::new(), |(low, high)| format!(" [{}, {}]", percent(low), percent(high)));
    let (outcome, kind, pairs) = (&answer.outcome, &answer.kind, answer.pairs);
    let mut text = format!("{outcome}, {kind} in {pairs} pairs: {metric} {}{range}\n", percent(*gain));
    text.extend(answer.run.as_ref().map(|run| format!("run {run}\n")));
    text
}
