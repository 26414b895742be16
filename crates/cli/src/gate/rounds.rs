//! The recordings of a gate: as many as it takes.

use super::Args;
use super::commands::Gated;
use super::recordings::Recordings;
use crate::progress::progress;
use crate::trace::Gauge;
use nearmiss_gate::{CONFIDENCE, LEAST_TO_FAIL, Limits, Next, Plan, Sample, judge, side, to_keep};
use nearmiss_machine::describe;
use nearmiss_record::baseline::{self, Baseline, Side};
use nearmiss_record::gate::{GateRecord, GatedSide, JudgedFigure, Recorder, Ruling, SCHEMA};
use nearmiss_record::machine::Machine;
use std::ffi::OsString;

/// Variables that programs need to be found and to choose a language; all else differs from host to host, and its length
/// moves the stack.
const ENVIRONMENT: [&str; 8] = ["PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TZ", "LANG", "LD_LIBRARY_PATH"];
/// Interpreters that would hash otherwise in each run.
const SEEDS: [(&str, &str); 2] = [("PYTHONHASHSEED", "0"), ("PERL_HASH_SEED", "0")];

/// CPUs for a command with threads, unless others are given: with one, nothing passes between CPUs; with more, who
/// runs where makes the kernel's figures noisier.
const FOR_THREADS: u32 = 2;

/// Recordings that are made beside a baseline before it is looked at again.
const PAIR: usize = 2;

/// Records commands.
pub struct Rounds {
    recordings: Recordings,
    /// Uncut.
    described: Machine,
    least: usize,
    most: usize,
    /// No CPUs were given: the first recordings decide.
    open: bool,
    notes: Vec<String>,
}

impl Rounds {
    /// On the machine and CPUs that the options name, or else on these. Errors: there is no such machine.
    pub fn new(args: &Args, machine: &str, cpus: Option<u32>) -> anyhow::Result<Self> {
        let name = args.machine.as_deref().unwrap_or(machine);
        let described = nearmiss_host::load(name)?;
        let cpus = args.cpus.or(cpus);
        let machine = describe::cut(&described, cpus.unwrap_or(1));
        let notes = machine.caution().map(|caution| format!("Caution: {caution}.")).into_iter().collect();
        let (memory, timeout, warm) = (args.memory, args.timeout, !args.cold);
        let gauge = Gauge { machine, memory, timeout, warm, environment: environment(&args.env) };
        Ok(Rounds {
            recordings: Recordings::new(gauge, name)?,
            described,
            least: args.recordings.into(),
            most: args.most()?.into(),
            open: cpus.is_none(),
            notes,
        })
    }

    /// Records both commands in turn, until every figure is decided.
    pub fn compare(mut self, old: &Gated, new: &Gated, limits: &Limits) -> anyhow::Result<GateRecord> {
        let plan = Plan { least: self.least, most: self.most, kept: None };
        let mut samples = [Vec::new(), Vec::new()];
        self.recordings.expect(2 * self.least);
        loop {
            // Each side is first as often as last, so that a drift of the host adds to both.
            let mut order = [(0, (old, "old")), (1, (new, "new"))];
            order.rotate_left(samples[0].len() % 2);
            let pair = self.recordings.all(&order.map(|(_, turn)| turn))?;
            order.iter().zip(pair).for_each(|((at, _), sample)| samples[*at].push(sample));
            if self.widened(samples.iter().flatten()) {
                samples = Default::default();
                continue;
            }
            let sides = [side(&old.text, &samples[0]), side(&new.text, &samples[1])];
            let judged = judge(&sides[0], &sides[1], limits);
            if plan.next(&judged, samples[1].len()) == Next::Stop {
                return Ok(self.verdict(&sides[0], &sides[1], judged, limits));
            }
        }
    }

