use crate::CannotEngage;
use std::time::Duration;

/// Shortest and longest interval. Timers are late by 50 µs as a program is started.
const LEAST: Duration = Duration::from_micros(10);
const MOST: Duration = Duration::from_secs(1);
const USUAL: Duration = Duration::from_millis(1);

/// How waits are paced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// From the return of a thread's wait to its next one, at least.
    pub interval: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options { interval: USUAL }
    }
}

impl Options {
    pub(super) fn check(&self) -> Result<(), CannotEngage> {
        checked(self.interval).map(|_| ())
    }
}

/// An interval that the library can keep.
pub fn checked(interval: Duration) -> Result<Duration, CannotEngage> {
    if (LEAST..=MOST).contains(&interval) {
        return Ok(interval);
    }
    let given = humantime::format_duration(interval);
    Err(CannotEngage::Parameters(format!("an interval of {given}: must be within 10us and 1s")))
}

/// `nearmiss apply pace`'s arguments, shared with the other verbs that take the remedy.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Least time from the return of a thread's wait for events to its next wait
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = humantime::parse_duration)]
    pub interval: Duration,
}

impl From<Args> for Options {
    fn from(args: Args) -> Self {
        Options { interval: args.interval }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_that_make_no_sense_are_refused() {
        let check = |interval| Options { interval }.check();
        assert!(check(LEAST).is_ok() && check(MOST).is_ok() && Options::default().check().is_ok());
        let refused = |interval| check(interval).err().map(|error| error.to_string());
        let expected = "an interval of 2s: must be within 10us and 1s";
        assert_eq!(refused(Duration::from_secs(2)).as_deref(), Some(expected));
        assert!(check(Duration::ZERO).is_err());
    }
}
