//! A client's connection: what it read and did not use yet, what it has still to write.

use super::outgoing::{Outgoing, Sent};
use super::request::Request;
use super::{Worker, hit};
use crate::cache::flow::Flow;
use crate::engine::{Event, Interest};
use crate::message::chunked::Decoder;
use crate::message::request::{FIELDS_MOST, FieldRoom, parse};
use crate::message::{Refusal, write};
use http::StatusCode;
use rustix::net::{RecvFlags, Shutdown, recv, shutdown};
use slotmap::DefaultKey;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// The status that nginx, too, logs when a client left before its answer.
const UNANSWERED: u16 = 499;

/// A client's connection.
#[derive(Debug)]
pub struct Client {
    pub(super) socket: OwnedFd,
    pub(super) peer: SocketAddr,
    /// Bytes read and not used yet.
    pub(super) input: Vec<u8>,
    pub(super) outgoing: Outgoing,
    /// The request that is being answered, if that takes more than one turn.
    pub(super) exchange: Option<Box<Exchange>>,
    /// There may be something to read.
    pub(super) readable: bool,
    /// The other side sends no more: read until the end shows.
    pub(super) ended: bool,
    /// The end was read.
    pub(super) at_end: bool,
    pub(super) keep: bool,
    /// Sent all it has to send, and reads only so that the other side can read the answer.
    pub(super) lingers: bool,
    pub(super) deadline_ms: u64,
    interest: Interest,
}

/// A request on its way.
#[derive(Debug)]
pub struct Exchange {
    pub(super) request: Arc<Request>,
    /// The flow that its answer comes from.
    pub(super) flow: Option<Arc<Flow>>,
    /// Interim responses already passed on.
    pub(super) interim: usize,
    /// Role of the request in the fetch.
    pub(super) role: Role,
    /// Decoder of the request's body, if there is one and it is not all handed on.
    pub(super) upload: Option<Decoder>,
    /// The fetch that takes the body.
    pub(super) fetch: Option<DefaultKey>,
    /// Bytes of its body so far.
    pub(super) taken: u64,
    /// The final head is among what goes out.
    pub(super) answered: bool,
    pub(super) began: Instant,
    /// Status and word for the access log.
    pub(super) outcome: (StatusCode, &'static str),
    pub(super) sent: u64,
}

/// Role of a request in the fetch that its answer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The fetch was made for it with the same request: any response is its answer.
    Passed,
    /// The fetch was made for it, but requests the whole.
    Leads,
    /// The fetch was made for another one: only what may be shared is its answer.
    Joined,
}

impl Client {
    pub(super) fn new(socket: OwnedFd, peer: SocketAddr, deadline_ms: u64) -> Self {
        Client {
            socket,
            peer,
            input: Vec::new(),
            outgoing: Outgoing::default(),
            exchange: None,
            readable: false,
            ended: false,
            at_end: false,
            keep: true,
            lingers: false,
            deadline_ms,
            interest: Interest::READ,
        }
    }

    /// Between requests, without a part of the next one.
    pub(super) fn is_idle(&self) -> bool {
        self.is_free() && self.input.is_empty() && !self.lingers
    }

    /// Ready for the next request.
    pub(super) fn is_free(&self) -> bool {
        self.exchange.is_none() && self.outgoing.is_empty()
    }
}

impl Exchange {
    /// The connection ends before the answer does: for the log.
    fn breaks_off(&mut self) {
        let unanswered = StatusCode::from_u16(UNANSWERED).unwrap_or(StatusCode::BAD_REQUEST);
        self.outcome = (if self.answered { self.outcome.0 } else { unanswered }, "broken");
    }
}

impl Worker {
    pub(super) fn client_event(&mut self, id: DefaultKey, event: Event) {
        let Some(client) = self.clients.get_mut(id) else { return };
        client.readable |= event.readable || event.ended;
        client.ended |= event.ended;
        if event.gone && !client.is_idle() {
            return self.close_client(id);
        }
        self.client_ready(id);
    }

    /// Does all that can be done now.
    pub(super) fn client_ready(&mut self, id: DefaultKey) {
        loop {
            let Some(client) = self.clients.get(id) else { return };
            if client.lingers {
                return self.linger(id);
            }
            if client.exchange.is_some() {
                self.pump_upload(id);
                self.answer(id);
            }
            if !self.flush(id) || !self.read_requests(id) {
                break;
            }
        }
        self.watch_client(id);
    }

