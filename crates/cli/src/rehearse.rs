//! The verb `rehearse`: a run replayed as if a remedy had been in place.

use crate::Remedies;
use crate::by_remedy::{chosen_remedy, of_remedies};
use crate::case::{How, ModelArgs, ShownArgs};
use crate::output::print;
use crate::progress::progress;
use anyhow::Context;
use clap::{Arg, ArgAction, ArgMatches, Args as _, Command, FromArgMatches};
use nearmiss_analysis::{Case, CaseError, Needs, Parameter, RehearsalRequest, Remedy, Value};
use nearmiss_record::finding::LEAST_GAIN;
use nearmiss_record::rehearsal::{Rehearsals, SCHEMA};
use nearmiss_record::run;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments that `rehearse` takes beside the remedy's parameter, and beside those of the model where one is made.
#[derive(clap::Args)]
struct RehearseArgs {
    /// The run's directory [default: the newest one under ./nearmiss-runs]
    run: Option<PathBuf>,
    #[command(flatten)]
    shown: ShownArgs,
}

/// Whether the remedy looks at runs that are modelled; an observation is not.
fn has_model(remedy: &Remedy) -> bool {
    remedy.needs != Needs::Observation
}

/// A subcommand a remedy.
pub fn arguments(command: Command, remedies: Remedies) -> Command {
    let arguments = |command: Command, remedy: &Remedy| {
        let command = if has_model(remedy) { ModelArgs::augment_args(command) } else { command };
        RehearseArgs::augment_args(command).arg(values(remedy.parameter)).args(remedy.limit.map(limit))
    };
    of_remedies(command, remedies, |remedy| remedy.rehearse_help, arguments)
}

fn values(parameter: Parameter) -> Arg {
    Arg::new(parameter.name)
        .long(parameter.name)
        .value_name(parameter.value_name)
        .help(parameter.help)
        .action(ArgAction::Append)
        .value_delimiter(',')
        .value_parser(parameter.parse)
}

fn limit(parameter: Parameter) -> Arg {
    Arg::new(parameter.name)
        .long(parameter.name)
        .value_name(parameter.value_name)
        .help(parameter.help)
        .value_parser(parameter.parse)
}

/// Runs the verb.
pub fn run(given: &ArgMatches, remedies: Remedies) -> anyhow::Result<ExitCode> {
    let (remedy, given) = chosen_remedy(given, remedies)?;
    let RehearseArgs { run, shown } = RehearseArgs::from_arg_matches(given)?;
    let model = if has_model(remedy) { ModelArgs::from_arg_matches(given)? } else { ModelArgs::default() };
    let how = How { model, shown };
    let mut values: Vec<Value> = given.get_many(remedy.parameter.name).into_iter().flatten().cloned().collect();
    values.sort();
    values.dedup();
    let limit = remedy.limit.and_then(|limit| given.get_one(limit.name).cloned());
    let (run, case) = how.open(run.as_deref(), Path::new(run::DEFAULT_PARENT), &[remedy])?;
    let rehearsals = rehearse(remedy, &case, &RehearsalRequest { values, limit }, how.shown.all)?;
    run.write_json(run::REHEARSALS, &rehearsals)?;
    if how.shown.json {
        print(&format!("{}\n", serde_json::to_string(&rehearsals).context("rehearsals")?))?;
    } else {
        print(&nearmiss_report::rehearsals::render(&rehearsals))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn rehearse(remedy: &Remedy, case: &Case, request: &RehearsalRequest, all: bool) -> anyhow::Result<Rehearsals> {
    let mut suspicions = (remedy.detect)(case)?;
    // Who names values wants to see what they do, be it nothing.
    let all = all || *request != RehearsalRequest::default();
    suspicions.retain(|suspicion| all || suspicion.most_gain() >= LEAST_GAIN);
    suspicions.sort_by(|a, b| b.most_gain().total_cmp(&a.most_gain()));
    let (mut tables, mut notes) = (Vec::new(), case.notes());
    for suspicion in &suspicions {
        progress(&format!("rehearsing {}", remedy.name));
        match suspicion.rehearse(case, request) {
            Ok(table) => tables.push(table),
            // One of several that lacks data in the run keeps nobody from the others.
            Err(CaseError::Unfit(why)) if suspicions.len() > 1 => notes.push(format!("Not rehearsed: {why}.")),
            Err(error) => return Err(error.into()),
        }
    }
    let nothing = remedy.nothing_found;
    Ok(Rehearsals {
        schema: SCHEMA.to_owned(),
        machine: case.machine_name().to_owned(),
        caution: case.caution().map(str::to_owned),
        remedy: remedy.name.to_owned(),
        nothing: tables.is_empty().then(|| nothing.to_owned()),
        tables,
        notes,
    })
}
