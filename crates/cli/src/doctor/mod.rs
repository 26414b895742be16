//! The verb `doctor`: what works on this machine, what is missing, and what to type.

mod checks;
mod probe;
mod trial;

use crate::Remedies;
use crate::table::{print_line, table};
use probe::{Probe, System};
use schemars::JsonSchema;
use serde::Serialize;
use std::process::ExitCode;

/// Arguments of `nearmiss doctor`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  nearmiss doctor --quick      what can be checked without a guest
  nearmiss doctor --json | jq '.rows[] | select(.state == \"missing\")'")]
pub struct Args {
    /// Print the record (nearmiss/doctor/1) instead of the table
    #[arg(long)]
    json: bool,
    /// Do not trace `true` to see whether a guest runs here, which takes some seconds
    #[arg(long)]
    quick: bool,
}

/// Runs the verb.
pub fn run(args: Args, remedies: Remedies) -> anyhow::Result<ExitCode> {
    let report = Report::of(&System { remedies, quick: args.quick });
    if args.json {
        print_line(&serde_json::to_string_pretty(&report)?)?;
    } else {
        print_line(&report.text(crate::table::width()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// State of one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum State {
    /// Works as tried.
    Works,
    /// Works in part; the row lists which.
    Limited,
    /// Does not work here.
    Missing,
    /// Requested often, needed by nothing here.
    NotNeeded,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            State::Works => "works",
            State::Limited => "limited",
            State::Missing => "missing",
            State::NotNeeded => "not needed",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
struct Row {
    /// The verb that needs the thing.
    verb: &'static str,
    /// Name of the thing.
    name: String,
    /// State of the thing.
    state: State,
    /// Result of the check.
    found: String,
    /// Command or step that helps; empty where nothing is to be done.
    todo: String,
}

/// `nearmiss/doctor/1`.
pub const SCHEMA: &str = "nearmiss/doctor/1";

/// Abilities of this machine: one row a thing that was looked at.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Report {
    /// [`SCHEMA`].
    schema: &'static str,
    /// One sentence a verb: whether it works here.
    summary: Vec<String>,
    /// All that was looked at.
    rows: Vec<Row>,
}

impl Report {
    fn of(probe: &dyn Probe) -> Report {
        let rows = checks::rows(probe);
        let mut verbs: Vec<&'static str> = rows.iter().map(|r| r.verb).collect();
        verbs.dedup();
        let summary = verbs.into_iter().map(|verb| sentence(verb, &rows)).collect();
        Report { schema: SCHEMA, summary, rows }
    }

    fn text(&self, width: u16) -> String {
        let mut table = table(&["needed by", "what", "state", "found"], width);
        let mut todos: Vec<(&str, Vec<&str>)> = Vec::new();
        for row in &self.rows {
            table.add_row([row.verb, &row.name, row.state.word(), &row.found]);
            match todos.iter_mut().find(|(todo, _)| *todo == row.todo) {
                Some((_, what_for)) => what_for.push(&row.name),
                None if row.todo.is_empty() => {}
                None => todos.push((&row.todo, vec![&row.name])),
            }
        }
        let mut text = crate::table::lines(&table);
        text.push('\n');
        for sentence in &self.summary {
            text.push_str(&format!("\n{sentence}"));
        }
        if !todos.is_empty() {
            text.push_str("\n\nTo do:");
            for (todo, what_for) in todos {
                text.push_str(&format!("\n  {todo}   # {}", what_for.join(", ")));
            }
        }
        text
    }
}

fn sentence(verb: &str, rows: &[Row]) -> String {
    let with = |state: State| -> Vec<&str> {
        let rows = rows.iter().filter(|r| r.verb == verb && r.state == state);
        // Parts of a remedy share its name: one may work without the other.
        let short = |name: &'_ str| if verb == "apply" { name.len() } else { name.find(" (").unwrap_or(name.len()) };
        rows.map(|r| &r.name[..short(&r.name)]).collect()
    };
    let (missing, limited) = (with(State::Missing), with(State::Limited));
    let some = rows.iter().any(|r| r.verb == verb && matches!(r.state, State::Works | State::Limited));
    match (verb, missing.is_empty(), limited.is_empty()) {
        // Instruments do not need each other, nor do remedies.
        ("observe" | "apply", false, none) if some => {
            let limits = if none { String::new() } else { format!("; with limits: {}", limited.join(", ")) };
            format!("{verb}: works here without {}{limits}.", missing.join(", "))
        }
        (_, false, _) => format!("{verb}: does not work here yet; missing: {}.", missing.join(", ")),
        (_, true, false) => format!("{verb}: works here, with limits: {}.", limited.join(", ")),
        (_, true, true) => format!("{verb}: works here."),
    }
}

#[cfg(test)]
mod tests;
