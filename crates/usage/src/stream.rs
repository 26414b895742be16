//! Standard output and error, which somebody may have closed, or which a full disk may be behind. `println!` panics there.

use std::fmt::Display;
use std::io::{ErrorKind, Write};

/// One line on standard error. A stream that takes nothing changes nothing.
pub fn report(program: &str, what: impl Display) {
    let _lost = writeln!(std::io::stderr(), "{program}: {what}").is_err();
}

/// Text on standard output. A reader that has seen enough is no error.
pub fn print(text: impl Display) -> std::io::Result<()> {
    let mut stream = std::io::stdout();
    match write!(stream, "{text}").and_then(|()| stream.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
