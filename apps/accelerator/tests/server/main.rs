//! The tests of the proxy between clients and origins of their own. `soak` is another binary: it has a target of make.

mod caching;
mod faults;
mod forgetting;
mod framing;
mod nginx;
mod operation;
mod random;
mod support;
