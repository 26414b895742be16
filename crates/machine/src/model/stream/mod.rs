//! The stream's side of the model: decodes records, keeps instructions, time and order, applies policies, and calls the
//! engine.
//!
//! Chunks come in recorded order. [`placing`] puts tasks on other CPUs as the policy specifies, and [`hands`] does so
//! many times over with tasks that [`parting`] kept; [`rounds`] holds a round back in the modelled order; [`replay`]
//! then handles record by record, by the short way of [`plain`] for the ordinary ones. [`apart`] and [`fields`] return the
//! places of bytes that a policy takes out of their lines, [`codes`] keeps the code that runs.

mod ahead;
pub(in crate::model) mod apart;
mod branches;
mod codes;
mod earlier;
mod fields;
pub(in crate::model) mod hands;
pub(in crate::model) mod instructions;
mod latest_loads;
pub(in crate::model) mod misses;
mod pacing;
pub(in crate::model) mod parting;
pub(in crate::model) mod placing;
pub(in crate::model) mod plain;
pub(in crate::model) mod policy;
pub(in crate::model) mod replay;
pub(crate) mod round;
mod rounds;
pub(in crate::model) mod vcpu;
mod written_around;
