//! A run as `diagnose` and `rehearse` take it: which one, on which machine, in which form.

use crate::destination::run_can_be_written;
use crate::order::OrderArg;
use crate::progress::{self, progress};
use anyhow::Context;
use nearmiss_analysis::{Case, Needs, Recorded, Remedy, Traced};
use nearmiss_machine::describe;
use nearmiss_record::machine::Machine;
use nearmiss_record::observation::Observation;
use nearmiss_record::observed;
use nearmiss_record::run::{self, Manifest, RunDir, RunError, RunKind};
use nearmiss_workload::Workload;
use std::path::Path;

/// How a run is modelled, and what is shown of it.
#[derive(clap::Args)]
pub struct How {
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub shown: ShownArgs,
}

/// How a trace is modelled.
#[derive(Default, clap::Args)]
pub struct ModelArgs {
    /// Model the run on this machine: `host`, a preset, or a machine file [default: the one it was traced with, or host]
    #[arg(short, long, value_name = "MACHINE")]
    pub machine: Option<String>,
    /// In which order the records of several CPUs reach the model
    #[arg(long, value_enum)]
    order: Option<OrderArg>,
}

/// What is shown of a run.
#[derive(clap::Args)]
pub struct ShownArgs {
    /// Also what would gain less than 2%
    #[arg(long)]
    pub all: bool,
    /// Print the record as JSON
    #[arg(long)]
    pub json: bool,
}

impl How {
    /// Opens the run that was named, or the newest one that one of the remedies can look at, as far as it is whole.
    pub fn open(&self, named: Option<&Path>, parent: &Path, remedies: &[&Remedy]) -> anyhow::Result<(RunDir, Case)> {
        let run = find(named, parent, remedies)?;
        // Findings are written into the run.
        run_can_be_written(&run)?;
        let case = self.case(&run)?;
        if remedies.iter().any(|remedy| remedy.needs.are_satisfied_by(&case)) {
            return Ok((run, case));
        }
        let lacks = |remedy: &&Remedy| format!("{} looks at {}", remedy.name, remedy.needs);
        let lacks: Vec<String> = remedies.iter().map(lacks).collect();
        anyhow::bail!("{}: nothing here can be looked at: {}", run.path().display(), lacks.join(", "))
    }

    /// Opens a run: a trace is modelled, an observation is read.
    pub fn case(&self, run: &RunDir) -> anyhow::Result<Case> {
        Ok(match run.kind() {
            RunKind::Traced => Case::from(self.traced(run)?),
            RunKind::Observed => on_observation(Observation::open(run.path())?),
            kind => anyhow::bail!(
                "{}: {kind}, which has neither a trace nor an observation; record one with `nearmiss trace -- CMD` or `nearmiss observe -- CMD`",
                run.path().display()
            ),
        })
    }

    /// A run that was just recorded is known as it is, unless it is to be modelled in another order.
    pub fn recorded(&self, run: &RunDir, recorded: Recorded) -> anyhow::Result<Case> {
        if self.model.order.is_some_and(|order| recorded.model.order != order.into()) {
            return self.case(run);
        }
        Ok(Case::from(self.shown(Traced::recorded(recorded))))
    }

    fn traced(&self, run: &RunDir) -> anyhow::Result<Traced> {
        if !run.file(run::MODEL).is_file() && run.is_recorded_now() {
            return Err(RunError::Unfinished(run.path().to_owned()).into());
        }
        let machine = match self.model.machine.as_deref() {
            Some(name) => Some(nearmiss_host::load(name)?),
            None if run.is_to_be_modelled() => Some(recorded_for(run, &run.read_json(run::MANIFEST)?)?),
            None => None,
        };
        progress("modelling the run");
        let modelling = progress::of("modelling the run");
        let on_progress = |done, of| modelling.at(done, of);
        Ok(self.shown(Traced::open(run, machine.as_ref(), self.model.order.map(Into::into), &on_progress)?))
    }

    fn shown(&self, mut traced: Traced) -> Traced {
        traced.thorough = self.shown.all;
        let replays = progress::of("rehearsing");
        traced.on_progress = Box::new(move |done, of| replays.at(done as u64, of as u64));
        traced
    }
}

/// An observation, of which it is shown how far the rehearsals on its logs are.
pub fn on_observation(observation: Observation) -> Case {
    let replays = progress::of("rehearsing on the log");
    Case { on_progress: Box::new(move |done, of| replays.at(done as u64, of as u64)), ..Case::from(observation) }
}

/// The run that was named, or the newest one that was recorded as the remedies need it.
pub fn find(named: Option<&Path>, parent: &Path, remedies: &[&Remedy]) -> anyhow::Result<RunDir> {
    if let Some(path) = named {
        return RunDir::open(path).map_err(|error| no_run(path, error));
    }
    let wants = |unwanted: Needs| remedies.iter().any(|remedy| remedy.needs != unwanted);
    let files = [(wants(Needs::Observation), run::MODEL), (wants(Needs::Trace), observed::FILE)];
    let wanted: Vec<&str> = files.into_iter().filter_map(|(wanted, file)| wanted.then_some(file)).collect();
    RunDir::newest_with(parent, &wanted).map_err(|error| match (error, remedies) {
        (RunError::NoRun(path), [remedy]) => {
            anyhow::anyhow!("{}: no run here; {} looks at {}", path.display(), remedy.name, remedy.needs)
        }
        (other, _) => other.into(),
    })
}

/// The error of a path that is no run; the name of a program was perhaps meant as a command.
fn no_run(path: &Path, error: RunError) -> anyhow::Error {
    let is_name = !path.exists() && path.components().count() == 1;
    let program = is_name.then(|| Workload::new([path]).program().ok()).flatten();
    match program {
        Some(_) => anyhow::anyhow!("{error}; a command stands behind `--`: nearmiss VERB -- {}", path.display()),
        None => error.into(),
    }
}

/// Returns the machine that a run was recorded for which was cut off before its model kept that.
pub fn recorded_for(run: &RunDir, manifest: &Manifest) -> anyhow::Result<Machine> {
    let named = manifest.machine.as_str();
    if let Some(Ok(preset)) = describe::preset(named).map(|preset| preset.machine()) {
        return Ok(preset);
    }
    let here =
        nearmiss_host::NAMES.iter().find_map(|name| nearmiss_host::load(name).ok().filter(|it| it.name == named));
    let path = run.path().display();
    here.with_context(|| {
        format!(
            "{path}: this run was cut off before it was modelled, and its machine is neither a preset nor this one; -m \
             MACHINE models its trace: `nearmiss report {path} -m host`"
        )
    })
}
