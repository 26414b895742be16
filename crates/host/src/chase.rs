//! The pointer chase: a cycle through a buffer's lines that nothing foresees, each load depending on the one before.

use memmap2::{Advice, MmapMut, MmapOptions};
use std::cell::Cell;
use std::hint::black_box;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const LINE_BYTES: usize = 64;
const WORDS: usize = LINE_BYTES / 8;
/// Bytes in which lines follow one another at random, before those of the next such bytes do: translation holds their
/// pages even where a hypervisor has small ones. Otherwise a long cycle would have a walk of the page table in each load.
const GROUP_BYTES: usize = 4 << 20;
/// Lines from one to the next of those that come before their neighbours.
const APART: u32 = 3;
/// Loads of a round: short, so that some rounds are not interrupted.
const LOADS: usize = 1 << 15;
const ROUNDS: usize = 60;
/// Rounds behind the usual time, their median.
const USUAL_ROUNDS: usize = 15;

/// A buffer with some of its lines in one cycle; the same cycle for the same size.
pub struct Cycle {
    memory: MmapMut,
    /// Numbers of the lines, as they follow one another.
    order: Vec<u32>,
    /// Number of begin lines handed out.
    begun: Cell<usize>,
}

impl Cycle {
    /// Fills `bytes` of fresh memory; the calling thread touches it first, so it lies on that thread's node.
    ///
    /// All of every third line come before the others. Some cores fetch the lines around one as well
    /// (`experiments/cycles/regions.c`), which by their own turns have gone out again. In a plain random order a Zen 4 has
    /// half of the lines near, and its memory seems twice as fast as it is.
    pub fn new(bytes: usize) -> io::Result<Cycle> {
        Cycle::every(APART, bytes)
    }

    /// Fills `bytes` of fresh memory, whose lines come in random order.
    pub fn at_random(bytes: usize) -> io::Result<Cycle> {
        Cycle::every(1, bytes)
    }

    fn every(apart: u32, bytes: usize) -> io::Result<Cycle> {
        let lines = u32::try_from((bytes / LINE_BYTES).max(2)).unwrap_or(u32::MAX);
        let order = (0..apart).flat_map(|first| (first..lines).step_by(apart as usize)).collect();
        let group = GROUP_BYTES / LINE_BYTES / apart as usize;
        Cycle::make(lines as usize * LINE_BYTES, order, group, Advice::HugePage)
    }

    /// Through these lines of `bytes` of small pages, the first of which is line 0.
    pub fn through(bytes: usize, lines: Vec<u32>) -> io::Result<Cycle> {
        Cycle::make(bytes, lines, usize::MAX, Advice::NoHugePage)
    }

    fn make(bytes: usize, mut order: Vec<u32>, group: usize, pages: Advice) -> io::Result<Cycle> {
        let mut memory = MmapOptions::new().len(bytes).map_anon()?;
        let _ = memory.advise(pages);
        let words: &mut [u64] = bytemuck::cast_slice_mut(&mut memory);
        let mut state = SEED;
        order.chunks_mut(group).for_each(|group| shuffle(group, &mut state));
        for (line, next) in order.iter().zip(order.iter().cycle().skip(1)) {
            words[*line as usize * WORDS] = u64::from(*next) * WORDS as u64;
        }
        Ok(Cycle { memory, order, begun: Cell::new(0) })
    }

    /// The buffer: the first word of each line of the cycle is the number of another such word.
    pub fn words(&self) -> &[u64] {
        bytemuck::cast_slice(&self.memory)
    }

    /// Returns the first word of a line that comes long before those returned before, and long behind them.
    pub fn fresh(&self) -> u64 {
        const STRIDE: usize = 0x9e37_79b1;
        self.begun.set(self.begun.get() + 1);
        let place = self.begun.get().wrapping_mul(STRIDE) % self.order.len();
        u64::from(self.order[place]) * WORDS as u64
    }

    /// Nanoseconds a load: the least of several rounds, as noise only adds.
    pub fn nanoseconds(&self) -> f64 {
        self.rounds::<ROUNDS>().into_iter().fold(f64::INFINITY, f64::min)
    }

    /// Nanoseconds a load: the median of several rounds, with other programs' use of the caches included.
    pub fn usual_nanoseconds(&self) -> f64 {
        let mut rounds = self.rounds::<USUAL_ROUNDS>();
        rounds.sort_by(f64::total_cmp);
        rounds[USUAL_ROUNDS / 2]
    }

