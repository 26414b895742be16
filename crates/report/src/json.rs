//! `nearmiss report --json`: the records of the run and the sentence that matters, in one object.

use crate::load::Report;
use crate::sentence::{Sentence, sentence};
use nearmiss_record::model::ModelRecord;
use nearmiss_record::run::Manifest;
use serde::Serialize;

/// `nearmiss/report/1`.
pub const SCHEMA: &str = "nearmiss/report/1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    sentence: Sentence,
    discrepancies: Vec<String>,
    manifest: &'a Manifest,
    model: &'a ModelRecord,
}

/// The document, one line and a newline.
///
/// Errors: none that a loaded report can cause; serde_json's.
pub fn render(report: &Report) -> Result<String, serde_json::Error> {
    let document = Document {
        schema: SCHEMA,
        sentence: sentence(report),
        discrepancies: crate::sums::discrepancies(&report.model),
        manifest: &report.manifest,
        model: &report.model,
    };
    Ok(serde_json::to_string(&document)? + "\n")
}
