//! Branches that were predicted wrongly.

use super::Ticks;
use super::interval::{Interval, Waiting};
use super::values::COUNTED_TOGETHER;
use nearmiss_code::{Branch, Origin};
use nearmiss_record::reference::Kind;

/// A branch that was predicted wrongly.
#[derive(Clone, Copy, Debug)]
pub(in crate::model) struct Decided<'a> {
    /// Instructions that the CPU executed, the branch included.
    pub instructions: u64,
    /// The CPU's clock, all that was charged included.
    pub clock: Ticks,
    /// Origin of what decides the way, if the code is known.
    pub origin: Option<&'a Origin>,
    /// Place of the branch, if the code is known.
    pub branch: Option<Branch>,
    /// The branch did not go on behind itself.
    pub taken: bool,
}

/// Waits behind a branch that was predicted wrongly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::model) struct Redirected {
    /// The load whose value decides it.
    pub load: Option<u32>,
    /// Cycles until the value is there.
    pub value_cycles: u32,
    /// Cycles from then to the first instruction of its way.
    pub redirect_cycles: u32,
}

impl Interval {
    /// Returns the core's wait behind a branch that was predicted wrongly, in whole cycles: for the value that decides it,
    /// with the instruction that loads the value, and until the first instruction of its way begins.
    ///
    /// Nothing behind the branch has begun, so that all of it waits at once, but for what the core would have waited for
    /// an older load anyway.
    pub fn mispredicts(&mut self, branch: &Decided<'_>) -> Redirected {
        let ahead = self.ahead(branch.instructions);
        let begins = branch.clock - ahead.min(branch.clock);
        let (load, value) = self.decided_by(branch);
        let for_value = value.saturating_sub(begins);
        let wait = self.beyond_what_was_charged(for_value + self.redirects);
        self.front_end.waits(branch.instructions, wait);
        if let Some(place) = branch.branch {
            self.wrong_path.waited(branch.instructions, wait, place, branch.taken);
        }
        let redirect_cycles = self.whole_cycles(wait.min(self.redirects));
        Redirected { load, value_cycles: self.whole_cycles(wait.saturating_sub(self.redirects)), redirect_cycles }
    }

    /// Returns by how much sooner a load began on the wrong way of a branch.
    pub(super) fn sooner(&mut self, what: &Waiting<'_>) -> Ticks {
        match (what.kind, what.at, what.origin) {
            (Kind::Load, Some(at), Some(origin)) => self.wrong_path.sooner(what.instructions, at, &origin.through),
            _ => 0,
        }
    }

    /// The load with the value that decides a branch, if one was under way, and when the value is there.
    fn decided_by(&self, branch: &Decided<'_>) -> (Option<u32>, Ticks) {
        let Some(origin) = branch.origin else { return (None, 0) };
        let known = origin.loads.iter().zip(&origin.distances).filter_map(|(load, distance)| {
            let counted = u64::from(distance.saturating_sub(COUNTED_TOGETHER));
            let values = self.values.of(load.0)?;
            let value = values.before(branch.instructions.saturating_sub(counted));
            (value.ready > 0).then_some((value.ready, load.0))
        });
        known.max().map_or((None, 0), |(ready, load)| (Some(load), ready))
    }
}

#[cfg(test)]
#[path = "branch_tests.rs"]
mod tests;
