//! `rehearsals.json`: the cost of a run under a remedy; *predicted* by replaying it.

use crate::figures::Table;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `nearmiss/rehearsals/2`.
pub const SCHEMA: &str = "nearmiss/rehearsals/2";

crate::schema::is_record!(Rehearsals);

/// One remedy rehearsed on one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rehearsals {
    /// [`SCHEMA`].
    pub schema: String,
    /// The machine that the run was modelled on; of an observation, the machine it was made on.
    pub machine: String,
    /// Caution about the measurement behind the machine, if any: one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caution: Option<String>,
    /// Name of the remedy, as typed.
    pub remedy: String,
    /// Why there is nothing to rehearse, if so.
    pub nothing: Option<String>,
    /// Each subject of the remedy with its table.
    pub tables: Vec<Rehearsal>,
    /// Facts for the reader, one sentence each.
    pub notes: Vec<String>,
}

/// One table: the same subject under a parameter that grows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rehearsal {
    /// Name of the remedy, as typed.
    pub remedy: String,
    /// Subject of the change, in a few words.
    pub subject: String,
    /// Basis of the figures, without a full stop: placements, assumptions, exact or why not.
    pub basis: String,
    /// Seeds of the page placements replayed; none where pages do not matter.
    pub placements: Vec<u64>,
    /// The first column is the parameter; the first row is the run as it was.
    pub table: Table,
    /// Tables behind this one, if they are worth seeing: each under its title.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<Table>,
}
