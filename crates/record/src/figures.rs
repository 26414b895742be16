//! A table with a unit in every cell, so that a printer needs no further knowledge of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rows of figures under named columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Table {
    /// Kind of the rows, in a word or two.
    pub title: String,
    /// Heads of the columns; the first column names the row.
    pub columns: Vec<String>,
    /// Each has a cell a column.
    pub rows: Vec<Vec<Cell>>,
}

/// One figure with its unit, or a text. As JSON: `{"bytes": 4096}`, `{"share": 0.25}`, `{"text": "L1d"}`, `"unknown"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cell {
    /// So many.
    Count(u64),
    /// A number that counts nothing, such as a mean.
    Number(f64),
    /// Part of a whole, 0 to 1; below 0 where it is a change for the worse.
    Share(f64),
    /// Bytes.
    Bytes(u64),
    /// Cycles of the modelled machine.
    Cycles(u64),
    /// Nanoseconds.
    Nanos(u64),
    /// A name or a sentence.
    Text(String),
    /// Nothing is known, or there is none.
    Unknown,
}

impl Cell {
    /// A name or a sentence.
    pub fn text(text: impl Into<String>) -> Self {
        Cell::Text(text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cell_has_its_unit() {
        let cells = [
            (Cell::Count(1_234_567), r#"{"count":1234567}"#),
            (Cell::Number(47.96), r#"{"number":47.96}"#),
            (Cell::Share(0.25), r#"{"share":0.25}"#),
            (Cell::Bytes(65536), r#"{"bytes":65536}"#),
            (Cell::Cycles(7), r#"{"cycles":7}"#),
            (Cell::Nanos(1_500_000), r#"{"nanos":1500000}"#),
            (Cell::text("L1d"), r#"{"text":"L1d"}"#),
            (Cell::Unknown, r#""unknown""#),
        ];
        for (cell, json) in cells {
            assert_eq!(serde_json::to_string(&cell).ok().as_deref(), Some(json));
            assert_eq!(serde_json::from_str::<Cell>(json).ok(), Some(cell));
        }
    }
}
