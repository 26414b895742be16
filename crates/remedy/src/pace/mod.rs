//! Pace: a least interval between a thread's waits for events, so that a server makes one call for all that gathered
//! meanwhile.

pub mod apply;
pub mod rules;
