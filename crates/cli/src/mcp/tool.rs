//! A tool's definition, and what is common to the arguments of all.

use super::request::Request;
use crate::Remedies;
use rmcp::handler::server::tool::{schema_for_input, schema_for_output};
use rmcp::model::{JsonObject, Tool as Definition, ToolAnnotations};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One tool.
pub struct Tool {
    /// Name of the tool, and of its verb.
    pub name: &'static str,
    /// Description for the model that picks a tool.
    pub about: &'static str,
    /// Whether the tool changes nothing beside the run's own directory.
    pub is_read_only: bool,
    /// Schema of the arguments.
    pub takes: fn() -> Arc<JsonObject>,
    /// Schema of the answer.
    pub returns: fn() -> Arc<JsonObject>,
    /// Reads the arguments. Errors: one line, what is wrong with them.
    pub request: fn(JsonObject, Remedies) -> Result<Request, String>,
}

impl Tool {
    /// The definition that a client lists.
    pub fn definition(&self, remedies: Remedies) -> Definition {
        let mut takes = (self.takes)();
        let names: Vec<&str> = remedies.iter().map(|remedy| remedy.name).collect();
        let remedy = Arc::make_mut(&mut takes).get_mut("properties").and_then(|all| all.get_mut("remedy"));
        if let Some(Value::Object(remedy)) = remedy {
            remedy.insert("enum".to_owned(), json!(names));
            remedy.insert("type".to_owned(), json!("string"));
        }
        let annotations = ToolAnnotations::new().read_only(self.is_read_only).destructive(false).open_world(false);
        Definition::new(self.name, self.about, takes)
            .with_raw_output_schema((self.returns)())
            .with_annotations(annotations)
    }
}

/// An answer, and with `full` the record behind it.
#[derive(Serialize, JsonSchema)]
pub struct Answered<A> {
    /// Selection of the record.
    #[serde(flatten)]
    pub answer: A,
    /// The whole record, if `full` was set: `nearmiss schema` prints its schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<Value>,
}

/// Schema of a tool's arguments.
pub fn takes<T: JsonSchema + 'static>() -> Arc<JsonObject> {
    // A struct's schema is an object.
    schema_for_input::<T>().unwrap_or_default()
}

/// Schema of a tool's answer.
pub fn returns<A: JsonSchema + 'static>() -> Arc<JsonObject> {
    schema_for_output::<Answered<A>>()
}

/// Reads arguments. Errors: an unknown one, or one of another type.
pub fn read<T: DeserializeOwned>(arguments: JsonObject) -> Result<T, String> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| format!("wrong arguments: {error}"))
}

/// The directory that a call runs in. Errors: it is none.
pub fn place(cwd: Option<&Path>) -> Result<PathBuf, String> {
    let here = std::env::current_dir().map_err(|error| format!("the current directory: {error}"))?;
    let place = cwd.map_or(here.clone(), |cwd| here.join(cwd));
    match place.is_dir() {
        true => Ok(place),
        false => Err(format!("cwd {}: no such directory: name one that exists", place.display())),
    }
}

/// A value that stands alone on a command line. Errors: it would be read as an option.
pub fn plain(what: &str, value: &str) -> Result<String, String> {
    match value.starts_with('-') || value.is_empty() {
        true => Err(format!("{what} `{value}`: a name or a path does not begin with `-`; write ./{value}")),
        false => Ok(value.to_owned()),
    }
}

/// The name of a remedy. Errors: there is no such remedy.
pub fn remedy(name: &str, remedies: Remedies) -> Result<&'static nearmiss_analysis::Remedy, String> {
    remedies.iter().copied().find(|remedy| remedy.name == name).ok_or_else(|| {
        let names: Vec<&str> = remedies.iter().map(|remedy| remedy.name).collect();
        format!("no remedy `{name}`; there are {}", names.join(", "))
    })
}

/// `--name=value`, where there is a value.
pub fn option(name: &str, value: Option<impl std::fmt::Display>) -> Option<String> {
    value.map(|value| format!("--{name}={value}"))
}
