//! The content of a machine file.
//!
//! Reading, checking and discovering machines is the `machine` crate's work; these types are only the vocabulary.

mod cache;

pub use cache::{Cache, CacheKind, Inclusion, Index, Replacement, Sharing};

use crate::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A machine description. Every figure is either sourced or marked `assumed` in [`Machine::sources`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Short name, as typed after `-m`.
    pub name: String,
    /// Title, for people.
    pub title: String,
    /// Instruction set: a machine of another one than the guest's lends only its caches.
    pub isa: String,
    /// CPU clock in MHz.
    pub clock_mhz: u32,
    /// Cycles an instruction when every reference hits the first level.
    pub cycles_per_instruction: f64,
    /// Packages, cores, threads.
    pub topology: Topology,
    /// Memory nodes and how far apart they are.
    pub memory: Memory,
    /// Every cache; several of one level and kind differ in `shared_by`.
    #[serde(rename = "cache")]
    pub caches: Vec<Cache>,
    /// Coherence protocol among private caches.
    pub coherence: Protocol,
    /// Cycles by source of the data.
    pub latency: Latency,
    /// Address translation for data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tlb: Option<Tlb>,
    /// Latency that a core hides of its misses; without one, `overlap` stands for all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<Core>,
    /// Streams that the core fetches ahead; without them, it fetches nothing ahead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<Streams>,
    /// Loads behind stores to the same offset of another page; predictions use it, the model does not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_aliasing: Option<StoreAliasing>,
    /// Share of a miss's latency hidden behind other work, 0..1; of a machine without [`Machine::core`].
    #[serde(default)]
    pub overlap: f64,
    /// The memory bus or channels.
    pub bus: Bus,
    /// Write-combining buffers a core.
    pub write_combining_buffers: u32,
    /// Calmness of this machine during the measurement of its figures, if it was measured here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<Noise>,
    /// Source of each figure: key = dotted path such as `cache.L2` or `latency.memory_local`, value = the source, or
    /// text that begins with `assumed`.
    #[serde(default)]
    pub sources: BTreeMap<String, String>,
}

impl Machine {
    /// Returns the share of a miss's latency that is assumed to be hidden; `None`: the core determines it for each
    /// miss.
    pub fn hidden_share(&self) -> Option<f64> {
        self.core.is_none().then_some(self.overlap)
    }

    /// Returns the share of a wait that shows, for waits outside the model of the core.
    pub fn shown_share(&self) -> f64 {
        1.0 - self.hidden_share().unwrap_or(0.0)
    }

    /// Returns the caution about the measurement behind the figures, if any: one sentence.
    pub fn caution(&self) -> Option<&str> {
        self.noise.as_ref()?.caution.as_deref()
    }

    /// Levels of caches.
    pub fn levels(&self) -> usize {
        self.caches.iter().map(|c| usize::from(c.level)).max().unwrap_or(0)
    }

    /// The data and the unified caches.
    pub fn data_caches(&self) -> impl Iterator<Item = &Cache> {
        self.caches.iter().filter(|c| c.kind.holds_data())
    }

    /// The data or unified cache of a level, 1 being the nearest.
    pub fn data_cache(&self, level: usize) -> Option<&Cache> {
        self.data_caches().find(|c| usize::from(c.level) == level)
    }

    /// Bytes of a cache of which a walk keeps half, if each of its loads waits for the one before: others push out the
    /// rest while the walk comes round once. A faster walk keeps more.
    pub fn kept_of(&self, cache: &Cache) -> Bytes {
        let hit_cycles =
            self.latency.level_cycles.get(usize::from(cache.level.saturating_sub(1))).copied().unwrap_or(0);
        let load_cycles = halved_chase_cycles(hit_cycles.into(), self.latency.memory_local_cycles.into());
        let kept = cache.size.0 as f64 / (1.0 + f64::from(cache.others_lines) * load_cycles / 1e6);
        if cache.others_lines == 0 { cache.size } else { Bytes((kept / STEP).round().max(1.0) as u64 * STEP as u64) }
    }
}

/// Cycles of a load in which others fill so much of a cache as a load of a chase leaves room for, if half of the loads
/// hit and half go to memory. Sets differ exponentially in the rate at which others bring lines in, and half of them lose
/// a line within ln 2 times the time that the mean rate would take.
pub fn halved_chase_cycles(hit_cycles: f64, memory_cycles: f64) -> f64 {
    std::f64::consts::LN_2 * (hit_cycles + memory_cycles) / 2.0
}

