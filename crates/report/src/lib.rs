//! Reports of a run: text for a terminal, JSON, one HTML page, and exports for other tools.
//!
//! Everything here is a pure function of the records of a run; nothing prints. Figures of the model are called
//! *modelled*, wall times *measured*.

pub mod callgrind;
pub mod cell;
pub mod code;
pub mod compare;
pub mod cycles;
mod end;
pub mod findings;
pub mod function_name;
pub mod gate;
pub mod html;
pub mod json;
pub mod kernel_structures;
pub mod levels;
pub mod load;
pub mod matrix;
pub mod name;
pub mod number;
pub mod observe;
mod order;
pub mod plot;
pub mod pprof;
pub mod ranking;
pub mod rehearsals;
pub mod sentence;
pub mod split;
pub mod stacks;
pub mod sums;
pub mod text;
mod texts;
pub mod verdict;
mod wall;
