//! Time that a CPU's instructions take while every access hits.
//!
//! Instructions are counted at the next record. Those of a loop without an access come with the record of the loop around
//! it, and take the time of the inner loop: more of them came than that record's loop has.

use crate::model::core::Ticks;
use nearmiss_code::Pace;

/// Instructions of the latest code that an average looks back on.
const LATELY: u64 = 512;

/// Pace of a CPU at its place in the code.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::model) struct Pacing {
    /// Ticks of an instruction here.
    here: Ticks,
    /// Ticks of an instruction of an inner loop without an access, and the instructions beyond which one has run; 0: it
    /// has none.
    inner: Ticks,
    turn: u64,
    /// Average ticks of an instruction.
    average: Ticks,
}

impl Pacing {
    /// Paces without known code.
    pub fn new(here: Ticks) -> Self {
        Pacing { here, average: here, ..Pacing::default() }
    }

    /// The CPU gets to code of this pace.
    #[inline(always)]
    pub fn reaches(&mut self, pace: Pace) {
        self.here = pace.cycles.into();
        (self.inner, self.turn) = pace.inner.map_or((0, u64::MAX), |inner| (inner.into(), pace.instructions.into()));
    }

    /// Returns the ticks of so many instructions up to the latest record.
    #[inline(always)]
    pub fn executes(&mut self, instructions: u64) -> Ticks {
        if self.inner != 0 {
            return self.with_inner_loops(instructions);
        }
        self.averages(instructions, self.here);
        instructions.saturating_mul(self.here)
    }

    #[cold]
    fn with_inner_loops(&mut self, instructions: u64) -> Ticks {
        let own = instructions.min(self.turn);
        let ticks = own.saturating_mul(self.here).saturating_add((instructions - own).saturating_mul(self.inner));
        self.averages(instructions, ticks / instructions.max(1));
        ticks
    }

    /// So many instructions of this pace were executed.
    #[inline(always)]
    fn averages(&mut self, instructions: u64, latest: Ticks) {
        let counted = instructions.min(LATELY);
        self.average = (self.average * (LATELY - counted) + latest * counted) / LATELY;
    }

    /// Returns the ticks of an instruction of late: what the core runs next is alike, calls of functions included.
    pub fn lately(&self) -> Ticks {
        self.average
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOP: Pace = Pace { cycles: 10, instructions: 20, inner: None };

    #[test]
    fn instructions_beyond_a_turn_ran_in_the_inner_loop() {
        let mut pacing = Pacing::new(7);
        assert_eq!(pacing.executes(3), 21);
        pacing.reaches(LOOP);
        assert_eq!((pacing.executes(600), pacing.lately()), (6000, 10));
        pacing.reaches(Pace { inner: Some(50), ..LOOP });
        assert_eq!([20, 21, 620].map(|count| pacing.executes(count)), [200, 250, 200 + 600 * 50]);
        assert_eq!(pacing.lately(), (200 + 600 * 50) / 620);
        pacing.reaches(LOOP);
        assert_eq!((pacing.executes(600), pacing.lately()), (6000, 10));
    }

    #[test]
    fn code_of_two_paces_in_turn_has_their_average() {
        let mut pacing = Pacing::new(0);
        for _ in 0..300 {
            pacing.reaches(Pace { cycles: 30_000, ..LOOP });
            pacing.executes(10);
            pacing.reaches(Pace { cycles: 10_000, ..LOOP });
            pacing.executes(10);
        }
        assert!(pacing.lately().abs_diff(20_000) < 300, "{}", pacing.lately());
    }

    #[test]
    fn an_average_looks_back_on_a_window_of_instructions() {
        let mut pacing = Pacing::new(0);
        pacing.reaches(Pace { inner: Some(100), ..LOOP });
        pacing.executes(512);
        let before = pacing.lately();
        pacing.executes(20);
        assert_eq!(pacing.lately(), (before * 492 + 10 * 20) / 512);
    }
}
