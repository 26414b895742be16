//! The words every stage of nearmiss shares, and the formats of the files between the stages.
//!
//! Nothing here measures, models or prints. A stage reads the files that the stage before it wrote to the run directory
//! ([`run::RunDir`]) and writes its own part; the types of those files live here, so that any stage can be rerun and
//! tested from fixtures.

pub mod abi;
pub mod baseline;
pub mod code;
pub mod comparison;
pub mod counts;
pub mod entered;
pub mod figures;
pub mod finding;
pub mod gate;
pub mod go;
pub mod kernel_structures;
pub mod logs;
pub mod machine;
pub mod maps;
pub mod model;
mod object_kind;
pub mod observation;
pub mod observed;
pub mod policy;
pub mod reference;
pub mod rehearsal;
pub mod run;
mod schema;
pub mod shared_line;
pub mod side;
mod stalls;
pub mod symbols;
mod tally;
pub mod trace;
pub mod units;
pub mod verdict;
pub mod waits;
pub mod words;
