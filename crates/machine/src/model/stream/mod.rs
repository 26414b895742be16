//! The stream's side of the model: decodes records, keeps instructions, time and order, applies policies, and asks the
//! engine.
//!
//! Chunks come in recorded order. [`placing`] puts tasks on other CPUs where the policy says so, and [`hands`] does so
//! many times over with tasks that [`parting`] kept; [`rounds`] holds a round back where the order is modelled;
//! [`replay`] then meets record by record, by the short way of [`plain`] where nothing is out of the ordinary.
//! [`apart`] says where bytes lie that a policy takes out of their lines, [`codes`] keeps the code that runs.

mod ahead;
pub(in crate::model) mod apart;
mod codes;
pub(in crate::model) mod hands;
pub(in crate::model) mod instructions;
pub(in crate::model) mod misses;
pub(in crate::model) mod parting;
pub(in crate::model) mod placing;
pub(in crate::model) mod plain;
pub(in crate::model) mod policy;
pub(in crate::model) mod replay;
pub(crate) mod rounds;
pub(in crate::model) mod vcpu;
