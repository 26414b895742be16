//! A response under way: one fetch writes, any number of clients on any thread read while it grows.

use super::entry::Entry;
use crate::lock::lock;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use nearmiss_cache_policy::VaryKey;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// Bytes that a fetch may be ahead of its slowest reader where the response is not kept.
pub const AHEAD_MOST: u64 = 256 << 10;

/// Whom to wake: a thread and the number of a connection there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waker {
    /// The thread.
    pub worker: usize,
    /// The connection.
    pub token: u64,
}

/// The head of a response under way.
#[derive(Debug)]
pub struct Arrived {
    /// The status.
    pub status: StatusCode,
    /// The end-to-end fields.
    pub fields: HeaderMap,
    /// The body's length where it is known.
    pub length: Option<u64>,
    /// For whom else the response is, where it is being stored.
    pub shared: Option<VaryKey>,
}

/// How far it is.
#[derive(Clone, Debug)]
pub enum Phase {
    /// No head yet.
    Waiting,
    /// The head is there; the body grows.
    Arrived(Arc<Arrived>),
    /// The stored response is the answer: after a 304, or `stale` in place of an error.
    Stored {
        /// The response.
        entry: Arc<Entry>,
        /// The response is stale, and the origin gave an error or nothing.
        stale: bool,
    },
    /// There is no response.
    Failed(StatusCode, &'static str),
}

/// How it ended.
#[derive(Clone, Debug)]
pub enum End {
    /// Whole, with the trailer section as it came.
    Whole(Bytes),
    /// Cut off: what was read is not the response.
    Broken,
}

/// Next step of the fetch after it wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// Go on.
    More,
    /// Wait until a reader caught up.
    Pause,
    /// No reader is left.
    Nobody,
}

/// Result of a read.
#[derive(Debug)]
pub enum Found {
    /// Some of the body.
    Some,
    /// Nothing yet; the reader will be woken.
    Later,
    /// The end.
    End(End),
}

#[derive(Debug)]
struct Reader {
    waker: Waker,
    at: u64,
    asleep: bool,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    interim: Vec<Bytes>,
    chunks: VecDeque<Bytes>,
    /// Offsets in the body at which the first chunk begins, and the last one ends.
    first: u64,
    end: u64,
    kept: bool,
    ended: Option<End>,
    readers: Vec<Reader>,
    /// A pausing fetch.
    pausing: Option<Waker>,
}

/// The response under way.
#[derive(Debug)]
pub struct Flow {
    state: Mutex<State>,
}

/// Wakers to be woken after a change.
pub type Wakers = Vec<Waker>;

impl Flow {
    /// One without readers.
    pub fn new() -> Arc<Self> {
        let state = State {
            phase: Phase::Waiting,
            interim: Vec::new(),
            chunks: VecDeque::new(),
            first: 0,
            end: 0,
            kept: true,
            ended: None,
            readers: Vec::new(),
            pausing: None,
        };
        Arc::new(Flow { state: Mutex::new(state) })
    }

    /// Adds a reader at the beginning; false where the beginning is gone.
    pub fn attach(&self, waker: Waker) -> bool {
        let mut state = lock(&self.state);
        if state.first > 0 || !state.kept {
            return false;
        }
        state.readers.push(Reader { waker, at: 0, asleep: true });
        true
    }

    /// Takes a reader away, and returns a pausing fetch.
    pub fn detach(&self, waker: Waker) -> Option<Waker> {
        let mut state = lock(&self.state);
        state.readers.retain(|reader| reader.waker != waker);
        state.trim();
        state.pausing.take()
    }

    /// Returns how far it is, and the interim responses from number `seen` on.
    pub fn phase(&self, seen: usize) -> (Phase, Vec<Bytes>) {
        let state = lock(&self.state);
        (state.phase.clone(), state.interim.get(seen..).unwrap_or_default().to_vec())
    }

    /// Adds an interim response for the waiting readers.
    pub fn interim(&self, head: Bytes) -> Wakers {
        let mut state = lock(&self.state);
        state.interim.push(head);
        state.wake()
    }

    /// The answer, or its head. `kept` bodies stay whole for later readers.
    pub fn answer(&self, phase: Phase, kept: bool) -> Wakers {
        let mut state = lock(&self.state);
        state.phase = phase;
        state.kept = kept;
        state.wake()
    }

    /// More of the body.
    pub fn push(&self, bytes: Bytes) -> Wakers {
        let mut state = lock(&self.state);
        state.end += bytes.len() as u64;
        state.chunks.push_back(bytes);
        state.wake()
    }

    /// No more is kept than the readers need.
    pub fn keep_no_more(&self) {
        let mut state = lock(&self.state);
        state.kept = false;
        state.trim();
    }

