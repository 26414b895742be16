//! The modelled order: slices that followed one another in the recorder, taken as simultaneous.

use nearmiss_record::abi::ChunkHeader;
use nearmiss_record::reference::Record;
use std::collections::VecDeque;

/// Most records held back: a longer round is cut here.
pub(crate) const MOST_RECORDS: usize = 1 << 22;

/// One vCPU's part of a round.
#[derive(Clone, Debug)]
pub(crate) struct Slice {
    pub cpu: usize,
    pub number: u64,
    pub chunks: VecDeque<(ChunkHeader, Vec<Record>)>,
    /// Next record of the first chunk.
    pub at: usize,
    /// Cycles since the round began at which the slice started.
    pub offset: u64,
    /// The CPU's clock when it started.
    pub clock: u64,
    /// The slice that must end first, for this CPU was halted.
    pub after: Option<usize>,
}

/// Consecutive slices, each of another CPU.
#[derive(Clone, Debug, Default)]
pub(crate) struct Round {
    pub slices: Vec<Slice>,
    pub records: usize,
}

impl Round {
    /// Whether a chunk belongs here: the round is not full, and its CPU's slice is this one or yet to come.
    pub fn takes(&self, header: &ChunkHeader) -> bool {
        self.records < MOST_RECORDS
            && self.slices.iter().all(|s| s.cpu != header.vcpu as usize || s.number == header.slice)
    }

    pub fn push(&mut self, header: &ChunkHeader, records: &[Record]) {
        self.records += records.len();
        let chunk = (*header, records.to_vec());
        let cpu = header.vcpu as usize;
        match self.slices.iter_mut().find(|s| s.cpu == cpu) {
            Some(slice) => slice.chunks.push_back(chunk),
            None => {
                let chunks = VecDeque::from([chunk]);
                self.slices.push(Slice { cpu, number: header.slice, chunks, at: 0, offset: 0, clock: 0, after: None });
            }
        }
    }
}
