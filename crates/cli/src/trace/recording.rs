//! How far a recording is, shown while it goes on.

use super::Kept;
use crate::exit::print_message;
use crate::interrupt;
use nearmiss_tap::drain::{OnProgress, Under};
use nearmiss_tap::parts::Parts;
use nearmiss_usage::A_WHILE;
use std::cell::Cell;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Printed at the first signal while a command is recorded for its diagnosis. A command that `trace` wraps handles its
/// own.
const ENDING: &str = "ending the command and its recording; again to drop the recording";
/// Time between two looks of a person.
const REFRESH: Duration = Duration::from_millis(500);
/// Time between two lines where the command writes too, or nobody watches.
const REPEAT: Duration = Duration::from_secs(10);

/// Shows a recording that begins: over one line where a person watches and the command's output goes elsewhere, else by a
/// line now and then. The standard error of `trace` is its command's, so it has lines for a person only.
pub(super) fn shown(plan: Option<Parts>, kept: Kept) -> Box<OnProgress> {
    let watched = std::io::stderr().is_terminal();
    let in_place = watched && kept != Kept::Report;
    let silent = !watched && kept == Kept::Report;
    let (pause, last) = (if in_place { REFRESH } else { REPEAT }, Cell::new(None::<Instant>));
    let announced = Cell::new(false);
    Box::new(move |under| {
        if kept == Kept::Diagnosis && !announced.replace(true) {
            interrupt::announce(ENDING);
            interrupt::limit_termination();
        }
        let due =
            last.get().map_or(under.elapsed >= A_WHILE.max(pause.min(REPEAT) / 4), |last| last.elapsed() >= pause);
        if silent || !due {
            return;
        }
        last.set(Some(Instant::now()));
        let line = line(under, plan);
        match in_place {
            // Who watches does not matter for what is recorded.
            true => drop(write!(std::io::stderr().lock(), "\r\x1b[Knearmiss: {line}")),
            false => print_message(&line),
        }
    })
}

fn line(under: &Under, plan: Option<Parts>) -> String {
    let seconds = under.elapsed.as_secs();
    let counts = format!("{} M instructions, {} M records", under.instructions / 1_000_000, under.records / 1_000_000);
    match plan {
        None => format!("recording: {seconds} s in the guest, {counts}"),
        Some(plan) => {
            let doing = if under.paused { "running on to part" } else { "recording part" };
            let part = under.part + u32::from(under.paused);
            format!("{doing} {part}: {seconds} of at most {} s in the guest, {counts}", plan.whole.as_secs())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearmiss_tap::parts::Pauses;

    #[test]
    fn a_line_names_the_part_and_what_is_left() {
        let plan = Parts {
            followed: Duration::ZERO,
            first: Duration::from_secs(1),
            first_records: 1,
            longest: Duration::from_secs(1),
            records: 1,
            pauses: Pauses::Filling,
            whole: Duration::from_secs(17),
            all_records: 1,
            paused_ns_a_second: 0,
            part_ns: None,
            period_ns: 0,
        };
        let under = Under {
            elapsed: Duration::from_secs(4),
            records: 2_500_000,
            instructions: 41_000_000,
            part: 3,
            paused: false,
        };
        let text = line(&under, Some(plan));
        assert_eq!(text, "recording part 3: 4 of at most 17 s in the guest, 41 M instructions, 2 M records");
        let text = line(&Under { paused: true, ..under }, Some(plan));
        assert!(text.starts_with("running on to part 4: "), "{text}");
        assert_eq!(line(&under, None), "recording: 4 s in the guest, 41 M instructions, 2 M records");
    }
}
