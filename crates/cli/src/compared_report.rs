//! `nearmiss report --compare`: runs side by side.

use crate::output::{flat, print, terminal_width, write};
use crate::report_form::Form;
use nearmiss_record::run::RunDir;
use nearmiss_report::compare;
use std::path::PathBuf;
use std::process::ExitCode;

/// Name of the page where the user gives none, in the directory of side B's first run.
const PAGE: &str = "comparison.html";

fn opened(paths: &[PathBuf]) -> anyhow::Result<Vec<RunDir>> {
    paths.iter().map(|path| RunDir::open(path).map_err(flat)).collect()
}

/// Writes the comparison in the requested form.
pub fn write_form(before: &[PathBuf], after: &[PathBuf], form: &Form, rows: usize) -> anyhow::Result<ExitCode> {
    if !form.is_basic() {
        anyhow::bail!("--compare has text, --json and --html only");
    }
    let (before, after) = (opened(before)?, opened(after)?);
    let comparison = compare::compare(&before, &after).map_err(flat)?;
    if form.json {
        print(&format!("{}\n", serde_json::to_string(&comparison)?))?;
    } else if let Some(file) = &form.html {
        let file = file.clone().unwrap_or_else(|| after[0].file(PAGE));
        write(&file, compare::html(&comparison).as_bytes())?;
    } else {
        print(&compare::text(&comparison, terminal_width(), rows))?;
    }
    Ok(ExitCode::SUCCESS)
}
