//! The least interval between a thread's waits: the rules are nearmiss-pace's, the paper's interval 0 is here.

use crate::config::Pace;
use nearmiss_pace::{Aim, Pacer, Sleeps, Wait};
use std::time::Duration;

/// A thread's pacing. The thread that it paces must make it.
#[derive(Debug)]
pub enum Pacing {
    /// Every wait begins at once.
    Off,
    /// No wait at all: look, yield, look again.
    Busy,
    /// Paced by the rules.
    Paced(Box<Pacer>),
}

impl Pacing {
    /// As configured.
    pub fn new(pace: Pace, budget: Duration) -> Self {
        match pace {
            Pace::Off => Pacing::Off,
            Pace::Busy => Pacing::Busy,
            Pace::Interval(interval) => Pacing::Paced(Box::new(Pacer::new(Aim::Interval(interval)))),
            Pace::Auto => Pacing::Paced(Box::new(Pacer::new(Aim::Budget(budget)))),
        }
    }

    /// Sleeps if that pays. Returns what is left of the timeout. `left_over`: something of the last wait is still to be
    /// taken.
    pub fn before_wait(&mut self, timeout: Duration, most_events: usize, left_over: bool) -> Duration {
        match self {
            Pacing::Off => timeout,
            Pacing::Busy => {
                rustix::thread::sched_yield();
                Duration::ZERO
            }
            Pacing::Paced(pacer) => {
                let wait = Wait { timeout: Some(timeout), most_events, left_over };
                pacer.before_wait(wait).unwrap_or(timeout)
            }
        }
    }

    /// The wait returned so many events.
    pub fn after_wait(&mut self, events: usize) {
        if let Pacing::Paced(pacer) = self {
            pacer.after_wait(events);
        }
    }

    /// Returns the work done since the beginning.
    pub fn done(&self) -> Sleeps {
        if let Pacing::Paced(pacer) = self { pacer.done() } else { Sleeps::default() }
    }
}
