//! A gate as SARIF 2.1.0: a result for each figure beyond its limit, at the source line of its first cause.

use super::words::{cause, change, whole_title};
use nearmiss_record::gate::{Cause, GateRecord, JudgedFigure};
use serde_json::{Value, json};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// The verdict as a log that code hosts show beside the source. `root` is the directory that paths are relative to: where
/// the file of a cause lies below it, as a code host does not know other machines' paths.
pub fn sarif(record: &GateRecord, root: &str) -> String {
    let beyond: Vec<&JudgedFigure> = super::words::beyond(record).collect();
    let rules: Vec<Value> = beyond
        .iter()
        .map(|figure| json!({ "id": figure.name, "shortDescription": { "text": format!("More {}", whole_title(&figure.name)) } }))
        .collect();
    let results: Vec<Value> = beyond.iter().map(|figure| result(figure, root)).collect();
    let driver = json!({
        "name": "nearmiss gate",
        "version": record.nearmiss,
        "rules": rules,
    });
    let log = json!({ "$schema": SCHEMA, "version": "2.1.0", "runs": [{ "tool": { "driver": driver }, "results": results }] });
    format!("{log:#}\n")
}

fn result(figure: &JudgedFigure, root: &str) -> Value {
    let causes: Vec<String> = figure.causes.iter().map(|found| cause(found, figure)).collect();
    let text =
        format!("{} {} (limit {}). {}", whole_title(&figure.name), change(figure), figure.limit, causes.join(". "));
    let first = figure.causes.iter().find_map(|found| location(found, root));
    json!({
        "ruleId": figure.name,
        "level": "error",
        "message": { "text": text.trim() },
        "locations": first.into_iter().collect::<Vec<_>>(),
        "partialFingerprints": { "nearmissFigure/v1": figure.name },
    })
}

fn location(cause: &Cause, root: &str) -> Option<Value> {
    if cause.line == 0 || cause.file.is_empty() {
        return None;
    }
    let below = cause.file.strip_prefix(root).map(|path| path.trim_start_matches('/'));
    let uri = below.unwrap_or(&cause.file);
    Some(json!({
        "physicalLocation": { "artifactLocation": { "uri": encoded(uri) }, "region": { "startLine": cause.line } },
        "logicalLocations": [{ "name": cause.name, "kind": "function" }],
    }))
}

/// Returns a path in the syntax of a URI.
fn encoded(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    path.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
