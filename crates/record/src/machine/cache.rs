//! Caches of a machine file.

use crate::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One cache, or one a thread, core, cluster, package or node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// 1 is nearest.
    pub level: u8,
    /// Contents: data, instructions or both.
    pub kind: CacheKind,
    /// Capacity.
    pub size: Bytes,
    /// Lines a set.
    pub ways: u32,
    /// Line size.
    pub line: Bytes,
    /// Sharers of one instance.
    pub shared_by: Sharing,
    /// Choice of the victim line.
    #[serde(default)]
    pub replacement: Replacement,
    /// Seed of random replacement.
    #[serde(default)]
    pub seed: u64,
    /// Relation to the level nearer to the CPU.
    #[serde(default)]
    pub inclusion: Inclusion,
    /// Address that picks the set.
    #[serde(default)]
    pub index: Index,
    /// Upper bits of the set's number that the hash of a hashed index makes, the lower ones being plain; 0: all.
    #[serde(default, skip_serializing_if = "crate::schema::is_zero")]
    pub hashed_bits: u32,
    /// Lines that others than this machine's CPUs bring into an instance in a million cycles: the neighbours of a
    /// virtual machine. Sets differ in their part of it, which is spread exponentially. The cache then replaces the line
    /// that was used longest ago.
    #[serde(default, skip_serializing_if = "crate::schema::is_zero")]
    pub others_lines: u32,
}

impl Cache {
    /// `L1d`, `L1i`, `L2`, …: the usual name.
    pub fn name(&self) -> String {
        let kind = match self.kind {
            CacheKind::Data => "d",
            CacheKind::Instruction => "i",
            CacheKind::Unified => "",
        };
        format!("L{}{kind}", self.level)
    }
}

/// Contents of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CacheKind {
    /// Data only.
    Data,
    /// Instructions only.
    Instruction,
    /// Both.
    Unified,
}

impl CacheKind {
    /// Data goes through such a cache.
    pub fn holds_data(self) -> bool {
        self != CacheKind::Instruction
    }
}

/// Sharers of one instance of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// One a hardware thread.
    Thread,
    /// One a core.
    Core,
    /// One for each `cores_per_cluster` cores.
    Cluster,
    /// One a package.
    Package,
    /// One a memory node.
    Node,
}

/// Replacement policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Replacement {
    /// Least recently used.
    #[default]
    Lru,
    /// A binary tree of bits; ways must be a power of two.
    TreePlru,
    /// Seeded pseudo-random.
    Random,
    /// Static re-reference interval prediction, 2 bits, hit promotion (Jaleel et al., ISCA 2010).
    Srrip,
}

/// Relation of a cache to the levels nearer to the CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Inclusion {
    /// A line evicted here is invalidated nearer to the CPU.
    Inclusive,
    /// Filled by the nearer level's victims; a hit moves the line there.
    Exclusive,
    /// Filled on a miss, no relation kept (cachegrind's).
    #[default]
    None,
}

/// Address that picks the set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Index {
    /// Virtual address (tagged by address space where it exceeds the page offset).
    Virtual,
    /// Physical address.
    #[default]
    Physical,
    /// A hash of the physical address, as sliced last levels do.
    Hashed,
}
