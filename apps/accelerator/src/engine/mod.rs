//! How a thread waits for its sockets: one trait, two engines.

mod epoll;
mod poll;

use serde::Deserialize;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Events that a socket is watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest {
    /// There is something to read.
    pub read: bool,
    /// There is room to write.
    pub write: bool,
}

impl Interest {
    /// Reading only.
    pub const READ: Interest = Interest { read: true, write: false };
}

/// Event of a socket. An engine may report more than was requested.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// The number given with the socket.
    pub token: u64,
    /// There is something to read, the end included.
    pub readable: bool,
    /// There is room to write.
    pub writable: bool,
    /// The other side sends no more: reading must go on until the end shows.
    pub ended: bool,
    /// The connection is gone in both directions.
    pub gone: bool,
}

/// Waits for sockets.
pub trait Engine: std::fmt::Debug {
    /// Watches a socket from now on.
    fn add(&mut self, socket: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()>;
    /// Changes what a socket is watched for. An engine that reports edges has nothing to do here.
    fn watch(&mut self, socket: BorrowedFd<'_>, interest: Interest);
    /// Watches a socket no more; it must still be open.
    fn remove(&mut self, socket: BorrowedFd<'_>);
    /// Waits until something happened or the time is over, and appends what happened.
    fn wait(&mut self, timeout: Duration, events: &mut Vec<Event>) -> io::Result<()>;
    /// The most events that one wait returns.
    fn most_events(&self) -> usize;
}

/// The engines by their names in the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// `epoll`, edges.
    #[default]
    Epoll,
    /// `poll` over one array of all sockets.
    Poll,
}

/// Makes an engine.
pub fn new(kind: Kind) -> io::Result<Box<dyn Engine>> {
    Ok(match kind {
        Kind::Epoll => Box::new(epoll::Epoll::new()?),
        Kind::Poll => Box::new(poll::Poll::default()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socketpair};
    use std::os::fd::AsFd;

    #[test]
    fn both_engines_report_what_happened_to_whom() {
        for kind in [Kind::Epoll, Kind::Poll] {
            let mut engine = new(kind).unwrap();
            let pair = || socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::empty(), None).unwrap();
            let ((a, b), (c, _d)) = (pair(), pair());
            engine.add(c.as_fd(), 6, Interest::READ).unwrap();
            engine.add(a.as_fd(), 7, Interest::READ).unwrap();
            let mut events = Vec::new();
            engine.wait(Duration::ZERO, &mut events).unwrap();
            assert!(events.iter().all(|event| !event.readable), "{kind:?} {events:?}");
            engine.remove(c.as_fd());
            send(&b, b"x", SendFlags::empty()).unwrap();
            events.clear();
            engine.wait(Duration::from_secs(5), &mut events).unwrap();
            assert!(
                matches!(events[..], [Event { token: 7, readable: true, ended: false, .. }]),
                "{kind:?} {events:?}"
            );
            drop(b);
            events.clear();
            engine.wait(Duration::from_secs(5), &mut events).unwrap();
            assert!(matches!(events[..], [Event { token: 7, ended: true, .. }]), "{kind:?} {events:?}");
        }
    }
}
