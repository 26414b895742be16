//! Recorded parts of a run: instructions of the command, and what its references waited for.

use crate::observer::{BusRead, Outcome};
use nearmiss_record::model::{RecordedPart, StallSources};
use nearmiss_record::reference::MARK_PART;

/// Costs of the command, part by part.
#[derive(Debug)]
pub(super) struct Parts {
    levels: usize,
    costs: Vec<RecordedPart>,
}

impl Parts {
    pub fn new(levels: usize) -> Self {
        let mut parts = Parts { levels, costs: Vec::new() };
        parts.begin();
        parts
    }

    fn begin(&mut self) {
        let stalls = StallSources { levels: vec![0; self.levels], ..StallSources::default() };
        self.costs.push(RecordedPart { instructions: 0, stalls });
    }

    /// Begins the next part, if the mark of this number does.
    pub fn mark(&mut self, number: u64) {
        if number == MARK_PART {
            self.begin();
        }
    }

    pub fn add_instructions(&mut self, instructions: u64) {
        self.costs.last_mut().into_iter().for_each(|part| part.instructions += instructions);
    }

    pub fn add_stall(&mut self, outcome: &Outcome) {
        let stall_cycles = u64::from(outcome.stall_cycles);
        self.costs.last_mut().into_iter().for_each(|part| *source(&mut part.stalls, outcome) += stall_cycles);
    }

    pub fn add_mispredicted(&mut self, cycles: u64) {
        self.costs.last_mut().into_iter().for_each(|part| part.stalls.mispredicted += cycles);
    }

    /// Sum over all parts.
    pub fn stalls(&self) -> StallSources {
        let mut sum = StallSources { levels: vec![0; self.levels], ..StallSources::default() };
        self.costs.iter().for_each(|part| sum += &part.stalls);
        sum
    }

    /// Returns each part, if there are several.
    pub fn several(&self) -> Vec<RecordedPart> {
        if self.costs.len() > 1 { self.costs.clone() } else { Vec::new() }
    }
}

/// Returns the sum that the stall cycles of an outcome belong to.
fn source<'a>(sums: &'a mut StallSources, outcome: &Outcome) -> &'a mut u64 {
    let levels = sums.levels.len();
    let hit_level = outcome.missed.iter().take(levels).position(Option::is_none);
    if outcome.waited_for_others() {
        return &mut sums.coherence;
    }
    if outcome.is_first_touch() {
        return &mut sums.first_touch;
    }
    match (outcome.read, hit_level) {
        (Some(BusRead::Remote), _) => &mut sums.memory_remote,
        (Some(_), _) => &mut sums.memory_local,
        (None, Some(level)) if outcome.missed[0].is_some() => &mut sums.levels[level],
        (None, _) => &mut sums.other,
    }
}
