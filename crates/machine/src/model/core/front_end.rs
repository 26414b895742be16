//! Distance that the front end of a core is ahead: it follows the predicted branches, and requests the lines of the
//! code before the core needs them (Reinman, Calder and Austin, "Fetch directed instruction prefetching", MICRO 1999).

use super::Ticks;
use std::collections::VecDeque;

/// The front end of one core. A mispredicted branch takes its lead, as a wait for code does.
#[derive(Clone, Debug)]
pub(super) struct FrontEnd {
    ahead_instructions: u64,
    /// Waits for code, each with the instruction before which it was, as far as the front end is ahead.
    waits: VecDeque<(u64, Ticks)>,
    /// Sum of those.
    waited: Ticks,
}

impl FrontEnd {
    pub fn new(ahead_instructions: u32) -> Self {
        FrontEnd { ahead_instructions: ahead_instructions.into(), waits: VecDeque::new(), waited: 0 }
    }

    /// Returns when the front end came to an instruction that the core `begins` then: when the core was so many
    /// instructions behind. A wait for code within these counts in full, since the front end went on meanwhile.
    pub fn reached(&mut self, instruction: u64, begins: Ticks, pace: Ticks) -> Ticks {
        while let Some((_, wait)) = self.waits.pop_front_if(|(at, _)| *at + self.ahead_instructions <= instruction) {
            self.waited -= wait;
        }
        begins.saturating_sub(pace.saturating_mul(self.ahead_instructions)).saturating_sub(self.waited)
    }

    /// The core waited before this instruction.
    pub fn waits(&mut self, instruction: u64, wait: Ticks) {
        if wait > 0 {
            self.waits.push_back((instruction, wait));
            self.waited += wait;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_front_end_is_so_many_instructions_ahead() {
        let mut front_end = FrontEnd::new(50);
        assert_eq!(front_end.reached(1000, 1000, 1), 950);
        assert_eq!(front_end.reached(1000, 30, 1), 0, "not before the beginning");
        front_end.waits(1000, 250);
        assert_eq!(front_end.reached(1010, 1260, 1), 960, "the core waited meanwhile");
        assert_eq!(front_end.reached(1050, 1300, 1), 1250, "the front end has come no further than the core then");
        assert_eq!(FrontEnd::new(0).reached(7, 7, 1), 7);
    }

    proptest! {
        /// Instruction by instruction: the time at which the core begins each.
        #[test]
        fn the_front_end_comes_when_the_core_is_so_far_behind(
            waits in proptest::collection::vec(0u64..40, 200), ahead in 0u32..60
        ) {
            let mut front_end = FrontEnd::new(ahead);
            let (mut now, mut arrives) = (0, Vec::new());
            for (n, wait) in waits.iter().enumerate() {
                arrives.push(now);
                let expected = match n.checked_sub(ahead as usize) {
                    Some(behind) if ahead > 0 => arrives[behind] + waits[behind],
                    Some(_) => now,
                    None => 0,
                };
                prop_assert_eq!(front_end.reached(n as u64, now, 1), expected);
                front_end.waits(n as u64, *wait);
                now += wait + 1;
            }
        }
    }
}
