//! The tool *diagnose*: what is wrong with a command, what would remedy it, what that would gain.

use super::runs;
use crate::mcp::request::Request;
use crate::mcp::size::Size;
use crate::mcp::tool::{Tool, option, place, plain, read, returns, takes};
use nearmiss_record::finding::{Finding, Findings, Reach};
use nearmiss_record::run::FINDINGS;
use nearmiss_record::words::{percent, quoted};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The tool.
pub const TOOL: Tool = Tool {
    name: "diagnose",
    about: "Finds what of memory, locks and waits makes a program slow: records the command in a throw-away guest (no \
            network, 50 to 400 times slower, a minute by default), models the caches, and returns findings with cause, \
            remedy and predicted gain. With `run`, a kept run is diagnosed again; with neither, the newest.",
    is_read_only: false,
    takes: takes::<Arguments>,
    returns: returns::<Answer>,
    request: |arguments, _| read::<Arguments>(arguments)?.request(),
};

/// Arguments of *diagnose*.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Arguments {
    /// The command and its arguments; no shell reads them.
    command: Vec<String>,
    /// Directory of a kept run, instead of a command.
    run: Option<String>,
    /// A running process, instead of a command: it pauses for a blink. Needs root.
    pid: Option<u32>,
    /// Directory that the command runs in, with ./nearmiss-runs [default: the server's].
    cwd: Option<PathBuf>,
    /// Machine to model: host, a preset such as zen4-genoa, or a machine file.
    machine: Option<String>,
    /// CPUs of the guest.
    cpus: Option<u32>,
    /// Time for the answer, such as 30s or 5m; 0 records all of the command, however long that takes [default: 60s].
    within: Option<String>,
    /// Skip the start, for example time:5s.
    from: Option<String>,
    /// Also what would gain less than 2%.
    all: bool,
    /// Return the whole record too.
    full: bool,
}

/// Findings, those with the most predicted gain first.
#[derive(Serialize, JsonSchema)]
struct Answer {
    /// Directory of the run, for later calls.
    run: Option<String>,
    /// The command.
    command: String,
    /// The modelled machine.
    machine: String,
    /// Why there is nothing to remedy, if so.
    healthy: Option<String>,
    /// Faults with their remedies.
    findings: Vec<Found>,
    /// Findings that are left out here.
    left_out: usize,
    /// Largest waits that no remedy explains.
    unexplained: Vec<String>,
    /// Changes that the program's author can make.
    advice: Vec<String>,
    /// Facts about the recording and the model.
    notes: Vec<String>,
}

/// One finding.
#[derive(Serialize, JsonSchema)]
struct Found {
    /// The remedy.
    remedy: String,
    /// Predicted gain, such as 73% of the cycles (70% to 75%).
    predicted_gain: String,
    /// Lower and upper end of the predicted gain, as shares.
    gain_range: (f64, f64),
    /// Observed in the program, with object and site.
    symptom: String,
    /// Why that costs time.
    cause: String,
    /// Change that the remedy makes.
    treatment: String,
    /// Change of the program, where the remedy does not reach it from outside.
    change: Option<String>,
    /// Conditions under which the remedy does not help.
    unless: Vec<String>,
    /// Command line that runs the program under the remedy.
    apply: Option<String>,
    /// Arguments of the tool *verify* that measure the gain.
    verify: Option<VerifyArguments>,
}

/// Arguments of the tool *verify*.
#[derive(Serialize, JsonSchema)]
struct VerifyArguments {
    /// The remedy.
    remedy: String,
    /// Options of the remedy.
    options: Vec<String>,
    /// The command and its arguments.
    command: Vec<String>,
}

impl VerifyArguments {
    /// Reads `nearmiss verify REMEDY [OPTIONS] -- CMD`; none of a command line that is too long for an answer.
    fn of(words: &[String], size: Size) -> Option<Self> {
        size.command(words)?;
        let at = words.iter().position(|word| word == "verify")?;
        let end = words.iter().position(|word| word == "--")?;
        let (remedy, options) = words.get(at + 1..end)?.split_first()?;
        Some(VerifyArguments {
            remedy: remedy.clone(),
            options: options.to_vec(),
            command: words.get(end + 1..)?.to_vec(),
        })
    }
}

impl Arguments {
    fn request(self) -> Result<Request, String> {
        let subjects = [!self.command.is_empty(), self.run.is_some(), self.pid.is_some()];
        if subjects.iter().filter(|given| **given).count() > 1 {
            return Err("give one of command, run and pid".to_owned());
        }
        let place = place(self.cwd.as_deref())?;
        let mut words: Vec<String> = ["diagnose", "--json"].map(str::to_owned).to_vec();
        words.extend(option("machine", self.machine.as_ref()));
        // These are about a recording, and a kept run has one.
        words.extend(option("cpus", self.cpus));
        words.extend(option("within", self.within.as_ref()));
        words.extend(option("from", self.from.as_ref()));
        words.extend(option("pid", self.pid));
        words.extend(self.all.then(|| "--all".to_owned()));
        words.extend(self.run.as_ref().map(|run| plain("run", run)).transpose()?);
        if !self.command.is_empty() {
            words.push("--".to_owned());
            words.extend(self.command);
        }
        let there = place.clone();
        Ok(Request::of_record(words, place, self.full, move |findings, size| answer(findings, size, &there)))
    }
}

fn answer(record: &Findings, size: Size, place: &Path) -> (String, Answer) {
    let findings = size.rows(&record.findings, |finding| found(finding, size));
    let waits: Vec<String> =
        record.unexplained.iter().flat_map(|it| it.waits.iter().map(|wait| wait.words())).collect();
    let answer = Answer {
        run: runs::with_record(place, FINDINGS, record),
        command: size.text(&quoted(&record.command)),
        machine: record.machine.clone(),
        healthy: record.healthy.as_deref().map(|why| size.text(why)),
        left_out: record.findings.len() - findings.len(),
        findings,
        unexplained: size.texts(&waits),
        advice: size.texts(&record.advice),
        notes: size.texts(&record.notes),
    };
    (text(&answer), answer)
}

fn found(finding: &Finding, size: Size) -> Found {
    let prediction = &finding.prediction;
    let (low, high) = (prediction.low, prediction.high);
    Found {
        remedy: finding.remedy.clone(),
        predicted_gain: format!(
            "{} of {} ({} to {})",
            percent(prediction.gain),
            prediction.of,
            percent(low),
            percent(high)
        ),
        gain_range: (low, high),
        symptom: size.text(&finding.symptom),
        cause: size.text(&finding.cause),
        treatment: size.text(&finding.treatment),
        change: match &finding.reach {
            Reach::Outside => None,
            Reach::Inside { why, change } => Some(size.text(&format!("{change} (not from outside: {why})"))),
        },
        unless: size.texts(&finding.unless),
        apply: finding.apply.as_deref().and_then(|words| size.command(words)),
        verify: finding.verify.as_deref().and_then(|words| VerifyArguments::of(words, size)),
    }
}

fn text(answer: &Answer) -> String {
    let line = |(number, found): (usize, &Found)| {
        let reach = if found.change.is_some() { "; a change of the program" } else { "" };
        format!("{}. {}: predicted gain {}{reach}. {}\n", number + 1, found.remedy, found.predicted_gain, found.symptom)
    };
    let mut text: String = answer.findings.iter().enumerate().map(line).collect();
    text.extend(answer.healthy.as_ref().map(|why| format!("Nothing to remedy: {why}\n")));
    text.extend(answer.run.as_ref().map(|run| format!("run {run}\n")));
    text
}