    fn rounds<const N: usize>(&self) -> [f64; N] {
        let words: &[u64] = bytemuck::cast_slice(&self.memory);
        let mut at = walk(words, self.fresh() as usize, self.order.len().min(1 << 21));
        let rounds = std::array::from_fn(|_| {
            let start = Instant::now();
            at = walk(words, at, LOADS);
            start.elapsed().as_secs_f64() * 1e9 / LOADS as f64
        });
        black_box(at);
        rounds
    }
}

/// State of a generator from which each order begins.
pub(super) const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// Brings numbers into an order that nothing foresees; `state` is the generator's.
pub(super) fn shuffle(order: &mut [u32], state: &mut u64) {
    for i in (1..order.len()).rev() {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(i, (*state >> 33) as usize % (i + 1));
    }
}

fn walk(words: &[u64], from: usize, loads: usize) -> usize {
    let mut at = from;
    for _ in 0..loads {
        at = words[at] as usize;
    }
    at
}

/// The core's clock in MHz, from a chain of multiplications of 3 cycles each (every x86-64 core since 2008).
pub fn clock_mhz() -> Option<u32> {
    if !cfg!(target_arch = "x86_64") {
        return None;
    }
    const STEPS: u32 = 500_000;
    let mut least = f64::INFINITY;
    let mut x = black_box(3u64);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..STEPS {
            x = x.wrapping_mul(x);
        }
        x = black_box(x) | 1;
        least = least.min(start.elapsed().as_secs_f64());
    }
    Some((3.0 * f64::from(STEPS) / least / 1e6).round() as u32)
}

/// Nanoseconds for a modified line to move from one CPU to another: half a round trip, the least of several batches.
/// `pin` puts the calling thread on the n-th of the two CPUs and returns whether it could.
pub fn handover_nanoseconds(pin: impl Fn(usize) -> bool + Sync) -> Option<f64> {
    const TRIPS: u64 = 2_000;
    const PATIENCE: Duration = Duration::from_secs(2);
    /// Ends the partner in every case.
    const STOP: u64 = u64::MAX;
    let line = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let partner = scope.spawn(|| {
            let pinned = pin(1);
            let begun = Instant::now();
            let mut seen = 0;
            while seen != STOP && begun.elapsed() < 2 * PATIENCE {
                for _ in 0..10_000 {
                    let now = line.load(Ordering::Acquire);
                    if now == STOP || now % 2 == 1 && !pinned {
                        seen = STOP;
                        break;
                    }
                    if now % 2 == 1 {
                        line.store(now + 1, Ordering::Release);
                    }
                    std::hint::spin_loop();
                }
            }
            pinned
        });
        let mut least = f64::INFINITY;
        let mut value = 0;
        let pinned = pin(0);
        let begun = Instant::now();
        'batches: while pinned && begun.elapsed() < PATIENCE / 4 {
            let start = Instant::now();
            for _ in 0..TRIPS {
                line.store(value + 1, Ordering::Release);
                value += 2;
                let mut spins = 0u32;
                while line.load(Ordering::Acquire) != value {
                    std::hint::spin_loop();
                    spins += 1;
                    if spins.is_multiple_of(1 << 20) && begun.elapsed() > PATIENCE {
                        break 'batches;
                    }
                }
            }
            least = least.min(start.elapsed().as_secs_f64() * 1e9 / (2 * TRIPS) as f64);
        }
        line.store(STOP, Ordering::Release);
        let partner_pinned = partner.join().unwrap_or(false);
        (pinned && partner_pinned && least.is_finite()).then_some(least)
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Numbers of the lines as a chase reads them, from the first one of the order on.
    fn read(cycle: &Cycle) -> Vec<usize> {
        let first = cycle.order[0] as usize;
        let next = |line: &usize| Some(cycle.words()[line * WORDS] as usize / WORDS).filter(|line| *line != first);
        std::iter::successors(Some(first), next).collect()
    }

    #[test]
    fn a_chase_reads_every_line_once() {
        for cycle in [Cycle::new(1 << 20), Cycle::at_random(1 << 20)] {
            let mut lines = read(&cycle.unwrap());
            lines.sort_unstable();
            assert_eq!(lines, (0..(1 << 20) / LINE_BYTES).collect::<Vec<_>>());
        }
    }

    #[test]
    fn neighbours_are_about_a_third_of_the_cycle_apart() {
        let lines = read(&Cycle::new(16 << 20).unwrap());
        let mut places = vec![0; lines.len()];
        lines.iter().enumerate().for_each(|(place, line)| places[*line] = place);
        let (group, third) = (GROUP_BYTES / LINE_BYTES / APART as usize, lines.len() / APART as usize);
        let least = places.windows(2).map(|pair| pair[0].abs_diff(pair[1])).min().unwrap();
        assert!(least >= third - 2 * group, "{least} of {third}");
    }
}