    /// Writes what there is. True where the client is free for its next request.
    fn flush(&mut self, id: DefaultKey) -> bool {
        let waker = self.client_waker(id);
        let Some(client) = self.clients.get_mut(id) else { return false };
        if client.outgoing.is_empty() {
            return client.exchange.is_none();
        }
        let flow = client.exchange.as_ref().and_then(|exchange| exchange.flow.as_deref());
        let (sent, bytes, resumed) = client.outgoing.send(&client.socket, flow, waker);
        if let Some(exchange) = &mut client.exchange {
            exchange.sent += bytes;
        }
        if bytes > 0 {
            client.deadline_ms = self.now.ms + self.live.config.timeouts.write.as_millis() as u64;
        }
        let interim = client.exchange.as_ref().is_some_and(|exchange| !exchange.answered);
        self.counters().bytes_sent.add(bytes);
        self.wake_all(resumed.as_slice());
        match sent {
            Sent::All if interim => {
                self.answer(id);
                self.flush(id)
            }
            Sent::All => self.finish_exchange(id),
            Sent::Blocked => false,
            Sent::TurnOver => {
                self.shared.wake(self.me, waker);
                false
            }
            Sent::Failed => {
                self.close_client(id);
                false
            }
        }
    }

    /// The answer is out. True where the client goes on.
    fn finish_exchange(&mut self, id: DefaultKey) -> bool {
        let Some(client) = self.clients.get_mut(id) else { return false };
        if let Some(exchange) = client.exchange.take() {
            // The rest of the request's body would be read as the next request.
            client.keep &= exchange.upload.is_none();
            let (peer, heads) = (client.peer, client.outgoing.heads);
            self.log_exchange(peer, &exchange, heads);
            self.let_go(id, &exchange);
        }
        self.after_answer(id)
    }

    /// Keeps or ends the connection. True where the client goes on.
    pub(super) fn after_answer(&mut self, id: DefaultKey) -> bool {
        let idle = self.idle_time();
        let deadline = self.after(idle);
        let draining = self.drained_ms.is_some();
        let Some(client) = self.clients.get_mut(id) else { return false };
        client.deadline_ms = deadline;
        if client.keep && !(draining && client.input.is_empty()) {
            return true;
        }
        self.begin_linger(id);
        false
    }

    /// Ends the answer's direction, and reads on for a while: closing at once would make the kernel throw away what
    /// the client did not read yet.
    fn begin_linger(&mut self, id: DefaultKey) {
        let deadline = self.after(std::time::Duration::from_secs(2));
        let Some(client) = self.clients.get_mut(id) else { return };
        if client.at_end || shutdown(&client.socket, Shutdown::Write).is_err() {
            return self.close_client(id);
        }
        client.lingers = true;
        client.input = Vec::new();
        client.deadline_ms = deadline;
        self.linger(id);
    }

    fn linger(&mut self, id: DefaultKey) {
        let mut room = std::mem::take(&mut self.room);
        let over = self.clients.get_mut(id).is_none_or(|client| {
            loop {
                match recv(&client.socket, &mut room[..], RecvFlags::empty()) {
                    Ok((0, _)) => break true,
                    Ok(_) => {}
                    Err(rustix::io::Errno::AGAIN) => break false,
                    Err(_) => break true,
                }
            }
        });
        self.room = room;
        if over { self.close_client(id) } else { self.watch_client(id) }
    }

    /// Reads requests and answers them while that is possible at once. True where there is more to do.
    fn read_requests(&mut self, id: DefaultKey) -> bool {
        let mut room = std::mem::take(&mut self.room);
        let Some(client) = self.clients.get_mut(id) else {
            self.room = room;
            return false;
        };
        let held = client.input.len();
        room[..held].copy_from_slice(&client.input);
        let read = if held > 0 && !client.readable { 0 } else { client.receive(&mut room[held..]) };
        let filled = held + read;
        let used = self.serve(id, &room[..filled]);
        let more = self.clients.get_mut(id).is_some_and(|client| {
            client.input.clear();
            client.input.extend_from_slice(&room[used.min(filled)..filled]);
            client.exchange.is_some() || !client.outgoing.is_empty() || (read > 0 && client.readable)
        });
        self.room = room;
        self.note_end(id);
        more && self.clients.contains_key(id)
    }

    /// A client that sends no more and waits for nothing is done.
    fn note_end(&mut self, id: DefaultKey) {
        let Some(client) = self.clients.get(id) else { return };
        if client.at_end && client.is_free() && !client.lingers {
            self.close_client(id);
        }
    }

