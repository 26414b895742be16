//! The baseline that `nearmiss gate --write` writes and `gate --against` reads.
//!
//! All figures are *modelled*, of the command's tasks alone.

use crate::gate::{PartKind, Recorder};
use crate::model::ByClass;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `nearmiss/baseline/3`.
pub const SCHEMA: &str = "nearmiss/baseline/3";

crate::schema::is_record!(Baseline);

/// The whole record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Baseline {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of nearmiss.
    pub nearmiss: String,
    /// Recorder of the side.
    pub recorder: Recorder,
    /// The recordings.
    pub side: Side,
}

/// A command that was recorded several times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    /// Command line in a shell's syntax.
    pub command: String,
    /// A count for each recording, by figure, such as `user.instructions`.
    pub figures: BTreeMap<String, Vec<u64>>,
    /// Parts that the figures are sums of, as means of the recordings; small ones are left out.
    pub parts: Vec<BaselinePart>,
    /// A part is left out that has less of each sum than one in so many; 0: none is.
    pub least_kept: u64,
}

impl Side {
    /// Returns the number of recordings.
    pub fn recordings(&self) -> usize {
        self.figures.values().map(Vec::len).max().unwrap_or(0)
    }
}

/// A function, an object or a system call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BaselinePart {
    /// Kind of the part.
    pub kind: PartKind,
    /// Name of the part.
    pub name: String,
    /// File name of the part's module, or the kind of object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub module: String,
    /// Kernel code.
    #[serde(default, skip_serializing_if = "is_false")]
    pub kernel: bool,
    /// Source file of the line with the most cycles; empty where it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// Number of the line with the most cycles; 0 where it is not known.
    #[serde(default)]
    pub line: u32,
    /// The function that calls this one most, by cycles; empty where it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub caller: String,
    /// Entries of the function; 0 where that is not known.
    #[serde(default)]
    pub calls: u64,
    /// Counts of the part.
    pub counts: Counts,
}

/// Counts of a part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Instructions.
    pub instructions: u64,
    /// Data loads.
    pub loads: u64,
    /// Data stores.
    pub stores: u64,
    /// Misses of each level, nearest first, by class.
    pub misses: Vec<ByClass>,
    /// Cycles.
    pub cycles: u64,
}

fn is_false(value: &bool) -> bool {
    !value
}
