//! Times at which requests are due, independent of the server: the open loop.

use crate::clock::SECOND;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

/// How requests are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// Exponential intervals: the arrivals of many independent clients.
    Poisson,
    /// Equal intervals.
    Even,
}

/// The instants at which requests are due.
#[derive(Debug)]
pub struct Arrivals {
    spacing: Spacing,
    random: Pcg64Mcg,
    /// The part of a nanosecond that the last instant left, so that a rate is kept over hours.
    rest: f64,
}

impl Arrivals {
    /// Creates arrivals; an equal seed gives the same instants.
    pub fn new(spacing: Spacing, seed: u64) -> Arrivals {
        Arrivals { spacing, random: Pcg64Mcg::seed_from_u64(seed), rest: 0.0 }
    }

    /// Nanoseconds until the next request at `rate` requests a second.
    pub fn interval(&mut self, rate: f64) -> u64 {
        let mean = SECOND as f64 / rate;
        let exact = self.rest
            + match self.spacing {
                Spacing::Even => mean,
                Spacing::Poisson => -mean * (1.0 - self.random.random::<f64>()).ln(),
            };
        self.rest = exact.fract();
        exact as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_requests_keep_their_rate_exactly() {
        let mut arrivals = Arrivals::new(Spacing::Even, 1);
        let second: u64 = (0..3000).map(|_| arrivals.interval(3000.0)).sum();
        assert!(second.abs_diff(SECOND) <= 1, "{second}");
    }

    #[test]
    fn poisson_requests_have_the_mean_and_the_deviation_of_their_law() {
        let mut arrivals = Arrivals::new(Spacing::Poisson, 1);
        let intervals: Vec<f64> = (0..100_000).map(|_| arrivals.interval(1000.0) as f64 / 1e6).collect();
        let mean = intervals.iter().sum::<f64>() / 1e5;
        let square = intervals.iter().map(|i| i * i).sum::<f64>() / 1e5;
        assert!((mean - 1.0).abs() < 0.01 && (square - 2.0).abs() < 0.05, "{mean} {square}");
    }

    #[test]
    fn a_seed_gives_the_same_instants() {
        let draw = |seed| {
            let mut arrivals = Arrivals::new(Spacing::Poisson, seed);
            (0..10).map(|_| arrivals.interval(5000.0)).collect::<Vec<_>>()
        };
        assert!(draw(1) == draw(1) && draw(1) != draw(2));
    }
}
