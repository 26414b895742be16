//! The recordings of a gate: as many as it takes.

use super::Args;
use super::commands::Gated;
use crate::exit::say;
use crate::progress::progress;
use crate::trace::{Gauge, Gauged, never_began};
use nearmiss_gate::{CONFIDENCE, Limits, Next, Recording, Sample, judge, next, side, to_keep};
use nearmiss_machine::describe;
use nearmiss_record::baseline::{self, Baseline, Side};
use nearmiss_record::gate::{GateRecord, GatedSide, Judged, Recorder, Ruling, SCHEMA};
use std::cell::{Cell, RefCell};
use std::ffi::OsString;

/// Guests that end while they boot are tried again.
const TRIES: u32 = 3;
/// Of the environment, what programs need to be found and to speak; all else differs from host to host, and its length
/// moves the stack.
const ENVIRONMENT: [&str; 8] = ["PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TZ", "LANG", "LD_LIBRARY_PATH"];
/// Interpreters that would hash otherwise in each run.
const SEEDS: [(&str, &str); 2] = [("PYTHONHASHSEED", "0"), ("PERL_HASH_SEED", "0")];

/// Records commands.
pub struct Rounds {
    gauge: Gauge,
    least: usize,
    most: usize,
    /// As `-m` names it.
    machine: String,
    recorded: Cell<usize>,
    recorder: RefCell<Option<Recorder>>,
    caution: Option<String>,
}

impl Rounds {
    /// On the machine that is named, or else on this one. Errors: there is no such machine.
    pub fn new(args: &Args, machine: &str, cpus: u32) -> anyhow::Result<Self> {
        let name = args.machine.as_deref().unwrap_or(machine);
        let machine = describe::cut(&nearmiss_host::load(name)?, args.cpus.unwrap_or(cpus));
        let caution = machine.caution().map(|caution| format!("Caution: {caution}."));
        let (memory, timeout, warm) = (args.memory, args.timeout, !args.cold);
        Ok(Rounds {
            gauge: Gauge { machine, memory, timeout, warm, environment: environment(&args.env) },
            least: args.recordings.into(),
            most: args.at_most.max(args.recordings).into(),
            machine: name.to_owned(),
            recorded: Cell::new(0),
            recorder: RefCell::new(None),
            caution,
        })
    }

    /// Records both commands in turn, until every figure is decided.
    pub fn compare(&self, old: &Gated, new: &Gated, limits: &Limits) -> anyhow::Result<GateRecord> {
        let mut samples = [Vec::new(), Vec::new()];
        loop {
            // What drifts meets each side as often first as last.
            let order = if samples[0].len().is_multiple_of(2) { [0, 1] } else { [1, 0] };
            for at in order {
                samples[at].push(self.record([old, new][at], ["old", "new"][at])?);
            }
            let sides = [side(&old.text, &samples[0]), side(&new.text, &samples[1])];
            let judged = judge(&sides[0], &sides[1], limits);
            if next(&judged, samples[1].len(), self.least, self.most) == Next::Stop {
                return Ok(self.verdict(&sides[0], &sides[1], judged, Vec::new()));
            }
        }
    }

    /// Records a command until every figure is decided against a baseline.
    pub fn compare_with(&self, baseline: &Baseline, new: &Gated, limits: &Limits) -> anyhow::Result<GateRecord> {
        let mut samples = Vec::new();
        loop {
            samples.push(self.record(new, "new")?);
            let now = side(&new.text, &samples);
            let judged = judge(&baseline.side, &now, limits);
            if samples.len() >= 2 && next(&judged, samples.len(), self.least, self.most) == Next::Stop {
                let notes = self.differences(&baseline.recorder);
                return Ok(self.verdict(&baseline.side, &now, judged, notes));
            }
        }
    }

    /// Records a command for a baseline: as often as a gate needs to fail.
    pub fn baseline(&self, command: &Gated) -> anyhow::Result<Baseline> {
        let count = self.least.max(nearmiss_gate::LEAST_TO_FAIL);
        let samples: Vec<Sample> = (0..count).map(|_| self.record(command, "base")).collect::<Result<_, _>>()?;
        Ok(Baseline {
            schema: baseline::SCHEMA.to_owned(),
            nearmiss: env!("CARGO_PKG_VERSION").to_owned(),
            recorder: self.recorder.borrow().clone().unwrap_or_default(),
            side: to_keep(&side(&command.text, &samples)),
        })
    }

    fn record(&self, command: &Gated, which: &str) -> anyhow::Result<Sample> {
        let number = self.recorded.get() + 1;
        self.recorded.set(number);
        progress(&format!("recording {number} ({which})"));
        let mut gauged = self.gauged(command)?;
        // The guest that is booted first is saved, and all others are restored from it. The two are not quite the same.
        if number == 1 && !gauged.restored {
            gauged = self.gauged(command)?;
        }
        let Gauged { model, side, symbols, switches, kernel, emulator, .. } = &gauged;
        *self.recorder.borrow_mut() = Some(Recorder {
            machine: self.machine.clone(),
            cpus: self.gauge.machine.topology.cpus(),
            kernel: kernel.clone(),
            emulator: emulator.clone(),
        });
        Ok(Sample::of(&Recording { model, side, symbols, switches: *switches }))
    }

    fn gauged(&self, command: &Gated) -> anyhow::Result<Gauged> {
        let mut tries = TRIES;
        loop {
            tries -= 1;
            match self.gauge.record(&command.variables, &command.words) {
                Err(error) if tries > 0 && never_began(&error) => say(&format!("{error}; once more")),
                done => return done,
            }
        }
    }

    fn verdict(&self, old: &Side, new: &Side, figures: Vec<Judged>, mut notes: Vec<String>) -> GateRecord {
        notes.extend(self.caution.clone());
        let unclear = figures.iter().filter(|figure| figure.ruling == Ruling::Unclear).count();
        if unclear > 0 {
            notes.push(format!(
                "{unclear} of the figures may be beyond their limits, and {} recordings did not tell: --at-most N records \
                 more.",
                new.recordings()
            ));
        }
        let gated = |side: &Side| GatedSide { command: side.command.clone(), recordings: side.recordings() };
        GateRecord {
            schema: SCHEMA.to_owned(),
            nearmiss: env!("CARGO_PKG_VERSION").to_owned(),
            recorder: self.recorder.borrow().clone().unwrap_or_default(),
            old: gated(old),
            new: gated(new),
            confidence: CONFIDENCE,
            passed: figures.iter().all(|figure| figure.ruling != Ruling::Beyond),
            figures,
            notes,
        }
    }

    /// What makes a baseline less comparable than its figures look.
    fn differences(&self, then: &Recorder) -> Vec<String> {
        let now = self.recorder.borrow().clone().unwrap_or_default();
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

fn environment(further: &[String]) -> Vec<(OsString, OsString)> {
    let passed = |name: &str| {
        ENVIRONMENT.contains(&name) || name.starts_with("LC_") || further.iter().any(|further| further == name)
    };
    let mut variables: Vec<_> = std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(passed)).collect();
    let unset = |name: &str| !variables.iter().any(|(known, _)| known == name);
    let seeds: Vec<_> = SEEDS.iter().filter(|(name, _)| unset(name)).map(|(n, v)| (n.into(), v.into())).collect();
    variables.extend(seeds);
    // The order of a process's environment is whoever's started it.
    variables.sort();
    variables
}
