//! Progress on standard error: the stage that begins, and how far it is.

use crate::exit::print_message;
use nearmiss_usage::{A_WHILE, Progress};
use std::io::IsTerminal;
use std::sync::OnceLock;
use std::time::Instant;

/// Prints one line about the stage that begins: at once where a person watches, elsewhere when it has taken a while.
pub fn progress(what: &str) {
    static STARTED: OnceLock<Instant> = OnceLock::new();
    let started = STARTED.get_or_init(Instant::now);
    if std::io::stderr().is_terminal() || started.elapsed() >= A_WHILE {
        print_message(what);
    }
}

/// Prints the stage for a verb that shares stderr with its command: only where a person watches.
pub fn progress_of_a_wrapper(what: &str) {
    if std::io::stderr().is_terminal() {
        print_message(what);
    }
}

/// Starts the progress of a stage that begins now.
pub fn of(what: &'static str) -> Progress {
    Progress::of("nearmiss", what)
}