/// Steps in which a part of a cache is stated.
const STEP: f64 = 131_072.0;

/// Disturbances of a machine while its figures were measured, *measured*; nothing where the kernel counts none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Noise {
    /// CPUs that other programs kept busy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_cpus: Option<f64>,
    /// CPUs that a hypervisor kept for others (steal time).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stolen_cpus: Option<f64>,
    /// Other tasks that ran or waited for a CPU (the run queue): the least of several looks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_tasks: Option<u32>,
    /// Share of the time in which the measurement itself had no CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_share: Option<f64>,
    /// The widest spread of the takes of one figure, as a share of their median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<f64>,
    /// Names the noise and the way out in one sentence; nothing where the machine was quiet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caution: Option<String>,
}

/// Packages × cores × hardware threads. CPU numbers: thread-minor, then core, then package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// Sockets.
    pub packages: u32,
    /// Cores a package.
    pub cores_per_package: u32,
    /// Hardware threads a core.
    pub threads_per_core: u32,
    /// Cores that share a `cluster` cache (a core complex); 0: no clusters.
    #[serde(default)]
    pub cores_per_cluster: u32,
}

impl Topology {
    /// Hardware threads of the whole machine.
    pub fn cpus(&self) -> u32 {
        self.packages * self.cores_per_package * self.threads_per_core
    }
}

/// Memory nodes and pages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Number of memory nodes; CPUs are dealt to nodes in equal consecutive runs.
    pub nodes: u32,
    /// Page size.
    pub page_size: Bytes,
    /// Placement of pages in the modelled machine's memory.
    #[serde(default)]
    pub placement: Placement,
    /// Seed of a random placement.
    #[serde(default)]
    pub placement_seed: u64,
    /// Cycles of CPU time of a first touch of a small page without a file: page fault, clearing, giving back. Without
    /// the figure, first touches are priced as modelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_touch_cycles: Option<u32>,
    /// Cycles of CPU time of a first touch of a large page (2 MiB), all of it cleared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub large_first_touch_cycles: Option<u32>,
}

/// Placement of a run's pages in the modelled machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// A seeded permutation of page numbers within each node: an aged machine.
    #[default]
    Random,
    /// Physical addresses of the guest: those of a fresh boot.
    AsRecorded,
    /// In order of first touch, what programs use from one end of a node's memory, what the kernel keeps from the other.
    Sequential,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// Coherence protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// Modified, shared, invalid.
    Msi,
    /// And exclusive.
    Mesi,
    /// And owned: a modified line is shared without a write-back.
    Moesi,
}

/// Load-to-use latencies in cycles, by where the line was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// Cycles by level, nearest first; one entry a modelled level.
    pub level_cycles: Vec<u32>,
    /// Clean in another core's cache, same node.
    pub core_clean_cycles: u32,
    /// Modified in another core's cache, same node.
    pub core_modified_cycles: u32,
    /// In a cache of another node.
    pub remote_cache_cycles: u32,
    /// Memory of the own node.
    pub memory_local_cycles: u32,
    /// Memory of another node.
    pub memory_remote_cycles: u32,
}

/// Address translation for data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tlb {
    /// Small pages that the first level holds.
    pub entries: u32,
    /// Ways of the first level; 0: any page anywhere.
    #[serde(default, skip_serializing_if = "crate::schema::is_zero")]
    pub ways: u32,
    /// Cycles that a reference waits if only the second level holds its page.
    pub miss_cycles: u32,
    /// Large pages (2 MiB) that the first level holds beside the small ones; 0: the two share `entries`.
    #[serde(default, skip_serializing_if = "crate::schema::is_zero")]
    pub large_entries: u32,
    /// All memory of user mode lies in large pages, regardless of the recorded ones: the effect of requesting them.
    #[serde(default, skip_serializing_if = "is_false")]
    pub user_pages_large: bool,
    /// Both levels hold small pieces of a large page: a hypervisor has the memory in small pages.
    #[serde(default, skip_serializing_if = "is_false")]
    pub large_pages_split: bool,
    /// Second level, behind the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second: Option<SecondTlb>,
}

