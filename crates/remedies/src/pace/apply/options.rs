use nearmiss_analysis::CannotEngage;
use nearmiss_pace::Aim;
use std::time::Duration;

/// Shortest and longest interval or budget. Timers are late by 50 µs as a program is started.
const LEAST: Duration = Duration::from_micros(10);
const MOST: Duration = Duration::from_secs(1);

/// How waits are paced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How far apart a thread's waits are.
    pub aim: Aim,
}

impl Default for Options {
    fn default() -> Self {
        Options { aim: Aim::Budget(super::super::BUDGET) }
    }
}

impl Options {
    pub(super) fn check(&self) -> Result<(), CannotEngage> {
        let (what, time) = match self.aim {
            Aim::Interval(time) => ("an interval", time),
            Aim::Budget(time) => ("a budget", time),
        };
        checked(what, time).map(|_| ())
    }

    /// Returns the parameter of the preloaded library.
    pub(super) fn parameter(&self) -> String {
        match self.aim {
            Aim::Interval(time) => format!("interval={}", time.as_nanos()),
            Aim::Budget(time) => format!("budget={}", time.as_nanos()),
        }
    }
}

/// A time that the library can keep.
pub fn checked(what: &str, time: Duration) -> Result<Duration, CannotEngage> {
    if (LEAST..=MOST).contains(&time) {
        return Ok(time);
    }
    let given = humantime::format_duration(time);
    Err(CannotEngage::Parameters(format!("{what} of {given}: must be within 10us and 1s")))
}

/// `nearmiss apply pace`'s arguments, shared with the other verbs that take the remedy.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Least time from the return of a thread's wait for events to its next wait
    #[arg(long, value_name = "TIME", value_parser = nearmiss_usage::time, conflicts_with = "budget")]
    pub interval: Option<Duration>,
    /// Time that may be added to one event of a hundred: each thread takes the longest interval that keeps within it
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = nearmiss_usage::time)]
    pub budget: Duration,
}

impl From<Args> for Options {
    fn from(args: Args) -> Self {
        Options { aim: args.interval.map_or(Aim::Budget(args.budget), Aim::Interval) }
    }
}

/// `every 1ms`, or `within 1ms`.
pub(super) fn in_words(aim: Aim) -> String {
    match aim {
        Aim::Interval(time) => format!("every {}", humantime::format_duration(time)),
        Aim::Budget(time) => format!("within {}", humantime::format_duration(time)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_make_no_sense_are_refused() {
        let check = |aim| Options { aim }.check();
        assert!(check(Aim::Interval(LEAST)).is_ok() && check(Aim::Budget(MOST)).is_ok());
        assert!(Options::default().check().is_ok() && check(Aim::Budget(Duration::ZERO)).is_err());
        let refused = check(Aim::Interval(Duration::from_secs(2))).err().map(|error| error.to_string());
        assert_eq!(refused.as_deref(), Some("an interval of 2s: must be within 10us and 1s"));
    }
}
