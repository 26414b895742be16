//! Lines that others bring into a cache that this machine's CPUs do not have alone: neighbours of a virtual machine.
//!
//! Nothing is known of those lines but how many come, evenly over the sets and in time. Each one goes to the front of
//! its set's order of use and stays, so that it pushes all other lines of the set back by one place. A line of this
//! machine is gone when the places before it are all taken: by its set's lines that were used later, and by what others
//! brought in since. So what is used again soon stays, however large it is, and what waits long goes, however small.

/// Bits of a count of lines.
const COUNT_BITS: u32 = 48;

/// Lines of others in the sets of one cache, and their count when its own lines were used.
pub(super) struct Neighbours {
    /// Cycles from one line of theirs to the next, in each set.
    period_cycles: u64,
    /// Lines of theirs that each set has had until now.
    come: u64,
    /// Such lines at the last use of each frame, behind the number of the recorded part.
    seen: Vec<u64>,
    /// The recorded part under way, above the bits of a count.
    part: u64,
}

impl Neighbours {
    /// `period_cycles`: 0 where nobody brings anything in.
    pub fn new(period_cycles: u64, frames: usize) -> Option<Self> {
        (period_cycles > 0).then(|| Neighbours { period_cycles, come: 0, seen: vec![0; frames], part: 0 })
    }

    /// Takes the time; CPUs are at different ones, and it never goes back.
    pub fn pass(&mut self, now_cycles: u64) {
        self.come = self.come.max(now_cycles / self.period_cycles);
    }

    /// A frame's line is used.
    #[inline]
    pub fn used(&mut self, frame: usize) {
        self.seen[frame] = self.part | self.come;
    }

    /// A part begins behind a pause of the recording.
    pub fn pause(&mut self) {
        self.part += 1 << COUNT_BITS;
    }

    /// Whether a frame's line was used since the latest pause.
    pub fn is_of_this_part(&self, frame: usize) -> bool {
        self.seen[frame] >= self.part
    }

    /// Whether others have pushed a line out of a set of so many ways, in which `later` of the own lines were used later.
    pub fn took(&self, frame: usize, later: usize, ways: usize) -> bool {
        self.come - self.seen[frame] % (1 << COUNT_BITS) + later as u64 >= ways as u64
    }
}
