//! A fully associative LRU cache that holds no data: it separates conflict misses from the others.
//!
//! Requests are written one after another into a ring. A line is at the place of its last request, and a bit a place
//! marks those that count no more. So a request writes next to the one before it and sets one bit, where a list would
//! visit two neighbours, and the oldest line is found by scanning bits. When the ring is full, lines that count are
//! written again at its head, in order.

/// No line.
pub(crate) const NONE: u32 = u32::MAX;

/// Places of the smallest ring, log₂: one word of bits.
const LEAST_LOG2: u32 = 6;
/// Places a line of capacity: the more, the rarer are lines written again.
const SPARE: usize = 4;

/// Time of a line's last request, 0: it is not there. Times grow, also where a line is written again, until there are
/// no more of them.
pub(crate) type Time = u64;

/// Bits of a time: a line's history keeps it in a word with the line's standing and a frame or an instruction.
pub(crate) const TIME_BITS: u32 = 33;
/// Times of requests end before this one.
const TIMES: Time = 1 << TIME_BITS;

/// Lines by time of their last request. A line's owner keeps its time and calls [`Shadow::holds`]: a line that goes
/// sends no notice, which spares a visit to its history.
#[derive(Clone, Debug)]
pub(crate) struct Shadow {
    /// Line by place, a time's lower bits.
    lines: Vec<u32>,
    /// A bit a place; clear before the oldest and from the next on.
    stale: Vec<u64>,
    capacity: usize,
    live: usize,
    /// Time of the next request.
    next: Time,
    /// All lines requested before are gone.
    oldest: Time,
    /// No request before this time finds no place, or no time.
    full_at: Time,
    newest_line: u32,
    /// From here on, so many times might not be left as writing all lines again takes.
    last: Time,
}

impl Shadow {
    pub fn new(capacity: usize) -> Self {
        Shadow {
            lines: vec![NONE; 1 << LEAST_LOG2],
            stale: vec![0; 1],
            capacity,
            live: 0,
            next: 1,
            oldest: 1,
            full_at: 1 + (1 << LEAST_LOG2),
            newest_line: NONE,
            last: TIMES - 1 - capacity as Time,
        }
    }

    #[inline]
    fn place(&self, time: Time) -> usize {
        time as usize & (self.lines.len() - 1)
    }

    /// Whether a line with its last request at `time` still is there.
    #[inline]
    pub fn holds(&self, time: Time) -> bool {
        time >= self.oldest
    }

    /// Whether the latest request was for `line`.
    #[inline]
    pub fn is_newest(&self, line: u32) -> bool {
        self.newest_line == line
    }

    /// Whether the next request must wait for [`Shadow::tidy`].
    #[inline]
    pub fn is_full(&mut self) -> bool {
        self.next >= self.full_at && self.has_become_full()
    }

    #[cold]
    fn has_become_full(&mut self) -> bool {
        self.full_at = self.last.min(self.oldest + self.lines.len() as u64);
        self.next >= self.full_at
    }

    /// Whether [`Shadow::tidy`] will begin with the first time again: all earlier times must be forgotten.
    pub fn begins_anew(&self) -> bool {
        self.next >= self.last
    }

    /// A line was requested, which was before at `time` and is taken in if it is not there any more, in the place of
    /// the oldest if there are too many. Whether it was there, and its new time. Not while the ring is full.
    #[inline(always)]
    pub fn request(&mut self, time: Time, line: u32) -> (bool, Time) {
        let there = self.holds(time);
        if there {
            self.mark_stale(time);
        } else if self.live == self.capacity {
            self.drop_oldest();
        } else {
            self.live += 1;
        }
        (there, self.write(line))
    }

    #[inline(always)]
    fn write(&mut self, line: u32) -> Time {
        let (time, place) = (self.next, self.place(self.next));
        self.next += 1;
        self.newest_line = line;
        self.lines[place] = line;
        time
    }

    #[inline(always)]
    fn mark_stale(&mut self, time: Time) {
        let place = self.place(time);
        self.stale[place >> 6] |= 1 << (place & 63);
    }

    #[inline(always)]
    fn drop_oldest(&mut self) {
        let mut time = self.oldest;
        loop {
            let place = self.place(time);
            let word = &mut self.stale[place >> 6];
            let stale = (*word >> (place & 63)).trailing_ones();
            *word &= word.wrapping_add(1 << (place & 63));
            if stale < 64 - (place as u32 & 63) {
                self.oldest = time + u64::from(stale) + 1;
                return;
            }
            time += 64 - (place as u64 & 63);
        }
    }

    /// The line of `time` was taken away.
    pub fn remove(&mut self, time: Time) {
        self.mark_stale(time);
        self.live -= 1;
        self.newest_line = NONE;
    }

    /// Makes room in a full ring, in a larger one if lines have become many. Passes every line's new time to `sink`.
    #[cold]
    pub fn tidy(&mut self, mut sink: impl FnMut(u32, Time)) {
        let there = (self.oldest..self.next)
            .map(|time| self.place(time))
            .filter(|place| self.stale[place >> 6] >> (place & 63) & 1 == 0);
        let kept: Vec<u32> = there.map(|place| self.lines[place]).collect();
        let most = (self.capacity * SPARE).next_power_of_two().max(self.lines.len());
        let places = (kept.len().max(1) * SPARE).next_power_of_two().clamp(self.lines.len(), most);
        self.lines.resize(places, NONE);
        self.stale.clear();
        self.stale.resize(places >> LEAST_LOG2, 0);
        if self.begins_anew() {
            self.next = 1;
        }
        self.oldest = self.next;
        self.full_at = self.oldest;
        for line in kept {
            let time = self.write(line);
            sink(line, time);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_unused_longest_goes_and_a_hole_is_filled_first() {
        let mut shadow = Shadow::new(3);
        let insert = |shadow: &mut Shadow, line| shadow.request(0, line).1;
        let a = insert(&mut shadow, 10);
        let b = insert(&mut shadow, 11);
        let c = insert(&mut shadow, 12);
        assert!(shadow.holds(a) && shadow.holds(b) && shadow.holds(c));
        let (there, a) = shadow.request(a, 10);
        assert!(there);
        let d = insert(&mut shadow, 13);
        assert!(!shadow.holds(b) && shadow.holds(c), "11 is the oldest: 10 was touched");
        shadow.remove(a);
        let e = insert(&mut shadow, 14);
        assert!(shadow.holds(c) && shadow.holds(d) && shadow.holds(e), "the hole 10 left");
        insert(&mut shadow, 15);
        assert!(!shadow.holds(c) && shadow.holds(d));
        assert!(!shadow.holds(0));
    }

    #[test]
    fn lines_written_again_keep_their_order() {
        let (mut shadow, mut list) = (Shadow::new(20), Vec::new());
        shadow.last = 1000;
        let mut times = [0; 64];
        let mut random = 1u64;
        for _ in 0..10_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let line = (random >> 59) as u32;
            if shadow.is_full() {
                if shadow.begins_anew() {
                    times = [0; 64];
                }
                shadow.tidy(|line, time| times[line as usize] = time);
            }
            let there = list.iter().position(|l| *l == line);
            assert_eq!(shadow.holds(times[line as usize]), there.is_some());
            match there {
                Some(at) => drop(list.remove(at)),
                None if list.len() == 20 => drop(list.remove(0)),
                None => {}
            }
            list.push(line);
            times[line as usize] = shadow.request(times[line as usize], line).1;
        }
    }
}
