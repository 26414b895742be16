//! What instructions cost while every access hits the first level.

pub(crate) mod table;
