//! Definition of a remedy: one in its folder, from which every verb takes what it needs.

use crate::case::{Case, Needs};
use crate::engagement::{CannotEngage, Engagement};
use crate::replay::CaseError;
use clap::{ArgMatches, Command};
use nearmiss_record::finding::Finding;
use nearmiss_record::rehearsal::Rehearsal;
use nearmiss_workload::Workload;
use schemars::{JsonSchema, Schema, SchemaGenerator};

/// A remedy. Parser, help, man page, completions, `doctor` and all verbs read this and nothing else of it.
pub struct Remedy {
    /// Name, as typed.
    pub name: &'static str,
    /// Effect of the remedy, in a few words and without a full stop.
    pub summary: &'static str,
    /// Help of `apply NAME`.
    pub apply_help: Help,
    /// Help of `verify NAME`.
    pub verify_help: Help,
    /// Help of `rehearse NAME`.
    pub rehearse_help: Help,
    /// Parts of a run that it reads.
    pub needs: Needs,
    /// Adds the options that `apply` and `verify` take.
    pub options: fn(Command) -> Command,
    /// Parameter that a rehearsal varies.
    pub parameter: Parameter,
    /// Limit on a rehearsal's choice among the values, where there is a choice. Its name is a singular.
    pub limit: Option<Parameter>,
    /// Looks for what it may help with in a run that has what it needs.
    pub detect: fn(&Case) -> Result<Suspicions, CaseError>,
    /// Clause printed when `detect` finds nothing, as in `…, and no objects crowd on few sets`.
    pub nothing_found: &'static str,
    /// Puts a command under the remedy, with the options of its own as they were given.
    pub apply: fn(Workload, &ArgMatches) -> Result<Applied, CannotEngage>,
    /// Puts a process that runs already under the remedy, where the remedy can: its number, and the options.
    pub attach: Option<Attach>,
    /// Formats of the records of its acts, which `apply --json` writes.
    pub records: &'static [AppliedRecord],
    /// The title of a verdict on it, with the options as they were given.
    pub title: fn(&ArgMatches) -> String,
    /// Returns which of its parts work on this machine, each one tried.
    pub abilities: fn() -> Vec<Ability>,
}

/// Format of a record of a remedy's acts.
#[derive(Clone, Copy)]
pub struct AppliedRecord {
    /// Name and version of the format, as the record's field `schema` has them.
    pub schema: &'static str,
    /// Definition of the record.
    pub definition: fn(&mut SchemaGenerator) -> Schema,
}

impl AppliedRecord {
    /// The format of a type's records.
    pub const fn of<R: JsonSchema>(schema: &'static str) -> Self {
        AppliedRecord { schema, definition: R::json_schema }
    }
}

/// Puts a process that runs already under a remedy. The engagement has begun when it returns.
pub type Attach = fn(i32, &ArgMatches) -> Result<Box<dyn Engagement>, CannotEngage>;

/// Suspicions of a remedy in a run.
pub type Suspicions = Vec<Box<dyn Suspicion>>;

/// A command under a remedy, and the remedy around it.
pub struct Applied {
    /// The command, to be launched any number of times.
    pub workload: Workload,
    /// Lives as long as the command is launched.
    pub engagement: Box<dyn Engagement>,
}

impl<E: Engagement + 'static> From<(Workload, E)> for Applied {
    fn from((workload, engagement): (Workload, E)) -> Self {
        Applied { workload, engagement: Box::new(engagement) }
    }
}

/// Help of a verb for one remedy.
#[derive(Clone, Copy, Debug)]
pub struct Help {
    /// One line without a full stop.
    pub about: &'static str,
    /// Examples, and what else a user must know.
    pub after: &'static str,
}

/// Parameter of a rehearsal: `--NAME VALUE,…`.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Name of the option, which is a plural.
    pub name: &'static str,
    /// Placeholder for a value in the help.
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

/// Request for a rehearsal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RehearsalRequest {
    /// Values of the remedy's parameter; if empty, the remedy's own selection.
    pub values: Vec<Value>,
    /// Limit on the choice, unless it is the usual.
    pub limit: Option<Value>,
}

impl RehearsalRequest {
    /// Returns those of the values that are numbers.
    pub fn numbers(&self) -> Vec<u64> {
        self.values.iter().filter_map(Value::number).collect()
    }
}

/// Something in a run that a remedy may help with; not yet rehearsed.
pub trait Suspicion: Send + Sync {
    /// Share of the command's cost that could be saved at the very most.
    fn most_gain(&self) -> f64;

    /// Gain under the least favourable order of the CPUs and the dearest price, to be printed as a bound. Never below
    /// [`Suspicion::most_gain`].
    fn bound(&self) -> f64 {
        self.most_gain()
    }

    /// Part that the trace lacks for an exact finding, as `nearmiss trace --carry` takes it.
    fn lacks(&self, _case: &Case) -> Option<&'static str> {
        None
    }

    /// Rehearses the remedy on the run, and returns the whole finding.
    fn finding(&self, case: &Case) -> Result<Finding, CaseError>;

    /// Result of another limit than the usual one, where the finding gains nothing, as a sentence without its end.
    fn beyond_limit(&self, _case: &Case) -> Result<Option<String>, CaseError> {
        Ok(None)
    }

    /// The table of the remedy's parameter.
    fn rehearse(&self, case: &Case, request: &RehearsalRequest) -> Result<Rehearsal, CaseError>;
}

/// One thing that a remedy needs of a machine: a row of `doctor`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ability {
    /// The thing, in a few words.
    pub name: &'static str,
    /// Result of the check, or why it does not work and what to do.
    pub state: Result<String, Inability>,
}

/// Why something does not work, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inability {
    /// Reason of the failure.
    pub why: String,
    /// Command or step that helps.
    pub todo: String,
}
