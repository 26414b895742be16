//! Latest stores of a core to lines that it has lost to other CPUs.
//!
//! A core that seldom loses a line may use it all the time: the other CPU waits for each line that it takes, so that it
//! takes few. How far apart the uses of such a line lie is seen by the stores that hit, too.

/// Lines with a record of their latest stores.
const REMEMBERED: usize = 1 << 8;

/// Instructions before the latest store to a line, and before the one ahead of it.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    line: u64,
    latest: u64,
    before: u64,
}

/// Latest stores by the line's number.
#[derive(Clone, Debug)]
pub(super) struct Uses {
    of: Vec<Use>,
}

impl Default for Uses {
    fn default() -> Self {
        Uses { of: vec![Use { line: u64::MAX, ..Use::default() }; REMEMBERED] }
    }
}

impl Uses {
    /// A store to this line is put behind the others, be it a hit or not.
    #[inline]
    pub fn store(&mut self, line: u64, instructions: u64) {
        let known = &mut self.of[line as usize % REMEMBERED];
        if known.line == line && known.latest != instructions {
            (known.before, known.latest) = (known.latest, instructions);
        }
    }

    /// The core loses this line: from now on its stores count.
    pub fn loses(&mut self, line: u64, instructions: u64) {
        let known = &mut self.of[line as usize % REMEMBERED];
        if known.line != line {
            *known = Use { line, latest: instructions, before: 0 };
        }
    }

    /// Returns the instructions before the latest store to a line ahead of an access to it; 0: there was none.
    pub fn before(&self, line: u64, instructions: u64) -> u64 {
        match self.of[line as usize % REMEMBERED] {
            known if known.line != line => 0,
            known if known.latest == instructions => known.before,
            known => known.latest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Uses;

    #[test]
    fn stores_that_hit_count_from_the_first_loss_on() {
        let mut uses = Uses::default();
        uses.store(7, 10);
        assert_eq!(uses.before(7, 20), 0, "not lost yet");
        uses.loses(7, 20);
        [30, 40, 40].into_iter().for_each(|at| uses.store(7, at));
        assert_eq!([uses.before(7, 50), uses.before(7, 40)], [40, 30], "an access, and the latest store itself");
        uses.loses(7 + 256, 60);
        assert_eq!([uses.before(7, 70), uses.before(7 + 256, 70)], [0, 60], "another line took its place");
    }
}
