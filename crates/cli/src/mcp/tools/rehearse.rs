//! The tool *rehearse*: a run replayed as if a remedy had been in place.

use super::runs;
use crate::Remedies;
use crate::mcp::request::Request;
use crate::mcp::size::Size;
use crate::mcp::tool::{Tool, option, place, plain, read, remedy, returns, takes};
use nearmiss_record::figures::Table;
use nearmiss_record::rehearsal::{Rehearsal, Rehearsals};
use nearmiss_record::run::REHEARSALS;
use nearmiss_report::cell::cell;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The tool.
pub const TOOL: Tool = Tool {
    name: "rehearse",
    about: "Replays a recorded run as if a remedy had been in place, and returns the predicted figures over the \
            remedy's parameter. The program does not run again.",
    is_read_only: false,
    takes: takes::<Arguments>,
    returns: returns::<Answer>,
    request: |arguments, remedies| read::<Arguments>(arguments)?.request(remedies),
};

/// Arguments of *rehearse*.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The remedy, as a finding names it.
    remedy: String,
    /// Directory of the run [default: the newest that fits].
    run: Option<String>,
    /// Values of the remedy's parameter [default: the remedy's own selection].
    #[serde(default)]
    values: Vec<String>,
    /// Directory with ./nearmiss-runs [default: the server's].
    cwd: Option<PathBuf>,
    /// Machine to model: host, a preset, or a machine file [default: the run's].
    machine: Option<String>,
    /// Return the whole record too.
    #[serde(default)]
    full: bool,
}

/// Predicted figures, a table for each thing that the remedy would change.
#[derive(Serialize, JsonSchema)]
struct Answer {
    /// Directory of the run.
    run: Option<String>,
    /// The remedy.
    remedy: String,
    /// The modelled machine.
    machine: String,
    /// Why nothing was rehearsed, if so.
    nothing: Option<String>,
    /// Tables, those with the most possible gain first.
    tables: Vec<Rehearsed>,
    /// Tables that are left out here.
    left_out: usize,
    /// Facts about the model.
    notes: Vec<String>,
}

/// A table over the remedy's parameter.
#[derive(Serialize, JsonSchema)]
struct Rehearsed {
    /// Subject of the remedy.
    subject: String,
    /// Basis of the figures.
    basis: String,
    /// Heads of the columns.
    columns: Vec<String>,
    /// Rows, each cell with its unit.
    rows: Vec<Vec<String>>,
    /// Rows that are left out here.
    left_out: usize,
}

impl Arguments {
    fn request(self, remedies: Remedies) -> Result<Request, String> {
        let remedy = remedy(&self.remedy, remedies)?;
        let place = place(self.cwd.as_deref())?;
        let mut words: Vec<String> = ["rehearse", remedy.name, "--json"].map(str::to_owned).to_vec();
        words.extend(option("machine", self.machine.as_ref()));
        words.extend(self.values.iter().filter_map(|value| option(remedy.parameter.name, Some(value))));
        words.extend(self.run.as_ref().map(|run| plain("run", run)).transpose()?);
        let there = place.clone();
        Ok(Request::of_record(words, place, self.full, move |record, size| answer(record, size, &there)))
    }
}

fn answer(record: &Rehearsals, size: Size, place: &Path) -> (String, Answer) {
    let tables = size.rows(&record.tables, |table| rehearsed(table, size));
    let answer = Answer {
        run: runs::with_record(place, REHEARSALS, record),
        remedy: record.remedy.clone(),
        machine: record.machine.clone(),
        nothing: record.nothing.as_deref().map(|why| size.text(why)),
        left_out: record.tables.len() - tables.len(),
        tables,
        notes: size.texts(&record.notes),
    };
    (text(record), answer)
}

fn rehearsed(rehearsal: &Rehearsal, size: Size) -> Rehearsed {
    // The parameter's values are the point of a table: twice as many rows as of other lists.
    let Table { columns, rows, .. } = &rehearsal.table;
    let shown: Vec<Vec<String>> = rows.iter().take(2 * size.rows).map(|row| row.iter().map(cell).collect()).collect();
    Rehearsed {
        subject: size.text(&rehearsal.subject),
        basis: size.text(&rehearsal.basis),
        columns: columns.clone(),
        left_out: rows.len() - shown.len(),
        rows: shown,
    }
}

fn text(record: &Rehearsals) -> String {
    let mut text: String = record.nothing.iter().map(|why| format!("Nothing to rehearse: {why}\n")).collect();
    let table = |it: &Rehearsal| format!("{}: {}\n{}", it.remedy, it.subject, nearmiss_report::cell::table(&it.table));
    text.extend(record.tables.iter().take(1).map(table));
    text
}
