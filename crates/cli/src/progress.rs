//! Progress on stderr: at once where a person watches, elsewhere when it has taken a while.

use std::io::IsTerminal;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const A_WHILE: Duration = Duration::from_secs(2);

/// One line about the stage that begins.
pub fn progress(what: &str) {
    static STARTED: OnceLock<Instant> = OnceLock::new();
    let started = STARTED.get_or_init(Instant::now);
    if std::io::stderr().is_terminal() || started.elapsed() >= A_WHILE {
        eprintln!("nearmiss: {what}");
    }
}

/// The same of a verb whose stderr is its command's: only where a person watches.
pub fn progress_of_a_wrapper(what: &str) {
    if std::io::stderr().is_terminal() {
        eprintln!("nearmiss: {what}");
    }
}
