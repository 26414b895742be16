//! Waits of a run by source: sums, recorded parts of the run, and how far these hold for the whole of it.

use crate::words::percent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// Stall cycles by where the CPU waited: first that fits, coherence before the rest. Sums to the total's
/// `stall_cycles`; all zero if the model did not separate them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StallSources {
    /// Reference or fetch that hit at this level, nearest first.
    pub levels: Vec<u64>,
    /// A true or false sharing miss at any level, a line modified in another CPU's cache, or an invalidation of others.
    pub coherence: u64,
    /// Memory, by first touches: the total's `first_touch_cycles`. In older records, they are among the next two.
    #[serde(default)]
    pub first_touch: u64,
    /// Memory of the own node.
    pub memory_local: u64,
    /// Memory of another node.
    pub memory_remote: u64,
    /// The way of branches that were predicted wrongly, beyond the wait for a value that decides one. Older records do not
    /// have them.
    #[serde(default)]
    pub mispredicted: u64,
    /// Write buffers, a busy bus, and all that fits nowhere else.
    pub other: u64,
}

impl StallSources {
    /// All sources.
    pub fn total(&self) -> u64 {
        let memory = self.first_touch + self.memory_local + self.memory_remote;
        self.levels.iter().sum::<u64>() + self.coherence + memory + self.mispredicted + self.other
    }
}

impl AddAssign<&StallSources> for StallSources {
    fn add_assign(&mut self, other: &StallSources) {
        self.levels.iter_mut().zip(&other.levels).for_each(|(sum, more)| *sum += more);
        self.coherence += other.coherence;
        self.first_touch += other.first_touch;
        self.memory_local += other.memory_local;
        self.memory_remote += other.memory_remote;
        self.mispredicted += other.mispredicted;
        self.other += other.other;
    }
}

/// Cost of one recorded part of a run to its command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedPart {
    /// Instructions, as the stream of the trace counts them.
    pub instructions: u64,
    /// Stall cycles by source.
    pub stalls: StallSources,
}

/// Range of a share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShareRange {
    /// Lower end, from 0 to 1.
    pub low: f64,
    /// Upper end, from 0 to 1.
    pub high: f64,
}

impl ShareRange {
    /// Returns `48% to 76%`.
    pub fn words(self) -> String {
        format!("{} to {}", percent(self.low), percent(self.high))
    }
}

/// Ranges of the shares of a run's cycles, what lay between its recorded parts included; with 95% confidence, if the parts
/// are a fair sample. Sources as in [`StallSources`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StallRanges {
    /// All stall cycles.
    pub all: ShareRange,
    /// Ranges by the level that was hit, nearest first.
    pub levels: Vec<ShareRange>,
    /// Lines of other CPUs.
    pub coherence: ShareRange,
    /// First touches of memory.
    pub first_touch: ShareRange,
    /// Memory of the own node.
    pub memory_local: ShareRange,
    /// Memory of another node.
    pub memory_remote: ShareRange,
    /// Branches that were predicted wrongly.
    #[serde(default)]
    pub mispredicted: ShareRange,
    /// The rest.
    pub other: ShareRange,
}
