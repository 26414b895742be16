//! The agent's frames, read so that no byte of the guest costs more than a bounded time and a bounded size.
//!
//! A frame is a length (four bytes, little-endian), a kind (one byte), and the payload.

use std::io::{self, ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A file of the guest's kernel that the agent sends in parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    Kallsyms,
    Btf,
}

/// A frame of the agent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame {
    Text(String),
    /// A part of one of the kernel's files.
    File(FileKind, Vec<u8>),
    /// A part of an archive of what the command wrote.
    Tar(Vec<u8>),
}

/// Why the channel cannot be read on.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    #[error("a message of {0} bytes, which its kind never has")]
    TooLong(u32),
    #[error("a message of no known kind ({0})")]
    UnknownKind(u8),
    #[error("half a message, and nothing more for {} s", .0.as_secs_f32())]
    Stalled(Duration),
    #[error("half a message, and then its end")]
    BrokeOff,
    #[error("nothing that could be read ({0})")]
    Io(io::Error),
}

/// The agent's blocks of files, and its longest line: a path with a word before it, or a ring's pages.
const LONGEST_BLOCK: u32 = 64 << 10;
const LONGEST_LINE: u32 = 16 << 10;
/// A frame that has begun is complete in a moment, even on a host that does much else.
const PATIENCE: Duration = Duration::from_secs(30);

/// The host's end of the agent's port.
pub(super) struct Channel {
    stream: UnixStream,
    patience: Duration,
}

impl Channel {
    pub(super) fn new(stream: UnixStream) -> Self {
        Self { stream, patience: PATIENCE }
    }

    /// The way back, for orders.
    pub(super) fn orders(&self) -> io::Result<UnixStream> {
        self.stream.try_clone()
    }

    /// The next frame; `None` at the end. Waits for a frame's beginning without end, for the rest of it only so long.
    pub(super) fn next(&mut self) -> Result<Option<Frame>, Broken> {
        let mut head = [0; 5];
        self.stream.set_read_timeout(None).map_err(Broken::Io)?;
        if self.first_byte(&mut head)? == 0 {
            return Ok(None);
        }
        self.stream.set_read_timeout(Some(self.patience)).map_err(Broken::Io)?;
        self.rest(&mut head[1..])?;
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let longest = match head[4] {
            1 => LONGEST_LINE,
            2..=4 => LONGEST_BLOCK,
            kind => return Err(Broken::UnknownKind(kind)),
        };
        if length > longest {
            return Err(Broken::TooLong(length));
        }
        let mut payload = vec![0; length as usize];
        self.rest(&mut payload)?;
        Ok(Some(match head[4] {
            1 => Frame::Text(printable(&String::from_utf8_lossy(&payload))),
            2 => Frame::File(FileKind::Kallsyms, payload),
            3 => Frame::File(FileKind::Btf, payload),
            _ => Frame::Tar(payload),
        }))
    }

    fn first_byte(&mut self, head: &mut [u8; 5]) -> Result<usize, Broken> {
        loop {
            match self.stream.read(&mut head[..1]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // QEMU that dies with unread orders resets the connection: an end like any other.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(0),
                other => return other.map_err(Broken::Io),
            }
        }
    }

    fn rest(&mut self, into: &mut [u8]) -> Result<(), Broken> {
        self.stream.read_exact(into).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Broken::Stalled(self.patience),
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => Broken::BrokeOff,
            _ => Broken::Io(error),
        })
    }
}

/// Without what could steer the terminal that the text is printed on.
pub(super) fn printable(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { char::REPLACEMENT_CHARACTER } else { letter }).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
