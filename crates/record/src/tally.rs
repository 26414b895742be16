//! Counts of accesses, misses by class, bus transactions and cycles: those of a run, and of each row of its tables.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// Why a line was not there; the first that fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum MissClass {
    /// First fill of the line into this cache since the window began.
    Compulsory = 0,
    /// Another CPU took the line, and the bytes missed on were written by others since.
    TrueSharing = 1,
    /// Another CPU took the line, but wrote other bytes of it.
    FalseSharing = 2,
    /// An inclusive outer cache evicted the line.
    InclusionVictim = 3,
    /// A fully associative LRU cache of the same size would have hit.
    Conflict = 4,
    /// Even a fully associative LRU cache of the same size would have missed.
    Capacity = 5,
}

impl MissClass {
    /// In the order of their numbers.
    pub const ALL: [MissClass; 6] = [
        MissClass::Compulsory,
        MissClass::TrueSharing,
        MissClass::FalseSharing,
        MissClass::InclusionVictim,
        MissClass::Conflict,
        MissClass::Capacity,
    ];

    /// Whether another CPU's store is the cause.
    pub fn is_sharing(self) -> bool {
        matches!(self, MissClass::TrueSharing | MissClass::FalseSharing)
    }
}

/// Misses by class, indexed by `MissClass as usize`.
pub type ByClass = [u64; 6];

/// Most cache levels a machine may have.
pub const MAX_LEVELS: usize = 4;

/// Misses of one level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LevelTally {
    /// Data loads that missed; an atomic counts here, as a load.
    pub load_misses: ByClass,
    /// Data stores that missed.
    pub store_misses: ByClass,
    /// Instruction fetches that missed.
    pub fetch_misses: ByClass,
}

impl LevelTally {
    /// Load and store misses of all classes.
    pub fn data_misses(&self) -> u64 {
        self.load_misses.iter().chain(&self.store_misses).sum()
    }

    /// All misses of one class.
    pub fn class(&self, class: MissClass) -> u64 {
        let i = class as usize;
        self.load_misses[i] + self.store_misses[i] + self.fetch_misses[i]
    }

    /// All misses.
    pub fn misses(&self) -> u64 {
        self.data_misses() + self.fetch_misses.iter().sum::<u64>()
    }
}

/// Transactions on the memory bus (P4's classes for reads).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BusTally {
    /// Reads of a remote node's memory (r).
    pub read_remote: u64,
    /// Local reads, no other CPU had the line (l-n).
    pub read_local_none: u64,
    /// Local reads, others had it clean (l-s).
    pub read_local_shared: u64,
    /// Local reads, modified in another CPU's cache (l-m).
    pub read_local_modified: u64,
    /// Modified lines written back.
    pub write_backs: u64,
    /// Invalidations sent to others without data (upgrades).
    pub invalidations: u64,
    /// Full write-combining lines.
    pub nt_full: u64,
    /// Partial write-combining transactions.
    pub nt_partial: u64,
}

impl BusTally {
    /// Reads of all classes.
    pub fn reads(&self) -> u64 {
        self.read_remote + self.read_local_none + self.read_local_shared + self.read_local_modified
    }

    /// All transactions.
    pub fn transactions(&self) -> u64 {
        self.reads() + self.write_backs + self.invalidations + self.nt_full + self.nt_partial
    }
}

/// Counts of the whole run and of each row of each table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tally {
    /// Instructions executed.
    pub instructions: u64,
    /// Data loads (references, not line accesses); an atomic is one load.
    pub loads: u64,
    /// Data stores; the store half of a plain read-modify-write is one, an atomic's is not.
    pub stores: u64,
    /// Line accesses of data references: a straddling reference has two.
    pub line_accesses: u64,
    /// Non-temporal stores, included in `stores`.
    pub nt_stores: u64,
    /// Tallies by level, nearest first.
    pub levels: Vec<LevelTally>,
    /// Transactions that left the outermost cache.
    pub bus: BusTally,
    /// Cycles: instructions × cycles an instruction + stalls.
    pub cycles: u64,
    /// Cycles of these that waited for data or instructions.
    pub stall_cycles: u64,
    /// Cycles of these that waited for memory by first touches: misses of the outermost cache that are compulsory.
    /// Repeated work does not pay them again. Older records do not have them.
    #[serde(default)]
    pub first_touch_cycles: u64,
    /// Stall cycles of these that waited for the way of a mispredicted branch: no miss is their reason. Older records do
    /// not have them.
    #[serde(default)]
    pub mispredicted_cycles: u64,
}

