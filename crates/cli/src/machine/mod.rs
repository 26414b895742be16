//! The verb `machine`: descriptions to list, to show, and of this machine.

use crate::exit::{CannotHere, print_message};
use crate::table::{lines, print_line, table, width};
use clap::Subcommand;
use comfy_table::ColumnConstraint;
use nearmiss_host::{Latencies, LoadError};
use nearmiss_machine::describe::{self, DescribeError, PRESETS};
use nearmiss_record::machine::{Cache, Machine};
use schemars::JsonSchema;
use serde::Serialize;
use std::process::ExitCode;

/// Arguments of `nearmiss machine`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  nearmiss machine list
  nearmiss machine show zen4-genoa > mine.toml  change it, then nearmiss trace -m ./mine.toml -- CMD
  nearmiss machine host --uncalibrated")]
pub struct Args {
    #[command(subcommand)]
    what: MachineCommand,
}

#[derive(Subcommand)]
enum MachineCommand {
    /// The machines that come with nearmiss
    List {
        /// Print the record (nearmiss/machines/1) instead of the table
        #[arg(long)]
        json: bool,
    },
    /// A machine as a machine file, each figure with its source
    Show {
        /// A preset, `host`, or a machine file (a path with `/` or `.toml`)
        machine: String,
        /// Cut down to this many CPUs, as a guest is
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
        cpus: Option<u32>,
        /// Print the record (nearmiss/machine/1) instead of the file
        #[arg(long)]
        json: bool,
    },
    /// This machine as a machine file: geometry from sysfs, latencies measured (remembered once it was quiet meanwhile)
    Host {
        /// Measure nothing: latencies are typical ones, marked assumed
        #[arg(long)]
        uncalibrated: bool,
        /// Measure again
        #[arg(long, conflicts_with = "uncalibrated")]
        recalibrate: bool,
        /// Print the record (nearmiss/machine/1) instead of the file
        #[arg(long)]
        json: bool,
    },
}

/// Runs the verb.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let text = match args.what {
        MachineCommand::List { json: true } => serde_json::to_string_pretty(&Machines::all()?)?,
        MachineCommand::List { json: false } => list(&Machines::all()?.machines, width()),
        MachineCommand::Show { machine, cpus, json } => show(&machine, cpus, json)?,
        MachineCommand::Host { uncalibrated, recalibrate, json } => {
            let latencies = match (uncalibrated, recalibrate) {
                (true, _) => Latencies::Assumed,
                (_, true) => Latencies::Recalibrated,
                _ => Latencies::Calibrated,
            };
            let machine = nearmiss_host::host(latencies).map_err(|e| CannotHere(format!("host: {e}")))?;
            machine.caution().into_iter().for_each(print_message);
            present(&machine, json)?
        }
    };
    print_line(text.trim_end())?;
    Ok(ExitCode::SUCCESS)
}

/// `nearmiss/machine/1`.
pub const SCHEMA: &str = "nearmiss/machine/1";
/// `nearmiss/machines/1`.
pub const SCHEMA_OF_ALL: &str = "nearmiss/machines/1";

/// One machine.
#[derive(Serialize, JsonSchema)]
pub struct Described<'a> {
    /// [`SCHEMA`].
    schema: &'static str,
    /// The machine, with its figures.
    machine: &'a Machine,
}

/// All machines that come with nearmiss.
#[derive(Serialize, JsonSchema)]
pub struct Machines {
    /// [`SCHEMA_OF_ALL`].
    schema: &'static str,
    /// The machines, with their figures.
    machines: Vec<Machine>,
}

impl Machines {
    fn all() -> Result<Machines, DescribeError> {
        let machines = PRESETS.iter().map(describe::Preset::machine).collect::<Result<_, _>>()?;
        Ok(Machines { schema: SCHEMA_OF_ALL, machines })
    }
}

fn show(name: &str, cpus: Option<u32>, json: bool) -> anyhow::Result<String> {
    if let (Some(preset), None, false) = (describe::preset(name), cpus, json) {
        // As it was written, comments included.
        return Ok(preset.text.to_owned());
    }
    let machine = nearmiss_host::load(name).map_err(|e| match e {
        LoadError::Host(_) => anyhow::Error::new(CannotHere(e.to_string())),
        other => other.into(),
    })?;
    present(&cpus.map_or_else(|| machine.clone(), |n| describe::cut(&machine, n)), json)
}

fn present(machine: &Machine, json: bool) -> anyhow::Result<String> {
    Ok(if json {
        serde_json::to_string_pretty(&Described { schema: SCHEMA, machine })?
    } else {
        describe::render(machine)?
    })
}

fn list(machines: &[Machine], width: u16) -> String {
    let mut table = table(&["name", "cpus", "nodes", "L1d", "L2", "L3", "what"], width);
    for m in machines {
        let t = m.topology;
        let size = |level| m.data_cache(level).map_or_else(|| "–".to_owned(), |c| c.size.to_string());
        table.add_row([
            m.name.clone(),
            format!("{}×{}×{}", t.packages, t.cores_per_package, t.threads_per_core),
            m.memory.nodes.to_string(),
            size(1),
            size(2),
            size(3),
            m.title.clone(),
        ]);
    }
    for column in 0..6 {
        if let Some(column) = table.column_mut(column) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    format!(
        "{}\n\nCPUs: packages × cores × hardware threads. Your own: nearmiss machine show NAME > mine.toml",
        lines(&table)
    )
}

/// `L1d 32 KiB, L1i 32 KiB, L2 1 MiB, L3 32 MiB`.
pub fn caches_in_one_line(machine: &Machine) -> String {
    let name = |c: &Cache| format!("{} {}", c.name(), c.size);
    machine.caches.iter().map(name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
