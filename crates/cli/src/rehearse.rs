//! The verb `rehearse`: a run replayed as if a remedy had been in place.

use crate::case::{How, find};
use crate::output::print;
use crate::progress::progress;
use anyhow::Context;
use nearmiss_record::rehearsal::{Rehearsals, SCHEMA};
use nearmiss_record::run;
use nearmiss_remedy::Suspicion;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `nearmiss rehearse`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  nearmiss rehearse color                 the newest run, in 1 to 64 colors")]
pub struct Args {
    #[command(subcommand)]
    remedy: Remedy,
}

#[derive(clap::Subcommand)]
enum Remedy {
    /// The run with its objects in 1, 2, 4, … colors
    #[command(after_help = "Examples:
  nearmiss rehearse color                              the newest run
  nearmiss rehearse color RUN -m pentium-pro-4way-1m   on another machine
  nearmiss rehearse color RUN --colors 1,8,32")]
    Color {
        /// The run's directory [default: the newest one under ./nearmiss-runs]
        run: Option<PathBuf>,
        /// Numbers of colors to try [default: 1,2,4,8,16,32,64]
        #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=1024))]
        colors: Vec<u64>,
        #[command(flatten)]
        how: How,
    },
}

/// Runs the verb.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Remedy::Color { run, mut colors, how } = args.remedy;
    colors.sort_unstable();
    colors.dedup();
    let run = find(run.as_deref(), Path::new(run::DEFAULT_PARENT))?;
    let case = how.case(&run)?;
    let mut suspicions = nearmiss_remedy::color::detect(&case)?;
    suspicions.retain(|s| how.all || s.most_gain() >= nearmiss_record::finding::LEAST_GAIN);
    suspicions.sort_by(|a, b| b.most_gain().total_cmp(&a.most_gain()));
    let table = |suspicion: &dyn Suspicion| {
        progress("rehearsing color");
        suspicion.rehearse(&case, &colors)
    };
    let rehearsals = Rehearsals {
        schema: SCHEMA.to_owned(),
        machine: case.machine().name.clone(),
        tables: suspicions.iter().map(|suspicion| table(suspicion.as_ref())).collect::<Result<_, _>>()?,
        notes: case.model.notes.clone(),
    };
    case.run.write_json(run::REHEARSALS, &rehearsals)?;
    if how.json {
        print(&format!("{}\n", serde_json::to_string(&rehearsals).context("rehearsals")?))?;
    } else {
        print(&nearmiss_report::rehearsals::render(&rehearsals))?;
    }
    Ok(ExitCode::SUCCESS)
}
