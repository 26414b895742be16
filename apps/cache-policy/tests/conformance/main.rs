//! One test for each sentence of the RFCs that binds a cache, named by its section. `docs/caching.md` lists the
//! sections, and what no test here can show because it is the accelerator's.

#![allow(clippy::unwrap_used, reason = "these functions are the tests' own")]

mod kit;
mod rfc5861;
mod rfc9110_conditions;
mod rfc9110_ranges;
mod rfc9111_fields;
mod rfc9111_reuse;
mod rfc9111_storing;
mod rfc9111_validation;
mod rfc9211;
mod rfc9213;