    /// Records a command until every figure is decided against a baseline.
    pub fn compare_with(mut self, baseline: &Baseline, new: &Gated, limits: &Limits) -> anyhow::Result<GateRecord> {
        let plan = Plan { least: self.least, most: self.most, kept: Some(baseline.side.recordings()) };
        let mut samples = Vec::new();
        self.recordings.expect(self.least);
        loop {
            // The number is one that does not depend on the machine.
            let more = self.least.saturating_sub(samples.len()).max(PAIR).min(self.most - samples.len());
            samples.extend(self.recordings.all(&vec![(new, "new"); more])?);
            let now = side(&new.text, &samples);
            let judged = judge(&baseline.side, &now, limits);
            if plan.next(&judged, samples.len()) == Next::Stop {
                self.notes.extend(self.differences(&baseline.recorder));
                return Ok(self.verdict(&baseline.side, &now, judged, limits));
            }
        }
    }

    /// Records a command for a baseline: as often as a gate needs to fail.
    pub fn baseline(mut self, command: &Gated) -> anyhow::Result<Baseline> {
        let count = self.least.max(LEAST_TO_FAIL).min(self.most);
        self.recordings.expect(count);
        let mut samples = self.recordings.all(&[(command, "baseline")])?;
        if self.widened(&samples) {
            samples.clear();
        }
        samples.extend(self.recordings.all(&vec![(command, "baseline"); count - samples.len()])?);
        Ok(Baseline {
            schema: baseline::SCHEMA.to_owned(),
            nearmiss: env!("CARGO_PKG_VERSION").to_owned(),
            recorder: self.recordings.recorder().clone(),
            side: to_keep(&side(&command.text, &samples)),
        })
    }

    /// Whether the first recordings show threads, so that all are to be made anew with more CPUs.
    fn widened<'a>(&mut self, samples: impl IntoIterator<Item = &'a Sample>) -> bool {
        let threads = samples.into_iter().any(|sample| sample.threads > 1);
        let widened = std::mem::take(&mut self.open) && threads && self.described.topology.cpus() > 1;
        if widened {
            self.recordings.restart(describe::cut(&self.described, FOR_THREADS));
            self.notes.push(format!(
                "The command has threads, so the guest has {FOR_THREADS} CPUs. With --cpus 1 nothing passes between \
                 CPUs, and the kernel's figures are less noisy."
            ));
            progress("the command has threads: recording it on 2 CPUs");
        }
        widened
    }

    fn verdict(self, old: &Side, new: &Side, figures: Vec<JudgedFigure>, limits: &Limits) -> GateRecord {
        let mut notes = self.notes;
        notes.extend(nearmiss_gate::notes(&figures, limits, new.recordings(), self.most));
        let gated = |side: &Side| GatedSide { command: side.command.clone(), recordings: side.recordings() };
        GateRecord {
            schema: SCHEMA.to_owned(),
            nearmiss: env!("CARGO_PKG_VERSION").to_owned(),
            recorder: self.recordings.recorder().clone(),
            old: gated(old),
            new: gated(new),
            confidence: CONFIDENCE,
            passed: figures.iter().all(|figure| figure.ruling != Ruling::Beyond),
            figures,
            notes,
        }
    }

    /// Returns the reasons for which a baseline is less comparable than its figures look.
    fn differences(&self, then: &Recorder) -> Vec<String> {
        let now = self.recordings.recorder();
        let differ = |what: &str, then: &str, now: &str| {
            (then != now)
                .then(|| format!("The baseline is of another {what} ({then}, now {now}): differences are its too."))
        };
        let cpus = (then.cpus != now.cpus).then(|| {
            format!(
                "The baseline is of {} CPUs, this gate of {}: differences are the machine's too.",
                then.cpus, now.cpus
            )
        });
        [differ("kernel", &then.kernel, &now.kernel), differ("emulator", &then.emulator, &now.emulator)]
            .into_iter()
            .flatten()
            .chain(cpus)
            .collect()
    }
}

fn environment(further: &[String]) -> Vec<(OsString, OsString)> {
    let passed = |name: &str| {
        ENVIRONMENT.contains(&name) || name.starts_with("LC_") || further.iter().any(|further| further == name)
    };
    let mut variables: Vec<_> = std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(passed)).collect();
    let unset = |name: &str| !variables.iter().any(|(known, _)| known == name);
    let seeds: Vec<_> = SEEDS.iter().filter(|(name, _)| unset(name)).map(|(n, v)| (n.into(), v.into())).collect();
    variables.extend(seeds);
    // The order of a process's environment depends on its parent.
    variables.sort();
    variables
}
