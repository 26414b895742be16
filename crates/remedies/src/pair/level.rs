//! Levels of a machine that CPUs share.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Levels that CPUs share, the innermost first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// A core: its hardware threads share everything.
    Smt,
    /// A second-level cache.
    L2,
    /// A third-level cache.
    L3,
    /// A memory node.
    Node,
}

impl fmt::Display for Level {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Level::Smt => "smt",
            Level::L2 => "l2",
            Level::L3 => "l3",
            Level::Node => "node",
        })
    }
}
