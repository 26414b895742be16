//! Stored items: responses by key and variant, and the fills under way that several clients share.

pub mod body;
pub mod entry;
pub mod flow;
pub mod forgotten;
pub mod key;
pub mod store;
