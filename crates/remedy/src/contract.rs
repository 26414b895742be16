//! What a remedy is: one definition in its folder, from which every verb takes what it needs.

use crate::case::{Case, Needs};
use crate::engagement::{CannotEngage, Engagement};
use crate::replay::CaseError;
use clap::{ArgMatches, Command};
use nearmiss_record::finding::Finding;
use nearmiss_record::rehearsal::Rehearsal;
use nearmiss_workload::Workload;

/// A remedy. Parser, help, man page, completions, `doctor` and all verbs read this and nothing else of it.
pub struct Remedy {
    /// As typed.
    pub name: &'static str,
    /// What it does, in a few words and without a full stop.
    pub summary: &'static str,
    /// Help of `apply NAME`.
    pub apply_help: Help,
    /// Help of `verify NAME`.
    pub verify_help: Help,
    /// Help of `rehearse NAME`.
    pub rehearse_help: Help,
    /// What of a run it looks at.
    pub needs: Needs,
    /// Adds the options that `apply` and `verify` take.
    pub options: fn(Command) -> Command,
    /// What a rehearsal varies.
    pub parameter: Parameter,
    /// What a rehearsal's choice among the values keeps within, where there is a choice. Its name is a singular.
    pub limit: Option<Parameter>,
    /// Looks for what it may help with in a run that has what it needs.
    pub detect: fn(&Case) -> Result<Suspicions, CaseError>,
    /// What a run has not where `detect` finds nothing, as in `…, and no objects crowd on few sets`.
    pub nothing_found: &'static str,
    /// Puts a command under the remedy, with the options of its own as they were given.
    pub apply: fn(Workload, &ArgMatches) -> Result<Applied, CannotEngage>,
    /// Puts a process that runs already under the remedy, where the remedy can: its number, and the options.
    pub attach: Option<Attach>,
    /// The title of a verdict on it, with the options as they were given.
    pub title: fn(&ArgMatches) -> String,
    /// What of it works on this machine, each thing tried.
    pub abilities: fn() -> Vec<Ability>,
}

/// Puts a process that runs already under a remedy. The engagement has begun when it returns.
pub type Attach = fn(i32, &ArgMatches) -> Result<Box<dyn Engagement>, CannotEngage>;

/// What a remedy sees in a run.
pub type Suspicions = Vec<Box<dyn Suspicion>>;

/// A command under a remedy, and the remedy around it.
pub struct Applied {
    /// To be launched, as often as wanted.
    pub workload: Workload,
    /// Lives as long as the command is launched.
    pub engagement: Box<dyn Engagement>,
}

/// What the help of a verb says of a remedy.
#[derive(Clone, Copy, Debug)]
pub struct Help {
    /// One line without a full stop.
    pub about: &'static str,
    /// Examples, and what else a user must know.
    pub after: &'static str,
}

/// What a rehearsal varies: `--NAME VALUE,…`.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Name of the option, which is a plural.
    pub name: &'static str,
    /// What stands for a value in the help.
    pub value_name: &'static str,
    /// Help of the option; it ends with the usual values.
    pub help: &'static str,
    /// Reads one value.
    pub parse: fn(&str) -> Result<Value, String>,
}

/// One value of a rehearsal's parameter. Ascending order is the order of the rows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// A number, in the parameter's unit.
    Number(u64),
    /// A name, such as a call site's.
    Name(String),
}

impl Value {
    /// The number, if it is one.
    pub fn number(&self) -> Option<u64> {
        match self {
            Value::Number(number) => Some(*number),
            Value::Name(_) => None,
        }
    }
}

/// What is asked of a rehearsal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Values of the remedy's parameter; of none, those that the remedy thinks worth trying.
    pub values: Vec<Value>,
    /// What the choice keeps within, unless it is the usual.
    pub limit: Option<Value>,
}

impl Asked {
    /// Those of the values that are numbers.
    pub fn numbers(&self) -> Vec<u64> {
        self.values.iter().filter_map(Value::number).collect()
    }
}

/// Something in a run that a remedy may help with; not yet rehearsed.
pub trait Suspicion: Send + Sync {
    /// Share of the command's cost that could be saved at the very most.
    fn most_gain(&self) -> f64;

    /// The same under the least favourable order of the CPUs and the dearest price: what may be printed as a bound. Never
    /// below [`Suspicion::most_gain`].
    fn bound(&self) -> f64 {
        self.most_gain()
    }

    /// What the trace lacks for the finding to be exact, as `nearmiss trace --carry` takes it.
    fn lacks(&self, _case: &Case) -> Option<&'static str> {
        None
    }

    /// Rehearses the remedy on the run, and says all there is to say.
    fn finding(&self, case: &Case) -> Result<Finding, CaseError>;

    /// Where the finding gains nothing: what another limit than the usual one would give, as a sentence without its end.
    fn beyond_limit(&self, _case: &Case) -> Result<Option<String>, CaseError> {
        Ok(None)
    }

    /// The table of the remedy's parameter.
    fn rehearse(&self, case: &Case, asked: &Asked) -> Result<Rehearsal, CaseError>;
}

/// One thing that a remedy needs of a machine: a row of `doctor`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ability {
    /// The thing, in a few words.
    pub name: &'static str,
    /// What was found, or why it does not work and what to do.
    pub state: Result<String, Inability>,
}

/// Why something does not work, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inability {
    /// What was found.
    pub why: String,
    /// What to type or do.
    pub todo: String,
}
