//! Tasks that were taken apart ([`super::parting`]), put together: a [`Hand`] specifies which task each CPU executes
//! next, and for how many windows.
//!
//! All CPUs of a hand run at the same time, merged by modelled cycles round by round. A CPU gets as many windows for a
//! round as it takes to stay where the slowest one is: in equal time a fast task does more than a slow one, and
//! interferes more often. A task with all its windows done executes them again until the hand is over, which is not
//! counted. A window that a round cannot hold is refused, as it would run behind the others.

use crate::model::engine::Engine;
use crate::model::options::{ModelError, ModelOptions};
use crate::model::stream::parting::{Parted, Window};
use crate::model::stream::replay::Replay;
use crate::model::stream::round::MOST_RECORDS;
use crate::model::totals::ModelTotals;
use crate::observer::Observer;
use nearmiss_record::abi::ChunkHeader;
use nearmiss_record::machine::Machine;
use nearmiss_record::policy::{Order, Policy};
use nearmiss_record::reference::Record;

/// Most windows of one task in a round.
const MOST_WINDOWS: u64 = 64;

/// Tasks that run at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hand {
    /// Task of each CPU; none: it idles.
    pub tasks: Vec<Option<usize>>,
    /// Number of windows of each.
    pub windows: usize,
}

impl Parted {
    /// Replays hand after hand. A task goes on behind its latest window; windows that a task does not have are not
    /// executed.
    pub fn replay<E: Engine, O: Observer>(
        &self,
        machine: &Machine,
        options: &ModelOptions,
        hands: &[Hand],
        observer: O,
    ) -> Result<Replayed<O>, ModelError> {
        let cpus = machine.topology.cpus();
        let options = ModelOptions { cpus, order: Order::Modelled, ..options.clone() };
        let mut feeding = Feeding {
            replay: Replay::<E, O>::new(machine, &Policy::default(), &options, observer)?,
            window: self.window,
            running: vec![None; cpus as usize],
            executed: vec![0; cpus as usize],
            fed: 0,
            rounds: 0,
        };
        feeding.replay.engine.lay(&self.pages);
        feeding.give(0, &self.code)?;
        let (mut next, mut cycles) = (vec![0; self.streams.len()], vec![0; self.streams.len()]);
        for hand in hands {
            let mut seats = self.seats(hand, cpus as usize, &next);
            feeding.play(&mut seats)?;
            for seat in seats {
                next[seat.task] += seat.windows.len();
                cycles[seat.task] += seat.cycles;
            }
        }
        let (totals, observer) = feeding.replay.finish()?;
        Ok(Replayed { totals, cycles, observer })
    }

    /// Returns the tasks that execute something in a hand, after each task has executed `next` windows.
    fn seats<'a>(&'a self, hand: &Hand, cpus: usize, next: &[usize]) -> Vec<Seat<'a>> {
        let seat = |(cpu, task): (usize, &Option<usize>)| {
            let task = (*task)?;
            let stream = self.streams.get(task)?;
            let rest = stream.windows.get(next[task]..)?;
            let windows = &rest[..hand.windows.min(rest.len())];
            (!windows.is_empty()).then_some(Seat {
                cpu,
                task,
                begins: &stream.begins,
                windows,
                executed: 0,
                cycles: 0,
                elapsed: 0,
                pace: 0,
            })
        };
        hand.tasks.iter().enumerate().take(cpus).filter_map(seat).collect()
    }
}

/// Results of replayed hands.
pub struct Replayed<O> {
    /// Totals of all that was executed, windows that came again included.
    pub totals: ModelTotals,
    /// Cycles of a task's windows, by task, each window counted once.
    pub cycles: Vec<u64>,
    /// As it was given.
    pub observer: O,
}

/// A task on its CPU, for as long as a hand lasts.
struct Seat<'a> {
    cpu: usize,
    task: usize,
    begins: &'a [Record],
    windows: &'a [Window],
    /// Windows so far, those that came again included.
    executed: usize,
    /// Cycles of the first time that its windows came.
    cycles: u64,
    /// Cycles since the hand began.
    elapsed: u64,
    /// Cycles of a window, lately.
    pace: u64,
}

