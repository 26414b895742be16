//! The open loop: one thread, many connections, requests sent when they are due.
//!
//! A request is due at an instant that the server cannot move. Its time runs from that instant, also while it waits for a
//! connection, so that a server that stalls is charged with every request that came due meanwhile.

mod connections;
mod plan;
mod turn;

pub use plan::{Connections, Phase, Plan};

use crate::arrivals::Arrivals;
use crate::clock;
use crate::load::{Fault, Load};
use crate::measure::Measure;
use rustix::event::epoll;
use rustix::fd::OwnedFd;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Bytes read from a socket at once.
const INBOX: usize = 128 << 10;
/// Events taken from the kernel at once.
const EVENTS: usize = 512;

/// State of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// There is no socket.
    Empty,
    /// The connection is being made.
    Opening,
    /// The connection is made, its request is not due before a timer ends.
    Due,
    /// The connection can carry a request.
    Idle,
    /// The answer is still on its way to the client, by the client's own delay.
    Held,
    /// A request was sent.
    Busy,
    /// The answer is read; the server is about to end the connection.
    Ending,
}

struct Slot<L: Load> {
    socket: Option<OwnedFd>,
    state: State,
    /// Distinguishes events and timers of this socket from those of earlier sockets in the slot.
    generation: u32,
    /// Whether a request waits for this connection or was sent on it.
    has_request: bool,
    /// Whether any byte of the answer came.
    is_begun: bool,
    /// Requests that this socket has carried, and may carry.
    uses: u32,
    most_uses: u32,
    due: u64,
    phase: usize,
    request: L::Request,
    reply: L::Reply,
    unsent: Vec<u8>,
}

impl<L: Load> Slot<L> {
    fn new() -> Slot<L> {
        Slot {
            socket: None,
            state: State::Empty,
            generation: 0,
            has_request: false,
            is_begun: false,
            uses: 0,
            most_uses: u32::MAX,
            due: 0,
            phase: 0,
            request: L::Request::default(),
            reply: L::Reply::default(),
            unsent: Vec::new(),
        }
    }
}

/// A request that waits for a connection.
#[derive(Clone, Copy)]
struct Waiting<A> {
    due: u64,
    phase: usize,
    /// Set where the request was sent before, on a connection that the server had ended meanwhile.
    again: Option<A>,
}

/// One run of a load.
pub struct Engine<L: Load> {
    load: L,
    plan: Plan,
    epoll: OwnedFd,
    slots: Vec<Slot<L>>,
    /// Connections that can carry a request at once; the longest idle one is taken first.
    free: VecDeque<u32>,
    waiting: VecDeque<Waiting<L::Request>>,
    timers: BinaryHeap<Reverse<(u64, u32, u32)>>,
    events: Vec<epoll::Event>,
    inbox: Vec<u8>,
    outbox: Vec<u8>,
    arrivals: Arrivals,
    measures: Vec<Measure>,
    phase: usize,
    phase_began: (u64, u64),
    next_due: u64,
    next_look: u64,
    /// How many connections were begun; spreads connections over source addresses.
    begun: u64,
    opening: usize,
    last_refusal: Option<rustix::io::Errno>,
}

/// Why a run could not take place.
#[derive(Debug, thiserror::Error)]
pub enum CannotRun {
    /// The server does not take the connections.
    #[error("{0}")]
    NoConnections(String),
    /// The kernel refuses what the run needs.
    #[error("the kernel refuses an event loop: {0}")]
    Kernel(#[from] rustix::io::Errno),
}

impl<L: Load> Engine<L> {
    /// A run of `load` after `plan`.
    pub fn new(load: L, plan: Plan) -> Result<Engine<L>, CannotRun> {
        let connections = plan.connections.count;
        Ok(Engine {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            slots: (0..connections).map(|_| Slot::new()).collect(),
            free: VecDeque::with_capacity(connections),
            waiting: VecDeque::with_capacity(1 << 16),
            timers: BinaryHeap::with_capacity(4 * connections),
            events: Vec::with_capacity(EVENTS),
            inbox: vec![0; INBOX],
            outbox: Vec::with_capacity(64 << 10),
            arrivals: Arrivals::new(plan.spacing, plan.seed),
            measures: plan.phases.iter().map(|_| Measure::default()).collect(),
            phase: 0,
            phase_began: (u64::MAX, 0),
            next_due: u64::MAX,
            next_look: 0,
            begun: 0,
            opening: 0,
            last_refusal: None,
            load,
            plan,
        })
    }

