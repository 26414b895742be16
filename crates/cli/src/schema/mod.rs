//! The verb `schema`: the JSON Schema of each record that nearmiss prints or keeps.

mod format;
mod records;

use crate::Remedies;
use crate::output::{print, write};
use crate::table::{lines, print_line, table, width};
use anyhow::Context;
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
this nearmiss writes them, in JSON Schema 2020-12; files of runs have a checksum at their end, too. The logs of \
observed runs are Parquet files, and are not here.")]
pub struct Args {
    /// The record [default: list them]
    #[arg(value_name = "RECORD", conflicts_with = "all")]
    record: Option<String>,
    /// Write every schema into this directory
    #[arg(long, value_name = "DIR")]
    all: Option<PathBuf>,
}

/// Runs the verb.
pub fn run(args: Args, remedies: Remedies) -> anyhow::Result<ExitCode> {
    let formats = records::formats(remedies);
    match (args.record, args.all) {
        (Some(name), _) => print(&by_name(&formats, &name)?.text()?)?,
        (None, Some(directory)) => {
            anyhow::ensure!(directory.is_dir(), "{}: no such directory: create it first", directory.display());
            for format in formats {
                write(&directory.join(format.file()), format.text()?.as_bytes())?;
            }
        }
        (None, None) => list(&formats)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn by_name<'a>(formats: &'a [Format], name: &str) -> anyhow::Result<&'a Format> {
    let found = formats.iter().find(|format| format.name == name || format.schema == name);
    found.with_context(|| {
        let names: Vec<&str> = formats.iter().map(|format| format.name.as_str()).collect();
        format!("{name}: no such record; there are {}", names.join(", "))
    })
}

fn list(formats: &[Format]) -> anyhow::Result<()> {
    let mut table = table(&["record", "version", "printed or kept by"], width());
    for format in formats {
        table.add_row([&format.name, format.version(), &format.place]);
    }
    print_line(&lines(&table))?;
    Ok(())
}