/// The second level of address translation, and the walk of the page table behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecondTlb {
    /// Pages that it holds, small and large ones.
    pub entries: u32,
    /// Ways; 0: not known, taken for the most up to 16 with which the sets are a power of two.
    #[serde(default, skip_serializing_if = "crate::schema::is_zero")]
    pub ways: u32,
    /// Cycles of a walk to a small page with its table entry in the second level of caches.
    pub walk_cycles: u32,
    /// Cycles of a walk to a large page with its table entry in the second level of caches.
    pub large_walk_cycles: u32,
    /// Cycles from a walk to a small page to the next walk, if neither waits for the other; 0: any number at once.
    #[serde(default, skip_serializing_if = "crate::schema::is_zero")]
    pub apart_walk_cycles: u32,
    /// Cycles from a walk to a large page to the next walk, if neither waits for the other; 0: any number at once.
    #[serde(default, skip_serializing_if = "crate::schema::is_zero")]
    pub large_apart_walk_cycles: u32,
    /// Cycles of a walk to a small page of a table that was not walked to for long: the levels above it are walked
    /// too; 0: as any other walk.
    #[serde(default, skip_serializing_if = "crate::schema::is_zero")]
    pub far_walk_cycles: u32,
    /// Cycles from such a walk to the next one, if neither waits for the other; 0: as any other walk.
    #[serde(default, skip_serializing_if = "crate::schema::is_zero")]
    pub far_apart_walk_cycles: u32,
}

/// Parameters of an out-of-order core that hides part of its misses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Core {
    /// Instructions from the oldest that waits to the youngest that has begun: the reorder buffer.
    pub window_instructions: u32,
    /// Misses of the first level of data that are under way at once.
    pub fill_buffers: u32,
    /// Stores that wait for their line before the core waits as well.
    pub store_buffer: u32,
    /// Instructions begun in a cycle, at most.
    pub width: u32,
    /// Cycles from a store to a load of the stored value.
    pub forwarding_cycles: u32,
    /// Cycles that a mispredicted branch costs.
    pub mispredict_cycles: u32,
    /// Instructions by which the front end is ahead when it requests the lines of the code.
    #[serde(default)]
    pub fetch_ahead_instructions: u32,
    /// Cycles from one store to the next where the stores in the buffer push out one another's lines; 0: none of its own.
    #[serde(default)]
    pub crowded_store_cycles: u32,
    /// Cycles from one such store to the next where a load of its line comes before each, so that lines are written back,
    /// brought and brought again; 0: assumed twice those of stores alone.
    #[serde(default, skip_serializing_if = "crate::schema::is_zero")]
    pub crowded_addition_cycles: u32,
    /// Cycles from one store to the next where the lines of sixteen sets push one another out in turn; none: those of one
    /// set, divided among the sets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crowded_beside_cycles: Option<u32>,
    /// Lines of one set, stored to in turn, at which a store takes half of `crowded_store_cycles`: it takes less at fewer;
    /// none: two and a half times the set's ways.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crowded_half_lines: Option<u32>,
    /// Cycles of a store behind a load of its line to a line that another CPU stored to since this one did, both again and
    /// again, with stores to other lines between: if the latest such store was to the same line, and if it was to another
    /// contended one; 0: none of its own.
    #[serde(default)]
    pub contended_store_cycles: [u32; 2],
    /// How the second level gives its lines; none: as many as `streams.line_cycles` has it, wherever they lie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_level: Option<SecondLevel>,
    /// Cycles that a load's line from beyond the first level takes of the core's time where all of its latency is hidden.
    #[serde(default)]
    pub fill_cycles: f64,
    /// Lines of atomics are requested ahead, as those of loads; else each waits for its line by itself.
    #[serde(default, skip_serializing_if = "is_false")]
    pub atomics_ahead: bool,
    /// Contended lines beyond `contended_store_cycles`; none in files that are older than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contended: Option<Contended>,
    /// Cycles until a load has a line that non-temporal stores wrote, if less than 2, 8 and 32 KiB were written so and
    /// read again since: one such line comes after the other, none is fetched ahead, and none comes sooner than memory
    /// has it. None: as any other line of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reread_cycles: Option<[u32; 3]>,
}

/// Rates of the second level of caches: it gives lines from banks, consecutive lines from consecutive ones.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecondLevel {
    /// Banks, a power of two; 1: lines come as fast wherever they lie.
    pub banks: u32,
    /// Cycles from one line of a bank to the next.
    pub bank_cycles: f64,
    /// Cycles from one line to the next, in consecutive banks, where the first level gives up a modified line for each.
    pub written_line_cycles: f64,
    /// Cycles from one line of a bank to the next where the first level gives up a modified line for each.
    pub written_bank_cycles: f64,
}

