//! A gate's verdict on standard output and in files, and its baselines.

use crate::destination::json_file;
use crate::output::print;
use anyhow::Context;
use nearmiss_record::baseline::{Baseline, SCHEMA};
use nearmiss_record::gate::GateRecord;
use nearmiss_record::run::write_whole;
use nearmiss_record::words::io_error;
use std::path::{Path, PathBuf};

/// How the verdict is told.
#[derive(clap::Args)]
pub struct Outputs {
    /// Print Markdown, for a pull request: one table, causes folded
    #[arg(long, conflicts_with = "write", help_heading = "Output")]
    markdown: bool,
    /// Print the verdict as JSON
    #[arg(long, conflicts_with_all = ["write", "markdown"], help_heading = "Output")]
    json: bool,
    /// Also write JUnit XML here: a test a figure
    #[arg(long, value_name = "FILE", value_parser = json_file, conflicts_with = "write", help_heading = "Output")]
    junit: Option<PathBuf>,
    /// Also write SARIF here: each figure beyond its limit at the source line of its cause
    #[arg(long, value_name = "FILE", value_parser = json_file, conflicts_with = "write", help_heading = "Output")]
    sarif: Option<PathBuf>,
}

impl Outputs {
    /// Writes and prints what was asked for.
    pub fn tell(&self, record: &GateRecord) -> anyhow::Result<()> {
        if let Some(file) = &self.junit {
            write_whole(file, nearmiss_report::gate::junit(record).as_bytes())?;
        }
        if let Some(file) = &self.sarif {
            let root = std::env::current_dir().unwrap_or_default();
            write_whole(file, nearmiss_report::gate::sarif(record, &root.to_string_lossy()).as_bytes())?;
        }
        if self.json {
            return print(&format!("{}\n", serde_json::to_string(record).context("verdict")?));
        }
        print(&if self.markdown {
            nearmiss_report::gate::markdown(record)
        } else {
            nearmiss_report::gate::text(record)
        })
    }
}

/// Reads a baseline. Errors: it is none, or of another version of nearmiss.
pub fn read_baseline(file: &Path) -> anyhow::Result<Baseline> {
    let name = file.display();
    let bytes = std::fs::read(file).map_err(|error| anyhow::anyhow!("{name}: {}", io_error(&error)))?;
    let again = "write it again with `nearmiss gate --write`";
    let value: serde_json::Value = serde_json::from_slice(&bytes)
        .map_err(|error| anyhow::anyhow!("{name}: {error}; this is no baseline: {again}"))?;
    let found = value.get("schema").and_then(|schema| schema.as_str()).unwrap_or("none");
    anyhow::ensure!(found == SCHEMA, "{name}: schema `{found}`, this nearmiss reads `{SCHEMA}`: {again}");
    let baseline: Baseline = serde_json::from_value(value)
        .map_err(|error| anyhow::anyhow!("{name}: {error}; the file is damaged: {again}"))?;
    anyhow::ensure!(baseline.side.recordings() >= 2, "{name}: fewer than two recordings show no noise: {again}");
    Ok(baseline)
}

/// Writes a baseline with a line for each part, so that a repository shows what changed. Says where it is.
pub fn write_baseline(file: &Path, baseline: &Baseline) -> anyhow::Result<()> {
    let text = serde_json::to_string(baseline).context("baseline")?;
    // Only keys and braces are looked at: strings have their quotes escaped.
    let lines =
        text.replace("{\"kind\":", "\n{\"kind\":").replace("],\"", "],\n\"").replace("},\"side\"", "},\n\"side\"");
    write_whole(file, format!("{lines}\n").as_bytes())?;
    print(&format!("{}: {} recordings of {}\n", file.display(), baseline.side.recordings(), baseline.side.command))
}