impl Tally {
    /// Stall cycles that waited for caches, memory or the bus.
    pub fn waits(&self) -> u64 {
        self.stall_cycles.saturating_sub(self.mispredicted_cycles)
    }

    /// This tally less a part of it, field by field; a field where the part is the larger is 0, and `exceeded` becomes true.
    pub fn without(&self, part: &Tally, exceeded: &mut bool) -> Tally {
        let mut less = |a: u64, b: u64| {
            *exceeded |= b > a;
            a.saturating_sub(b)
        };
        let mut rest = Tally {
            instructions: less(self.instructions, part.instructions),
            loads: less(self.loads, part.loads),
            stores: less(self.stores, part.stores),
            line_accesses: less(self.line_accesses, part.line_accesses),
            nt_stores: less(self.nt_stores, part.nt_stores),
            levels: self.levels.clone(),
            bus: self.bus,
            cycles: less(self.cycles, part.cycles),
            stall_cycles: less(self.stall_cycles, part.stall_cycles),
            first_touch_cycles: less(self.first_touch_cycles, part.first_touch_cycles),
            mispredicted_cycles: less(self.mispredicted_cycles, part.mispredicted_cycles),
        };
        for (mine, theirs) in rest.levels.iter_mut().zip(&part.levels) {
            let mut classes = |a: &mut ByClass, b: &ByClass| a.iter_mut().zip(b).for_each(|(a, b)| *a = less(*a, *b));
            classes(&mut mine.load_misses, &theirs.load_misses);
            classes(&mut mine.store_misses, &theirs.store_misses);
            classes(&mut mine.fetch_misses, &theirs.fetch_misses);
        }
        let (b, o) = (&mut rest.bus, &part.bus);
        for (a, b) in [
            (&mut b.read_remote, o.read_remote),
            (&mut b.read_local_none, o.read_local_none),
            (&mut b.read_local_shared, o.read_local_shared),
            (&mut b.read_local_modified, o.read_local_modified),
            (&mut b.write_backs, o.write_backs),
            (&mut b.invalidations, o.invalidations),
            (&mut b.nt_full, o.nt_full),
            (&mut b.nt_partial, o.nt_partial),
        ] {
            *a = less(*a, b);
        }
        rest
    }
}

impl AddAssign<&Tally> for Tally {
    fn add_assign(&mut self, other: &Tally) {
        self.instructions += other.instructions;
        self.loads += other.loads;
        self.stores += other.stores;
        self.line_accesses += other.line_accesses;
        self.nt_stores += other.nt_stores;
        self.cycles += other.cycles;
        self.stall_cycles += other.stall_cycles;
        self.first_touch_cycles += other.first_touch_cycles;
        self.mispredicted_cycles += other.mispredicted_cycles;
        if self.levels.len() < other.levels.len() {
            self.levels.resize(other.levels.len(), LevelTally::default());
        }
        for (mine, theirs) in self.levels.iter_mut().zip(&other.levels) {
            for class in 0..6 {
                mine.load_misses[class] += theirs.load_misses[class];
                mine.store_misses[class] += theirs.store_misses[class];
                mine.fetch_misses[class] += theirs.fetch_misses[class];
            }
        }
        let (b, o) = (&mut self.bus, &other.bus);
        b.read_remote += o.read_remote;
        b.read_local_none += o.read_local_none;
        b.read_local_shared += o.read_local_shared;
        b.read_local_modified += o.read_local_modified;
        b.write_backs += o.write_backs;
        b.invalidations += o.invalidations;
        b.nt_full += o.nt_full;
        b.nt_partial += o.nt_partial;
    }
}
