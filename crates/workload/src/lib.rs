//! Describe, launch, pin, time and stop a user's command. Nothing else in nearmiss starts
//! the user's processes.
//!
//! A command is launched in two steps, so that counters can be attached to a process that
//! has not run an instruction of its own yet:
//!
//! ```
//! use nearmiss_workload::Workload;
//!
//! let suspended = Workload::new(["true"]).launch_suspended()?;
//! let pid = suspended.pid(); // attach counters to it here
//! let finished = suspended.resume()?.wait()?;
//! assert!(pid > 0 && finished.status.success());
//! # Ok::<(), nearmiss_workload::Error>(())
//! ```
//!
//! A launched command never outlives its launcher: a small guardian process kills it when the launcher dies without
//! having waited for it, even by `SIGKILL`. Files written for it ([`GuardedFiles`]), changed settings of the kernel
//! ([`GuardedSettings`]) and changed affinity masks ([`GuardedMasks`]) have a guardian too. A keeper ends even what
//! left the group of a server ([`Serving`]).

mod blocked_signals;
mod child;
mod command;
mod cpu_clock;
mod cpus;
mod error;
mod finished;
mod forks;
mod guarded_files;
mod guarded_masks;
mod guarded_settings;
mod guardian;
mod keeper;
mod large_pages;
mod launch;
mod mask_table;
mod memory;
mod nodes;
mod proc;
mod process_group;
mod ready;
mod running;
mod serving;
mod signals;
mod task;
mod task_counts;
mod tree;

pub use command::{Stdio, Workload};
pub use cpu_clock::CpuClock;
pub use cpus::CpuSet;
pub use error::Error;
pub use finished::{Finished, Status};
pub use forks::Forks;
pub use guarded_files::GuardedFiles;
pub use guarded_masks::GuardedMasks;
pub use guarded_settings::{GuardedSettings, Setting};
pub use large_pages::LargePages;
pub use launch::Suspended;
pub use memory::MemoryPolicy;
pub use nodes::Node;
pub use process_group::ProcessGroup;
pub use ready::Ready;
pub use running::Running;
pub use serving::{Cut, Load, Loaded, Serving, ServingError};
pub use signals::ForwardSignals;
pub use task::TaskId;
pub use task_counts::{CounterKind, TaskCounts};
pub use tree::Tree;
