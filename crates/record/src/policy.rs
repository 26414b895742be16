//! A policy: the five things a run's meeting with a machine depends on (design: one idea).
//!
//! The default is the run as recorded; each remedy changes one part.

use serde::{Deserialize, Serialize};

/// How a recorded run meets a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// Where objects really lie.
    pub address: AddressPolicy,
    /// Which node a page belongs to.
    pub home: HomePolicy,
    /// Which stores go through the caches.
    pub store: StorePolicy,
}

/// Where objects really lie.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AddressPolicy {
    /// As recorded.
    #[default]
    Recorded,
    /// Addresses inside these virtual ranges move: an object of `align` bytes (a power of two) at base `b` is shifted up
    /// by `((b / align) % colors) * line` bytes.
    Color {
        /// Half-open virtual ranges, as recorded.
        ranges: Vec<(u64, u64)>,
        /// Alignment and spacing of the objects, a power of two.
        align: u64,
        /// Number of colors.
        colors: u32,
        /// Bytes a color.
        line: u32,
    },
    /// Whole objects move, each by its own number of bytes: what an allocator that colors would have done.
    Shift {
        /// Disjoint.
        objects: Vec<Shifted>,
    },
}

/// One object that moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shifted {
    /// First virtual address, as recorded.
    pub from: u64,
    /// The address behind its last byte.
    pub to: u64,
    /// Bytes by which it moves; stacks move down.
    pub by: i64,
}

/// Which node a page belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HomePolicy {
    /// The node whose memory it was recorded in.
    #[default]
    Recorded,
    /// The node of the CPU that touches it first.
    FirstTouch,
    /// Page by page round robin.
    Interleave,
}

/// Which stores go through the caches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StorePolicy {
    /// All that were recorded as such.
    #[default]
    Recorded,
    /// Stores of these instruction ids become non-temporal.
    NonTemporal {
        /// Instruction ids of the trace.
        insns: Vec<u32>,
    },
}

/// In which order the records of several CPUs meet the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// As they were executed, vCPU slice by vCPU slice: causal; what it shows of sharing is a lower bound.
    #[default]
    Recorded,
    /// The slices of a round taken as simultaneous and merged by modelled cycles.
    Modelled,
}
