//! Cost of an access to a line that another CPU writes as well: two threads use words of the same lines.

use super::additions::Additions;
use super::assembled::Assembled;
use super::chase::SEED;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const LINE_WORDS: usize = 8;
/// Lines that both threads use in the case of several lines. Each finds half of its lines gone then: the other's latest
/// addition to a line is as likely to have come after the own one as before.
const LINES: usize = 4;
/// `add qword [rdi], 1` and `mov rax, [rdi]`
const FAR_ADDITION: &[u8] = &[0x48, 0x83, 0x07, 0x01];
const FAR_LOAD: &[u8] = &[0x48, 0x8b, 0x07];
/// `lea r9, [rcx+1]`, `lea r11, [rcx+1]` and an instruction that does nothing: no one waits for another.
const BETWEEN: &[u8] = &[0x4c, 0x8d, 0x49, 0x01, 0x4c, 0x8d, 0x59, 0x01, 0x0f, 0x1f, 0x40, 0x00];
/// Times that those stand between two far accesses: 160 instructions with the loop's own.
const BETWEEN_TIMES: usize = 52;
/// Multiplications between two spaced additions, of four cycles each with what they multiply.
const MULTIPLIED: usize = 15;
/// Multiplications that begin with the accessed value.
const MULTIPLIED_FROM_IT: usize = 32;
const MULTIPLIER: u64 = 6_364_136_223_846_793_005;
/// Accesses after which a thread adds them to its count.
const COUNTED: u64 = 500;
/// Length of a window: shorter than a slice of a scheduler, so that most are interrupted by no other task, and longer
/// than a line stays with one thread that stores to it.
const WINDOW: Duration = Duration::from_micros(200);
/// Windows with both threads at work that a figure needs.
const LEAST_WINDOWS: usize = 8;
/// A window counts if no thread made so many times the accesses of one that waits as well: one had no CPU then.
const UNEVEN: u64 = 4;
/// Windows of the figures of additions.
const WINDOWS: usize = 80;
const TAKES: usize = 3;
/// Lines in play of the figures beyond additions.
const IN_PLAY: [usize; 3] = [1, 2, 4];
/// Windows of those: there are nine figures, taken at several moments.
const FEWER_WINDOWS: usize = 60;
const PATIENCE: Duration = Duration::from_secs(2);

/// Returns the extra time of an addition to a contended line due to the other CPU, several takes of each case; between
/// stores, all of its time. `pin` puts the first or the second thread onto its CPU.
///
/// A hypervisor moves CPUs nearer and farther within seconds (27 and 180 nanoseconds for one line passed on, on one
/// virtual machine). Takes of one moment therefore agree without being reliable: spread them over a calibration.
pub fn addition_nanoseconds(pin: impl Fn(usize) -> bool + Sync) -> Additions<Vec<f64>> {
    let times = |accesses, lines| (0..TAKES).filter_map(|_| beside(&pin, accesses, lines, WINDOWS)).collect::<Vec<_>>();
    let longer = |accesses, lines| {
        times(accesses, lines).into_iter().map(|(both, alone)| (both - alone).max(0.0)).collect::<Vec<_>>()
    };
    let all_of = |accesses| times(accesses, 1).into_iter().map(|(both, _)| both).collect::<Vec<_>>();
    let of_one = |access| longer([access; 2], 1);
    let far = looping(FAR_LOAD).is_some();
    Additions {
        one: of_one(Access::AddAndStore),
        // Half of the lines are found gone.
        several: longer([Access::Add; 2], LINES).into_iter().map(|each| 2.0 * each).collect(),
        lone: of_one(Access::Add),
        between_stores: all_of([Access::AddBetweenStores; 2]),
        far: if far { of_one(Access::Far(FAR_ADDITION)) } else { Vec::new() },
        far_load: if far { all_of([Access::Far(FAR_LOAD), Access::Store]) } else { Vec::new() },
        needed: of_one(Access::Needed),
        needed_load: longer([Access::NeededLoad, Access::Spaced], 1),
    }
}

