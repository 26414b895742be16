//! A terminal for a restored process, in the guest.

use crate::SnapshotError;
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::io::Read;

/// The standard input of this process, and the terminal of its session.
pub(crate) struct Terminal;

impl Terminal {
    /// Makes one, unless there is one: what is written to it goes nowhere. CRIU hands its own terminal on.
    pub(crate) fn of_this_session() -> Result<Self, SnapshotError> {
        if rustix::termios::isatty(std::io::stdin()) {
            return Ok(Terminal);
        }
        let failed = SnapshotError::system("make a terminal for the restored process");
        let outside = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).map_err(&failed)?;
        grantpt(&outside).and_then(|()| unlockpt(&outside)).map_err(&failed)?;
        let name = ptsname(&outside, Vec::new()).map_err(&failed)?;
        let inside = rustix::fs::open(&name, OFlags::RDWR, Mode::empty()).map_err(&failed)?;
        rustix::process::ioctl_tiocsctty(&inside).map_err(&failed)?;
        rustix::stdio::dup2_stdin(&inside).map_err(&failed)?;
        std::thread::spawn(move || {
            let (mut outside, mut thrown_away) = (std::fs::File::from(outside), [0; 4096]);
            // Between two openings of the other side a terminal fails; nobody is left to receive the error.
            while outside.read(&mut thrown_away).is_ok_and(|length| length > 0) {}
        });
        Ok(Terminal)
    }
}
