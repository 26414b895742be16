//! Work done ahead of a branch that was predicted wrongly, on the wrong way.
//!
//! The core goes on along the predicted way until the branch is decided. What it loads there is at hand afterwards, if the
//! right way loads it as well: behind the end of a condition both ways meet (Mutlu and others, "An analysis of the
//! performance impact of wrong-path memory references on out-of-order and runahead execution processors", IEEE TC 54(12),
//! 2005).

use super::Ticks;
use nearmiss_code::Branch;
use std::collections::VecDeque;

/// Bytes of a condition's arm, at most: behind a longer one the core does not come to the end before the branch is
/// decided.
const ARM_BYTES: u64 = 128;

/// A branch that was predicted wrongly, and the wait that it caused.
#[derive(Clone, Copy, Debug)]
struct Late {
    instructions: u64,
    wait: Ticks,
    branch: Branch,
    taken: bool,
}

/// The branches of the latest window of instructions.
#[derive(Clone, Debug)]
pub(super) struct WrongPath {
    window: u64,
    late: VecDeque<Late>,
}

impl WrongPath {
    pub fn new(window: u64) -> Self {
        WrongPath { window, late: VecDeque::new() }
    }

    /// The core waited behind a branch.
    pub fn waited(&mut self, instructions: u64, wait: Ticks, branch: Branch, taken: bool) {
        self.forget(instructions);
        self.late.push_back(Late { instructions, wait, branch, taken });
    }

    fn forget(&mut self, instructions: u64) {
        while self.late.pop_front_if(|late| late.instructions + self.window <= instructions).is_some() {}
    }

    /// Returns by how much sooner a load began on the wrong way of the branches before it. `at`: its address; `through`:
    /// addresses of the instructions that compute the address that it loads from, ascending.
    pub fn sooner(&mut self, instructions: u64, at: u64, through: &[u64]) -> Ticks {
        if self.late.is_empty() {
            return 0;
        }
        self.forget(instructions);
        let latest = self.late.iter().rev();
        latest.take_while(|late| late.has_begun(at, through)).map(|late| late.wait).sum()
    }
}

impl Late {
    /// Whether the wrong way came to a load as well.
    fn has_begun(&self, at: u64, through: &[u64]) -> bool {
        let Branch { at: branch, target: Some(target) } = self.branch else { return false };
        if target <= branch {
            // A loop went on, and the core was beyond it; or the loop ended, and the core was in its next turn.
            return self.taken;
        }
        let in_arm = |address: u64| address > branch && address < target;
        target - branch <= ARM_BYTES && !in_arm(at) && !through.iter().any(|address| in_arm(*address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sum of the waits that loads at an address are ahead of, behind `je 0x120` at 0x100, ten instructions further on.
    fn sooner(branch: Branch, taken: bool, at: u64, through: &[u64]) -> Ticks {
        let mut path = WrongPath::new(100);
        path.waited(50, 40, branch, taken);
        path.sooner(60, at, through)
    }

    #[test]
    fn loads_behind_a_condition_begin_on_either_way() {
        let condition = Branch { at: 0x100, target: Some(0x120) };
        assert_eq!(sooner(condition, true, 0x130, &[0x90, 0x140]), 40);
        assert_eq!(sooner(condition, false, 0x110, &[]), 0, "a load in the arm");
        assert_eq!(sooner(condition, true, 0x130, &[0x110]), 0, "an address from the arm");
        assert_eq!(sooner(Branch { target: Some(0x1000), ..condition }, true, 0x1010, &[]), 0, "a long arm");
        assert_eq!(sooner(Branch { target: None, ..condition }, true, 0x130, &[]), 0, "a computed target");
    }

    #[test]
    fn a_loop_that_was_left_too_soon_began_what_follows() {
        let turn = Branch { at: 0x100, target: Some(0x80) };
        assert_eq!([true, false].map(|taken| sooner(turn, taken, 0x200, &[])), [40, 0]);
    }

    #[test]
    fn branches_add_up_within_the_window() {
        let (mut path, condition) = (WrongPath::new(100), Branch { at: 0x100, target: Some(0x120) });
        for (at, wait) in [(10, 7), (50, 40), (90, 3)] {
            path.waited(at, wait, condition, true);
        }
        assert_eq!(
            [path.sooner(100, 0x130, &[]), path.sooner(110, 0x130, &[]), path.sooner(300, 0x130, &[])],
            [50, 43, 0]
        );
    }
}
