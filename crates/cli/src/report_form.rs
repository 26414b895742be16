//! The forms that a report comes in.

use std::path::PathBuf;

/// Form of a report: at most one of these options.
#[derive(clap::Args)]
#[group(multiple = false)]
pub struct Form {
    /// Print the records of the run as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Write one self-contained HTML page [default: report.html in the run's directory]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    pub html: Option<Option<PathBuf>>,
    /// Write a profile for KCachegrind and callgrind_annotate
    #[arg(long, value_name = "FILE")]
    pub callgrind: Option<PathBuf>,
    /// Write a profile for pprof
    #[arg(long, value_name = "FILE")]
    pub pprof: Option<PathBuf>,
    /// Write a profile for the Firefox Profiler (of observed runs)
    #[arg(long, value_name = "FILE")]
    pub firefox: Option<PathBuf>,
    /// Write a trace for Perfetto (of observed runs)
    #[arg(long, value_name = "FILE")]
    pub perfetto: Option<PathBuf>,
    /// Write folded stacks for flame-graph tools
    #[arg(long, value_name = "FILE")]
    pub folded: Option<PathBuf>,
    /// Print every lock wait and poll of a run that kept them (observe --log)
    #[arg(long)]
    pub log: bool,
    /// Print one function: its lines, its instructions, of an observed run its call sites. A part of the name is enough
    #[arg(long, value_name = "NAME")]
    pub function: Option<String>,
    /// Print source lines and instructions of a traced run: of this function [default: of the three with the most cycles]
    #[arg(long, value_name = "FUNCTION", num_args = 0..=1)]
    pub code: Option<Option<String>>,
    /// Check the run's trace record by record; name the first bad one
    #[arg(long)]
    pub validate: bool,
}

impl Form {
    /// The form of what has text, JSON and a page alone.
    pub fn is_basic(&self) -> bool {
        let files = [&self.callgrind, &self.pprof, &self.folded];
        let of_code = self.function.is_some() || self.code.is_some();
        files.iter().all(|f| f.is_none()) && !of_code && !self.only_of_observed_runs() && !self.validate
    }

    /// One that a traced run does not come in.
    pub fn only_of_observed_runs(&self) -> bool {
        let files = [&self.firefox, &self.perfetto];
        files.iter().any(|f| f.is_some()) || self.log
    }
}