    /// Opens the connections that the run keeps.
    pub fn open(&mut self) -> Result<(), CannotRun> {
        clock::be_precise();
        if self.plan.connections.one_request_each {
            self.free.extend(0..self.slots.len() as u32);
            return Ok(());
        }
        self.open_all()
    }

    /// Sends the requests of all phases; the figures of each phase.
    pub fn run(mut self) -> Result<Vec<Measure>, CannotRun> {
        let began = clock::now();
        self.phase_began = (began, clock::cpu());
        self.next_due = began.saturating_add(self.interval());
        while self.phase < self.plan.phases.len() {
            self.arrive(clock::now())?;
            self.turn()?;
        }
        self.await_the_rest()?;
        Ok(self.measures)
    }

    fn interval(&mut self) -> u64 {
        self.arrivals.interval(self.plan.phases[self.phase].rate)
    }

    fn end_phase(&mut self, at: u64) {
        let (began, cpu) = self.phase_began;
        self.phase_began = (at, clock::cpu());
        let counts = &mut self.measures[self.phase].counts;
        (counts.lasted_ns, counts.cpu_ns) = (at - began, self.phase_began.1 - cpu);
        self.phase += 1;
    }

    /// Returns when the phase that goes on is over in any case.
    fn phase_ends(&self) -> u64 {
        let most_ns = self.plan.phases.get(self.phase).map_or(u64::MAX, |phase| phase.most_ns);
        self.phase_began.0.saturating_add(most_ns)
    }

    /// Takes all requests that are due by `now`, and goes on to the next phase where one is over.
    fn arrive(&mut self, now: u64) -> Result<(), CannotRun> {
        while let Some(phase) = self.plan.phases.get(self.phase) {
            let is_filled = phase.until_filled && self.load.is_filled();
            let ends = self.phase_ends();
            if self.next_due <= now && self.next_due < ends && !is_filled {
                self.take(now)?;
            } else if now >= ends || is_filled {
                self.end_phase(ends.min(now));
            } else {
                break;
            }
        }
        Ok(())
    }

    /// Takes the request that came due by `now`.
    fn take(&mut self, now: u64) -> Result<(), CannotRun> {
        let request = Waiting { due: self.next_due, phase: self.phase, again: None };
        self.next_due = self.next_due.saturating_add(self.interval());
        let measure = &mut self.measures[self.phase];
        measure.counts.due += 1;
        measure.behind.record(now - request.due);
        match self.free.pop_front() {
            Some(slot) => self.assign(slot, request),
            None => {
                self.measures[self.phase].counts.waited += 1;
                self.waiting.push_back(request);
                Ok(())
            }
        }
    }

    /// Lets requests be answered that were sent before the end, and counts those that are not.
    fn await_the_rest(&mut self) -> Result<(), CannotRun> {
        let until = clock::now().saturating_add(self.plan.grace_ns);
        self.next_due = u64::MAX;
        while clock::now() < until && self.is_any_open() {
            self.turn()?;
        }
        let why = if self.is_refused() { Fault::Connect } else { Fault::Unanswered };
        for request in std::mem::take(&mut self.waiting) {
            self.measures[request.phase].fault(why);
        }
        for slot in self.slots.iter().filter(|slot| slot.has_request) {
            self.measures[slot.phase].fault(Fault::Unanswered);
        }
        Ok(())
    }

    /// Returns whether the server has refused a connection and none is left.
    fn is_refused(&self) -> bool {
        self.last_refusal.is_some() && self.slots.iter().all(|slot| matches!(slot.state, State::Empty | State::Opening))
    }

    fn is_any_open(&self) -> bool {
        !self.waiting.is_empty() || self.slots.iter().any(|slot| slot.has_request)
    }
}

#[cfg(test)]
mod tests;
