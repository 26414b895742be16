//! A kept trace taken apart by task once, so that its tasks can be put together in many ways without reading it again.
//!
//! Each task is cut into windows of so many instructions, by the same rules as under a place policy ([`super::placing`]);
//! [`super::hands`] puts them together.

use crate::model::options::ModelError;
use crate::model::stream::placing::Placing;
use nearmiss_record::abi::ChunkHeader;
use nearmiss_record::policy::Placed;
use nearmiss_record::reference::{Kind, Record};
use rustc_hash::FxHashSet;
use std::ops::Range;

/// Windows to keep of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskWindows {
    /// Thread id, as recorded.
    pub pid: u32,
    /// From 0, the task's first.
    pub windows: Range<u64>,
}

/// Records of a task in one window.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Window {
    pub context: u32,
    pub records: Vec<Record>,
}

/// One task.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Stream {
    /// Records that start the task.
    pub begins: Vec<Record>,
    pub windows: Vec<Window>,
    executed_on: Vec<u64>,
}

/// Takes a trace apart, chunk by chunk.
pub struct Parting {
    placing: Placing,
    wanted: Vec<TaskWindows>,
    streams: Vec<Stream>,
    /// Windows that came so far, by task.
    seen: Vec<u64>,
    code: Vec<Record>,
    window: u64,
}

impl Parting {
    /// Prepares for a recording on so many CPUs. Refuses no task, a task named twice and windows of no instructions.
    pub fn new(wanted: Vec<TaskWindows>, window_instructions: u64, recorded_cpus: u32) -> Result<Self, ModelError> {
        let lanes: Vec<Placed> =
            wanted.iter().zip(0..).map(|(TaskWindows { pid, .. }, cpu)| Placed { pid: *pid, cpu }).collect();
        let placing = Placing::new(&lanes, window_instructions, recorded_cpus, lanes.len() as u32)?;
        let (streams, seen) = (vec![Stream::default(); wanted.len()], vec![0; wanted.len()]);
        Ok(Parting { placing, wanted, streams, seen, code: Vec::new(), window: window_instructions })
    }

    /// Takes the next chunk.
    pub fn chunk(&mut self, header: &ChunkHeader, records: &[Record]) -> Result<(), ModelError> {
        self.placing.take(header, records)?;
        self.drain(false);
        Ok(())
    }

    fn drain(&mut self, ended: bool) {
        self.code.append(&mut self.placing.take_code());
        while let Some((header, records)) = self.placing.next(ended) {
            let task = header.vcpu as usize;
            let number = self.seen[task];
            self.seen[task] += 1;
            if self.wanted[task].windows.contains(&number) {
                self.streams[task].windows.push(Window { context: header.context, records });
            }
        }
    }

    /// The trace is over.
    pub fn finish(mut self) -> Parted {
        self.drain(true);
        for (stream, wanted) in self.streams.iter_mut().zip(&self.wanted) {
            stream.begins = self.placing.begins(wanted.pid);
            stream.executed_on = self.placing.executed_on(wanted.pid);
        }
        let pages = pages(&self.streams);
        Parted { streams: self.streams, code: self.code, window: self.window, pages }
    }
}

/// An address of each page that the tasks touch: task by task, in the order of their virtual addresses. So pages lie alike
/// in two recordings of one program, though their windows begin at other instructions and touch pages in another order.
fn pages(streams: &[Stream]) -> Vec<u64> {
    let (mut seen, mut pages) = (FxHashSet::default(), Vec::new());
    for stream in streams {
        let mut new = Vec::new();
        for window in &stream.windows {
            let mut at = 0;
            while let Some(record) = window.records.get(at) {
                at += 1 + record.payload_records().filter(|_| record.kind() == Some(Kind::Control)).unwrap_or(0);
                let address = record.physical_page() << 12;
                if record.kind() != Some(Kind::Control) && seen.insert(address) {
                    new.push((record.vaddr(), address));
                }
            }
        }
        new.sort_unstable();
        pages.extend(new.into_iter().map(|(_, address)| address));
    }
    pages
}

/// The tasks of a trace, in the order of the request.
pub struct Parted {
    pub(super) streams: Vec<Stream>,
    pub(super) code: Vec<Record>,
    /// Instructions of a window.
    pub(super) window: u64,
    /// Pages in the order of their placement, the same for all pairings: so that replays differ by nothing else.
    pub(super) pages: Vec<u64>,
}

impl Parted {
    /// Windows of a task that are there.
    pub fn windows(&self, task: usize) -> usize {
        self.streams.get(task).map_or(0, |stream| stream.windows.len())
    }

    /// Returns the number of a task's references, with the few records that specify what runs.
    pub fn records(&self, task: usize) -> u64 {
        self.streams.get(task).map_or(0, |stream| stream.windows.iter().map(|window| window.records.len() as u64).sum())
    }

    /// Instructions of user mode of a task by the CPU on which they were recorded.
    pub fn executed_on(&self, task: usize) -> &[u64] {
        self.streams.get(task).map_or(&[], |stream| &stream.executed_on)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearmiss_record::units::InsnId;

    /// A task that reads these pages; where they lie was another matter when it was recorded.
    fn reads(pages: &[u64]) -> Stream {
        let read = |page: &u64| Record::reference(Kind::Load, page << 12, 8, 0, InsnId(1), 100 - page, 1);
        let window = Window { context: 0, records: pages.iter().map(read).collect() };
        Stream { windows: vec![window], ..Stream::default() }
    }

    #[test]
    fn pages_are_laid_task_by_task_in_the_order_of_their_virtual_addresses() {
        let laid = |tasks: &[&[u64]]| pages(&tasks.iter().map(|task| reads(task)).collect::<Vec<_>>());
        let of = |pages: &[u64]| pages.iter().map(|page| (100 - page) << 12).collect::<Vec<_>>();
        assert_eq!(laid(&[&[5, 2, 5], &[2, 1]]), of(&[2, 5, 1]));
        assert_eq!(laid(&[&[2, 5], &[1, 2]]), of(&[2, 5, 1]), "whichever comes first in its window");
    }
}
