//! The verb `schema`: the JSON Schema of each record that nearmiss prints or keeps.

mod format;
mod records;

use crate::output::{print, write};
use crate::table::{lines, print_line, table, width};
use format::Format;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `nearmiss schema`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  nearmiss schema                     the records, and what prints each of them
  nearmiss schema gate > gate.schema.json
  nearmiss schema --all docs/schema   all of them, one file each

A record names its format in its field `schema`, as in nearmiss/gate/1. The schemas have the records as \
this nearmiss writes them, in JSON Schema 2020-12; kept files have a checksum at their end, too. The logs of \
observed runs are Parquet files, and `apply --json` has a record of each remedy: neither is here.")]
pub struct Args {
    /// The record [default: list them]
    #[arg(value_name = "RECORD", value_parser = records::by_name, conflicts_with = "all")]
    record: Option<&'static Format>,
    /// Write every schema into this directory
    #[arg(long, value_name = "DIR")]
    all: Option<PathBuf>,
}

/// Runs the verb.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match (args.record, args.all) {
        (Some(format), _) => print(&format.text()?)?,
        (None, Some(directory)) => {
            anyhow::ensure!(directory.is_dir(), "{}: no such directory: create it first", directory.display());
            for format in records::FORMATS {
                write(&directory.join(format.file()), format.text()?.as_bytes())?;
            }
        }
        (None, None) => list()?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list() -> anyhow::Result<()> {
    let mut table = table(&["record", "schema", "printed or kept by"], width());
    for format in records::FORMATS {
        table.add_row([format.name, format.schema, format.place]);
    }
    print_line(&lines(&table))?;
    Ok(())
}