    /// Returns whether the fetch is to go on; `fetch` is woken when a pause is over.
    pub fn demand(&self, fetch: Waker) -> Demand {
        let mut state = lock(&self.state);
        if state.kept {
            return Demand::More;
        }
        match state.readers.iter().map(|reader| reader.at).min() {
            None => Demand::Nobody,
            Some(slowest) if state.end - slowest > AHEAD_MOST => {
                state.pausing = Some(fetch);
                Demand::Pause
            }
            Some(_) => Demand::More,
        }
    }

    /// The pieces of a kept body, all that there are.
    pub fn pieces(&self) -> Vec<Bytes> {
        lock(&self.state).chunks.iter().cloned().collect()
    }

    /// The end.
    pub fn finish(&self, end: End) -> Wakers {
        let mut state = lock(&self.state);
        state.ended = Some(end);
        state.wake()
    }

    /// Reads from `at` on, at most `limit` bytes, into `into`. Returns a fetch that may go on.
    pub fn read(&self, waker: Waker, at: u64, limit: u64, into: &mut Vec<Bytes>) -> (Found, Option<Waker>) {
        let mut state = lock(&self.state);
        let resumed = state.progress(waker, at);
        let taken = state.copy(at, limit, into);
        let found = match &state.ended {
            _ if taken => Found::Some,
            Some(end) => Found::End(end.clone()),
            None => Found::Later,
        };
        if let Some(reader) = state.readers.iter_mut().find(|reader| reader.waker == waker) {
            reader.asleep = matches!(found, Found::Later);
        }
        (found, resumed)
    }
}

impl State {
    fn wake(&mut self) -> Wakers {
        let asleep = self.readers.iter_mut().filter(|reader| reader.asleep);
        asleep.map(|reader| reader.waker).collect()
    }

    fn progress(&mut self, waker: Waker, at: u64) -> Option<Waker> {
        if let Some(reader) = self.readers.iter_mut().find(|reader| reader.waker == waker) {
            reader.at = at;
        }
        self.trim();
        let slowest = self.readers.iter().map(|reader| reader.at).min()?;
        if self.pausing.is_some() && self.end - slowest <= AHEAD_MOST / 2 { self.pausing.take() } else { None }
    }

    fn trim(&mut self) {
        if self.kept {
            return;
        }
        let slowest = self.readers.iter().map(|reader| reader.at).min().unwrap_or(self.end);
        while let Some(chunk) = self.chunks.front() {
            let upto = self.first + chunk.len() as u64;
            if upto > slowest {
                break;
            }
            self.first = upto;
            self.chunks.pop_front();
        }
    }

    fn copy(&self, at: u64, limit: u64, into: &mut Vec<Bytes>) -> bool {
        let (mut begin, mut left) = (self.first, limit);
        for chunk in &self.chunks {
            let end = begin + chunk.len() as u64;
            if end > at && left > 0 {
                let from = at.saturating_sub(begin) as usize;
                let upto = (from as u64 + left).min(chunk.len() as u64) as usize;
                left -= (upto - from) as u64;
                into.push(chunk.slice(from..upto));
            }
            begin = end;
        }
        left < limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Waker = Waker { worker: 0, token: 1 };
    const B: Waker = Waker { worker: 1, token: 2 };
    const FETCH: Waker = Waker { worker: 0, token: 9 };

    fn read(flow: &Flow, who: Waker, at: u64, limit: u64) -> Vec<u8> {
        let mut into = Vec::new();
        flow.read(who, at, limit, &mut into);
        into.concat()
    }

    #[test]
    fn readers_share_what_grows() {
        let flow = Flow::new();
        assert!(flow.attach(A) && flow.attach(B));
        assert_eq!(flow.push(Bytes::from_static(b"hello ")), [A, B]);
        flow.push(Bytes::from_static(b"world"));
        assert_eq!(read(&flow, A, 0, 99), b"hello world");
        assert_eq!(read(&flow, B, 4, 4), b"o wo");
        assert_eq!(flow.pieces().concat(), b"hello world");
        assert_eq!(read(&flow, B, 8, 99), b"rld");
        assert!(matches!(flow.read(A, 11, 9, &mut Vec::new()).0, Found::Later));
        assert_eq!(flow.finish(End::Broken), [A]);
        assert!(matches!(flow.read(A, 11, 9, &mut Vec::new()).0, Found::End(End::Broken)));
    }

    #[test]
    fn a_slow_reader_makes_the_fetch_wait_where_nothing_is_kept() {
        let flow = Flow::new();
        flow.attach(A);
        flow.answer(Phase::Waiting, false);
        flow.push(Bytes::from(vec![0; AHEAD_MOST as usize + 1]));
        assert_eq!(flow.demand(FETCH), Demand::Pause);
        assert_eq!(flow.read(A, AHEAD_MOST / 2, 9, &mut Vec::new()).1, None);
        assert_eq!(flow.read(A, AHEAD_MOST / 2 + 1, 9, &mut Vec::new()).1, Some(FETCH));
        assert!(!flow.attach(B));
        assert_eq!(flow.detach(A), None);
        assert_eq!(flow.demand(FETCH), Demand::Nobody);
    }
}
