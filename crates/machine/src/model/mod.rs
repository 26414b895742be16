//! The machine model: a stream of records in, misses by class, bus transactions and cycles out.
//!
//! # Counting
//! - **Reference**: a load, store, atomic or fetch. One that straddles two lines is one reference, misses a level at
//!   most once, and makes two line accesses.
//! - **Lookup**: a line access goes level by level until one has the line. Then coherence acts, then the levels that
//!   missed are filled, outermost first.
//! - **Class** of a miss, the first that fits: *compulsory* (the cache never saw the line), *coherence* (another CPU
//!   took it; true sharing if others wrote bytes that are now used), *inclusion victim*, *conflict* (the cache's
//!   shadow, a fully associative LRU cache of the same size that sees the same requests, fills and invalidations, has
//!   it), *capacity*.
//! - **Levels**: an *exclusive* cache is filled by the victims of the level before it, and hands a line on when it
//!   hits. An *inclusive* one takes a line out of nearer caches when it evicts it. Any other is filled on a miss. A
//!   modified line that is evicted marks the next outer copy modified, or goes to memory if there is none.
//! - **Coherence**: a unit is the machine's longest line. A write takes the unit from every cache that its CPU does not
//!   use. A read of a unit that another's cache holds modified makes that copy clean and writes it back, to the nearest
//!   cache that both use or to memory; under MOESI the owner keeps it modified. A store sends an *invalidation* if
//!   others have the line; under MSI also if its own copy is clean. A modified line that an exclusive cache hands to a
//!   reader is written back first if others hold the unit too (under MOESI: if another owns it).
//! - **Pollution**: a line is reused if it is referenced after it left its set's most-recently-used place, decided when
//!   it leaves the cache or the window ends. A miss on a line is blamed on its evictor if the evictor was never reused.
//! - **Non-temporal stores** look nothing up: cached copies go, modified ones are written back first, and the bytes wait
//!   in one of the core's write-combining buffers. A whole line is one transaction, a part of one as many as it has
//!   8-byte pieces. Fences, atomics and lack of a buffer (oldest first) drain.
//! - **Cycles**: instructions × cycles an instruction, plus stalls: latency by where the line came from and the wait for
//!   the bus, less the overlap. Write-backs and full buffers occupy the bus but stall no CPU by themselves.
//! - **Order**: `recorded` takes chunks as they come; each CPU then has a clock and a bus queue of its own, for slices
//!   follow one another that ran at once. `modelled` merges the slices of a round record by record by cycles since the
//!   round began, ties by CPU; a CPU that halted starts where the slice before it ended.
//!
//! - **Pauses**: behind a pause, and from the start of parts that begin late, a line of which
//!   no cache of other CPUs ever saw any of the unit may be in the CPU's cache of a level from the second on all the same,
//!   if that cache and those beyond never saw it either: it hits there, clean, with the chance that `stream/earlier.rs`
//!   estimates. That cache and those beyond it that are not exclusive are filled with it first, the outermost one first.
//! - **Policy**: addresses move, stores of call sites go around, tasks run on other CPUs and pages have other homes
//!   than recorded, before any of the above; anything that a trace does not carry is refused (`describe/carry.rs`). A
//!   page's home is decided by the first rule that any reference to it fits: a rule takes the page over from a later
//!   one, hits included.
//!
//! # How
//! [`Replay`] decodes the stream, keeps time and order, and applies policies; an [`Engine`] behind it holds the caches.
//! [`Model`] is a replay on the fast engine; the slow twin (`crate::twin`) is written from this text alone.
//!
//! # Folders
//! | folder | contents |
//! |---|---|
//! | `stream/` | from chunks to single references: placing of tasks, rounds, policies, clocks |
//! | `engine.rs` | the stream's requests to the caches behind it |
//! | `fast/` | the engine of [`Model`]: levels, coherence, bus, write combining, page by page fast paths |
//! | `cache/` | one cache: sets, replacement, history of lines, shadow, blame |
//! | `sites.rs` | numbers of call sites, by which caches record who filled a line |
//! | `pages/` | the pages seen, with their places and homes |
//! | `quick_map.rs` | the hash maps of all of these |
//! | `counts/` | the engine of [`Counter`]: tags alone |
//! | `../twin/` | the slow and obvious engine that tests compare with |
//!
//! # The fast paths
//! Each path does the work of the general one, for records that need none of the steps it leaves out.
//!
//! | path | which records take it | why it is exact |
//! |---|---|---|
//! | `stream/plain` | plain loads, stores and fetches, whole, of a replay with a policy that changes no record and with the filter's lines | a policy, a cut and a join are all that the general way adds ahead of the engine |
//! | `Engine::hit` | the first level has the line, and a store may write the copy without a request | such a hit moves the line up and marks it modified, and no outer level sees it |
//! | `Engine::miss_quietly` | plain misses of the counting engine | nothing follows but a count |
//! | `fast/front` | the page was used lately by this CPU on this way | a row keeps what all lookups of a page would find; it is dropped when another CPU uses the page |
//! | `fast/straight` | a miss on a page that this CPU alone ever used, where no cache is exclusive | no other cache can hold the line, so none need be queried, and each level that missed is filled |
//! | `Fast::access` | everything else | the text above, step by step |

pub(crate) mod cache;
mod core;
mod counts;
mod engine;
pub(crate) mod fast;
mod options;
pub(crate) mod pages;
mod quick_map;
pub(crate) mod sites;
mod stream;
mod totals;

use crate::observer::NullObserver;

pub(crate) use self::core::Translation;
pub use counts::Counts;
pub use engine::{Access, Drained, Engine};
pub use fast::Fast;
pub use nearmiss_code::KnownCode;
pub use options::{ModelError, ModelOptions};
pub use sites::Sites;
pub use stream::hands::{Hand, Replayed};
pub use stream::parting::{Parted, Parting, TaskWindows};
pub use stream::replay::Replay;
pub(crate) use stream::round;
pub use totals::{CacheTotals, ModelTotals, Pollution, SHARED_LINES, SharedLine};

/// The model: a replay on the fast engine.
pub type Model<O> = Replay<Fast, O>;

/// Misses alone, counted on one CPU at a fraction of the model's time: a replay on tags.
///
/// Every level misses as often as in [`Model`], and no more is known: no class of a miss (all are counted under
/// [`MissClass::Capacity`](nearmiss_record::model::MissClass), so only their sum means something), no stalls and no
/// cycles but the instructions', no waiting for the bus, no non-temporal transactions, no maps of sets, no pollution
/// and no shared lines.
/// A machine of several CPUs is refused, and so is a first level that is indexed by virtual bits above the page offset
/// but tagged by physical ones. No observer can be attached: most misses are not reported to one.
pub type Counter = Replay<Counts, NullObserver>;