    /// Answers what can be answered of `data`; returns how much of it was used.
    fn serve(&mut self, id: DefaultKey, data: &[u8]) -> usize {
        let mut at = 0;
        while at < data.len() && self.clients.get(id).is_some_and(|client| client.is_free() && !client.lingers) {
            let mut room: FieldRoom<'_> = [const { MaybeUninit::uninit() }; FIELDS_MOST];
            match parse(&data[at..], &mut room).and_then(|head| self.check_head(head, &data[at..])) {
                Ok(Some(head)) => {
                    at += head.size;
                    self.counters().requests.one();
                    if !self.try_hit(id, &head) {
                        self.decide_head(id, &head);
                    }
                }
                Ok(None) => {
                    self.begin_head(id, at > 0);
                    break;
                }
                Err(refusal) => {
                    self.refuse(id, refusal);
                    return data.len();
                }
            }
        }
        at
    }

    /// A head has begun to arrive: it has a time to be complete.
    fn begin_head(&mut self, id: DefaultKey, new: bool) {
        let deadline = self.after(self.live.config.timeouts.head);
        let Some(client) = self.clients.get_mut(id) else { return };
        if new || client.input.is_empty() {
            client.deadline_ms = deadline;
        }
    }

    /// Refuses a head that is too long, complete or not.
    fn check_head<'a>(&self, head: Option<hit::Head<'a>>, data: &[u8]) -> Result<Option<hit::Head<'a>>, Refusal> {
        let limits = &self.live.config.limits;
        let line = || data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len()) as u64;
        let size = head.as_ref().map_or(data.len(), |head| head.size) as u64;
        if head.as_ref().map_or_else(
            || size > limits.target && line() > limits.target + 32,
            |head| head.target.len() as u64 > limits.target,
        ) {
            return Err(Refusal { status: StatusCode::URI_TOO_LONG, why: "the target is too long" });
        }
        if size > limits.head {
            return Err(Refusal { status: StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, why: "the head is too long" });
        }
        Ok(head)
    }

    /// Answers what is no request, and ends the connection.
    pub(super) fn refuse(&mut self, id: DefaultKey, refusal: Refusal) {
        self.counters().requests_refused.one();
        let (head, text) = write::own_answer(refusal.status, refusal.why, false, self.now.wall);
        let Some(client) = self.clients.get_mut(id) else { return };
        client.keep = false;
        client.outgoing.head(&head);
        client.outgoing.text(&text);
        let peer = client.peer;
        self.log_refusal(peer, refusal, text.len() as u64);
        if self.flush(id) {
            self.after_answer(id);
        }
    }

    /// Closes a connection in any state.
    pub(super) fn close_client(&mut self, id: DefaultKey) {
        let Some(mut client) = self.clients.remove(id) else { return };
        self.engine.remove(client.socket.as_fd());
        self.shared.connections.fetch_sub(1, Ordering::Relaxed);
        if let Some(mut exchange) = client.exchange.take() {
            exchange.breaks_off();
            self.log_exchange(client.peer, &exchange, client.outgoing.heads);
            self.let_go(id, &exchange);
        }
    }

    fn watch_client(&mut self, id: DefaultKey) {
        let Some(client) = self.clients.get_mut(id) else { return };
        let uploads = client.exchange.as_ref().is_some_and(|exchange| exchange.upload.is_some());
        let read = !client.at_end && (client.is_free() || client.lingers || (uploads && client.input.is_empty()));
        let interest = Interest { read, write: client.outgoing.is_blocked() };
        if interest != client.interest {
            client.interest = interest;
            self.engine.watch(client.socket.as_fd(), interest);
        }
    }
}

impl Client {
    /// Reads once. A read that does not fill the room took all there was.
    pub(super) fn receive(&mut self, room: &mut [u8]) -> usize {
        if !self.readable {
            return 0;
        }
        match recv(&self.socket, &mut *room, RecvFlags::empty()) {
            Ok((0, _)) if !room.is_empty() => {
                (self.at_end, self.readable) = (true, false);
                0
            }
            Ok((read, _)) => {
                self.readable = self.ended || read == room.len();
                read
            }
            Err(rustix::io::Errno::AGAIN) => {
                self.readable = false;
                0
            }
            Err(_) => {
                (self.at_end, self.readable) = (true, false);
                0
            }
        }
    }
}
