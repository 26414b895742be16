//! What a replay is asked for, and why it may be refused.

use nearmiss_code::KnownCode;
use nearmiss_record::policy::Order;
use nearmiss_record::reference::Record;
use nearmiss_record::run::Filter;
use std::sync::Arc;

/// How a trace is replayed.
#[derive(Clone, Debug)]
pub struct ModelOptions {
    /// In which order the records of several CPUs meet.
    pub order: Order,
    /// Leave out what ran in kernel mode.
    pub only_user: bool,
    /// Keep private caches coherent. Off only to compare with cachegrind, which knows no sharing: then a cache with a
    /// virtual index is tagged by virtual address and address space.
    pub coherence: bool,
    /// The filter the trace was made with.
    pub filter: Filter,
    /// Bytes of guest memory by node; empty: one node.
    pub node_bytes: Vec<u64>,
    /// CPUs of the guest: its CPU `i` is CPU `i` of the machine. A place policy uses all of the machine's.
    pub cpus: u32,
    /// Find out why lines are not there: tell conflict from capacity misses, blame polluters, map the sets. Off, conflict
    /// misses are told as capacity misses, nobody is blamed and the maps show nothing; all else is the same, and sooner there.
    pub reasons: bool,
    /// What other replays of the trace found out of its code; this one adds to it.
    pub code: Option<Arc<KnownCode>>,
    /// The slices are of equal length, as an emulator's are not: in the modelled order each CPU has one of them at a time.
    pub even_slices: bool,
}

impl ModelOptions {
    /// The same, of misses whose reasons nobody asks for.
    pub fn without_reasons(self) -> Self {
        ModelOptions { reasons: false, ..self }
    }
}

/// Why a model could not be built, or where its input is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The machine, the policy or the filter asks for what the model cannot do.
    #[error("{0}")]
    Refused(String),
    /// A chunk that no recorder writes.
    #[error("chunk {chunk}, record {record}: {what}; the trace is damaged: record the run again")]
    BadRecord {
        /// Sequence number of the chunk.
        chunk: u64,
        /// Index of the record in it.
        record: usize,
        /// What is wrong with it.
        what: String,
    },
}

/// Where a record stands, for messages.
#[derive(Clone, Copy)]
pub(crate) struct Position {
    pub chunk: u64,
    pub record: usize,
}

impl Position {
    pub fn bad(self, what: impl Into<String>) -> ModelError {
        ModelError::BadRecord { chunk: self.chunk, record: self.record, what: what.into() }
    }

    /// The control record here, with its payload.
    pub fn group(self, records: &[Record]) -> Result<&[Record], ModelError> {
        let length = records[self.record].payload_records().ok_or_else(|| self.bad("unknown control record"))?;
        let end = (self.record + 1).checked_add(length).filter(|end| *end <= records.len());
        let end = end.ok_or_else(|| self.bad("a control record's payload reaches beyond its chunk"))?;
        Ok(&records[self.record..end])
    }
}

#[cfg(test)]
impl ModelOptions {
    /// Of an unfiltered recording of a whole machine with one CPU.
    pub(in crate::model) fn of_one_cpu() -> Self {
        ModelOptions {
            order: Order::Recorded,
            only_user: false,
            coherence: true,
            filter: Filter::default(),
            node_bytes: Vec::new(),
            cpus: 1,
            reasons: true,
            code: None,
            even_slices: false,
        }
    }
}
