//! A kept trace taken apart by task once, so that its tasks can be put together in many ways without reading it again.
//!
//! Each task is cut into windows of so many instructions, by the same rules as under a place policy ([`super::placing`]).
//! What is put together is what a [`Hand`] says: which task each CPU executes next, and for how many windows. All CPUs
//! of a hand run at the same time, merged by modelled cycles window by window; what a round cannot hold is refused, as it
//! would run behind the others.

use crate::model::engine::Engine;
use crate::model::options::{ModelError, ModelOptions};
use crate::model::stream::placing::Placing;
use crate::model::stream::replay::Replay;
use crate::model::stream::rounds::MOST_RECORDS;
use crate::model::totals::ModelTotals;
use crate::observer::Observer;
use nearmiss_record::abi::ChunkHeader;
use nearmiss_record::machine::Machine;
use nearmiss_record::policy::{Order, Placed, Policy};
use nearmiss_record::reference::{Kind, Record};
use rustc_hash::FxHashSet;
use std::ops::Range;

/// Which windows of a task are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Thread id, as recorded.
    pub pid: u32,
    /// From 0, the task's first.
    pub windows: Range<u64>,
}

/// What a task executes in one window.
#[derive(Clone, Debug, Default, PartialEq)]
struct Window {
    context: u32,
    records: Vec<Record>,
}

/// One task.
#[derive(Clone, Debug, Default, PartialEq)]
struct Stream {
    /// Says that the task runs.
    begins: Vec<Record>,
    windows: Vec<Window>,
    executed_on: Vec<u64>,
}

/// Takes a trace apart, chunk by chunk.
pub struct Parting {
    placing: Placing,
    wanted: Vec<Wanted>,
    streams: Vec<Stream>,
    /// By task: windows that came so far.
    seen: Vec<u64>,
    code: Vec<Record>,
    window: u64,
}

impl Parting {
    /// Of a recording on so many CPUs. Refuses no task, a task named twice and windows of no instructions.
    pub fn new(wanted: Vec<Wanted>, window_instructions: u64, recorded_cpus: u32) -> Result<Self, ModelError> {
        let lanes: Vec<Placed> =
            wanted.iter().zip(0..).map(|(Wanted { pid, .. }, cpu)| Placed { pid: *pid, cpu }).collect();
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

/// What runs at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hand {
    /// By CPU, its task; none: it idles.
    pub tasks: Vec<Option<usize>>,
    /// How many windows of each.
    pub windows: usize,
}

/// The tasks of a trace, in the order in which they were asked for.
pub struct Parted {
    streams: Vec<Stream>,
    code: Vec<Record>,
    window: u64,
    /// In whose order pages are placed, whatever runs beside what: so that replays differ by nothing else.
    pages: Vec<u64>,
}

impl Parted {
    /// Windows of a task that are there.
    pub fn windows(&self, task: usize) -> usize {
        self.streams.get(task).map_or(0, |stream| stream.windows.len())
    }

    /// References of a task that are there, with the few records that say what runs.
    pub fn records(&self, task: usize) -> u64 {
        self.streams.get(task).map_or(0, |stream| stream.windows.iter().map(|window| window.records.len() as u64).sum())
    }

    /// Instructions of user mode of a task by the CPU on which they were recorded.
    pub fn executed_on(&self, task: usize) -> &[u64] {
        self.streams.get(task).map_or(&[], |stream| &stream.executed_on)
    }

    /// Replays hand after hand. A task goes on behind its latest window; what a task does not have is not executed.
    pub fn replay<E: Engine, O: Observer>(
        &self,
        machine: &Machine,
        options: &ModelOptions,
        hands: &[Hand],
        observer: O,
    ) -> Result<(ModelTotals, O), ModelError> {
        let cpus = machine.topology.cpus();
        let options = ModelOptions { cpus, order: Order::Modelled, ..options.clone() };
        let mut feeding = Feeding {
            replay: Replay::<E, O>::new(machine, &Policy::default(), &options, observer)?,
            next: vec![0; self.streams.len()],
            running: vec![None; cpus as usize],
            executed: vec![0; cpus as usize],
            fed: 0,
        };
        feeding.replay.engine.lay(&self.pages);
        feeding.give(0, 0, &self.code)?;
        let mut rounds = 0;
        for hand in hands {
            for _ in 0..hand.windows {
                rounds += 1;
                for (cpu, task) in hand.tasks.iter().enumerate().take(cpus as usize) {
                    if let Some(stream) = task.and_then(|task| Some((task, self.streams.get(task)?))) {
                        feeding.window(rounds, cpu, stream, self.window)?;
                    }
                }
                // An idle CPU must not take part in it later.
                feeding.replay.run_round()?;
            }
        }
        feeding.replay.finish()
    }
}

/// A replay that is fed window by window.
struct Feeding<E: Engine, O: Observer> {
    replay: Replay<E, O>,
    /// By task, its next window.
    next: Vec<usize>,
    /// By CPU, its task.
    running: Vec<Option<usize>>,
    /// By CPU, instructions so far.
    executed: Vec<u64>,
    /// Chunks so far.
    fed: u64,
}

impl<E: Engine, O: Observer> Feeding<E, O> {
    fn window(
        &mut self,
        round: u64,
        cpu: usize,
        (task, stream): (usize, &Stream),
        length: u64,
    ) -> Result<(), ModelError> {
        let Some(window) = stream.windows.get(self.next[task]) else { return Ok(()) };
        self.next[task] += 1;
        if self.replay.round.records + window.records.len() > MOST_RECORDS {
            let why = format!(
                "place: CPUs meet by windows of {length} instructions, and one holds too many records to be replayed at once; ask for shorter windows"
            );
            return Err(ModelError::Refused(why));
        }
        if self.running[cpu] != Some(task) {
            self.running[cpu] = Some(task);
            self.give(round, cpu, &stream.begins)?;
        }
        self.executed[cpu] += length;
        self.chunk(round, cpu, window.context, &window.records)
    }

    fn give(&mut self, round: u64, cpu: usize, records: &[Record]) -> Result<(), ModelError> {
        if records.is_empty() { Ok(()) } else { self.chunk(round, cpu, 0, records) }
    }

    fn chunk(&mut self, round: u64, cpu: usize, context: u32, records: &[Record]) -> Result<(), ModelError> {
        let header = ChunkHeader {
            seq: self.fed,
            slice: round,
            vcpu: cpu as u32,
            records: records.len() as u32,
            instructions: self.executed[cpu],
            context,
            ..ChunkHeader::default()
        };
        self.fed += 1;
        self.replay.chunk(&header, records)
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
