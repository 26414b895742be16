//! Options of a replay, and reasons to refuse it.

use nearmiss_code::KnownCode;
use nearmiss_record::policy::Order;
use nearmiss_record::reference::Record;
use nearmiss_record::run::Filter;
use std::sync::Arc;

/// Options for a replay of a trace.
#[derive(Clone, Debug)]
pub struct ModelOptions {
    /// Order of the records of several CPUs.
    pub order: Order,
    /// Leave out kernel mode.
    pub only_user: bool,
    /// Keep private caches coherent. Off only to compare with cachegrind, which models no sharing: then a cache with a
    /// virtual index is tagged by virtual address and address space.
    pub coherence: bool,
    /// The filter the trace was made with.
    pub filter: Filter,
    /// Bytes of guest memory by node; empty: one node.
    pub node_bytes: Vec<u64>,
    /// CPUs of the guest: its CPU `i` is CPU `i` of the machine. A place policy uses all of the machine's.
    pub cpus: u32,
    /// The program ran before the recording: its first references may find what it used then.
    pub starts_late: bool,
    /// Find out why lines are not there: separate conflict from capacity misses, blame polluters, map the sets. Off,
    /// conflict misses count as capacity misses, nothing is blamed and the maps are empty; all else is the same, and
    /// sooner there.
    pub reasons: bool,
    /// Facts about the code found by other replays of the trace; this one adds to them.
    pub code: Option<Arc<KnownCode>>,
    /// The slices are of equal length, as an emulator's are not: in the modelled order each CPU has one of them at a time.
    pub even_slices: bool,
}

impl ModelOptions {
    /// Returns the options without reasons of misses.
    pub fn without_reasons(self) -> Self {
        ModelOptions { reasons: false, ..self }
    }
}

/// Why a model could not be built, or where its input is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The machine, the policy or the filter requires what the model cannot do.
    #[error("{0}")]
    Refused(String),
    /// A chunk that no recorder writes.
    #[error("chunk {chunk}, record {record}: {what}; the trace is damaged: record the run again")]
    BadRecord {
        /// Sequence number of the chunk.
        chunk: u64,
        /// Index of the record in the chunk.
        record: usize,
        /// Error in the record.
        what: String,
    },
}

/// Position of a record, for messages.
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
    /// Returns the options for an unfiltered recording of a whole machine with one CPU.
    pub(in crate::model) fn of_one_cpu() -> Self {
        ModelOptions {
            order: Order::Recorded,
            only_user: false,
            coherence: true,
            filter: Filter::default(),
            node_bytes: Vec::new(),
            cpus: 1,
            starts_late: false,
            reasons: true,
            code: None,
            even_slices: false,
        }
    }
}
