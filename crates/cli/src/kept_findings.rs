//! Findings for the page of a run.

use crate::exit;
use nearmiss_record::finding::Findings;
use nearmiss_record::run::RunDir;
use nearmiss_report::load::findings;

/// Findings of a run that was diagnosed. Those of another version, or damaged ones, leave the page without.
pub fn kept_findings(run: &RunDir) -> Option<Findings> {
    findings(run).unwrap_or_else(|error| {
        exit::print_message(&format!(
            "{error}; the page has no findings until `nearmiss diagnose {}`",
            run.path().display()
        ));
        None
    })
}
