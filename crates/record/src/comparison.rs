//! Runs of one kind side by side: the record of `nearmiss report --compare`. Modelled figures of traces, measured ones of
//! observations. Several runs a side separate noise from difference; one a side does not.

use crate::run::RunKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `nearmiss/comparison/2`.
pub const SCHEMA: &str = "nearmiss/comparison/2";

crate::schema::is_record!(RunComparison);

/// Name of the unattributed row.
pub const UNATTRIBUTED: &str = "[unattributed]";

/// The whole record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunComparison {
    /// [`SCHEMA`].
    pub schema: String,
    /// Kind of both runs.
    pub kind: RunKind,
    /// Origin of the figures: `modelled` or `measured`.
    pub origin: String,
    /// Side A, which is compared with: one run or several.
    pub before: Vec<ComparedRun>,
    /// Side B, which got better or worse.
    pub after: Vec<ComparedRun>,
    /// The tables.
    pub tables: Vec<ComparedTable>,
    /// Facts for the reader, one sentence each.
    pub notes: Vec<String>,
}

/// A run of either side.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedRun {
    /// Directory of the run.
    pub path: String,
    /// The command, or who was observed.
    pub target: String,
    /// Start of the run: RFC 3339, UTC.
    pub started: String,
    /// The machine that was modelled, or `host`.
    pub machine: String,
}

/// A table of both sides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedTable {
    /// A word for programs: `functions`.
    pub name: String,
    /// For people.
    pub title: String,
    /// Figures of each row; the rows are ordered by the first. Less is better of each.
    pub columns: Vec<ComparedColumn>,
    /// Largest difference first, [`UNATTRIBUTED`] last.
    pub rows: Vec<ComparedRow>,
    /// Sums of the columns, where the rows are parts of a whole.
    pub total: Option<Vec<Figures>>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedColumn {
    /// For people.
    pub name: String,
    /// Unit of its figures.
    pub unit: Unit,
}

/// Unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Events or cycles.
    Count,
    /// Time.
    Nanoseconds,
    /// Memory or traffic.
    Bytes,
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedRow {
    /// A function, an object, a class of misses, a lock.
    pub name: String,
    /// Module or kind of the row's subject; `A → B` where the runs have different ones.
    pub detail: String,
    /// Figures by column.
    pub figures: Vec<Figures>,
}

/// One figure of both sides: means, where a side has several runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Figures {
    /// Side A.
    pub before: u64,
    /// Side B.
    pub after: u64,
    /// B − A; at the ends of its type where it is beyond them.
    pub difference: i64,
    /// The difference may be so far from the true one, by Student's interval of 99.9%; none where each side has one run.
    pub noise: Option<u64>,
}

impl Figures {
    /// Both figures with their difference, of one run a side.
    pub fn new(before: u64, after: u64) -> Self {
        let difference = i128::from(after) - i128::from(before);
        let difference = difference.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
        Figures { before, after, difference, noise: None }
    }

    /// Sum of both sides. Its noise is not known from theirs.
    pub fn plus(self, other: Figures) -> Self {
        Figures::new(self.before.saturating_add(other.before), self.after.saturating_add(other.after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_have_a_sign_and_never_overflow() {
        assert_eq!(Figures::new(10, 4), Figures { before: 10, after: 4, difference: -6, noise: None });
        assert_eq!(
            Figures::new(10, 4).plus(Figures::new(0, 7)),
            Figures { before: 10, after: 11, difference: 1, noise: None }
        );
        assert_eq!(Figures::new(u64::MAX, 0).difference, i64::MIN);
        assert_eq!(Figures::new(0, u64::MAX).plus(Figures::new(0, 1)).difference, i64::MAX);
    }
}
