//! What a store takes whose line another CPU stores to as well: two threads each add to words of their own on the same lines.

use super::settle::{Settled, settled};
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
const PATIENCE: Duration = Duration::from_secs(2);

/// What a store to a contended line takes longer for the other CPU's sake: where all are to one line, and where they are to
/// several. `pin` puts the first or the second thread onto its CPU.
pub fn store_nanoseconds(pin: impl Fn(usize) -> bool + Sync) -> [Option<Settled>; 2] {
    let longer = |lines| beside(&pin, lines).map(|(both, alone)| (both - alone).max(0.0));
    [settled(|| longer(1)), settled(|| longer(LINES).map(|each| 2.0 * each))]
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
        let mut own = Adder { words, offset: 0, state: 0x9e37_79b9_7f4a_7c15 };
        let alone = own.nanoseconds(&count);
        let partner = scope.spawn(|| {
            let pinned = pin(1);
            let mut own = Adder { words, offset: LINE_WORDS / 2, state: 0xbf58_476d_1ce4_e5b9 };
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
        let both = 2.0 * own.nanoseconds(&count);
        stop.store(true, Ordering::Relaxed);
        (partner.join().unwrap_or(false) && pinned).then_some((both, alone))
    })
}

/// A thread that adds to a word of lines chosen at random.
struct Adder<'a> {
    words: &'a [AtomicU64],
    offset: usize,
    state: u64,
}

impl Adder<'_> {
    fn adds(&mut self) {
        let lines = self.words.len() / LINE_WORDS;
        for _ in 0..ADDITIONS {
            self.state ^= self.state << 13;
            self.state ^= self.state >> 7;
            self.state ^= self.state << 17;
            let word = &self.words[self.state as usize % lines * LINE_WORDS + self.offset];
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
