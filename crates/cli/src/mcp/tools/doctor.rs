//! The tool *doctor*: what works on this machine.

use crate::mcp::request::Request;
use crate::mcp::size::Size;
use crate::mcp::tool::{Tool, place, read, returns, takes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
pub const TOOL: Tool = Tool {
    name: "doctor",
    about: "What nearmiss can record, observe and remedy on this machine, and what to do about the rest. Call it if \
            another tool reports that this machine cannot do something.",
    is_read_only: true,
    takes: takes::<Arguments>,
    returns: returns::<Answer>,
    request: |arguments, _| read::<Arguments>(arguments)?.request(),
};

/// Arguments of *doctor*.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct Arguments {
    /// Check only what needs no guest: some seconds less.
    quick: bool,
    /// Return the whole record too.
    full: bool,
}

/// Abilities of this machine.
#[derive(Serialize, JsonSchema)]
struct Answer {
    /// A sentence for each verb.
    summary: Vec<String>,
    /// Abilities that are missing or work in part.
    to_do: Vec<ToDo>,
    /// Number of these that are left out here.
    left_out: usize,
}

/// One thing that does not work fully.
#[derive(Serialize, JsonSchema)]
struct ToDo {
    /// The verb that needs the thing.
    verb: String,
    /// Name of the thing.
    name: String,
    /// Result of the check.
    found: String,
    /// Command or step that helps.
    todo: String,
}

/// The record, as far as it is looked at.
#[derive(Deserialize)]
struct Record {
    summary: Vec<String>,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    verb: String,
    name: String,
    state: String,
    found: String,
    todo: String,
}

impl Arguments {
    fn request(self) -> Result<Request, String> {
        let mut words: Vec<String> = ["doctor", "--json"].map(str::to_owned).to_vec();
        words.extend(self.quick.then(|| "--quick".to_owned()));
        Ok(Request::of_record(words, place(None)?, self.full, answer))
    }
}

fn answer(record: &Record, size: Size) -> (String, Answer) {
    let open: Vec<&Row> =
        record.rows.iter().filter(|row| ["missing", "limited"].contains(&row.state.as_str())).collect();
    let to_do = size.rows(&open, |row| ToDo {
        verb: row.verb.clone(),
        name: size.text(&row.name),
        found: size.text(&row.found),
        todo: size.text(&row.todo),
    });
    let left_out = open.len() - to_do.len();
    let summary: Vec<String> = record.summary.iter().map(|sentence| size.text(sentence)).collect();
    (summary.join("\n"), Answer { summary, to_do, left_out })
}
