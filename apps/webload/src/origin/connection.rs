//! One connection of the origin.

use super::answer::{self, Request, RequestBody};
use crate::content::Content;
use crate::http::chunked::Chunks;
use crate::socket::{self, Moved};
use rustix::fd::OwnedFd;

/// A longer head is refused.
const LONGEST_HEAD: usize = 64 << 10;

/// State of the connection.
#[derive(Debug)]
enum State {
    /// A request's head is awaited.
    Head,
    /// The body of a request is read; the number of its bytes so far.
    Body { at: u64, chunks: Chunks, is_right: bool },
    /// The answer waits for its time.
    Thinking,
    /// The answer is written; so many bytes of head and body are out.
    Writing { at: u64 },
}

/// Next step of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing before the socket is ready again.
    Wait,
    /// The request is whole: its answer is due after the thinking time.
    Think,
    /// The connection is over.
    End,
}

/// A connection with the request that it carries.
pub struct Connection {
    /// The socket.
    pub socket: OwnedFd,
    /// Distinguishes timers of this connection from those of earlier ones in the same place.
    pub generation: u32,
    state: State,
    unread: Vec<u8>,
    request: Option<Request>,
    head: Vec<u8>,
}

impl Connection {
    /// A connection that was just accepted.
    pub fn new(socket: OwnedFd, generation: u32) -> Connection {
        Connection { socket, generation, state: State::Head, unread: Vec::new(), request: None, head: Vec::new() }
    }

    /// Returns the request with an answer in its thinking time.
    pub fn request(&self) -> Option<&Request> {
        self.request.as_ref()
    }

    /// The socket is readable.
    pub fn readable(&mut self, inbox: &mut [u8]) -> Next {
        loop {
            match socket::read(&self.socket, inbox) {
                Moved::Bytes(length) => {
                    self.unread.extend_from_slice(&inbox[..length]);
                    match self.go_on() {
                        Next::Wait if length == inbox.len() => {}
                        next => return next,
                    }
                }
                Moved::Later => return Next::Wait,
                Moved::Ended => return Next::End,
            }
        }
    }

    /// Makes what can be made of the bytes read so far.
    pub fn go_on(&mut self) -> Next {
        if matches!(self.state, State::Head) {
            match answer::read(&self.unread) {
                Ok(Some(request)) => {
                    self.unread.drain(..request.bytes);
                    self.state = State::Body { at: 0, chunks: Chunks::default(), is_right: true };
                    self.request = Some(request);
                    if request.waits_for_continue {
                        // A client that gets no interim answer sends the body after a while.
                        _ = socket::write(&self.socket, b"HTTP/1.1 100 Continue\r\n\r\n");
                    }
                }
                Ok(None) if self.unread.len() <= LONGEST_HEAD => return Next::Wait,
                _ => return Next::End,
            }
        }
        if matches!(self.state, State::Body { .. }) { self.body() } else { Next::Wait }
    }

    /// Reads the request's body, which is the content of the request's number.
    fn body(&mut self) -> Next {
        let (State::Body { at, chunks, is_right }, Some(request)) = (&mut self.state, &mut self.request) else {
            return Next::Wait;
        };
        // Only a client of this program sends a number, and the content that belongs to it.
        let content = request.id.map(Content::of);
        let is_content = |at, bytes: &[u8]| content.is_none_or(|content| content.is(at, bytes));
        let (taken, is_whole) = match request.body {
            RequestBody::Length(length) => {
                let taken = self.unread.len().min(usize::try_from(length - *at).unwrap_or(usize::MAX));
                *is_right &= is_content(*at, &self.unread[..taken]);
                *at += taken as u64;
                (taken, *at == length)
            }
            RequestBody::Chunked => {
                let read = chunks.read(&self.unread, |data| {
                    *is_right &= is_content(*at, data);
                    *at += data.len() as u64;
                    Ok(())
                });
                let Ok(taken) = read else { return Next::End };
                (taken, chunks.is_done())
            }
        };
        self.unread.drain(..taken);
        if !is_whole {
            return Next::Wait;
        }
        if !*is_right {
            request.status = 400;
        }
        self.state = State::Thinking;
        Next::Think
    }

    /// Begins to write the answer; `text` is a body that belongs to no object.
    pub fn answer(&mut self, max_age: u64, now: u64, text: Option<&str>, outbox: &mut [u8]) -> Next {
        let Some(request) = &self.request else { return Next::End };
        self.head.clear();
        match text {
            Some(text) => {
                let length = text.len();
                self.head.extend_from_slice(
                    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nCache-Control: no-store\r\n\r\n{text}")
                        .as_bytes(),
                );
            }
            None => request.head(max_age, now, &mut self.head),
        }
        self.state = State::Writing { at: 0 };
        self.writable(outbox)
    }

    /// The socket is writable.
    pub fn writable(&mut self, outbox: &mut [u8]) -> Next {
        let Some(request) = self.request else { return Next::Wait };
        let whole = self.head.len() as u64 + request.length();
        loop {
            let State::Writing { at } = &mut self.state else { return Next::Wait };
            if *at == whole {
                return self.written(request.keeps_connection);
            }
            let length = piece(&self.head, &request, *at, whole, outbox);
            match socket::write(&self.socket, &outbox[..length]) {
                Moved::Bytes(length) => *at += length as u64,
                Moved::Later => return Next::Wait,
                Moved::Ended => return Next::End,
            }
        }
    }

    fn written(&mut self, keeps_connection: bool) -> Next {
        (self.state, self.request) = (State::Head, None);
        if keeps_connection { self.go_on() } else { Next::End }
    }
}

/// Puts the answer's bytes from `at` on into `outbox`, as many as fit.
fn piece(head: &[u8], request: &Request, at: u64, whole: u64, outbox: &mut [u8]) -> usize {
    let length = outbox.len().min(usize::try_from(whole - at).unwrap_or(usize::MAX));
    let of_head = head.get(at as usize..).unwrap_or_default();
    let of_head = &of_head[..of_head.len().min(length)];
    outbox[..of_head.len()].copy_from_slice(of_head);
    if let Some(object) = request.object {
        let from = (at + of_head.len() as u64).saturating_sub(head.len() as u64);
        object.content().fill(from, &mut outbox[of_head.len()..length]);
    }
    length
}
