//! Progress on standard error of what takes a while: its share, and the time left.

use crate::report;
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Nothing is shown of what is over sooner.
pub const A_WHILE: Duration = Duration::from_secs(2);
/// Time between two looks of a person.
const REFRESH: Duration = Duration::from_millis(200);
/// Time between two lines where no person watches.
const REPEAT: Duration = Duration::from_secs(10);

/// Progress of a stage. It prints nothing before it has taken a while; then a line that is written over where a person
/// watches, elsewhere a line now and then.
pub struct Progress {
    program: &'static str,
    what: &'static str,
    is_watched: bool,
    state: Mutex<State>,
}

struct State {
    started: Instant,
    printed: Option<Instant>,
    done: u64,
}

impl Progress {
    /// Starts the progress of a program's stage that begins now.
    pub fn of(program: &'static str, what: &'static str) -> Self {
        let state = Mutex::new(State { started: Instant::now(), printed: None, done: 0 });
        Progress { program, what, is_watched: std::io::stderr().is_terminal(), state }
    }

    /// Reports that so much of the whole is done. Less than before: the stage begins again.
    pub fn at(&self, done: u64, whole: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if done < state.done {
            *state = State { started: Instant::now(), printed: state.printed, done };
        }
        state.done = done;
        let pause = if self.is_watched { REFRESH } else { REPEAT };
        let begun = state.started.elapsed();
        if begun < A_WHILE || state.printed.map_or(begun < pause, |printed| printed.elapsed() < pause) {
            return;
        }
        state.printed = Some(Instant::now());
        let line = format!("{}: {}", self.what, how_far(done, whole, begun));
        if self.is_watched {
            // A stream that takes nothing changes nothing of the stage.
            let _lost = write!(std::io::stderr().lock(), "\r\x1b[K{}: {line}", self.program).is_err();
        } else {
            report(self.program, line);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if self.is_watched && state.printed.is_some() {
            // As above.
            let _lost = write!(std::io::stderr().lock(), "\r\x1b[K").is_err();
        }
    }
}

/// Percents from which on the time that is left can be estimated.
const LEAST_SHARE: u128 = 10;

fn how_far(done: u64, whole: u64, begun: Duration) -> String {
    let share = u128::from(done) * 100 / u128::from(whole.max(1));
    if whole == 0 || share == 0 {
        return "begun".to_owned();
    }
    if done >= whole {
        return "about to end".to_owned();
    }
    // The pace of so little is no measure of the rest.
    if share < LEAST_SHARE {
        return format!("{share}%");
    }
    let left = begun.mul_f64((whole - done) as f64 / done as f64);
    format!("{share}%, {} left", rough(left))
}

fn rough(time: Duration) -> String {
    match time.as_secs() {
        0 => "a second".to_owned(),
        seconds @ 1..=119 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_from_what_is_done() {
        assert_eq!(how_far(0, 100, Duration::from_secs(9)), "begun");
        assert_eq!(how_far(1, 1000, Duration::from_secs(9)), "begun");
        assert_eq!(how_far(25, 100, Duration::from_secs(10)), "25%, 30 s left");
        assert_eq!(how_far(9, 100, Duration::from_secs(10)), "9%");
        assert_eq!(how_far(10, 100, Duration::from_secs(20)), "10%, 3 min left");
        assert_eq!(how_far(120, 100, Duration::from_secs(10)), "about to end");
        assert_eq!(how_far(7, 0, Duration::from_secs(10)), "begun");
    }
}
