//! Branches that were predicted wrongly.

use crate::model::core::{Decided, Redirected};
use crate::model::engine::{Access, Engine};
use crate::model::stream::replay::Replay;
use crate::observer::{Effective, Mispredicted, Observer, Outcome};
use nearmiss_record::reference::Kind;
use nearmiss_record::units::InsnId;
use std::collections::VecDeque;

/// Loads that are remembered: a branch needs the value of one of the latest.
const LATEST: usize = 16;

/// The latest loads that missed, newest first.
#[derive(Clone, Debug, Default)]
pub(in crate::model) struct LatestLoads(VecDeque<(Effective, Outcome)>);

impl LatestLoads {
    #[inline]
    pub fn note(&mut self, access: &Access, node: u8, outcome: &Outcome) {
        if !matches!(access.kind, Kind::Load | Kind::Atomic) {
            return;
        }
        if self.0.len() == LATEST {
            self.0.pop_back();
        }
        self.0.push_front((access.effective(node), *outcome));
    }

    fn of(&self, insn: u32) -> Option<&(Effective, Outcome)> {
        self.0.iter().find(|(load, _)| load.record.insn().0 == insn)
    }
}

/// A branch that was predicted wrongly, and the way that it went.
#[derive(Clone, Copy, Debug)]
pub(in crate::model) struct Way {
    pub insn: InsnId,
    pub kernel: bool,
    pub taken: bool,
}

impl<E: Engine, O: Observer> Replay<E, O> {
    /// Counts the instructions up to a branch that was predicted wrongly, and the waits behind it.
    pub(in crate::model) fn mispredicts(&mut self, cpu: usize, way: Way, instructions: u64) {
        let Way { insn, kernel, taken } = way;
        let is_modelled = !(self.only_user && kernel);
        let state = &mut self.cpus[cpu];
        state.in_kernel = kernel;
        let new = state.instructions.ahead(instructions);
        self.count_instructions(cpu, new, is_modelled);
        if !is_modelled {
            return;
        }
        let state = &mut self.cpus[cpu];
        let place = self.codes.as_ref().and_then(|codes| codes.branch(insn));
        let origin = self.codes.as_mut().and_then(|codes| codes.decision(insn));
        let (instructions, clock) = (state.tally.instructions, state.clock());
        let branch = Decided { instructions, clock, origin, branch: place, taken };
        let Redirected { load, value_cycles, redirect_cycles } = state.core.mispredicts(&branch);
        let load = load.and_then(|load| state.latest_loads.of(load));
        let (for_load, for_branch) = match load {
            Some(_) => (value_cycles, redirect_cycles),
            None => (0, value_cycles.saturating_add(redirect_cycles)),
        };
        state.tally.stall_cycles += u64::from(for_load) + u64::from(for_branch);
        if let Some((load, outcome)) = load.filter(|_| for_load > 0) {
            if outcome.is_first_touch() {
                state.tally.first_touch_cycles += u64::from(for_load);
            }
            self.observer.waited_for(load, outcome, for_load);
        }
        if for_branch > 0 {
            self.observer.redirected(&Mispredicted { cpu: cpu as u32, insn, kernel }, for_branch);
        }
    }
}
