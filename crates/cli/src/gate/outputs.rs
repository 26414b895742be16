//! A gate's verdict on standard output and in files, and its baselines.

use crate::destination::json_file;
use crate::output::print;
use anyhow::Context;
use nearmiss_record::baseline::{Baseline, SCHEMA, Side};
use nearmiss_record::gate::GateRecord;
use nearmiss_record::run::write_whole;
use nearmiss_record::words::io_error;
use std::path::{Path, PathBuf};

/// Forms of the verdict.
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
    /// Writes the files and prints the verdict.
    pub fn write(&self, record: &GateRecord) -> anyhow::Result<()> {
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

/// Writes a baseline with a line for each figure and each part, so that a repository shows what changed. Prints its place.
pub fn write_baseline(file: &Path, baseline: &Baseline) -> anyhow::Result<()> {
    write_whole(file, by_lines(baseline)?.as_bytes())?;
    print(&format!("{}: {} recordings of {}\n", file.display(), baseline.side.recordings(), baseline.side.command))
}

fn json(value: &impl serde::Serialize) -> anyhow::Result<String> {
    serde_json::to_string(value).context("baseline")
}

fn by_lines(baseline: &Baseline) -> anyhow::Result<String> {
    let Side { command, figures, parts, least_kept } = &baseline.side;
    let figures: Vec<String> = (figures.iter())
        .map(|(name, counts)| Ok(format!("{}:{}", json(name)?, json(counts)?)))
        .collect::<anyhow::Result<_>>()?;
    let parts: Vec<String> = parts.iter().map(json).collect::<anyhow::Result<_>>()?;
    Ok(format!(
        "{{\"schema\":{},\"nearmiss\":{},\"recorder\":{},\"side\":{{\"command\":{},\"least_kept\":{least_kept},\n\"figures\":{{\n{}}},\n\"parts\":[\n{}]}}}}\n",
        json(&baseline.schema)?,
        json(&baseline.nearmiss)?,
        json(&baseline.recorder)?,
        json(command)?,
        figures.join(",\n"),
        parts.join(",\n"),
    ))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use nearmiss_record::baseline::{BaselinePart, Counts};
    use nearmiss_record::gate::{PartKind, Recorder};

    #[test]
    fn a_baseline_reads_back_line_by_line() {
        let part = BaselinePart {
            kind: PartKind::Function,
            name: "odd\"name],\"".to_owned(),
            module: "p".to_owned(),
            kernel: false,
            file: String::new(),
            line: 0,
            caller: String::new(),
            calls: 3,
            counts: Counts { misses: vec![[1; 6]], ..Counts::default() },
        };
        let figures = [("user.l1", vec![1, 2]), ("user.l2", vec![3, 4])].map(|(name, it)| (name.to_owned(), it));
        let baseline = Baseline {
            schema: SCHEMA.to_owned(),
            nearmiss: "0".to_owned(),
            recorder: Recorder::default(),
            side: Side {
                command: "a 'b'".to_owned(),
                figures: figures.into(),
                parts: vec![part.clone(), part],
                least_kept: 1000,
            },
        };
        let text = by_lines(&baseline).unwrap();
        assert_eq!(text.lines().count(), 7, "{text}");
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        assert_eq!(read_baseline(file.path()).unwrap(), baseline);
    }
}
