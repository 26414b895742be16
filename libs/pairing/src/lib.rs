//! Which tasks run beside which: what tasks do to each other's caches, the choices that follow from it, and the optimum.
//!
//! Everything here is a function of what it is given: no clock, no files, no random numbers but those of a fixed
//! generator. Tasks are numbered from 0 in a table, and *domains* (groups of CPUs that share a cache) from 0 on a machine.
//!
//! | module | what |
//! |---|---|
//! | [`table`] | what was seen of each pair, graded; whether a pair is high, low or unknown, with its confidence |
//! | [`bitmaps`] | the same as the paper keeps it: two bits a pair; the next task by the AND of two of them; scores |
//! | [`epoch()`] | which tasks run beside each other while each task of a domain runs once |
//! | [`swap`] | the paper's way to a better placement: one swap a period, undone if the affinity fell |
//! | [`trials`] | the paper's own swaps, whether or not they promise anything |
//! | [`costs`] | what tasks of one domain cost together |
//! | [`dealt`] | groupings by chance, as a scheduler without regard to caches makes them |
//! | [`optimum`] | the grouping that costs least |
//! | [`moves`] | the grouping put on domains with the fewest moves, and left alone once reached |
//!
//! "Scheduling by run-time information for simultaneous multithreading" (2005) has the bitmaps and the swaps. It has no
//! optimum, so that it moves tasks even where they are placed best, and it takes each pair for known once seen.

pub mod bitmaps;
pub mod costs;
mod deal;
mod epoch;
mod exact;
mod matching;
pub mod moves;
pub mod optimum;
mod search;
pub mod swap;
pub mod table;
pub mod trials;

pub use bitmaps::Bitmaps;
pub use costs::Costs;
pub use deal::dealt;
pub use epoch::epoch;
pub use moves::{Move, Planner};
pub use optimum::{Grouping, optimum};
pub use swap::{Step, Swap, Swapper};
pub use table::{Affinity, PairJudgement, PairTable, Series};
pub use trials::Trials;
