//! The loads that missed lately, for branches that need their values.

use crate::model::engine::Access;
use crate::observer::{Effective, Outcome};
use nearmiss_record::reference::Kind;
use std::collections::VecDeque;

/// Loads that are remembered: a branch needs the value of one of the latest.
const LATEST: usize = 16;

/// The latest loads that missed, newest first.
#[derive(Clone, Debug, Default)]
pub(in crate::model) struct LatestLoads(VecDeque<(Effective, Outcome)>);

impl LatestLoads {
    #[inline]
    pub fn note(&mut self, access: &Access, missed: u8, node: u8, outcome: &Outcome) {
        if missed == 0 || !matches!(access.kind, Kind::Load | Kind::Atomic) {
            return;
        }
        if self.0.len() == LATEST {
            self.0.pop_back();
        }
        self.0.push_front((access.effective(node), *outcome));
    }

    pub fn of(&self, insn: u32) -> Option<&(Effective, Outcome)> {
        self.0.iter().find(|(load, _)| load.record.insn().0 == insn)
    }
}