/// Returns the extra time of a store, an atomic and a load on lines that another CPU writes meanwhile, each with one
/// line in play, two and four: one take of each. With several lines, half are found gone.
pub fn access_nanoseconds(pin: impl Fn(usize) -> bool + Sync) -> [[Option<f64>; 3]; 3] {
    let ways = [[Access::Store; 2], [Access::Atomic; 2], [Access::Load, Access::Store]];
    ways.map(|accesses| {
        IN_PLAY.map(|lines| {
            let (both, alone) = beside(&pin, accesses, lines, FEWER_WINDOWS)?;
            Some((both - alone).max(0.0) * if lines > 1 { 2.0 } else { 1.0 })
        })
    })
}

/// Operation of a thread on a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Load,
    Store,
    /// Plain, not atomic.
    Add,
    /// An addition, and a store to a line that the other thread does not use.
    AddAndStore,
    /// An addition, and stores to four lines that the other thread does not use.
    AddBetweenStores,
    /// This instruction, and others behind it.
    Far(&'static [u8]),
    /// An addition and a store to an own line, behind a computation.
    Spaced,
    /// An addition, and a computation that begins with the sum.
    Needed,
    /// A load, and a computation that begins with the value.
    NeededLoad,
    Atomic,
}

/// Nanoseconds of the first thread's access while both threads are at work, and while one is.
///
/// The line may stay with one thread for long, so that all accesses of both count if both do the same. A loader waits
/// for a storer, which never waits: then the own accesses count alone.
fn beside(
    pin: &(impl Fn(usize) -> bool + Sync),
    accesses: [Access; 2],
    lines: usize,
    windows: usize,
) -> Option<(f64, f64)> {
    let words: Vec<AtomicU64> = (0..(lines + 1) * LINE_WORDS).map(|_| AtomicU64::new(0)).collect();
    // Whole lines, wherever the vector begins.
    let skipped = words.as_ptr().align_offset(64);
    let words = &words[skipped..skipped + lines * LINE_WORDS];
    let (others, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let count = || others.load(Ordering::Relaxed);
    std::thread::scope(|scope| {
        let pinned = pin(0);
        let mut own = User::new(words, 0, accesses[0]);
        let alone = own.nanoseconds(LEAST_WINDOWS, Other::None);
        let partner = scope.spawn(|| {
            let pinned = pin(1);
            let mut own = User::new(words, 1, accesses[1]);
            while pinned && !stop.load(Ordering::Relaxed) {
                own.uses();
                others.fetch_add(COUNTED, Ordering::Relaxed);
            }
            pinned
        });
        let waiting = Instant::now();
        while count() == 0 && waiting.elapsed() < PATIENCE && !partner.is_finished() {
            std::thread::yield_now();
        }
        let alike = accesses[0] == accesses[1];
        let both = own.nanoseconds(windows, if alike { Other::Waits(&others) } else { Other::GoesOn(&others) });
        stop.store(true, Ordering::Relaxed);
        let each = if alike { 2.0 } else { 1.0 };
        (partner.join().unwrap_or(false) && pinned).then_some((each * both?, alone?))
    })
}

/// A thread that uses a word of its own on a single line, as programs do, and words chosen at random on several lines.
/// With a word of its own on each line, a thread and its neighbour fall into step, now this way and now that: such
/// additions to many lines took 10 or 25 nanoseconds.
struct User<'a> {
    words: &'a [AtomicU64],
    state: u64,
    access: Access,
    /// Number of the own word of a single line.
    own_word: usize,
    /// Lines that no other thread uses.
    private: Box<[Line; 4]>,
    /// Sum of the loaded values.
    loaded: u64,
    /// Loop of a far access.
    far: Option<Assembled>,
}

/// A chain of so many multiplications.
fn multiplied(state: u64, times: usize) -> u64 {
    // With a constant count the compiler makes one multiplication of them all.
    (0..std::hint::black_box(times)).fold(state, |state, _| state.wrapping_mul(MULTIPLIER) ^ 1)
}

/// A loop of a far access.
fn looping(access: &[u8]) -> Option<Assembled> {
    Assembled::looping(&[], &[access, &BETWEEN.repeat(BETWEEN_TIMES)].concat(), &[])
}

#[repr(align(64))]
#[derive(Default)]
struct Line([AtomicU64; LINE_WORDS]);

impl<'a> User<'a> {
    fn new(words: &'a [AtomicU64], thread: usize, access: Access) -> Self {
        let state = [SEED, 0xbf58_476d_1ce4_e5b9][thread];
        let far = if let Access::Far(access) = access { looping(access) } else { None };
        User { words, state, access, own_word: thread * LINE_WORDS / 2, private: Box::default(), loaded: 0, far }
    }

