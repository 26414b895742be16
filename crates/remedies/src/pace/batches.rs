//! Time of a batch of events beside the events themselves: caches that are cold after a wait, and work that a server
//! does once a return. Fewer and larger batches save it.

use super::work::median;
use std::collections::BTreeMap;

/// Least number of batches from which a size counts.
const LEAST_BATCHES: usize = 8;

/// How long a thread was busy behind each of its calls, by the events that the call returned.
#[derive(Clone, Debug, Default)]
pub struct Batches(BTreeMap<u64, Vec<u64>>);

impl Batches {
    /// A call returned so many events, and the thread was busy for so long until the next.
    pub fn add(&mut self, events: u64, busy_ns: u64) {
        self.0.entry(events).or_default().push(busy_ns);
    }

    /// The sizes that are frequent enough, each with its median.
    pub fn by_size(self) -> Sizes {
        let frequent = self.0.into_iter().filter(|(_, busy)| busy.len() >= LEAST_BATCHES);
        Sizes(frequent.map(|(events, busy)| size(events, busy)).collect())
    }
}

/// Batches by size: events, median time, batches.
#[derive(Clone, Debug, Default)]
pub struct Sizes(Vec<[f64; 3]>);

impl Sizes {
    /// The time of a batch beside that of its events: where the line through the medians of all sizes begins, each size as
    /// heavy as it is frequent. The medians leave out batches in which the thread lost its CPU. 0 where all batches have
    /// one size. `cpu_ns`: CPU time of the command outside its waits; the time in the log is a clock's, and is scaled down
    /// to it.
    pub fn apart_from_events_ns(&self, cpu_ns: u64) -> f64 {
        let sizes = &self.0;
        let busy_ns: f64 = sizes.iter().map(|[_, ns, batches]| ns * batches).sum();
        let scale = (cpu_ns as f64 / busy_ns.max(1.0)).min(1.0);
        let least = sizes.first().map_or(0.0, |[_, ns, _]| *ns);
        begin_of_line(sizes).clamp(0.0, least) * scale
    }
}

fn size(events: u64, busy: Vec<u64>) -> [f64; 3] {
    let batches = busy.len();
    [events as f64, median(busy).unwrap_or(0) as f64, batches as f64]
}

/// Returns the value of the line of least squares at 0 events.
fn begin_of_line(sizes: &[[f64; 3]]) -> f64 {
    let sum = |of: fn(&[f64; 3]) -> f64| sizes.iter().map(|size| of(size) * size[2]).sum::<f64>();
    let (weight, x, y) = (sum(|_| 1.0), sum(|size| size[0]), sum(|size| size[1]));
    let (xx, xy) = (sum(|size| size[0] * size[0]), sum(|size| size[0] * size[1]));
    let spread = weight * xx - x * x;
    if spread <= 0.0 { 0.0 } else { (y * xx - x * xy) / spread }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 16 µs a batch and 10 µs an event.
    fn batches(sizes: &[u64]) -> Batches {
        let mut batches = Batches::default();
        for events in sizes {
            (0..LEAST_BATCHES).for_each(|_| batches.add(*events, 16_000 + 10_000 * events));
        }
        batches
    }

    fn near(ns: f64, expected: f64) -> bool {
        (ns - expected).abs() < 0.001
    }

    #[test]
    fn the_time_of_a_batch_is_separated_from_that_of_its_events() {
        let mut some = batches(&[1, 2, 5, 20]);
        assert!(near(some.clone().by_size().apart_from_events_ns(u64::MAX), 16_000.0));
        // Batches without a CPU, and a size that was seen seldom.
        some.add(1, 30_000_000);
        some.add(9, 30_000_000);
        assert!(near(some.clone().by_size().apart_from_events_ns(u64::MAX), 16_000.0));
        assert_eq!(batches(&[3]).by_size().apart_from_events_ns(u64::MAX), 0.0);
        assert_eq!(Batches::default().by_size().apart_from_events_ns(u64::MAX), 0.0);
    }

    #[test]
    fn a_clock_counts_no_more_than_the_cpu_time() {
        // 8 batches of 26 µs and 8 of 36 µs are 496 µs.
        assert!(near(batches(&[1, 2]).by_size().apart_from_events_ns(248_000), 8_000.0));
    }

    #[test]
    fn events_that_become_dearer_in_large_batches_give_no_negative_time() {
        let mut dear = Batches::default();
        for (events, busy_ns) in [(1, 10_000), (10, 400_000)] {
            (0..LEAST_BATCHES).for_each(|_| dear.add(events, busy_ns));
        }
        assert_eq!(dear.by_size().apart_from_events_ns(u64::MAX), 0.0);
    }
}
