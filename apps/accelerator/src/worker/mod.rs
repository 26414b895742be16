//! One event loop: its connections to clients and origins, and what happens to them.

mod accept;
mod access;
mod answer;
mod client;
mod decide;
mod fetch;
mod forward;
mod hit;
mod job;
mod judge;
mod outgoing;
mod receive;
mod request;
mod storing;
mod sweep;
mod upload;

use crate::cache::flow::Waker;
use crate::engine::{self, Engine, Event, Interest};
use crate::metrics::Counters;
use crate::pacing::Pacing;
use crate::shared::{Live, Shared};
use client::Client;
use fetch::Fetch;
use nearmiss_cache_policy::Seconds;
use slotmap::{DefaultKey, Key, KeyData, SlotMap};
use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

/// The longest wait: how late a deadline may be noticed.
const TICK: Duration = Duration::from_millis(250);
/// Room for what one read takes.
const ROOM: usize = 64 << 10;
/// The mailbox among the tokens. No connection has it: connections have a version in the upper half.
const MAIL: u64 = 0x7fff_ffff;
/// Distinguishes fetches from clients.
const FETCH: u64 = 1 << 31;

/// The time, read once a turn.
#[derive(Clone, Copy, Debug)]
struct Now {
    wall: Seconds,
    /// Milliseconds since the thread began.
    ms: u64,
}

/// One event loop.
#[derive(Debug)]
pub struct Worker {
    me: usize,
    shared: Arc<Shared>,
    live: Arc<Live>,
    generation: u64,
    engine: Box<dyn Engine>,
    pacing: Pacing,
    listeners: Vec<TcpListener>,
    clients: SlotMap<DefaultKey, Client>,
    fetches: SlotMap<DefaultKey, Fetch>,
    /// Kept connections to origins, the newest last.
    idle: HashMap<SocketAddr, Vec<DefaultKey>>,
    room: Vec<u8>,
    log: access::Log,
    began: Instant,
    now: Now,
    swept_ms: u64,
    /// When a drain ends, with anything still open.
    drained_ms: Option<u64>,
}

impl Worker {
    /// A loop with its own listening sockets.
    pub fn new(me: usize, shared: Arc<Shared>, listeners: Vec<TcpListener>) -> io::Result<Self> {
        let live = shared.live();
        let mut engine = engine::new(live.config.engine)?;
        for (number, listener) in listeners.iter().enumerate() {
            listener.set_nonblocking(true)?;
            engine.add(listener.as_fd(), number as u64, Interest::READ)?;
        }
        engine.add(shared.mail[me].bell.as_fd(), MAIL, Interest::READ)?;
        let pacing = Pacing::new(live.config.pace, live.config.budget);
        Ok(Worker {
            me,
            generation: shared.generation.load(Ordering::Acquire),
            shared,
            live,
            engine,
            pacing,
            listeners,
            clients: SlotMap::new(),
            fetches: SlotMap::new(),
            idle: HashMap::new(),
            room: vec![0; ROOM],
            log: access::Log::default(),
            began: Instant::now(),
            now: Now { wall: Seconds(0), ms: 0 },
            swept_ms: 0,
            drained_ms: None,
        })
    }

    /// Runs until it is drained.
    pub fn run(mut self) -> io::Result<()> {
        let (mut events, mut tokens) = (Vec::new(), Vec::new());
        loop {
            self.look_at_the_clock();
            self.shared.mail[self.me].take(&mut tokens);
            tokens.drain(..).for_each(|token| self.woken(token));
            if self.housekeeping() {
                return Ok(());
            }
            self.wait(&mut events)?;
            self.look_at_the_clock();
            events.drain(..).for_each(|event| self.dispatch(event));
        }
    }

    fn wait(&mut self, events: &mut Vec<Event>) -> io::Result<()> {
        // The thread's own mail rings no bell, and connections at the end of their turn wait in it.
        let left_over = self.shared.mail[self.me].is_filled();
        let timeout = if left_over { Duration::ZERO } else { TICK };
        let timeout = self.pacing.before_wait(timeout, self.engine.most_events(), left_over);
        self.engine.wait(timeout, events)?;
        self.pacing.after_wait(events.len());
        self.counters().waits.one();
        self.counters().events.add(events.len() as u64);
        let done = self.pacing.done();
        self.counters().pace_sleeps.set(done.sleeps);
        self.counters().pace_slept_microseconds.set(done.slept.as_micros() as u64);
        Ok(())
    }

    fn look_at_the_clock(&mut self) {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.now = Now { wall: Seconds(since.as_secs()), ms: self.began.elapsed().as_millis() as u64 };
    }

    fn dispatch(&mut self, event: Event) {
        match event.token {
            MAIL => {
                let _empty = rustix::io::read(&self.shared.mail[self.me].bell, &mut [0; 8]).is_err();
            }
            token if token >> 32 == 0 => self.accept(token as usize),
            token if token & FETCH != 0 => self.fetch_event(key_of(token), event),
            token => self.client_event(key_of(token), event),
        }
    }

    /// Handles an event of a connection.
    fn woken(&mut self, token: u64) {
        match token {
            token if token >> 32 == 0 => self.accept(token as usize),
            token if token & FETCH != 0 => self.fetch_ready(key_of(token)),
            token => self.client_ready(key_of(token)),
        }
    }

    /// Does the work due once a turn. Returns true when the loop is to end.
    fn housekeeping(&mut self) -> bool {
        if self.shared.generation.load(Ordering::Acquire) != self.generation {
            self.reload();
        }
        if self.shared.draining.load(Ordering::Acquire) && self.drained_ms.is_none() {
            self.begin_drain();
        }
        if self.now.ms.saturating_sub(self.swept_ms) >= TICK.as_millis() as u64 {
            self.swept_ms = self.now.ms;
            self.sweep();
        }
        self.log.flush_if_long(&self.live);
        let over = self.drained_ms.is_some_and(|end| self.clients.is_empty() || self.now.ms >= end);
        if over {
            self.log.flush(&self.live);
        }
        over
    }

    fn reload(&mut self) {
        self.log.flush(&self.live);
        self.generation = self.shared.generation.load(Ordering::Acquire);
        let before = std::mem::replace(&mut self.live, self.shared.live());
        let config = &self.live.config;
        if (config.pace, config.budget) != (before.config.pace, before.config.budget) {
            self.pacing = Pacing::new(config.pace, config.budget);
        }
    }

    fn counters(&self) -> &Counters {
        &self.shared.counters[self.me]
    }

    fn wake_all(&self, wakers: &[Waker]) {
        wakers.iter().for_each(|waker| self.shared.wake(self.me, *waker));
    }

    fn client_waker(&self, id: DefaultKey) -> Waker {
        Waker { worker: self.me, token: id.data().as_ffi() }
    }

    fn fetch_waker(&self, id: DefaultKey) -> Waker {
        Waker { worker: self.me, token: id.data().as_ffi() | FETCH }
    }

    fn after(&self, time: Duration) -> u64 {
        self.now.ms + time.as_millis() as u64
    }
}

fn key_of(token: u64) -> DefaultKey {
    KeyData::from_ffi(token & !FETCH).into()
}
