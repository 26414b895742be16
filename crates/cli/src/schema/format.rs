//! One record's JSON Schema, as text.

use anyhow::Context;
use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};

/// The format of a record.
pub struct Format {
    /// Name of the record, as typed.
    pub name: String,
    /// Name and version of the format, as the record's field `schema` has them.
    pub schema: &'static str,
    /// The command that prints the record, or the file that holds it.
    pub place: String,
    /// Definition of the record.
    pub definition: fn(&mut SchemaGenerator) -> Schema,
}

impl Format {
    /// The format's version.
    pub fn version(&self) -> &str {
        self.schema.rsplit('/').next().unwrap_or_default()
    }

    /// Name of the file that a schema is published in.
    pub fn file(&self) -> String {
        format!("{}.json", self.name)
    }

    /// The schema of records as they are written, in lines.
    pub fn text(&self) -> anyhow::Result<String> {
        Ok(format!("{}\n", serde_json::to_string_pretty(&self.json_schema()).context("schema")?))
    }

    /// The schema of records as they are written.
    pub fn json_schema(&self) -> Schema {
        let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
        let mut schema = (self.definition)(&mut generator);
        let definitions = generator.take_definitions(true);
        schema.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
        schema.insert("title".to_owned(), json!(self.schema));
        if !definitions.is_empty() {
            schema.insert("$defs".to_owned(), Value::Object(definitions));
        }
        if let Some(version) = schema.pointer_mut("/properties/schema") {
            *version = json!({ "const": self.schema });
        }
        WithoutLinks.transform(&mut schema);
        schema
    }
}

/// Descriptions come from doc comments; brackets around names are links in Rust's documentation alone.
struct WithoutLinks;

impl Transform for WithoutLinks {
    fn transform(&mut self, schema: &mut Schema) {
        if let Some(Value::String(text)) = schema.get_mut("description") {
            *text = text.replace("[`", "`").replace("`]", "`");
        }
        transform_subschemas(self, schema);
    }
}
