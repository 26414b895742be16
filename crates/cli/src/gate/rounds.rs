//! The recordings of a gate: as many as it takes.

use super::Args;
use super::commands::Gated;
use crate::progress::progress;
use crate::trace::{Gauge, once_begun};
use nearmiss_analysis::Counted;
use nearmiss_gate::{CONFIDENCE, LEAST_TO_FAIL, Limits, Next, Plan, Recording, Sample, judge, side, to_keep};
use nearmiss_machine::describe;
use nearmiss_record::baseline::{self, Baseline, Side};
use nearmiss_record::gate::{GateRecord, GatedSide, JudgedFigure, Limit, Recorder, Ruling, SCHEMA};
use nearmiss_record::machine::Machine;
use nearmiss_record::words::{counted, percent};
use std::ffi::OsString;

/// Variables that programs need to be found and to choose a language; all else differs from host to host, and its length
/// moves the stack.
const ENVIRONMENT: [&str; 8] = ["PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TZ", "LANG", "LD_LIBRARY_PATH"];
/// Interpreters that would hash otherwise in each run.
const SEEDS: [(&str, &str); 2] = [("PYTHONHASHSEED", "0"), ("PERL_HASH_SEED", "0")];

/// CPUs for a command with threads, unless others are given: with one, nothing passes between CPUs; with more, who
/// runs where makes the kernel's figures noisier.
const FOR_THREADS: u32 = 2;

/// Records commands.
pub struct Rounds {
    gauge: Gauge,
    /// Uncut.
    described: Machine,
    least: usize,
    most: usize,
    /// No CPUs were given: the first recordings decide.
    open: bool,
    /// The next recording is the first in a guest of its shape.
    first: bool,
    recorded: usize,
    recorder: Recorder,
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
        Ok(Rounds {
            gauge: Gauge { machine, memory, timeout, warm, environment: environment(&args.env) },
            described,
            least: args.recordings.into(),
            most: args.at_most.max(args.recordings).into(),
            open: cpus.is_none(),
            first: true,
            recorded: 0,
            recorder: Recorder { machine: name.to_owned(), ..Recorder::default() },
            notes,
        })
    }

    /// Records both commands in turn, until every figure is decided.
    pub fn compare(mut self, old: &Gated, new: &Gated, limits: &Limits) -> anyhow::Result<GateRecord> {
        let plan = Plan { least: self.least, most: self.most, kept: None };
        let mut samples = [Vec::new(), Vec::new()];
        loop {
            // Each side is first as often as last, so that a drift of the host adds to both.
            let order = if samples[0].len().is_multiple_of(2) { [0, 1] } else { [1, 0] };
            for at in order {
                samples[at].push(self.record([old, new][at], ["old", "new"][at])?);
            }
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
        loop {
            samples.push(self.record(new, "new")?);
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
        let mut samples = vec![self.record(command, "baseline")?];
        if self.widened(&samples) {
            samples.clear();
        }
        while samples.len() < count {
            samples.push(self.record(command, "baseline")?);
        }
        Ok(Baseline {
            schema: baseline::SCHEMA.to_owned(),
            nearmiss: env!("CARGO_PKG_VERSION").to_owned(),
            recorder: self.recorder,
            side: to_keep(&side(&command.text, &samples)),
        })
    }

    /// Whether the first recordings show threads, so that all are to be made anew with more CPUs.
    fn widened<'a>(&mut self, samples: impl IntoIterator<Item = &'a Sample>) -> bool {
        let threads = samples.into_iter().any(|sample| sample.threads > 1);
        let widened = std::mem::take(&mut self.open) && threads && self.described.topology.cpus() > 1;
        if widened {
            self.gauge.machine = describe::cut(&self.described, FOR_THREADS);
            (self.first, self.recorded) = (true, 0);
            self.notes.push(format!(
                "The command has threads, so the guest has {FOR_THREADS} CPUs. With --cpus 1 nothing passes between \
                 CPUs, and the kernel's figures are less noisy."
            ));
            progress("the command has threads: recording it on 2 CPUs");
        }
        widened
    }

    fn record(&mut self, command: &Gated, which: &str) -> anyhow::Result<Sample> {
        self.recorded += 1;
        progress(&format!("recording {} ({which})", self.recorded));
        let mut gauged = self.gauged(command)?;
        // The guest that is booted first is saved, and all others are restored from it. The two are not quite the same.
        if std::mem::take(&mut self.first) && !gauged.restored {
            gauged = self.gauged(command)?;
        }
        let Counted { model, side, symbols, switches, kernel, emulator, .. } = &gauged;
        let cpus = self.gauge.machine.topology.cpus();
        let machine = self.recorder.machine.clone();
        self.recorder = Recorder { machine, cpus, kernel: kernel.clone(), emulator: emulator.clone() };
        Ok(Sample::of(&Recording { model, side, symbols, switches: *switches }))
    }

    fn gauged(&self, command: &Gated) -> anyhow::Result<Counted> {
        once_begun(|| self.gauge.record(&command.variables, &command.words))
    }

    fn verdict(self, old: &Side, new: &Side, figures: Vec<JudgedFigure>, limits: &Limits) -> GateRecord {
        let mut notes = self.notes;
        notes.extend(undecided(&figures, new.recordings(), self.most));
        notes.extend(repeats_badly(&figures));
        for name in limits.unused(&figures) {
            notes
                .push(format!("--max-worse {name}: neither command makes this call, so the limit guards nothing now."));
        }
        let gated = |side: &Side| GatedSide { command: side.command.clone(), recordings: side.recordings() };
        GateRecord {
            schema: SCHEMA.to_owned(),
            nearmiss: env!("CARGO_PKG_VERSION").to_owned(),
            recorder: self.recorder,
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
        let now = &self.recorder;
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
        [
            differ("machine", &then.machine, &now.machine),
            differ("kernel", &then.kernel, &now.kernel),
            differ("emulator", &then.emulator, &now.emulator),
        ]
        .into_iter()
        .flatten()
        .chain(cpus)
        .collect()
    }
}

fn undecided(figures: &[JudgedFigure], recordings: usize, most: usize) -> Option<String> {
    let unclear = figures.iter().filter(|figure| figure.ruling == Ruling::Unclear).count();
    let more = if recordings < most { "and a few more would not" } else { "--at-most N records more" };
    (unclear > 0).then(|| {
        format!(
            "{} may be beyond the limit: {recordings} recordings did not decide, {more}.",
            counted(unclear as u64, "figure")
        )
    })
}

/// Returns a note where the command itself varies by more than the limit on its instructions.
fn repeats_badly(figures: &[JudgedFigure]) -> Option<String> {
    let own = figures.iter().find(|figure| figure.name == "user.instructions")?;
    let noise = own.noise / own.old.max(1.0);
    matches!(own.limit, Limit::Share(limit) if noise > limit).then(|| {
        format!(
            "The command does not repeat: its instructions vary by ±{}, more than their limit, so that a change as large \
             may pass.",
            percent(noise)
        )
    })
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
