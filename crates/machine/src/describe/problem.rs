//! An error in a machine, and its place in the machine's file.

use std::fmt;

/// One step of the way to a figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A field.
    Key(&'static str),
    /// A field named by the file.
    Owned(String),
    /// An element of an array.
    Index(usize),
}

impl Step {
    /// The field's name; empty for an index.
    pub fn key(&self) -> &str {
        match self {
            Step::Key(key) => key,
            Step::Owned(key) => key,
            Step::Index(_) => "",
        }
    }
}

/// Error in a machine, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Way from the top of the file.
    pub path: Vec<Step>,
    /// Error, with the figure.
    pub what: String,
    /// Valid values.
    pub expected: String,
}

impl Problem {
    /// A problem at `path`.
    pub fn new(path: impl IntoIterator<Item = Step>, what: impl Into<String>, expected: impl Into<String>) -> Self {
        Problem { path: path.into_iter().collect(), what: what.into(), expected: expected.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; expected {}", self.what, self.expected)
    }
}

/// A figure within a range; a number that is none is in no range.
pub(super) fn number<T: PartialOrd + fmt::Display>(path: &[Step], value: T, low: T, high: T) -> Result<(), Problem> {
    if value >= low && value <= high {
        return Ok(());
    }
    let name = path.iter().rev().map(Step::key).find(|k| !k.is_empty()).unwrap_or("value");
    Err(Problem::new(path.iter().cloned(), format!("{name} is {value}"), format!("{low} to {high}")))
}
