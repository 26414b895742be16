//! What a store takes whose line another CPU stores to as well: two threads add to words of the same lines.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const LINE_WORDS: usize = 8;
/// Lines that the two meet on where they meet on several. Each finds half of its lines gone then: the other's latest
/// addition to a line is as likely to have come after the own one as before.
const LINES: usize = 64;
/// Additions after which a thread tells how many there were.
const ADDITIONS: u64 = 500;
/// Of these a round has so many: short, so that some rounds are not interrupted.
const BATCHES: u64 = 200;
const ROUNDS: usize = 9;
const TAKES: usize = 3;
const PATIENCE: Duration = Duration::from_secs(2);

/// What a store to a contended line takes longer for the other CPU's sake, several takes of each: where all stores are to one
/// line, and where they are to several. `pin` puts the first or the second thread onto its CPU.
///
/// A hypervisor moves CPUs nearer and farther within seconds (27 and 180 nanoseconds for one line passed on, on one virtual
/// machine), so that takes of one moment agree and say little: they are to be spread over a calibration.
pub fn store_nanoseconds(pin: impl Fn(usize) -> bool + Sync) -> [Vec<f64>; 2] {
    let longer = |lines| beside(&pin, lines).map(|(both, alone)| (both - alone).max(0.0));
    let takes = |lines, lost: f64| (0..TAKES).filter_map(|_| longer(lines)).map(|each| each * lost).collect();
    [takes(1, 1.0), takes(LINES, 2.0)]
}

/// Nanoseconds of an addition while both threads add, and while one does.
///
/// The line may stay with one thread for long, so that all additions of both count.
fn beside(pin: &(impl Fn(usize) -> bool + Sync), lines: usize) -> Option<(f64, f64)> {
    let words: Vec<AtomicU64> = (0..(lines + 1) * LINE_WORDS).map(|_| AtomicU64::new(0)).collect();
    // Whole lines, wherever the vector begins.
    let skipped = words.as_ptr().align_offset(64) / size_of::<AtomicU64>();
    let words = &words[skipped..skipped + lines * LINE_WORDS];
    let (others, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let count = || others.load(Ordering::Relaxed);
    std::thread::scope(|scope| {
        let pinned = pin(0);
        let mut own = Adder { words, state: 0x9e37_79b9_7f4a_7c15 };
        let alone = own.nanoseconds(count);
        let partner = scope.spawn(|| {
            let pinned = pin(1);
            let mut own = Adder { words, state: 0xbf58_476d_1ce4_e5b9 };
            while pinned && !stop.load(Ordering::Relaxed) {
                own.adds();
                others.fetch_add(ADDITIONS, Ordering::Relaxed);
            }
            pinned
        });
        let waiting = Instant::now();
        while count() == 0 && waiting.elapsed() < PATIENCE && !partner.is_finished() {
            std::thread::yield_now();
        }
        let both = 2.0 * own.nanoseconds(count);
        stop.store(true, Ordering::Relaxed);
        (partner.join().unwrap_or(false) && pinned).then_some((both, alone))
    })
}

/// A thread that adds to words chosen at random. With a word of its own on each line, a thread and its neighbour fall into
/// step, now this way and now that: such additions took 4 or 7 nanoseconds on one line, 10 or 25 on many.
struct Adder<'a> {
    words: &'a [AtomicU64],
    state: u64,
}

impl Adder<'_> {
    fn adds(&mut self) {
        let lines = self.words.len() / LINE_WORDS;
        for _ in 0..ADDITIONS {
            self.state ^= self.state << 13;
            self.state ^= self.state >> 7;
            self.state ^= self.state << 17;
            let line = self.state as usize % lines;
            let word = &self.words[line * LINE_WORDS + (self.state >> 32) as usize % LINE_WORDS];
            // Not an atomic addition: plain loads and stores are what is measured.
            word.store(word.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
    }

    /// Nanoseconds by additions, those of others included: the median of some rounds.
    fn nanoseconds(&mut self, others: impl Fn() -> u64) -> f64 {
        let mut takes = [0.0; ROUNDS].map(|_: f64| {
            let (started, before) = (Instant::now(), others());
            (0..BATCHES).for_each(|_| self.adds());
            started.elapsed().as_secs_f64() * 1e9 / (BATCHES * ADDITIONS + others() - before) as f64
        });
        takes.sort_by(f64::total_cmp);
        takes[ROUNDS / 2]
    }
}
