//! One round of the modelled order: which chunks belong to it.

use nearmiss_record::abi::ChunkHeader;
use nearmiss_record::reference::Record;
use std::collections::VecDeque;

/// Most records held back: a longer round is cut here.
pub(crate) const MOST_RECORDS: usize = 1 << 22;
/// Records from which on a round takes no further slice.
const FULL_RECORDS: usize = 1 << 21;
/// Most slices of one CPU in a round.
const MOST_SLICES: usize = 1 << 10;

/// One vCPU's part of a round.
#[derive(Clone, Debug)]
pub(crate) struct Slice {
    pub cpu: usize,
    pub number: u64,
    pub chunks: VecDeque<(ChunkHeader, Vec<Record>)>,
    /// Cycles since the round began, once it ended.
    pub(super) ended: Option<u64>,
}

/// Consecutive slices.
#[derive(Clone, Debug, Default)]
pub(crate) struct Round {
    pub slices: Vec<Slice>,
    pub records: usize,
    /// Each CPU has one slice at most, for the slices are equally long.
    pub is_even: bool,
}

/// Whether a chunk belongs to a round of so many records and of these slices: CPU and number.
pub(crate) fn belongs(
    records: usize,
    slices: impl Iterator<Item = (usize, u64)>,
    header: &ChunkHeader,
    most_slices: usize,
) -> bool {
    let (mut own, mut latest) = (0, None);
    for (_, number) in slices.filter(|(cpu, _)| *cpu == header.vcpu as usize) {
        (own, latest) = (own + 1, Some(number));
    }
    let goes_on = latest == Some(header.slice);
    let begins = own == 0 || own < most_slices && records < FULL_RECORDS;
    records < MOST_RECORDS && (goes_on || begins)
}

/// [`belongs`] of a round in the recorder's slices.
pub(crate) fn belongs_as_recorded(
    records: usize,
    slices: impl Iterator<Item = (usize, u64)>,
    header: &ChunkHeader,
) -> bool {
    belongs(records, slices, header, MOST_SLICES)
}

impl Round {
    /// Whether a chunk belongs here: the round is not full, and its CPU's slice is the latest or yet to come.
    pub fn takes(&self, header: &ChunkHeader) -> bool {
        let slices = self.slices.iter().map(|slice| (slice.cpu, slice.number));
        belongs(self.records, slices, header, if self.is_even { 1 } else { MOST_SLICES })
    }

    pub fn push(&mut self, header: &ChunkHeader, records: &[Record]) {
        self.records += records.len();
        let chunk = (*header, records.to_vec());
        let cpu = header.vcpu as usize;
        match self.slices.iter_mut().rfind(|s| s.cpu == cpu).filter(|s| s.number == header.slice) {
            Some(slice) => slice.chunks.push_back(chunk),
            None => {
                let chunks = VecDeque::from([chunk]);
                self.slices.push(Slice { cpu, number: header.slice, chunks, ended: None });
            }
        }
    }
}
