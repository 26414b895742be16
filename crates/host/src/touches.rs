//! Price of a first touch of memory: CPU time of page fault, clearing and giving back. The kernel's instructions are the
//! smaller part of it on a virtual machine, so it is measured as a whole.

use super::settle::{Settled, settled};
use memmap2::{Advice, MmapMut, MmapOptions};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::hint::black_box;

/// Figures measured of first touches; none for those that could not be measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TouchFigures {
    /// Nanoseconds of CPU time of a small page.
    pub small_ns: Option<Settled>,
    /// Nanoseconds of CPU time of a large page.
    pub large_ns: Option<Settled>,
}

const SMALL: usize = 4 << 10;
const LARGE: usize = 2 << 20;
/// Memory in small pages: their frames stay in the caches from round to round, so that this is the least they cost.
const SMALL_BYTES: usize = 4 << 20;
/// Memory in large pages, which takes their lines from memory: nothing that they save is promised for a cache's sake.
const LARGE_BYTES: usize = 32 << 20;
/// Rounds of a take, of small pages and of large ones; the least counts, as noise only adds.
const ROUNDS: [usize; 2] = [2, 1];
/// A large page that costs this many small ones was none.
const NO_LARGE_PAGE: f64 = 256.0;

/// Measures pages of both sizes; no figure of large ones where the kernel gives none.
pub fn measure() -> TouchFigures {
    let small_ns = least_settled(|| least(ROUNDS[0], || round(SMALL_BYTES, SMALL, Advice::NoHugePage)));
    let large_ns = least_settled(|| least(ROUNDS[1], || round(LARGE_BYTES, LARGE, Advice::HugePage)));
    TouchFigures { small_ns, large_ns: large_ns.filter(|large| is_of_large_pages(*large, small_ns)) }
}

/// The least take, and the spread of the last ones: other programs on the machine only add.
fn least_settled(take: impl Fn() -> Option<f64>) -> Option<Settled> {
    let mut least = f64::INFINITY;
    let figure = settled(|| take().inspect(|ns| least = least.min(*ns)))?;
    Some(Settled { value: least.min(figure.value), ..figure })
}

fn is_of_large_pages(large: Settled, small: Option<Settled>) -> bool {
    small.is_some_and(|small| large.value < NO_LARGE_PAGE * small.value)
}

fn least(rounds: usize, round: impl Fn() -> Option<f64>) -> Option<f64> {
    (0..rounds).filter_map(|_| round()).reduce(f64::min)
}

/// Nanoseconds of CPU time a page of this size: maps memory, writes to each small page of it once, unmaps it.
fn round(bytes: usize, page: usize, advice: Advice) -> Option<f64> {
    let started = cpu_ns();
    let mut memory = mapped(bytes + LARGE, advice)?;
    // From the first border of a large page on.
    let from = memory.as_ptr().align_offset(LARGE).min(LARGE);
    let touched = memory.get_mut(from..from + bytes)?;
    touched.iter_mut().step_by(SMALL).for_each(|byte| *byte = 1);
    black_box(touched);
    drop(memory);
    Some((cpu_ns() - started) / (bytes / page) as f64)
}

/// No memory where the kernel refuses the advice: pages of another size would be measured.
fn mapped(bytes: usize, advice: Advice) -> Option<MmapMut> {
    let memory = MmapOptions::new().len(bytes).no_reserve_swap().map_anon().ok()?;
    match memory.advise(advice) {
        // A kernel without large pages refuses to leave them out.
        Err(_) if !matches!(advice, Advice::NoHugePage) => None,
        _ => Some(memory),
    }
}

/// CPU time of this thread.
fn cpu_ns() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_touch_takes_cpu_time_and_a_large_page_more_than_a_small_one() {
        let begun = std::time::Instant::now();
        let TouchFigures { small_ns, large_ns } = measure();
        println!("{:.0} ms: small {small_ns:?}, large {large_ns:?}", begun.elapsed().as_secs_f64() * 1e3);
        let small = small_ns.expect("any machine has small pages").value;
        // Clearing 4 KiB at 64 bytes a cycle alone takes more.
        assert!(small > 10.0, "{small}");
        assert!(large_ns.is_none_or(|large| (small..NO_LARGE_PAGE * small).contains(&large.value)), "{large_ns:?}");
    }

    #[test]
    fn small_pages_in_the_place_of_a_large_one_are_no_figure() {
        let figure = |value| Settled { value, spread: 0.0 };
        assert!(is_of_large_pages(figure(100_000.0), Some(figure(1000.0))));
        assert!(!is_of_large_pages(figure(500_000.0), Some(figure(1000.0))), "500 small ones");
        assert!(!is_of_large_pages(figure(100_000.0), None));
    }

    #[test]
    fn the_least_take_counts_and_the_others_are_its_spread() {
        let takes = std::cell::Cell::new(0);
        let next = || {
            takes.set(takes.get() + 1);
            Some(if takes.get() == 1 { 80.0 } else { 100.0 })
        };
        let figure = least_settled(next).expect("a figure");
        assert_eq!(figure.value, 80.0);
        assert!(figure.spread < 0.25, "{figure:?}");
        assert_eq!(least_settled(|| None), None);
    }

    #[test]
    fn the_least_round_counts() {
        let rounds = std::cell::Cell::new(0.0);
        let next = || {
            rounds.set(rounds.get() + 1.0);
            Some(10.0 - rounds.get())
        };
        assert_eq!(least(3, next), Some(7.0));
        assert_eq!(least(3, || None), None);
    }
}
