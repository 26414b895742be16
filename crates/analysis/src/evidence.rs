//! Evidence of a modelled run, on which the remedies rest their suspicions.

use nearmiss_machine::attribution::{Alias, Attribution, Crowd};
use nearmiss_machine::model::Pollution;
use nearmiss_record::side::SideTables;
use nearmiss_record::symbols::Symbols;

/// Evidence from a model of the run as it was, beside its record: enough for a suspicion.
#[derive(Default)]
pub struct Evidence {
    pub(crate) crowds: Vec<Crowd>,
    pub(crate) conflict_waits: u64,
    pub(crate) aliases: Vec<Alias>,
    pub(crate) pollution: Vec<Pollution>,
}

impl Evidence {
    /// Reads it from an attribution that was made with `Options::and_evidence`, ahead of the attribution's record.
    pub fn of(attribution: &Attribution, pollution: &[Pollution], side: &SideTables, symbols: &Symbols) -> Self {
        Evidence {
            crowds: attribution.crowds(side, symbols),
            conflict_waits: attribution.conflict_waits(),
            aliases: attribution.aliases(side, symbols),
            pollution: pollution.to_vec(),
        }
    }
}
