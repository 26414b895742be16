//! What the guest writes, on its way to our standard streams; its console and its log.

use std::fs::File;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};

const BLOCK: usize = 65536;

/// How much has been carried outwards by one relay, and whether it goes on.
#[derive(Debug, Default)]
pub(super) struct Progress {
    state: Mutex<(u64, bool)>,
    changed: Condvar,
}

impl Progress {
    fn add(&self, bytes: u64) {
        self.update(|state| state.0 += bytes);
    }

    fn finish(&self) {
        self.update(|state| state.1 = true);
    }

    fn update(&self, change: impl FnOnce(&mut (u64, bool))) {
        if let Ok(mut state) = self.state.lock() {
            change(&mut state);
            self.changed.notify_all();
        }
    }

    /// Waits until so many bytes are out, or no more will come.
    pub(super) fn wait_for(&self, bytes: u64) {
        let Ok(mut state) = self.state.lock() else {
            return;
        };
        while state.0 < bytes && !state.1 {
            match self.changed.wait(state) {
                Ok(next) => state = next,
                Err(_) => return,
            }
        }
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
            if write_waiting(&mut stream, &block[..length]).is_err() {
                break;
            }
            shared.add(length as u64);
        }
        // Nobody reads our stream any more: the guest's writer gets its SIGPIPE.
        let _ = port.shutdown(Shutdown::Both);
        shared.finish();
    });
    progress
}

/// Writes all, also to a stream that someone else has made non-blocking.
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

/// Keeps the end of what someone says (a console, a log), up to a size.
#[derive(Debug, Clone, Default)]
pub(super) struct Tail {
    text: Arc<Mutex<Vec<u8>>>,
    ended: Arc<AtomicBool>,
}

impl Tail {
    const KEPT: usize = 64 << 10;

    /// Follows a reader until its end, on a thread of its own.
    pub(super) fn follow(mut reader: impl Read + Send + 'static) -> Self {
        let tail = Self::default();
        let shared = tail.clone();
        thread::spawn(move || {
            let mut block = vec![0; 4096];
            while let Ok(length @ 1..) = reader.read(&mut block) {
                if let Ok(mut text) = shared.text.lock() {
                    text.extend_from_slice(&block[..length]);
                    let excess = text.len().saturating_sub(Self::KEPT);
                    text.drain(..excess);
                }
            }
            shared.ended.store(true, Ordering::Release);
        });
        tail
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
            thread::sleep(std::time::Duration::from_millis(10));
        }
        self.text()
    }
}
