//! P3: *A Speedup Technique with Scheduler Using Process Execution Information* (2005). See `README.md` here.

pub mod kernel;
pub mod mix;
pub mod ours;
pub mod policy;
pub mod product;
pub mod rates;
pub mod run;
pub mod theirs;
pub mod work;
