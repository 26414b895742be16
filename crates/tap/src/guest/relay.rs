//! Output of the guest, on its way to our standard streams; its console and its log.

use std::fs::File;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

const BLOCK: usize = 65536;

/// How much has been carried outwards by one relay, and whether it goes on.
#[derive(Debug, Default)]
pub(super) struct Progress {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    carried: u64,
    /// Our stream is slow: that is no reason to give up.
    writing: bool,
    ended: bool,
}

/// All that the agent carried is in the emulator's hands when its last line comes: what has not come so long after,
/// will not.
const PATIENCE: Duration = Duration::from_secs(5);

impl Progress {
    fn update(&self, change: impl FnOnce(&mut State)) {
        if let Ok(mut state) = self.state.lock() {
            change(&mut state);
            self.changed.notify_all();
        }
    }

    /// Waits until so many bytes are out, or no more will come. Errors: how many bytes never came.
    pub(super) fn wait_for(&self, bytes: u64) -> Result<(), u64> {
        self.wait_within(bytes, PATIENCE)
    }

    fn wait_within(&self, bytes: u64, patience: Duration) -> Result<(), u64> {
        let Ok(mut state) = self.state.lock() else {
            return Ok(());
        };
        while state.carried < bytes && !state.ended {
            let before = state.carried;
            let Ok((next, waited)) = self.changed.wait_timeout(state, patience) else {
                return Ok(());
            };
            state = next;
            if waited.timed_out() && state.carried == before && !state.writing {
                return Err(bytes - before);
            }
        }
        Ok(())
    }
}

/// Carries what the guest writes to a port to one of our streams.
pub(super) fn outwards(mut port: UnixStream, stream: OwnedFd) -> Arc<Progress> {
    let progress = Arc::new(Progress::default());
    let shared = Arc::clone(&progress);
    thread::spawn(move || {
        let mut stream = File::from(stream);
        let mut block = vec![0; BLOCK];
        while let Ok(length @ 1..) = port.read(&mut block) {
            shared.update(|state| state.writing = true);
            if write_waiting(&mut stream, &block[..length]).is_err() {
                break;
            }
            shared.update(|state| (state.carried, state.writing) = (state.carried + length as u64, false));
        }
        // Our stream has no reader any more: the guest's writer gets its SIGPIPE.
        let _ = port.shutdown(Shutdown::Both);
        shared.update(|state| state.ended = true);
    });
    progress
}

/// Writes all, also to a stream that another process has made non-blocking.
fn write_waiting(stream: &mut File, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                poll(&mut [PollFd::new(stream, PollFlags::OUT)], None)?;
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Keeps the end of a text stream (a console, a log), up to a size.
#[derive(Debug, Clone, Default)]
pub(super) struct Tail {
    text: Arc<Mutex<Vec<u8>>>,
    ended: Arc<AtomicBool>,
}

impl Tail {
    const KEPT: usize = 64 << 10;

    /// Follows a reader until its end, on a thread of its own. Calls `on_match` once, when the text contains `words`.
    pub(super) fn follow(
        mut reader: impl Read + Send + 'static,
        words: &'static str,
        on_match: impl FnOnce() + Send + 'static,
    ) -> Self {
        let tail = Self::default();
        let shared = tail.clone();
        thread::spawn(move || {
            let mut block = vec![0; 4096];
            let mut on_match = Some(on_match);
            while let Ok(length @ 1..) = reader.read(&mut block) {
                if shared.add(&block[..length], words)
                    && let Some(on_match) = on_match.take()
                {
                    on_match();
                }
            }
            shared.ended.store(true, Ordering::Release);
        });
        tail
    }

    /// Adds to the end; whether these words are in the part that is new.
    fn add(&self, bytes: &[u8], words: &str) -> bool {
        let Ok(mut text) = self.text.lock() else { return false };
        text.extend_from_slice(bytes);
        let excess = text.len().saturating_sub(Self::KEPT);
        text.drain(..excess);
        let from = text.len().saturating_sub(bytes.len() + words.len());
        text[from..].windows(words.len()).any(|part| part == words.as_bytes())
    }

    pub(super) fn text(&self) -> String {
        self.text.lock().map(|text| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default()
    }

    /// The text once the reader is at its end, or after half a second.
    pub(super) fn final_text(&self) -> String {
        for _ in 0..50 {
            if self.ended.load(Ordering::Acquire) {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        self.text()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::io::PipeReader;

    const SOON: Duration = Duration::from_millis(50);

    /// A relay of these bytes into a pipe; the port stays open.
    fn relay(bytes: &[u8]) -> (Arc<Progress>, UnixStream, PipeReader) {
        let (port, mut guest) = UnixStream::pair().unwrap();
        let (reader, stream) = std::io::pipe().unwrap();
        guest.write_all(bytes).unwrap();
        (outwards(port, stream.into()), guest, reader)
    }

    #[test]
    fn a_forged_length_is_not_waited_for() {
        let (progress, _guest, _reader) = relay(b"five!");
        assert_eq!(progress.wait_within(5, SOON), Ok(()));
        assert_eq!(progress.wait_within(1 << 40, SOON), Err((1 << 40) - 5));
    }

    #[test]
    fn a_slow_reader_of_ours_is_waited_for() {
        const MORE_THAN_A_PIPE: usize = 200_000;
        let (progress, guest, mut reader) = relay(&[]);
        let writer = thread::spawn(move || (&guest).write_all(&[b'x'; MORE_THAN_A_PIPE]).map(|()| guest));
        let slow = thread::spawn(move || {
            thread::sleep(SOON * 4);
            reader.read_exact(&mut [0; MORE_THAN_A_PIPE]).map(|()| reader)
        });
        thread::sleep(SOON); // the pipe fills
        assert_eq!(progress.wait_within(MORE_THAN_A_PIPE as u64, SOON), Ok(()));
        assert!(writer.join().unwrap().is_ok() && slow.join().unwrap().is_ok());
    }

    #[test]
    fn words_are_found_across_blocks_and_once() {
        let (mut console, theirs) = UnixStream::pair().unwrap();
        let (found, matches) = std::sync::mpsc::channel();
        let tail = Tail::follow(theirs, "System halted", move || found.send(()).unwrap());
        console.write_all(b"[1] reboot: System ha").unwrap();
        thread::sleep(SOON);
        assert!(matches.try_recv().is_err());
        console.write_all(b"lted\nSystem halted\n").unwrap();
        drop(console);
        matches.recv().unwrap();
        assert!(tail.final_text().ends_with("System halted\n") && matches.recv().is_err());
    }
}
