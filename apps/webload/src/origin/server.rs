//! The origin's event loop: one thread, thinking times by its own timers.

use super::connection::{Connection, Next};
use crate::clock::{self, SECOND};
use crate::content::mix;
use crate::laws;
use crate::socket;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::getsockname;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;

const LISTENER: u64 = u64::MAX;
const BUFFER: usize = 128 << 10;
const EVENTS: usize = 512;
const WATCHED: EventFlags = EventFlags::IN.union(EventFlags::OUT).union(EventFlags::RDHUP).union(EventFlags::ET);

/// How long answers take: a normal distribution, cut at 0.
#[derive(Clone, Copy, Debug)]
pub struct Thinking {
    /// Nanoseconds.
    pub mean_ns: f64,
    /// Nanoseconds.
    pub deviation_ns: f64,
    /// Seed: an equal one gives the same times in the same order.
    pub seed: u64,
}

impl Thinking {
    /// Nanoseconds that the answer with this number takes.
    pub fn time(&self, number: u64) -> u64 {
        (self.mean_ns + self.deviation_ns * laws::normal(mix(mix(self.seed) ^ number))).max(0.0) as u64
    }
}

/// Counts of the origin's work.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
struct Counts {
    connections: u64,
    requests: u64,
    posts: u64,
    not_modified: u64,
    not_found: u64,
    refused: u64,
    body_bytes: u64,
}

/// The origin.
pub struct Server {
    epoll: OwnedFd,
    listener: OwnedFd,
    connections: Vec<Option<Connection>>,
    free: Vec<u32>,
    accepted: u32,
    timers: BinaryHeap<Reverse<(u64, u32, u32)>>,
    thinking: Thinking,
    max_age: u64,
    counts: Counts,
    inbox: Vec<u8>,
    outbox: Vec<u8>,
    /// Seconds since the epoch, and when they were read.
    date: (u64, u64),
}

impl Server {
    /// An origin that listens.
    pub fn new(address: SocketAddr, thinking: Thinking, max_age: u64) -> Result<Server, Errno> {
        let listener = socket::listen(address)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN | EventFlags::ET)?;
        Ok(Server {
            epoll,
            listener,
            connections: Vec::new(),
            free: Vec::new(),
            accepted: 0,
            timers: BinaryHeap::new(),
            thinking,
            max_age,
            counts: Counts::default(),
            inbox: vec![0; BUFFER],
            outbox: vec![0; BUFFER],
            date: (0, 0),
        })
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> Result<SocketAddr, Errno> {
        SocketAddr::try_from(getsockname(&self.listener)?)
    }

