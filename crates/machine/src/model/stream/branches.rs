//! Branches that were predicted wrongly.

use crate::model::core::{Decided, Redirected};
use crate::model::engine::Engine;
use crate::model::stream::replay::Replay;
use crate::observer::{Mispredicted, Observer};
use nearmiss_record::reference::Control;

impl<E: Engine, O: Observer> Replay<E, O> {
    /// Counts the instructions up to a branch that was predicted wrongly, and the waits behind it.
    pub(in crate::model) fn mispredicts(&mut self, cpu: usize, control: &Control<'_>) {
        let &Control::Branch { insn, kernel, taken, instructions } = control else { return };
        let branch = Mispredicted { cpu: cpu as u32, insn, kernel };
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
        let decided = Decided { instructions, clock, origin, branch: place, taken };
        let Redirected { load, value_cycles, redirect_cycles } = state.core.mispredicts(&decided);
        let load = load.and_then(|load| state.latest_loads.of(load));
        let (for_load, for_branch) = match load {
            Some(_) => (value_cycles, redirect_cycles),
            None => (0, value_cycles.saturating_add(redirect_cycles)),
        };
        state.tally.stall_cycles += u64::from(for_load) + u64::from(for_branch);
        state.tally.mispredicted_cycles += u64::from(for_branch);
        if let Some((load, outcome)) = load.filter(|_| for_load > 0) {
            if outcome.is_first_touch() {
                state.tally.first_touch_cycles += u64::from(for_load);
            }
            self.observer.waited_for(load, outcome, for_load);
        }
        if for_branch > 0 {
            self.observer.redirected(&branch, for_branch);
        }
    }
}
