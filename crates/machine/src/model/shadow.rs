//! A fully associative LRU cache that holds no data: what conflict misses are told apart by.
//!
//! Requests are written one after another into a ring; a line is where it was requested last, and a bit a place says
//! which places still count. So a request writes where the one before it wrote and clears one bit, where a list would
//! visit two neighbours, and the oldest line is found by scanning bits. When the ring is full, lines that count are
//! written again at its head, in order.

use super::history::TIMES;

/// No line.
pub(crate) const NONE: u32 = u32::MAX;

/// Places of the smallest ring, log₂: one word of bits.
const LEAST_LOG2: u32 = 6;
/// Places a line of capacity: the more, the rarer are lines written again.
const SPARE: usize = 4;

/// When a line was requested last, 0: it is not there. Times grow, also where a line is written again, until there are
/// no more of them.
pub(crate) type Time = u64;

/// Lines by time of their last request. Who owns a line keeps its time and asks [`Shadow::holds`]: a line that goes
/// is not told, which spares a visit to its history.
#[derive(Clone, Debug)]
pub(crate) struct Shadow {
    /// By place, a time's lower bits: the line.
    lines: Vec<u32>,
    /// A bit a place.
    counts: Vec<u64>,
    capacity: usize,
    live: usize,
    /// Time of the next request.
    next: Time,
    /// All lines requested before are gone.
    oldest: Time,
    /// Time of the request that finds no place, or no time.
    full_at: Time,
    newest_line: u32,
    /// From here on, so many times might not be left as writing all lines again takes.
    last: Time,
}

impl Shadow {
    pub fn new(capacity: usize) -> Self {
        Shadow {
            lines: vec![NONE; 1 << LEAST_LOG2],
            counts: vec![0; 1],
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

    /// Whether a line whose last request was at `time` still is there.
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
    pub fn is_full(&self) -> bool {
        self.next >= self.full_at
    }

    /// Whether [`Shadow::tidy`] will begin with the first time again: all that were told before must be forgotten.
    pub fn begins_anew(&self) -> bool {
        self.next >= self.last
    }

    /// A line that is there was requested again; returns its new time. Not while the ring is full.
    #[inline]
    pub fn touch(&mut self, time: Time, line: u32) -> Time {
        let place = self.place(time);
        self.counts[place >> 6] &= !(1 << (place & 63));
        self.write(line)
    }

    /// Takes in a line that is not there, in the place of the oldest if it is full. Returns its time. Not while the
    /// ring is full.
    #[inline]
    pub fn insert(&mut self, line: u32) -> Time {
        if self.live == self.capacity {
            self.drop_oldest();
        } else {
            self.live += 1;
        }
        self.write(line)
    }

    #[inline]
    fn write(&mut self, line: u32) -> Time {
        let (time, place) = (self.next, self.place(self.next));
        self.next += 1;
        self.newest_line = line;
        self.lines[place] = line;
        self.counts[place >> 6] |= 1 << (place & 63);
        time
    }

    #[inline]
    fn begin_at(&mut self, oldest: Time) {
        self.oldest = oldest;
        self.full_at = self.last.min(oldest + self.lines.len() as u64);
    }

    #[inline]
    fn drop_oldest(&mut self) {
        let mut time = self.oldest;
        loop {
            let place = self.place(time);
            let word = &mut self.counts[place >> 6];
            let from = *word >> (place & 63);
            if from != 0 {
                let first = from.trailing_zeros();
                *word &= !(1 << (place as u32 % 64 + first));
                return self.begin_at(time + u64::from(first) + 1);
            }
            time += 64 - (place as u64 & 63);
        }
    }

    /// The line of `time` was taken away.
    pub fn remove(&mut self, time: Time) {
        let place = self.place(time);
        self.counts[place >> 6] &= !(1 << (place & 63));
        self.live -= 1;
        self.newest_line = NONE;
    }

    /// Makes room in a full ring, in a larger one if lines have become many. Tells every line's new time.
    #[cold]
    pub fn tidy(&mut self, mut tell: impl FnMut(u32, Time)) {
        let there = (self.oldest..self.next)
            .map(|time| self.place(time))
            .filter(|place| self.counts[place >> 6] >> (place & 63) & 1 != 0);
        let kept: Vec<u32> = there.map(|place| self.lines[place]).collect();
        let most = (self.capacity * SPARE).next_power_of_two().max(self.lines.len());
        let places = (kept.len().max(1) * SPARE).next_power_of_two().clamp(self.lines.len(), most);
        self.lines.resize(places, NONE);
        self.counts.clear();
        self.counts.resize(places >> LEAST_LOG2, 0);
        if self.begins_anew() {
            self.next = 1;
        }
        self.begin_at(self.next);
        for line in kept {
            let time = self.write(line);
            tell(line, time);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_unused_longest_goes_and_a_hole_is_filled_first() {
        let mut shadow = Shadow::new(3);
        let a = shadow.insert(10);
        let b = shadow.insert(11);
        let c = shadow.insert(12);
        assert!(shadow.holds(a) && shadow.holds(b) && shadow.holds(c));
        let a = shadow.touch(a, 10);
        let d = shadow.insert(13);
        assert!(!shadow.holds(b) && shadow.holds(c), "11 is the oldest: 10 was touched");
        shadow.remove(a);
        let e = shadow.insert(14);
        assert!(shadow.holds(c) && shadow.holds(d) && shadow.holds(e), "the hole 10 left");
        shadow.insert(15);
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
            let time = times[line as usize];
            times[line as usize] = if there.is_some() { shadow.touch(time, line) } else { shadow.insert(line) };
        }
    }
}
