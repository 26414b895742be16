//! `poll` over one array of all sockets, as the paper's accelerator has it.

use super::{Engine, Event, Interest};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

const NOWHERE: u32 = u32::MAX;

#[derive(Default)]
pub struct Poll {
    sockets: Vec<libc::pollfd>,
    tokens: Vec<u64>,
    /// Place in the array, by descriptor.
    places: Vec<u32>,
}

impl std::fmt::Debug for Poll {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "poll over {} sockets", self.sockets.len())
    }
}

fn bits(interest: Interest) -> i16 {
    let read = if interest.read { libc::POLLIN | libc::POLLRDHUP } else { 0 };
    read | if interest.write { libc::POLLOUT } else { 0 }
}

impl Poll {
    fn place(&mut self, descriptor: i32) -> &mut u32 {
        let at = descriptor as usize;
        if self.places.len() <= at {
            self.places.resize(at + 1, NOWHERE);
        }
        &mut self.places[at]
    }
}

impl Engine for Poll {
    fn add(&mut self, socket: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        *self.place(socket.as_raw_fd()) = self.sockets.len() as u32;
        self.sockets.push(libc::pollfd { fd: socket.as_raw_fd(), events: bits(interest), revents: 0 });
        self.tokens.push(token);
        Ok(())
    }

    fn watch(&mut self, socket: BorrowedFd<'_>, interest: Interest) {
        let place = *self.place(socket.as_raw_fd()) as usize;
        if let Some(entry) = self.sockets.get_mut(place) {
            entry.events = bits(interest);
        }
    }

    fn remove(&mut self, socket: BorrowedFd<'_>) {
        let place = std::mem::replace(self.place(socket.as_raw_fd()), NOWHERE) as usize;
        if place >= self.sockets.len() {
            return;
        }
        self.sockets.swap_remove(place);
        self.tokens.swap_remove(place);
        if let Some(moved) = self.sockets.get(place).map(|entry| entry.fd) {
            *self.place(moved) = place as u32;
        }
    }

    fn wait(&mut self, timeout: Duration, events: &mut Vec<Event>) -> io::Result<()> {
        let millis = timeout.as_micros().div_ceil(1000).min(i32::MAX as u128) as i32;
        // SAFETY: the array is ours, and its length is the one given.
        let mut found = unsafe { libc::poll(self.sockets.as_mut_ptr(), self.sockets.len() as libc::nfds_t, millis) };
        if found < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) };
        }
        for (entry, token) in self.sockets.iter().zip(&self.tokens) {
            if found == 0 {
                break;
            }
            if entry.revents != 0 {
                found -= 1;
                events.push(event(*token, entry.revents));
            }
        }
        Ok(())
    }

    fn most_events(&self) -> usize {
        self.sockets.len().max(1)
    }
}

fn event(token: u64, bits: i16) -> Event {
    let gone = bits & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0;
    Event {
        token,
        readable: bits & libc::POLLIN != 0 || gone,
        writable: bits & libc::POLLOUT != 0 || gone,
        ended: bits & libc::POLLRDHUP != 0 || gone,
        gone,
    }
}
