//! Output of the verbs.

use anyhow::Context;
use nearmiss_record::run;
use std::io::{IsTerminal, Write};
use std::path::Path;

/// Writes a file whole or not at all, and prints its path.
pub fn write(file: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    run::write_whole(file, bytes).map_err(flat)?;
    print(&format!("{}\n", file.display()))
}

/// Columns of the terminal, 80 where there is none.
pub fn terminal_width() -> usize {
    width_of(std::io::stdout())
}

/// Columns that a line may have; none where no terminal shows it.
pub fn line_width() -> Option<usize> {
    std::io::stdout().is_terminal().then(terminal_width)
}

/// As [`terminal_width`], for wrappers: their own text goes to stderr.
pub fn terminal_width_of_stderr() -> usize {
    width_of(std::io::stderr())
}

fn width_of(stream: impl std::os::fd::AsFd) -> usize {
    let columns = rustix::termios::tcgetwinsize(stream).ok().map(|size| usize::from(size.ws_col));
    columns.filter(|c| *c > 0).unwrap_or(80)
}

/// Prints, without styles where no terminal reads. A reader that has seen enough is no error.
pub fn print(text: &str) -> anyhow::Result<()> {
    match anstream::stdout().lock().write_all(text.as_bytes()) {
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}

/// Prints a wrapper's own text on standard error. A closed stream must not change the command's status.
pub fn print_to_stderr(text: &str) {
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
}

/// Keeps an error as text: the text contains its cause, which would otherwise be printed twice.
pub fn flat(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow::anyhow!("{error}")
}
