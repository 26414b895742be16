//! An origin's answer: its head, its body, and what is made of both.

use super::Worker;
use super::job::Job;
use super::judge::Judged;
use super::storing::Storing;
use crate::cache::body::Body;
use crate::cache::flow::{Demand, End, Phase};
use crate::message::chunked::Decoder;
use crate::message::response::{self, Head};
use crate::message::write;
use bytes::Bytes;
use http::{Method, StatusCode};
use rustix::net::{RecvFlags, recv};
use slotmap::DefaultKey;

/// Bytes of an origin's head.
const HEAD_MOST: usize = 64 << 10;
/// Interim answers to one request.
const INTERIM_MOST: usize = 32;
/// Reads before the others have their turn.
const A_TURN: usize = 16;

/// Result of a read.
enum Read {
    Some(usize),
    Nothing,
    End,
}

impl Worker {
    /// Reads what the origin sent.
    pub(super) fn read_response(&mut self, id: DefaultKey) {
        let mut room = std::mem::take(&mut self.room);
        for _ in 0..A_TURN {
            match self.receive(id, &mut room) {
                Read::Nothing => break,
                Read::End => {
                    self.origin_ended(id);
                    break;
                }
                Read::Some(size) => self.take_data(id, &room[..size]),
            }
        }
        self.room = room;
        let unread = self.fetches.get(id).is_some_and(|f| f.job.is_some() && f.readable && !f.paused);
        if unread {
            let waker = self.fetch_waker(id);
            self.shared.wake(self.me, waker);
        }
    }

    fn receive(&mut self, id: DefaultKey, room: &mut [u8]) -> Read {
        let waker = self.fetch_waker(id);
        let deadline = self.after(self.live.config.timeouts.origin);
        let Some(fetch) = self.fetches.get_mut(id) else { return Read::Nothing };
        let Some(job) = &fetch.job else { return Read::Nothing };
        match if job.decoder.is_some() { job.flow.demand(waker) } else { Demand::More } {
            Demand::More => {}
            Demand::Pause => {
                fetch.paused = true;
                return Read::Nothing;
            }
            Demand::Nobody => {
                self.abandon(id);
                return Read::Nothing;
            }
        }
        if !fetch.readable {
            return Read::Nothing;
        }
        match recv(&fetch.socket, &mut *room, RecvFlags::empty()) {
            Ok((0, _)) => Read::End,
            Ok((size, _)) => {
                fetch.readable = fetch.ended || size == room.len();
                fetch.deadline_ms = deadline;
                Read::Some(size)
            }
            Err(rustix::io::Errno::AGAIN) => {
                fetch.readable = false;
                Read::Nothing
            }
            Err(_) => Read::End,
        }
    }

    /// No reader of the answer is left.
    fn abandon(&mut self, id: DefaultKey) {
        let job = self.fetches.get_mut(id).and_then(|fetch| fetch.job.take());
        self.drop_connection(id);
        if let Some(job) = job {
            self.wake_all(&job.flow.finish(End::Broken));
        }
    }

    fn origin_ended(&mut self, id: DefaultKey) {
        let Some(job) = self.fetches.get(id).and_then(|fetch| fetch.job.as_ref()) else { return };
        match &job.decoder {
            Some(decoder) if decoder.may_close() => {
                self.complete(id);
            }
            Some(_) => self.fail(id, StatusCode::BAD_GATEWAY, "the origin's answer broke off"),
            None => self.fail(id, StatusCode::BAD_GATEWAY, "the origin closed the connection"),
        }
    }

    fn take_data(&mut self, id: DefaultKey, data: &[u8]) {
        let Some(fetch) = self.fetches.get_mut(id) else { return };
        let Some(job) = &mut fetch.job else { return self.drop_connection(id) };
        job.begun = true;
        if job.decoder.is_some() {
            return self.take_content(id, data);
        }
        let mut input = std::mem::take(&mut fetch.input);
        input.extend_from_slice(data);
        match self.take_heads(id, &input) {
            Ok(used) => {
                let Some(fetch) = self.fetches.get_mut(id) else { return };
                match fetch.job.as_ref().map(|job| job.decoder.is_some()) {
                    Some(true) => self.take_content(id, &input[used..]),
                    Some(false) => fetch.input = input.split_off(used),
                    None => {}
                }
            }
            Err(why) => self.fail(id, StatusCode::BAD_GATEWAY, why),
        }
    }

