//! `nearmiss/paper/1`: a paper's figures and ours.

use serde::Serialize;

/// Unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// A share, in percent.
    Percent,
    /// A change against the standard, in percent.
    ChangePercent,
    /// Milliseconds.
    Millis,
    /// Occurrences a second.
    PerSecond,
    /// A multiple of the first cell of its first row.
    Times,
    /// A plain number.
    Count,
    /// A correlation, from -1 to 1.
    Correlation,
}

/// The paper's side of a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Theirs {
    /// A number that its text or a table gives.
    Figure(f64),
    /// Words.
    Words(String),
    /// Only a picture, or nothing.
    None,
}

/// One figure, twice.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Subject of the figure: `512 KB`.
    pub of: String,
    /// Quantity: `L2 miss ratio inside the walk, 32 colors`.
    pub what: String,
    /// Unit of the figure.
    pub unit: Unit,
    /// The paper's: measured there.
    pub paper: Theirs,
    /// Ours: modelled or measured, as the record's `known` states.
    pub ours: f64,
    /// Ours less theirs, in points.
    pub deviation_points: Option<f64>,
    /// The figure was used to set a parameter, so it is no evidence.
    pub fitted: bool,
}

impl Row {
    /// Creates a row and computes its deviation.
    pub fn new(of: impl Into<String>, what: impl Into<String>, unit: Unit, paper: Theirs, ours: f64) -> Self {
        let deviation_points = match paper {
            Theirs::Figure(figure) => Some(ours - figure),
            _ => None,
        };
        Row { of: of.into(), what: what.into(), unit, paper, ours, deviation_points, fitted: false }
    }

    /// Marks the row as used to set a parameter.
    pub fn fitted(self) -> Self {
        Row { fitted: true, ..self }
    }
}

/// A claim of the paper, and whether our figures show it too.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shape {
    /// The paper's claim.
    pub claim: String,
    /// Ours do.
    pub holds: bool,
    /// Our figures.
    pub ours: String,
}

/// Our figures over a variable.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Grid {
    /// The variable's values.
    pub columns: Vec<String>,
    /// Unit of all cells.
    pub unit: Unit,
    /// Meaning of a row's mark.
    pub mark: String,
    /// The figures.
    pub rows: Vec<GridRow>,
}

/// A row of a [`Grid`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GridRow {
    /// Subject of the row.
    pub of: String,
    /// Quantity of the row.
    pub what: String,
    /// Values by column; NaN (null) where there is none.
    pub cells: Vec<f64>,
    /// The first column behind the mark.
    pub from: Option<usize>,
}

/// A group of figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Table {
    /// `a`
    pub name: String,
    /// Title of the table.
    pub title: String,
    /// Place in the paper.
    pub source: String,
    /// The figures.
    pub rows: Vec<Row>,
    /// Ours only, over a variable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grid: Option<Grid>,
    /// Claims that must hold.
    pub shapes: Vec<Shape>,
    /// How our figures are known, where not as the record's are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known: Option<&'static str>,
    /// Remarks for the reader, a sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A number that the simulation needs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Parameter {
    /// Name of the parameter.
    pub name: String,
    /// Value with its unit.
    pub value: String,
    /// How it was set: `fitted: …`, `assumed: …` or `paper: …`.
    pub how: String,
}

/// A picture.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Picture {
    /// File name.
    pub file: String,
    /// Title of the picture.
    pub title: String,
    /// SVG.
    #[serde(skip)]
    pub svg: String,
}

/// A program of ours under `nearmiss verify`: what the paper did, on the machine at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Here {
    /// Path of the program in a clone.
    pub program: &'static str,
    /// Command that builds the program.
    pub build: &'static str,
    /// Arguments of the program.
    pub arguments: &'static [&'static str],
    /// Arguments of `nearmiss verify` before `--`.
    pub verify: &'static [&'static str],
    /// Effect that the program shows.
    pub shows: &'static str,
}

impl Here {
    /// Returns the command as typed in a shell.
    pub fn command(&self) -> String {
        let quoted = |word: &&str| if word.contains(['(', ' ']) { format!("'{word}'") } else { (*word).to_owned() };
        let verify: Vec<_> = self.verify.iter().map(quoted).collect();
        format!("nearmiss verify {} -- {} {}", verify.join(" "), self.program, self.arguments.join(" "))
    }
}

/// Everything.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PaperRecord {
    /// `nearmiss/paper/1`.
    pub schema: &'static str,
    /// Name, as typed.
    pub name: &'static str,
    /// Title and year.
    pub title: &'static str,
    /// How our figures are known: `modelled` or `measured`.
    pub known: &'static str,
    /// Fitted ones first.
    pub parameters: Vec<Parameter>,
    /// In the paper's order.
    pub tables: Vec<Table>,
    /// Pictures, as the paper's.
    pub pictures: Vec<Picture>,
    /// The program for this machine, where our figures are modelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub here: Option<Here>,
}

/// The record's schema.
pub const SCHEMA: &str = "nearmiss/paper/1";
