//! A gate as SARIF 2.1.0: a result for each figure beyond its limit, at the source line of its first cause.

use super::words::{cause, change, whole_title};
use nearmiss_record::gate::{Cause, GateRecord, JudgedFigure};
use serde_json::{Value, json};
use std::path::Path;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// The verdict as a log that code hosts show beside the source. `root` is the directory that paths are relative to: where
/// the file of a cause lies below it, as a code host does not know other machines' paths.
pub fn sarif(record: &GateRecord, root: &str) -> String {
    let beyond: Vec<&JudgedFigure> = super::words::beyond(record).collect();
    let rules: Vec<Value> = beyond
        .iter()
        .map(|figure| json!({ "id": figure.name, "shortDescription": { "text": format!("More {}", whole_title(&figure.name)) } }))
        .collect();
    let first = beyond.iter().flat_map(|figure| &figure.causes).find_map(|found| location(found, root));
    let elsewhere = first.unwrap_or_else(|| program(&record.new.command));
    let results: Vec<Value> = beyond.iter().map(|figure| result(figure, root, &elsewhere)).collect();
    let driver = json!({
        "name": "nearmiss gate",
        "version": record.nearmiss,
        "rules": rules,
    });
    let log = json!({ "$schema": SCHEMA, "version": "2.1.0", "runs": [{ "tool": { "driver": driver }, "results": results }] });
    format!("{log:#}\n")
}

/// `elsewhere`: the place of a result without one of its own, since GitHub refuses a log with such a result.
fn result(figure: &JudgedFigure, root: &str, elsewhere: &Value) -> Value {
    let causes: Vec<String> = figure.causes.iter().map(|found| cause(found, figure)).collect();
    let text =
        format!("{} {} (limit {}). {}", whole_title(&figure.name), change(figure), figure.limit, causes.join(". "));
    let first = figure.causes.iter().find_map(|found| location(found, root));
    json!({
        "ruleId": figure.name,
        "level": "error",
        "message": { "text": text.trim() },
        "locations": [first.as_ref().unwrap_or(elsewhere)],
        "partialFingerprints": { "nearmissFigure/v1": figure.name },
    })
}

/// The command's program.
fn program(command: &str) -> Value {
    let name = command.split_whitespace().next().unwrap_or("command").trim_start_matches("./");
    json!({ "physicalLocation": { "artifactLocation": { "uri": encoded(name) } } })
}

/// The source line of a cause, if its file lies below the root.
fn location(cause: &Cause, root: &str) -> Option<Value> {
    if cause.line == 0 {
        return None;
    }
    let uri = Path::new(&cause.file).strip_prefix(root).ok()?.to_str()?;
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
