//! `nearmiss/paper/1`: a paper's figures and ours.

use serde::Serialize;

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// A share, in percent.
    Percent,
    /// A change against the standard, in percent.
    ChangePercent,
    /// Milliseconds.
    Millis,
    /// Of something in a second.
    PerSecond,
    /// So many times as much as the first cell of its first row.
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
    /// What it is of: `512 KB`.
    pub of: String,
    /// What it is: `L2 miss ratio inside the walk, 32 colors`.
    pub what: String,
    /// Its unit.
    pub unit: Unit,
    /// The paper's: measured there.
    pub paper: Theirs,
    /// Ours: modelled or measured, as the record says.
    pub ours: f64,
    /// Ours less theirs, in points.
    pub deviation_points: Option<f64>,
    /// This figure was used to set a parameter, so that it says nothing.
    pub fitted: bool,
}

impl Row {
    /// A row whose deviation follows.
    pub fn new(of: impl Into<String>, what: impl Into<String>, unit: Unit, paper: Theirs, ours: f64) -> Self {
        let deviation_points = match paper {
            Theirs::Figure(figure) => Some(ours - figure),
            _ => None,
        };
        Row { of: of.into(), what: what.into(), unit, paper, ours, deviation_points, fitted: false }
    }

    /// The same, marked as used to set a parameter.
    pub fn fitted(self) -> Self {
        Row { fitted: true, ..self }
    }
}

/// Whether ours behave as the paper says its own do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shape {
    /// What the paper says.
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
    /// What all cells count.
    pub unit: Unit,
    /// What a row's mark means.
    pub mark: String,
    /// The figures.
    pub rows: Vec<GridRow>,
}

/// A row of a [`Grid`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GridRow {
    /// What it is of.
    pub of: String,
    /// What it is.
    pub what: String,
    /// By column; NaN (null) where there is none.
    pub cells: Vec<f64>,
    /// The first column behind the mark.
    pub from: Option<usize>,
}

/// A group of figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Table {
    /// `a`
    pub name: String,
    /// What it shows.
    pub title: String,
    /// Where the paper has it.
    pub source: String,
    /// The figures.
    pub rows: Vec<Row>,
    /// Ours only, over a variable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grid: Option<Grid>,
    /// What must hold.
    pub shapes: Vec<Shape>,
    /// How our figures are known, where not as the record's are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known: Option<&'static str>,
    /// What a reader must know, a sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A number that the simulation needs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Parameter {
    /// What it is.
    pub name: String,
    /// Its value with its unit.
    pub value: String,
    /// How it was set: `fitted: …`, `assumed: …` or `paper: …`.
    pub how: String,
}

/// A picture.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Picture {
    /// File name.
    pub file: String,
    /// What it shows.
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
    /// What makes it.
    pub build: &'static str,
    /// Its arguments.
    pub arguments: &'static [&'static str],
    /// Arguments of `nearmiss verify` before `--`.
    pub verify: &'static [&'static str],
    /// What it shows.
    pub shows: &'static str,
}

impl Here {
    /// As typed in a shell.
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
    /// As typed.
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
    /// The same on this machine, where ours are modelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub here: Option<Here>,
}

/// The record's schema.
pub const SCHEMA: &str = "nearmiss/paper/1";
