//! The tap: a command runs unchanged in a throw-away guest, and every access of it is seen.

mod agent_memory;
pub mod drain;
mod error;
pub mod facts;
pub mod guest;
mod page_tables;
pub mod pages;
pub mod parts;
pub mod ring;
pub mod session;
mod structures;
mod timing;
mod watch;
pub mod window;
