//! `nearmiss report` of a run of `verify`.

use crate::output::print;
use crate::report_form::Form;
use nearmiss_record::run::{self, Manifest, RunDir};
use nearmiss_record::verdict::Verdict;
use std::process::ExitCode;

/// The verdict again, as text or JSON.
pub fn write_form(run: &RunDir, form: &Form) -> anyhow::Result<ExitCode> {
    if !form.is_basic() || form.html.is_some() {
        anyhow::bail!("{}: {}, which has text and --json only", run.path().display(), run.kind());
    }
    // A run of another version is refused, with any verdict.
    run.read_json::<Manifest>(run::MANIFEST)?;
    let verdict: Verdict = run.read_json(run::VERDICT)?;
    print(&match form.json {
        true => format!("{}\n", serde_json::to_string(&verdict)?),
        false => nearmiss_report::verdict::render(&verdict),
    })?;
    Ok(ExitCode::SUCCESS)
}
