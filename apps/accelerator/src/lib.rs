//! An HTTP/1.1 caching reverse proxy on an event loop of its own, with waits that can be paced.
//!
//! One thread a CPU, each with its own listening sockets, engine and connections; the store is shared. A request that
//! the store answers is read, looked up and written within one turn of the loop ([`worker`]); every other one goes
//! through a [`cache::flow::Flow`], which one fetch fills and any number of clients read.

pub mod admin;
pub mod cache;
pub mod config;
pub mod engine;
pub mod health;
pub mod listen;
mod lock;
pub mod message;
pub mod metrics;
pub mod origins;
pub mod pacing;
pub mod shared;
pub mod worker;

/// As the program names itself in its lines.
pub const PROGRAM: &str = "nearmiss-accelerator";