/// Cycles of a reference to a line that another CPU has used since this one did, both again and again, one of them
/// writing it: with one line in play, with two, and with four.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Contended {
    /// A store without a load of the line before it.
    pub store_cycles: [u32; 3],
    /// An atomic.
    pub atomic_cycles: [u32; 3],
    /// A load of a line that another CPU stores to.
    pub load_cycles: [u32; 3],
    /// A store behind a load of its word, of a loop that stores to no other line, so that the core has the word's value
    /// in its store buffer; none: as any store behind a load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lone_addition_cycles: Option<u32>,
    /// From one addition to one line to the next, with stores to four other lines between; none: by what one such store
    /// makes of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between_stores_cycles: Option<u32>,
    /// A store behind a load of its word, with 160 instructions between two such additions to one line; none: by
    /// `spaced_addition_cycles`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far_addition_cycles: Option<u32>,
    /// From one load to the next of one line that another CPU stores to, with 160 instructions between; none: as a load
    /// of bytes that the core has just stored to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far_load_cycles: Option<u32>,
    /// In older files: a store behind a load of its line, or a load, by a core that computes for 60 cycles between two
    /// such accesses to one line; none: the core waits for what is left of a transfer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spaced_addition_cycles: Option<u32>,
    /// A store behind a load of its line, or that load, where a chain of 128 cycles is computed from the loaded value
    /// before the next one; none: as any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed_addition_cycles: Option<u32>,
    /// A load of a line that another CPU adds to, where a chain of 128 cycles is computed from the value; none: as any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed_load_cycles: Option<u32>,
}

impl Core {
    /// Cycles of a crowded store behind a load of its line.
    pub fn crowded_addition(&self) -> u32 {
        if self.crowded_addition_cycles > 0 { self.crowded_addition_cycles } else { 2 * self.crowded_store_cycles }
    }

    /// Returns the cycles of contended lines. Assumed if the file specifies stores behind loads alone: stores without
    /// loads half of it on one line, atomics as much as on several lines, loads nothing of their own.
    pub fn contended(&self) -> Contended {
        let [one, several] = self.contended_store_cycles;
        self.contended.unwrap_or(Contended {
            store_cycles: [one / 2, several, several],
            atomic_cycles: [several; 3],
            load_cycles: [0; 3],
            lone_addition_cycles: None,
            between_stores_cycles: None,
            far_addition_cycles: None,
            far_load_cycles: None,
            spaced_addition_cycles: None,
            needed_addition_cycles: None,
            needed_load_cycles: None,
        })
    }
}

/// Accesses that the core fetches ahead, which follow one another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Streams {
    /// Streams that are followed at once.
    pub followed: u32,
    /// Accesses at one distance that make a stream.
    pub trained_by: u32,
    /// Longest distance of two accesses of a stream, in lines.
    pub longest_stride_lines: u32,
    /// A stream ends where a block of so many bytes ends.
    pub within: Bytes,
    /// Cycles that a line of a stream takes, by where it lies: levels from the second on, then memory.
    pub line_cycles: Vec<f64>,
    /// Cycles that a line takes in a stream whose lines lie apart, with what is fetched between them in vain, by where it
    /// lies; empty: as in a stream without gaps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apart_line_cycles: Vec<f64>,
    /// Lines that the core fetches with a missed one around them; left out: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<Region>,
}

/// Lines that come with a missed one where lines at the same distance were needed around the two that the instruction
/// missed before.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// Lines on either side of the missed one.
    pub lines: u32,
    /// Cycles that such a line takes behind the missed one; a load of its own may bring it sooner.
    pub wait_cycles: u32,
}

/// Wait of a load with the offset within its page of a store just before it, to another page.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoreAliasing {
    /// Stores that a load is compared with, the latest.
    pub stores: u32,
    /// Cycles of the wait; other work hides as much of it as of a miss.
    pub wait_cycles: f64,
}

/// Path of transactions to memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bus {
    /// Cycles that one line transfer occupies the bus.
    pub transaction_cycles: u32,
    /// Sharers of one bus: the `machine` (a front-side bus) or a `node` (memory channels).
    pub shared_by: BusSharing,
    /// Parallel channels.
    #[serde(default = "one")]
    pub channels: u32,
}

fn one() -> u32 {
    1
}

/// Sharers of a bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BusSharing {
    /// One for all.
    Machine,
    /// One a node.
    Node,
}