    /// Reads heads up to the final one; returns how much they took.
    fn take_heads(&mut self, id: DefaultKey, input: &[u8]) -> Result<usize, &'static str> {
        let mut at = 0;
        loop {
            let Some(job) = self.fetches.get_mut(id).and_then(|fetch| fetch.job.as_mut()) else { return Ok(at) };
            let method = if job.plan.key.is_some() { Method::GET } else { job.request.method.clone() };
            let head = response::parse(&input[at..], &method).map_err(|_| "the origin's answer is not readable")?;
            let Some(head) = head else {
                let long = input.len() - at > HEAD_MOST;
                return if long { Err("the origin's head is too long") } else { Ok(at) };
            };
            if head.size > HEAD_MOST {
                return Err("the origin's head is too long");
            }
            at += head.size;
            if head.status == StatusCode::SWITCHING_PROTOCOLS {
                return Err("the origin changed the protocol unasked");
            }
            if !head.status.is_informational() {
                self.arrived(id, head);
                return Ok(at);
            }
            job.interims += 1;
            if job.interims > INTERIM_MOST {
                return Err("the origin sends interim answers without an end");
            }
            let wakers = job.flow.interim(interim(&head));
            self.wake_all(&wakers);
        }
    }

    /// The final head is there.
    fn arrived(&mut self, id: DefaultKey, head: Head) {
        let now = self.now.wall;
        let Some(job) = self.fetches.get_mut(id).and_then(|fetch| fetch.job.as_deref_mut()) else { return };
        job.keep = head.keep;
        let length = head.body;
        let judged = self.judge(id, head, now);
        let Some(job) = self.fetches.get_mut(id).and_then(|fetch| fetch.job.as_deref_mut()) else { return };
        match judged {
            Judged::Answer { phase, storing } => {
                job.decoder = Some(Decoder::new(length));
                let wakers = job.flow.answer(phase, storing.is_some());
                job.storing = storing;
                if let (None, Some(key), true) = (&job.storing, &job.plan.key, job.plan.listed) {
                    self.shared.store.leave(key, &job.flow);
                }
                self.wake_all(&wakers);
                self.complete_if_done(id);
            }
            Judged::Instead(phase) => self.answer_instead(id, phase),
            Judged::Refetch => self.refetch(id),
            Judged::Unusable(why) => self.fail(id, StatusCode::BAD_GATEWAY, why),
        }
    }

    /// A stored response is the answer; what the origin sends as a body is of no use.
    fn answer_instead(&mut self, id: DefaultKey, phase: Phase) {
        let Some(fetch) = self.fetches.get_mut(id) else { return };
        let Some(job) = fetch.job.take() else { return };
        if let (Some(key), true) = (&job.plan.key, job.plan.listed) {
            self.shared.store.leave(key, &job.flow);
        }
        let bodyless = matches!(phase, Phase::Stored { stale: false, .. });
        self.wake_all(&job.flow.answer(phase, true));
        if job.keep && bodyless { self.keep_connection(id) } else { self.drop_connection(id) }
    }

    /// The origin validated something else: requests the whole response.
    fn refetch(&mut self, id: DefaultKey) {
        let Some(mut job) = self.fetches.get_mut(id).and_then(|fetch| fetch.job.take()) else { return };
        self.drop_connection(id);
        job.plan.stored = None;
        job.begun = false;
        self.try_next(job);
    }

    fn take_content(&mut self, id: DefaultKey, data: &[u8]) {
        let mut at = 0;
        while at < data.len() {
            let Some(job) = self.fetches.get_mut(id).and_then(|fetch| fetch.job.as_deref_mut()) else { return };
            let Some(decoder) = &mut job.decoder else { return };
            let Ok(step) = decoder.step(&data[at..]) else {
                return self.fail(id, StatusCode::BAD_GATEWAY, "the origin's body is not readable");
            };
            let content = &data[at..][step.content];
            at += step.used;
            job.size += content.len() as u64;
            let wakers = if content.is_empty() { Vec::new() } else { job.flow.push(piece(content)) };
            let done = decoder.done();
            job.keep &= !done || at == data.len();
            self.wake_all(&wakers);
            self.stop_storing_if_long(id);
            if done {
                return self.complete(id);
            }
        }
    }

    fn complete_if_done(&mut self, id: DefaultKey) {
        let job = self.fetches.get(id).and_then(|fetch| fetch.job.as_ref());
        if job.is_some_and(|job| job.decoder.as_ref().is_some_and(Decoder::done)) {
            self.complete(id);
        }
    }

    fn stop_storing_if_long(&mut self, id: DefaultKey) {
        let most = self.live.config.cache.object;
        let until = self.now.wall.0 + super::judge::PASS_SECONDS;
        let Some(job) = self.fetches.get_mut(id).and_then(|fetch| fetch.job.as_deref_mut()) else { return };
        if job.storing.is_none() || job.size <= most {
            return;
        }
        job.storing = None;
        if let Some(key) = &job.plan.key {
            self.shared.store.leave(key, &job.flow);
            self.shared.store.pass(key.clone(), until);
        }
        job.flow.keep_no_more();
    }

    /// The whole answer is there.
    fn complete(&mut self, id: DefaultKey) {
        let Some(fetch) = self.fetches.get_mut(id) else { return };
        let Some(mut job) = fetch.job.take() else { return };
        if let Some(storing) = job.storing.take() {
            self.store(&job, storing);
        }
        if let (Some(key), true) = (&job.plan.key, job.plan.listed) {
            self.shared.store.leave(key, &job.flow);
        }
        let trailers = job.decoder.take().map(|decoder| Bytes::from(decoder.trailers)).unwrap_or_default();
        self.wake_all(&job.flow.finish(End::Whole(trailers)));
        if job.keep && job.uploader.is_none() { self.keep_connection(id) } else { self.drop_connection(id) }
    }

    fn store(&self, job: &Job, storing: Storing) {
        let Some(key) = &job.plan.key else { return };
        let body = Body::new(&self.shared.store.arena, &job.flow.pieces());
        if self.shared.store.insert(key, storing.entry(body, &self.live.hit_marks), job.since) {
            self.counters().stored.one();
        }
    }
}

/// Copies a piece of a body for the readers.
fn piece(content: &[u8]) -> Bytes {
    Bytes::copy_from_slice(content)
}

/// An interim response as it goes on to the client.
fn interim(head: &Head) -> Bytes {
    let mut out = Vec::with_capacity(128);
    write::status_line(&mut out, head.status);
    write::fields(&mut out, &head.fields);
    out.extend_from_slice(b"\r\n");
    out.into()
}