impl Seat<'_> {
    fn is_done(&self) -> bool {
        self.executed >= self.windows.len()
    }

    /// Windows until this time. The last one that counts ends a round.
    fn due(&self, time: u64) -> usize {
        if self.executed == 0 {
            return 1;
        }
        let pace = self.pace.max(1);
        let due = ((time.saturating_sub(self.elapsed) + pace / 2) / pace).min(MOST_WINDOWS) as usize;
        if self.is_done() { due } else { due.min(self.windows.len() - self.executed) }
    }

    /// A round ended in which it executed so many windows, in so many cycles.
    fn went_on(&mut self, windows: usize, cycles: u64) {
        if windows == 0 {
            return;
        }
        self.cycles += if self.is_done() { 0 } else { cycles };
        self.executed += windows;
        self.elapsed += cycles;
        self.pace = cycles / windows as u64;
    }
}

/// A replay that is fed window by window.
struct Feeding<E: Engine, O: Observer> {
    replay: Replay<E, O>,
    /// Instructions of a window.
    window: u64,
    /// Task of each CPU.
    running: Vec<Option<usize>>,
    /// Instructions so far, by CPU.
    executed: Vec<u64>,
    /// Chunks so far.
    fed: u64,
    rounds: u64,
}

impl<E: Engine, O: Observer> Feeding<E, O> {
    /// Plays until each task has executed its windows.
    fn play(&mut self, seats: &mut [Seat<'_>]) -> Result<(), ModelError> {
        while seats.iter().any(|seat| !seat.is_done()) {
            self.rounds += 1;
            let time = seats.iter().map(|seat| seat.elapsed + seat.pace).max().unwrap_or(0);
            let due: Vec<usize> = seats.iter().map(|seat| seat.due(time)).collect();
            let mut given = vec![0; seats.len()];
            for nth in 0..due.iter().copied().max().unwrap_or(0) {
                for (number, seat) in seats.iter().enumerate().filter(|(number, _)| nth < due[*number]) {
                    given[number] += usize::from(self.window(seat, nth)?);
                }
            }
            let clocks: Vec<u64> = seats.iter().map(|seat| self.replay.clock(seat.cpu)).collect();
            // An idle CPU must not take part in it later.
            self.replay.run_round()?;
            for ((seat, given), before) in seats.iter_mut().zip(given).zip(clocks) {
                seat.went_on(given, self.replay.clock(seat.cpu) - before);
            }
        }
        Ok(())
    }

    /// Gives a seat its window of this number in the round; `false`: the round is full, and the window can wait.
    fn window(&mut self, seat: &Seat<'_>, nth: usize) -> Result<bool, ModelError> {
        let Some(window) = seat.windows.get((seat.executed + nth) % seat.windows.len()) else { return Ok(false) };
        if self.replay.round.records + window.records.len() > MOST_RECORDS {
            let why = format!(
                "place: CPUs take turns by windows of {} instructions, and one holds too many records to be replayed at once; choose shorter windows",
                self.window
            );
            return if nth > 0 { Ok(false) } else { Err(ModelError::Refused(why)) };
        }
        if self.running[seat.cpu] != Some(seat.task) {
            self.running[seat.cpu] = Some(seat.task);
            self.give(seat.cpu, seat.begins)?;
        }
        self.executed[seat.cpu] += self.window;
        self.chunk(seat.cpu, window.context, &window.records)?;
        Ok(true)
    }

    fn give(&mut self, cpu: usize, records: &[Record]) -> Result<(), ModelError> {
        if records.is_empty() { Ok(()) } else { self.chunk(cpu, 0, records) }
    }

    fn chunk(&mut self, cpu: usize, context: u32, records: &[Record]) -> Result<(), ModelError> {
        let header = ChunkHeader {
            seq: self.fed,
            slice: self.rounds,
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
