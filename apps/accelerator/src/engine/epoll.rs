//! `epoll` with edges: a socket is added once, for both directions, and never changed.

use super::{Engine, Event, Interest};
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

const MOST_EVENTS: usize = 512;

pub struct Epoll {
    epoll: OwnedFd,
    room: Vec<epoll::Event>,
}

impl std::fmt::Debug for Epoll {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "epoll {:?}", self.epoll)
    }
}

impl Epoll {
    pub fn new() -> io::Result<Self> {
        Ok(Epoll { epoll: epoll::create(CreateFlags::CLOEXEC)?, room: Vec::with_capacity(MOST_EVENTS) })
    }
}

impl Engine for Epoll {
    fn add(&mut self, socket: BorrowedFd<'_>, token: u64, _interest: Interest) -> io::Result<()> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(token), flags)?)
    }

    fn watch(&mut self, _socket: BorrowedFd<'_>, _interest: Interest) {}

    fn remove(&mut self, socket: BorrowedFd<'_>) {
        // It fails only for a socket that is not watched, as intended.
        let _not_watched = epoll::delete(&self.epoll, socket).is_err();
    }

    fn wait(&mut self, timeout: Duration, events: &mut Vec<Event>) -> io::Result<()> {
        self.room.clear();
        // Whole milliseconds, rounded up, so that a wait of less than one does not spin.
        let millis = timeout.as_micros().div_ceil(1000) as i64;
        let rest = Timespec { tv_sec: millis / 1000, tv_nsec: millis % 1000 * 1_000_000 };
        match epoll::wait(&self.epoll, spare_capacity(&mut self.room), Some(&rest)) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        for event in &self.room {
            let flags = event.flags;
            let gone = flags.intersects(EventFlags::HUP | EventFlags::ERR);
            events.push(Event {
                token: event.data.u64(),
                readable: flags.contains(EventFlags::IN) || gone,
                writable: flags.contains(EventFlags::OUT) || gone,
                ended: flags.contains(EventFlags::RDHUP) || gone,
                gone,
            });
        }
        Ok(())
    }

    fn most_events(&self) -> usize {
        MOST_EVENTS
    }
}
