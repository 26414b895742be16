//! Output that a connection still has to write: a head, and a body from the store or from a response under way.

use crate::cache::entry::Entry;
use crate::cache::flow::{End, Flow, Found, Waker};
use bytes::Bytes;
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Bytes that one connection writes before the others have their turn.
const A_TURN: u64 = 1 << 20;
/// Bytes of one write.
const A_WRITE: u64 = 256 << 10;
/// Pieces of one write.
const PIECES: usize = 16;

/// How a body's end is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// The end is known beforehand.
    Known {
        /// Behind its last byte.
        end: u64,
    },
    /// Framed by chunks.
    Chunked,
    /// Framed by the end of the connection.
    Close,
}

#[derive(Debug, Default)]
enum Body {
    #[default]
    None,
    Entry {
        entry: Arc<Entry>,
        at: usize,
        end: usize,
    },
    Flow {
        at: u64,
        framing: Framing,
    },
}

/// Output still to be written.
#[derive(Debug, Default)]
pub struct Outgoing {
    head: Vec<u8>,
    head_at: usize,
    pieces: VecDeque<Bytes>,
    body: Body,
    blocked: bool,
    /// Bytes of heads among what was to be written since the request began.
    pub heads: u64,
}

/// Result of a turn of writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Nothing is left.
    All,
    /// The socket has no room, or the body has not come yet.
    Blocked,
    /// The turn is over: other connections have theirs.
    TurnOver,
    /// The connection or the body broke.
    Failed,
}

impl Outgoing {
    /// Nothing is to be written.
    pub fn is_empty(&self) -> bool {
        self.head_at == self.head.len() && self.pieces.is_empty() && matches!(self.body, Body::None)
    }

    /// The socket had no room.
    pub fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// Adds bytes of a head.
    pub fn head(&mut self, bytes: &[u8]) {
        self.heads += bytes.len() as u64;
        self.head.extend_from_slice(bytes);
    }

    /// Adds a short body.
    pub fn text(&mut self, text: &str) {
        self.head.extend_from_slice(text.as_bytes());
    }

    /// The body is this part of a stored one.
    pub fn entry(&mut self, entry: Arc<Entry>, at: usize, end: usize) {
        self.body = Body::Entry { entry, at, end };
    }

    /// The body is what a flow has from `at` on.
    pub fn flow(&mut self, at: u64, framing: Framing) {
        self.body = Body::Flow { at, framing };
    }

    /// Writes until all is written, the socket is full or the turn is over. Returns the bytes and a fetch to resume.
    pub fn send(&mut self, socket: &OwnedFd, flow: Option<&Flow>, waker: Waker) -> (Sent, u64, Option<Waker>) {
        let (mut bytes, mut resumed) = (0, None);
        self.blocked = false;
        loop {
            match self.gather(flow, waker, &mut resumed) {
                Gathered::Ready => {}
                Gathered::Over(sent) => return (sent, bytes, resumed),
            }
            match self.write(socket) {
                Ok(written) => bytes += written as u64,
                Err(Errno::AGAIN) => {
                    self.blocked = true;
                    return (Sent::Blocked, bytes, resumed);
                }
                Err(Errno::INTR) => {}
                Err(_) => return (Sent::Failed, bytes, resumed),
            }
            if bytes >= A_TURN {
                return (Sent::TurnOver, bytes, resumed);
            }
        }
    }

    /// Makes sure that there is something to write.
    fn gather(&mut self, flow: Option<&Flow>, waker: Waker, resumed: &mut Option<Waker>) -> Gathered {
        if self.head_at == self.head.len() {
            self.head.clear();
            self.head_at = 0;
        }
        match (&mut self.body, flow) {
            (Body::Entry { at, end, .. }, _) if at == end => self.body = Body::None,
            (Body::Flow { .. }, Some(flow)) if self.pieces.is_empty() => {
                if let Some(over) = self.take_from(flow, waker, resumed) {
                    return Gathered::Over(over);
                }
            }
            _ => {}
        }
        if self.is_empty() { Gathered::Over(Sent::All) } else { Gathered::Ready }
    }

    fn take_from(&mut self, flow: &Flow, waker: Waker, resumed: &mut Option<Waker>) -> Option<Sent> {
        let Body::Flow { at, framing } = &mut self.body else { return None };
        let left = if let Framing::Known { end } = framing { *end - *at } else { u64::MAX };
        if left == 0 {
            self.body = Body::None;
            return None;
        }
        let mut taken = Vec::new();
        let (found, woken) = flow.read(waker, *at, left.min(A_WRITE), &mut taken);
        *resumed = woken.or(*resumed);
        let size: u64 = taken.iter().map(|piece| piece.len() as u64).sum();
        *at += size;
        let chunked = *framing == Framing::Chunked;
        match found {
            Found::Some if chunked => {
                self.pieces.push_back(Bytes::from(format!("{size:x}\r\n")));
                self.pieces.extend(taken);
                self.pieces.push_back(Bytes::from_static(b"\r\n"));
            }
            Found::Some => self.pieces.extend(taken),
            Found::Later if self.head_at < self.head.len() => {}
            Found::Later => return Some(Sent::Blocked),
            Found::End(End::Whole(trailers)) if left == u64::MAX => self.end(chunked, &trailers),
            Found::End(_) => return Some(Sent::Failed),
        }
        None
    }

    fn end(&mut self, chunked: bool, trailers: &[u8]) {
        self.body = Body::None;
        if chunked {
            self.head.extend_from_slice(b"0\r\n");
            self.head.extend_from_slice(if trailers.is_empty() { b"\r\n" } else { trailers });
        }
    }

    fn write(&mut self, socket: &OwnedFd) -> Result<usize, Errno> {
        let mut slices = [IoSlice::new(&[]); PIECES];
        let mut count = 0;
        let (stored, more) = match &mut self.body {
            Body::Entry { entry, at, end } if entry.body.is_file() => {
                if self.head_at == self.head.len() && self.pieces.is_empty() {
                    let written = entry.body.send_file(socket, *at, *end)?;
                    *at += written;
                    return Ok(written);
                }
                (&[][..], true)
            }
            Body::Entry { entry, at, end } => (entry.body.in_memory(*at, *end), false),
            _ => (&[][..], false),
        };
        let parts = [&self.head[self.head_at..]].into_iter().chain(self.pieces.iter().map(|piece| &piece[..]));
        for part in parts.chain([stored]).filter(|part| !part.is_empty()).take(PIECES) {
            slices[count] = IoSlice::new(part);
            count += 1;
        }
        let written = send(socket, &slices[..count], more)?;
        self.advance(written);
        Ok(written)
    }

    fn advance(&mut self, mut written: usize) {
        let of_head = written.min(self.head.len() - self.head_at);
        self.head_at += of_head;
        written -= of_head;
        while let Some(piece) = self.pieces.front_mut() {
            if written < piece.len() {
                _ = piece.split_to(written);
                return;
            }
            written -= piece.len();
            self.pieces.pop_front();
        }
        if let Body::Entry { at, .. } = &mut self.body {
            *at += written;
        }
    }
}

enum Gathered {
    Ready,
    Over(Sent),
}

/// Writes pieces in one call. The kernel holds back what fills no segment where `more` follows at once.
pub fn send(socket: &OwnedFd, slices: &[IoSlice<'_>], more: bool) -> Result<usize, Errno> {
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let flags = if more { flags | SendFlags::MORE } else { flags };
    sendmsg(socket, slices, &mut SendAncillaryBuffer::default(), flags)
}
