//! `nearmiss report --json`: the records of the run and the sentence that matters, in one object.

use crate::load::Report;
use crate::sentence::{Sentence, sentence};
use nearmiss_record::model::ModelRecord;
use nearmiss_record::run::Manifest;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

/// `nearmiss/report/1`.
pub const SCHEMA: &str = "nearmiss/report/1";

/// A traced run: the sentence that matters, and the records of the run.
#[derive(Serialize, JsonSchema)]
struct Document<'a> {
    /// [`SCHEMA`].
    schema: &'static str,
    /// The sentence that matters.
    sentence: Sentence,
    /// Sums of the model that do not agree; none in a sound record.
    discrepancies: Vec<String>,
    /// Manifest of the run.
    manifest: &'a Manifest,
    /// Counts of the model.
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

/// The JSON Schema of the document.
pub fn schema(generator: &mut SchemaGenerator) -> Schema {
    Document::json_schema(generator)
}
