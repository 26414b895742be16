//! Things taken at moments that are spread over a run of unknown length.

use std::time::Duration;

/// A number of things at equal distances; every other one is dropped when there are as many, and the distance doubles.
pub struct Spread<T> {
    most: usize,
    distance: Duration,
    /// One for each distance since the start; `None` where there was nothing to take.
    taken: Vec<Option<(Duration, T)>>,
}

impl<T> Spread<T> {
    /// Starts with this distance from the start to the first, and to the next. Fewer than `most` are kept.
    pub fn new(most: usize, distance: Duration) -> Self {
        Spread { most, distance, taken: Vec::new() }
    }

    /// Time from the start at which the next one is due.
    pub fn next(&self) -> Duration {
        self.distance * (self.taken.len() as u32 + 1)
    }

    /// Puts what was taken, and when.
    pub fn put(&mut self, taken: Option<(Duration, T)>) {
        self.taken.push(taken);
        if self.taken.len() >= self.most {
            self.thin_out();
        }
    }

    /// Drops every other one.
    pub fn thin_out(&mut self) {
        let mut number = 0;
        self.taken.retain(|_| {
            number += 1;
            number % 2 == 0
        });
        self.distance *= 2;
    }

    /// Returns all that is kept with the time at which it was taken, in the order of time.
    pub fn kept(&self) -> impl Iterator<Item = &(Duration, T)> {
        self.taken.iter().flatten()
    }

    /// Returns all that is kept with its time.
    pub fn into_kept(self) -> Vec<(Duration, T)> {
        self.taken.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(spread: Spread<u64>) -> Vec<u64> {
        spread.into_kept().iter().map(|(at, _)| at.as_secs()).collect()
    }

    /// A run of so many seconds, of which one is taken whenever it is due.
    fn spread(seconds: u64) -> Spread<u64> {
        let mut spread = Spread::new(6, Duration::from_secs(1));
        while spread.next().as_secs() < seconds {
            let at = spread.next();
            spread.put(Some((at, at.as_secs())));
            assert!(spread.taken.len() < 6);
        }
        spread
    }

    #[test]
    fn a_run_of_any_length_has_them_at_equal_distances() {
        assert_eq!(times(spread(1)), [0; 0]);
        assert_eq!(times(spread(4)), [1, 2, 3]);
        assert_eq!(times(spread(60)), [16, 32, 48]);
        assert_eq!(times(spread(3600)), [1024, 2048, 3072]);
    }

    #[test]
    fn what_is_thinned_out_stays_at_equal_distances() {
        let mut spread = spread(6);
        spread.thin_out();
        assert_eq!((spread.next().as_secs(), times(spread)), (6, vec![2, 4]));
    }

    #[test]
    fn moments_without_anything_are_left_out() {
        let mut spread = Spread::new(6, Duration::from_secs(1));
        spread.put(None);
        assert!(spread.kept().next().is_none());
        spread.put(Some((Duration::from_secs(2), 2)));
        assert_eq!(times(spread), [2]);
    }
}