    /// Serves for ever.
    pub fn run(&mut self) -> Result<(), Errno> {
        clock::be_precise();
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
        loop {
            let until = self.timers.peek().map(|Reverse((at, ..))| clock::timespec(at.saturating_sub(clock::now())));
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), until.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
            for event in &events {
                let data = event.data;
                match data.u64() {
                    LISTENER => self.accept()?,
                    tag => self.ready(tag as u32, (tag >> 32) as u32, event.flags),
                }
            }
            self.end_thinking();
        }
    }

    fn accept(&mut self) -> Result<(), Errno> {
        loop {
            match socket::accept(&self.listener) {
                Ok(socket) => self.add(socket)?,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                // Without descriptors left, the next connection that ends lets another one in.
                Err(_) => return Ok(()),
            }
        }
    }

    fn add(&mut self, socket: OwnedFd) -> Result<(), Errno> {
        self.counts.connections += 1;
        self.accepted = self.accepted.wrapping_add(1);
        let index = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            (self.connections.len() - 1) as u32
        });
        let tag = u64::from(self.accepted) << 32 | u64::from(index);
        epoll::add(&self.epoll, &socket, EventData::new_u64(tag), WATCHED)?;
        self.connections[index as usize] = Some(Connection::new(socket, self.accepted));
        Ok(())
    }

    fn connection(&mut self, index: u32, generation: u32) -> Option<&mut Connection> {
        self.connections[index as usize].as_mut().filter(|connection| connection.generation == generation)
    }

    fn ready(&mut self, index: u32, generation: u32, flags: EventFlags) {
        let (mut inbox, mut outbox) = (std::mem::take(&mut self.inbox), std::mem::take(&mut self.outbox));
        if let Some(connection) = self.connection(index, generation) {
            let mut next = Next::Wait;
            if flags.contains(EventFlags::OUT) {
                next = connection.writable(&mut outbox);
            }
            let readable = EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
            if next == Next::Wait && flags.intersects(readable) {
                next = connection.readable(&mut inbox);
            }
            (self.inbox, self.outbox) = (inbox, outbox);
            self.follow(index, next);
        } else {
            (self.inbox, self.outbox) = (inbox, outbox);
        }
    }

    fn follow(&mut self, index: u32, next: Next) {
        match next {
            Next::Wait => {}
            Next::Think => self.think(index),
            Next::End => {
                self.connections[index as usize] = None;
                self.free.push(index);
                // A connection that waited for a descriptor gets no event of its own.
                _ = self.accept();
            }
        }
    }

    fn think(&mut self, index: u32) {
        let Some(connection) = &self.connections[index as usize] else { return };
        let generation = connection.generation;
        let Some(request) = connection.request() else { return };
        let is_own = request.is_for_counts;
        if !is_own {
            self.count(*request);
        }
        let time = if is_own { 0 } else { self.thinking.time(self.counts.requests) };
        // An answer without a thinking time goes out at once, by the same way.
        self.timers.push(Reverse((clock::now() + time, index, generation)));
    }

    fn count(&mut self, request: super::answer::Request) {
        let counts = &mut self.counts;
        counts.requests += 1;
        counts.posts += u64::from(request.is_post);
        counts.not_modified += u64::from(request.status == 304);
        counts.not_found += u64::from(request.status == 404);
        counts.refused += u64::from(matches!(request.status, 400 | 405));
        counts.body_bytes += request.length();
    }

    /// Writes the answers that are due.
    fn end_thinking(&mut self) {
        let now = clock::now();
        if now - self.date.1 > SECOND / 10 {
            self.date = (clock::seconds(), now);
        }
        while let Some(&Reverse((at, index, generation))) = self.timers.peek()
            && at <= now
        {
            self.timers.pop();
            self.answer(index, generation);
        }
    }

    fn answer(&mut self, index: u32, generation: u32) {
        let mut outbox = std::mem::take(&mut self.outbox);
        let (max_age, date, counts) = (self.max_age, self.date.0, self.counts);
        if let Some(connection) = self.connection(index, generation) {
            let is_for_counts = connection.request().is_some_and(|request| request.is_for_counts);
            // Counts are numbers, which always have a JSON form.
            let text = is_for_counts.then(|| serde_json::to_string(&counts).unwrap_or_default());
            let next = connection.answer(max_age, date, text.as_deref(), &mut outbox);
            self.outbox = outbox;
            self.follow(index, next);
        } else {
            self.outbox = outbox;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinking_times_have_the_moments_of_their_law() {
        let thinking = Thinking { mean_ns: 3e8, deviation_ns: 1e8, seed: 1 };
        let times: Vec<f64> = (0..100_000).map(|number| thinking.time(number) as f64 / 1e6).collect();
        let mean = times.iter().sum::<f64>() / 1e5;
        let deviation = (times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / 1e5).sqrt();
        // The cut at 0 adds a tenth of a millisecond to the mean.
        assert!((mean - 300.0).abs() < 1.5 && (deviation - 100.0).abs() < 1.0, "{mean} {deviation}");
        let at_once = Thinking { mean_ns: 0.0, deviation_ns: 0.0, seed: 1 };
        assert_eq!(at_once.time(7), 0);
    }
}
