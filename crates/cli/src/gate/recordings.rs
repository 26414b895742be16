//! Recordings of a gate's commands, two at a time where the machine can.
//!
//! Guests' time goes by instructions, so that nothing is counted differently for a guest beside. A recording keeps one CPU
//! busy with the guest and half of another with the model: two at a time take less than twice as long as one.

use super::commands::Gated;
use crate::progress::progress;
use crate::trace::{Gauge, once_begun};
use anyhow::Context;
use nearmiss_analysis::Counted;
use nearmiss_gate::{Recording, Sample};
use nearmiss_record::gate::Recorder;
use nearmiss_record::machine::Machine;
use nearmiss_record::units::Bytes;
use nearmiss_tap::guest::plan_memory;
use std::num::NonZeroUsize;

/// Guests that run at the same time, if there are CPUs and memory for them.
const AT_ONCE: usize = 2;

/// A command, and its side's name.
pub type Turn<'a> = (&'a Gated, &'static str);

/// Records commands, all in guests of one shape.
pub struct Recordings {
    gauge: Gauge,
    at_once: usize,
    /// The next recording is the first in a guest of its shape.
    first: bool,
    made: usize,
    /// At least so many will be made.
    expected: usize,
    recorder: Recorder,
}

impl Recordings {
    /// None yet. The guests' memory is decided here: what is available changes while guests run. Errors: too little memory.
    pub fn new(mut gauge: Gauge, machine: &str) -> anyhow::Result<Self> {
        let requested: Vec<u64> = gauge.memory.iter().map(|memory| memory.0).collect();
        let guest: u64 = plan_memory(&requested, 1)?.iter().sum();
        gauge.memory = Some(Bytes(guest));
        let fits = plan_memory(&[guest * AT_ONCE as u64], 1).is_ok();
        let cpus = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Ok(Recordings {
            gauge,
            at_once: if fits { AT_ONCE.min(cpus) } else { 1 },
            first: true,
            made: 0,
            expected: 0,
            recorder: Recorder { machine: machine.to_owned(), ..Recorder::default() },
        })
    }

    /// Returns what recorded the commands so far.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// From here on in guests of another shape; what was recorded is not counted.
    pub fn restart(&mut self, machine: Machine) {
        self.gauge.machine = machine;
        (self.first, self.made) = (true, 0);
    }

    /// At least so many recordings will be made, for those who watch.
    pub fn expect(&mut self, recordings: usize) {
        self.expected = recordings;
    }

    /// Records commands in turn. Errors: one failed, or was interrupted.
    pub fn all(&mut self, turns: &[Turn<'_>]) -> anyhow::Result<Vec<Sample>> {
        // A guest is saved before others are restored from it.
        let (alone, others) = turns.split_at(usize::from(self.first).min(turns.len()));
        let mut samples = Vec::with_capacity(turns.len());
        for together in alone.chunks(1).chain(others.chunks(self.at_once)) {
            for counted in self.together(together)? {
                samples.push(self.sample(&counted));
            }
        }
        Ok(samples)
    }

    fn together(&mut self, turns: &[Turn<'_>]) -> anyhow::Result<Vec<Counted>> {
        for (_, side) in turns {
            self.made += 1;
            progress(&format!("recording {} of {} or more ({side})", self.made, self.expected.max(self.made)));
        }
        let counted = at_once(&self.gauge, turns)?;
        // The guest that is booted first is saved, and all others are restored from it. The two are not quite the same.
        let booted = std::mem::take(&mut self.first) && counted.iter().any(|counted| !counted.restored);
        if booted { at_once(&self.gauge, turns) } else { Ok(counted) }
    }

    fn sample(&mut self, counted: &Counted) -> Sample {
        let Counted { model, side, symbols, switches, kernel, emulator, .. } = counted;
        self.recorder.cpus = self.gauge.machine.topology.cpus();
        (self.recorder.kernel, self.recorder.emulator) = (kernel.clone(), emulator.clone());
        Sample::of(&Recording { model, side, symbols, switches: *switches })
    }
}

fn at_once(gauge: &Gauge, turns: &[Turn<'_>]) -> anyhow::Result<Vec<Counted>> {
    let record = |command: &Gated| once_begun(|| gauge.record(&command.variables, &command.words));
    if let [(command, _)] = turns {
        return Ok(vec![record(command)?]);
    }
    std::thread::scope(|scope| {
        let begun: Vec<_> = turns.iter().map(|(command, _)| scope.spawn(move || record(command))).collect();
        begun.into_iter().map(|thread| thread.join().ok().context("a recording's thread panicked")?).collect()
    })
}
