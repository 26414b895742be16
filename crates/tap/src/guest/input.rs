//! Our standard input on its way into the guest.

use std::fs::File;
use std::io::{ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

use super::exit::ExitReason;
use super::supervision::Supervision;

/// An input without a reader yet: until the guest is up, what is typed stays ours, and an end of input would look to
/// the agent like a port that is not there.
pub(super) struct WaitingInput {
    pub(super) port: UnixStream,
    pub(super) stream: OwnedFd,
    pub(super) terminal: bool,
}

/// Carries our standard input until its end or the guest's. Dropping it stops it and gives the
/// terminal its mode back.
pub(super) struct InputRelay {
    _stop: PipeWriter,
    // QEMU drops what it has not yet read when the socket is closed and not only shut down.
    _port: UnixStream,
    _raw: Option<RawTerminal>,
}

impl WaitingInput {
    pub(super) fn start(mut self, supervision: &Arc<Supervision>) -> std::io::Result<InputRelay> {
        let (stop_reader, stop) = std::io::pipe()?;
        let port = self.port.try_clone()?;
        let raw = if self.terminal { RawTerminal::enter(&self.stream) } else { None };
        let mut interrupts = Interrupts::default();
        let supervision = Arc::clone(supervision);
        let terminal = self.terminal;
        thread::spawn(move || {
            let carried = carry(&mut self.port, File::from(self.stream), &stop_reader, |bytes| {
                if terminal && interrupts.add_and_test(bytes) {
                    supervision.end(ExitReason::Killed);
                }
            });
            if matches!(carried, Ended::Input) && !terminal {
                // The guest may be gone already.
                let _ = self.port.shutdown(Shutdown::Write);
            }
        });
        Ok(InputRelay { _stop: stop, _port: port, _raw: raw })
    }
}

enum Ended {
    Input,
    Guest,
}

fn carry(port: &mut UnixStream, mut input: File, stop: &PipeReader, mut watch: impl FnMut(&[u8])) -> Ended {
    let mut block = vec![0; 65536];
    loop {
        let mut waits = [
            PollFd::new(&input, PollFlags::IN),
            PollFd::new(stop, PollFlags::IN),
            PollFd::new(port, PollFlags::empty()),
        ];
        match poll(&mut waits, None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return Ended::Input,
        }
        if !waits[1].revents().is_empty() || !waits[2].revents().is_empty() {
            return Ended::Guest;
        }
        match input.read(&mut block) {
            Ok(0) => return Ended::Input,
            Ok(length) => {
                watch(&block[..length]);
                if port.write_all(&block[..length]).is_err() {
                    return Ended::Guest;
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => return Ended::Input,
        }
    }
}

/// Our terminal in raw mode; dropping it restores the mode.
struct RawTerminal {
    stream: OwnedFd,
    before: Termios,
}

impl RawTerminal {
    fn enter(stream: &OwnedFd) -> Option<Self> {
        let before = tcgetattr(stream).ok()?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(stream, OptionalActions::Drain, &raw).ok()?;
        Some(Self { stream: stream.try_clone().ok()?, before })
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // A terminal that is gone needs no restoring.
        let _ = tcsetattr(&self.stream, OptionalActions::Drain, &self.before);
    }
}

/// The command gets each Ctrl-C that is typed; three within a second end the guest, for any reaction of the command.
#[derive(Default)]
struct Interrupts {
    typed: Vec<Instant>,
}

impl Interrupts {
    fn add_and_test(&mut self, bytes: &[u8]) -> bool {
        const INTERRUPT: u8 = 3;
        const WITHIN: Duration = Duration::from_secs(1);
        let now = Instant::now();
        self.typed.retain(|time| now.duration_since(*time) < WITHIN);
        self.typed.extend(bytes.iter().filter(|byte| **byte == INTERRUPT).map(|_| now));
        self.typed.len() >= 3
    }
}