    fn uses(&mut self) {
        if let Some(far) = &self.far {
            let word = self.words[self.own_word].as_ptr();
            // SAFETY: the code adds to the word or reads it, each in one access, as others do through atomics; it writes
            // no other memory, and rax, r9 and r11 alone.
            return unsafe { far.run(word, COUNTED, word, word) };
        }
        let (words, access, lines) = (self.words, self.access, self.words.len() / LINE_WORDS);
        // In registers, so that an access alone stores to memory.
        let (mut state, mut loaded) = (self.state, self.loaded);
        for _ in 0..COUNTED {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let any = state as usize % lines * LINE_WORDS + (state >> 32) as usize % LINE_WORDS;
            let word = &words[if lines == 1 { self.own_word } else { any }];
            if access == Access::Spaced {
                state = multiplied(state, MULTIPLIED);
            }
            match access {
                Access::Load => loaded = word.load(Ordering::Relaxed).wrapping_add(loaded),
                Access::Store => word.store(state, Ordering::Relaxed),
                // Not an atomic addition: plain loads and stores are measured.
                Access::Add => word.store(word.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed),
                Access::AddAndStore | Access::Spaced => {
                    word.store(word.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
                    self.private[0].0[0].store(state, Ordering::Relaxed);
                }
                Access::AddBetweenStores => {
                    word.store(word.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
                    self.private.iter().for_each(|line| line.0[0].store(state, Ordering::Relaxed));
                }
                Access::Far(_) => {}
                Access::Needed => {
                    let sum = word.load(Ordering::Relaxed).wrapping_add(1);
                    word.store(sum, Ordering::Relaxed);
                    state = multiplied(state ^ sum, MULTIPLIED_FROM_IT);
                }
                Access::NeededLoad => state = multiplied(state ^ word.load(Ordering::Relaxed), MULTIPLIED_FROM_IT),
                Access::Atomic => {
                    word.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        (self.state, self.loaded) = (state, loaded);
    }

    /// Nanoseconds by access: the median of the windows in which the other thread was at work as well.
    ///
    /// On a busy machine it often has no CPU, and a line that nobody takes costs nothing.
    fn nanoseconds(&mut self, windows: usize, other: Other) -> Option<f64> {
        let mut takes: Vec<f64> = (0..windows).filter_map(|_| self.window(&other)).collect();
        std::hint::black_box(self.loaded);
        takes.sort_by(f64::total_cmp);
        takes.get(takes.len() / 2).copied().filter(|_| takes.len() >= LEAST_WINDOWS)
    }

    fn window(&mut self, other: &Other) -> Option<f64> {
        let (started, before) = (Instant::now(), other.accesses());
        let mut own = 0;
        while started.elapsed() < WINDOW {
            self.uses();
            own += COUNTED;
        }
        let (took, others) = (started.elapsed(), other.accesses() - before);
        let (at_work, counted) = match other {
            Other::None => (true, own),
            Other::Waits(_) => ((own / UNEVEN..=own * UNEVEN).contains(&others), own + others),
            Other::GoesOn(_) => (others >= own / UNEVEN, own),
        };
        at_work.then(|| took.as_secs_f64() * 1e9 / counted as f64)
    }
}

/// Thread beside the measured one, with the number of its accesses.
enum Other<'a> {
    None,
    /// Waits as the measured one does, so that its accesses count as well.
    Waits(&'a AtomicU64),
    /// Never waits.
    GoesOn(&'a AtomicU64),
}

impl Other<'_> {
    fn accesses(&self) -> u64 {
        match self {
            Other::None => 0,
            Other::Waits(accesses) | Other::GoesOn(accesses) => accesses.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_without_the_other_thread_at_work_counts_for_nothing() {
        let words: Vec<AtomicU64> = (0..LINE_WORDS).map(|_| AtomicU64::new(0)).collect();
        let mut own = User::new(&words, 0, Access::Store);
        assert!(own.nanoseconds(LEAST_WINDOWS, Other::None).is_some());
        let without_cpu = AtomicU64::new(7);
        assert!(own.window(&Other::Waits(&without_cpu)).is_none());
        assert!(own.window(&Other::GoesOn(&without_cpu)).is_none());
        assert!(own.nanoseconds(LEAST_WINDOWS, Other::Waits(&without_cpu)).is_none());
    }
}
