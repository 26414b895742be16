//! The machine model: a stream of records in, misses by class, bus transactions and cycles out.
//!
//! # What is counted
//! - **Reference**: a load, store, atomic or fetch. One that straddles two lines is one reference, misses a level at
//!   most once, and makes two line accesses.
//! - **Lookup**: a line access asks level by level until one has the line. Then coherence acts, then the levels that
//!   missed are filled, outermost first.
//! - **Class** of a miss, the first that fits: *compulsory* (the cache never met the line), *coherence* (another CPU took
//!   it; true sharing if others wrote bytes that are now wanted), *inclusion victim*, *conflict* (the cache's shadow, a
//!   fully associative LRU cache of the same size that sees the same requests, fills and invalidations, has it),
//!   *capacity*.
//! - **Levels**: an *exclusive* cache is filled by what the level before it evicts, and hands a line on when it hits. An
//!   *inclusive* one takes a line out of nearer caches when it evicts it. Any other is filled on a miss. A modified line
//!   that is evicted marks the next outer copy modified, or goes to memory where there is none.
//! - **Coherence**: a unit is the machine's longest line. A write takes the unit from every cache that its CPU does not
//!   use. A read of a unit that another's cache holds modified makes that copy clean and writes it back, to the nearest
//!   cache that both use or to memory; under MOESI the owner keeps it modified. A store asks (an *invalidation*) if
//!   others have the line; under MSI also if its own copy is clean. A modified line that an exclusive cache hands to a
//!   reader is written back first if others hold the unit too (under MOESI: if another owns it).
//! - **Pollution**: a line is reused if it is referenced after it left its set's most-recently-used place, decided when
//!   it leaves the cache or the window ends. A miss on a line whose evictor was never reused is blamed on the evictor.
//! - **Non-temporal stores** look nothing up: cached copies go, modified ones are written back first, and the bytes wait
//!   in one of the core's write-combining buffers. A whole line is one transaction, a part of one as many as it has
//!   8-byte pieces. Fences, atomics and lack of a buffer (oldest first) drain.
//! - **Cycles**: instructions × cycles an instruction, plus stalls: latency by where the line came from and the wait for
//!   the bus, less the overlap. Write-backs and full buffers occupy the bus but stall nobody by themselves.
//! - **Order**: `recorded` takes chunks as they come; each CPU then has a clock and a bus queue of its own, for slices
//!   follow one another that ran at once. `modelled` merges the slices of a round record by record by cycles since the
//!   round began, ties by CPU; a CPU that halted starts where the slice before it ended.
//!
//! - **Policy**: addresses move, stores of call sites go around, tasks run on other CPUs and pages have other homes than
//!   recorded, before any of the above; what a trace does not carry is refused (`describe/carry.rs`). A page's home is
//!   decided by the first rule that any reference to it fits: a rule takes the page over from a later one, hits included.
//!
//! # How
//! [`Replay`] decodes the stream, keeps time and order, and applies policies; an [`Engine`] behind it holds the caches.
//! [`Model`] is a replay on the fast engine; the slow twin (`crate::twin`) is written from this text alone.

mod around;
mod blame;
pub(crate) mod bus;
mod bytes;
mod cache;
mod coherence;
mod combining;
mod counts;
mod engine;
mod fast;
mod frame;
mod front;
mod history;
pub(crate) mod homes;
mod indexing;
mod instructions;
mod misses;
mod options;
pub(crate) mod places;
mod placing;
mod plain;
pub(crate) mod plan;
mod policy;
mod prefetch;
pub(crate) mod replacement;
mod replay;
mod rounds;
mod shadow;
mod straight;
mod summary;
mod totals;
mod vcpu;

use crate::observer::Deaf;

pub use counts::Counts;
pub use engine::{Access, Drained, Engine};
pub use fast::Fast;
pub use options::{ModelError, ModelOptions};
pub use replay::Replay;
pub use totals::{CacheTotals, ModelTotals, Pollution, SHARED_LINES, SharedLine};

/// The model: a replay on the fast engine.
pub type Model<O> = Replay<Fast, O>;

/// Misses alone, counted on one CPU at a fraction of the model's time: a replay on tags.
///
/// Every level misses as often as [`Model`] says, and there its knowledge ends: no class of a miss (all are counted under
/// [`MissClass::Capacity`](nearmiss_record::model::MissClass), so only their sum means something), no stalls and no
/// cycles but the instructions', no waiting for the bus, no non-temporal transactions, no maps of sets, no pollution and
/// no shared lines.
/// A machine of several CPUs is refused, and so is a first level that is indexed by virtual bits above the page offset
/// but tagged by physical ones. Nobody can listen: most misses are not told to an observer.
pub type Counter = Replay<Counts, Deaf>;
