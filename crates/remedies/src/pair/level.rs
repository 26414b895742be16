//! Levels of a machine that CPUs share.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Levels that CPUs share, the innermost first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SharedLevel {
    /// A core: its hardware threads share everything.
    Smt,
    /// A second-level cache.
    L2,
    /// A third-level cache.
    L3,
    /// A memory node.
    Node,
}

impl fmt::Display for SharedLevel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            SharedLevel::Smt => "smt",
            SharedLevel::L2 => "l2",
            SharedLevel::L3 => "l3",
            SharedLevel::Node => "node",
        })
    }
}
