//! The modelled order: slices that followed one another in the recorder, taken as simultaneous.

use crate::model::engine::Engine;
use crate::model::options::ModelError;
use crate::model::stream::replay::Replay;
use crate::observer::Observer;
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

/// Whether a chunk belongs to a round of so many records and of these slices: CPU and number.
pub(crate) fn belongs(records: usize, mut slices: impl Iterator<Item = (usize, u64)>, header: &ChunkHeader) -> bool {
    records < MOST_RECORDS && slices.all(|(cpu, number)| cpu != header.vcpu as usize || number == header.slice)
}

impl Round {
    /// Whether a chunk belongs here: the round is not full, and its CPU's slice is this one or yet to come.
    pub fn takes(&self, header: &ChunkHeader) -> bool {
        belongs(self.records, self.slices.iter().map(|slice| (slice.cpu, slice.number)), header)
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

impl<E: Engine, O: Observer> Replay<E, O> {
    /// Merges the slices of the round by cycles since it began.
    pub(in crate::model) fn run_round(&mut self) -> Result<(), ModelError> {
        let mut round = std::mem::take(&mut self.round);
        for i in 0..round.slices.len() {
            let cpu = round.slices[i].cpu;
            round.slices[i].clock = self.clock(cpu);
            round.slices[i].after = (i > 0 && self.cpus[cpu].halted).then(|| i - 1);
            self.set_lead(&round.slices[i]);
        }
        let mut ended: Vec<Option<u64>> = vec![None; round.slices.len()];
        loop {
            // The slice whose CPU is least far goes on, up to where the next one stands.
            let mut first: Option<(u64, usize, usize)> = None;
            let mut limit = (u64::MAX, usize::MAX);
            for (i, slice) in round.slices.iter().enumerate() {
                if ended[i].is_some() || slice.after.is_some() {
                    continue;
                }
                let key = (self.clock(slice.cpu) - slice.clock + slice.offset, slice.cpu, i);
                match first {
                    Some(f) if (f.0, f.1) < (key.0, key.1) => limit = limit.min((key.0, key.1)),
                    _ => {
                        if let Some(f) = first {
                            limit = limit.min((f.0, f.1));
                        }
                        first = Some(key);
                    }
                }
            }
            let Some((_, cpu, i)) = first else { break };
            let mut time;
            loop {
                let slice = &mut round.slices[i];
                let Some((header, records)) = slice.chunks.front() else { break };
                if slice.at == 0 {
                    self.cpus[cpu].context = header.context;
                }
                if slice.at < records.len() {
                    let begin = slice.at;
                    if self.is_plain {
                        slice.at = self.plain(cpu, records, begin, 1);
                    }
                    if slice.at == begin {
                        slice.at = self.step(cpu, records, begin, header.seq)?;
                    }
                }
                if slice.at >= records.len() {
                    self.end_chunk(header);
                    slice.at = 0;
                    slice.chunks.pop_front();
                }
                time = self.clock(cpu) - slice.clock + slice.offset;
                if (time, cpu) >= limit {
                    break;
                }
            }
            if round.slices[i].chunks.is_empty() {
                let end = self.clock(cpu) - round.slices[i].clock + round.slices[i].offset;
                ended[i] = Some(end);
                for j in i + 1..round.slices.len() {
                    if round.slices[j].after == Some(i) {
                        round.slices[j].after = None;
                        round.slices[j].offset = end;
                        self.set_lead(&round.slices[j]);
                    }
                }
            }
        }
        self.round_began += ended.into_iter().flatten().max().unwrap_or(0);
        Ok(())
    }

    fn set_lead(&mut self, slice: &Slice) {
        let time = self.round_began + slice.offset;
        self.lead[slice.cpu] = time as i64 - slice.clock as i64;
    }
}
