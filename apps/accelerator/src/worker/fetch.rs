//! A connection to an origin and the request on it.

use super::job::{Job, Plan};
use super::request::Request;
use super::{FETCH, Worker};
use crate::PROGRAM;
use crate::cache::flow::{Demand, End, Flow, Phase};
use crate::engine::{Event, Interest};
use crate::origins::Server;
use http::StatusCode;
use nearmiss_usage::report;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, connect, send, socket_with, sockopt};
use slotmap::{DefaultKey, Key as _};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// A connection to an origin.
#[derive(Debug)]
pub struct Fetch {
    pub(super) socket: OwnedFd,
    pub(super) server: Arc<Server>,
    pub(super) job: Option<Box<Job>>,
    /// Bytes to write.
    pub(super) out: Vec<u8>,
    pub(super) out_at: usize,
    /// Bytes of an incomplete head.
    pub(super) input: Vec<u8>,
    /// The connection had a request before this one.
    pub(super) reused: bool,
    pub(super) connecting: bool,
    pub(super) readable: bool,
    pub(super) ended: bool,
    pub(super) paused: bool,
    pub(super) deadline_ms: u64,
    pub(super) interest: Interest,
}

impl Worker {
    /// Sends a request to an origin. The answer goes into the flow.
    pub(super) fn start_fetch(
        &mut self,
        request: &Arc<Request>,
        flow: &Arc<Flow>,
        plan: Plan,
        uploader: Option<DefaultKey>,
    ) -> Option<DefaultKey> {
        match plan.stored {
            Some(_) => self.counters().revalidations.one(),
            None if plan.key.is_some() => self.counters().misses.one(),
            None => {}
        }
        let job = Job {
            request: Arc::clone(request),
            flow: Arc::clone(flow),
            plan,
            failure: (StatusCode::BAD_GATEWAY, "no origin answers"),
            tried: Vec::new(),
            uploader,
            requested_at: self.now.wall,
            since: self.shared.store.turn(),
            interims: 0,
            begun: false,
            storing: None,
            decoder: None,
            size: 0,
            keep: false,
        };
        self.try_next(Box::new(job))
    }

    /// Gives the job to the next server that was not tried.
    pub(super) fn try_next(&mut self, job: Box<Job>) -> Option<DefaultKey> {
        let mut job = job;
        while (job.tried.len() as u32) < self.live.config.limits.tries {
            let Some(server) = self.live.origins.pick(&job.tried) else { break };
            if let Some(id) = self.connection(&server, job.request.is_repeatable()) {
                self.begin_job(id, job);
                return Some(id);
            }
            self.failed_server(&server);
            job.tried.push(server);
        }
        let (status, why) = job.failure;
        self.give_up(*job, status, why);
        None
    }

    fn failed_server(&self, server: &Server) {
        if server.found(false) {
            report(PROGRAM, format_args!("origin {}: not well", server.config.address));
        }
    }

    fn begin_job(&mut self, id: DefaultKey, mut job: Box<Job>) {
        let head = self.request_head(&job);
        let (connect, wait) = (self.live.config.timeouts.connect, self.live.config.timeouts.origin);
        let deadline = self.after(if self.fetches[id].connecting { connect } else { wait });
        job.requested_at = self.now.wall;
        if self.fetches[id].reused {
            self.counters().origin_reused.one();
        }
        let fetch = &mut self.fetches[id];
        fetch.out = head;
        fetch.out_at = 0;
        fetch.deadline_ms = deadline;
        fetch.job = Some(job);
        let waker = self.fetch_waker(id);
        self.shared.wake(self.me, waker);
    }

    /// A kept connection, or a new one. A kept one may be dying: what cannot be repeated gets a new one.
    fn connection(&mut self, server: &Arc<Server>, repeatable: bool) -> Option<DefaultKey> {
        let kept = self.idle.get_mut(&server.config.address).filter(|_| repeatable);
        if let Some(id) = kept.and_then(Vec::pop) {
            self.fetches.get_mut(id)?.reused = true;
            return Some(id);
        }
        let (socket, connecting) = begin_connection(&server.config.address).ok()?;
        self.counters().origin_connections.one();
        let interest = Interest { read: true, write: true };
        let id = self.fetches.insert(Fetch {
            socket,
            server: Arc::clone(server),
            job: None,
            out: Vec::new(),
            out_at: 0,
            input: Vec::new(),
            reused: false,
            connecting,
            readable: false,
            ended: false,
            paused: false,
            deadline_ms: u64::MAX,
            interest,
        });
        let added = self.engine.add(self.fetches[id].socket.as_fd(), id.data().as_ffi() | FETCH, interest);
        if added.is_err() {
            self.fetches.remove(id);
            return None;
        }
        Some(id)
    }

    pub(super) fn fetch_event(&mut self, id: DefaultKey, event: Event) {
        let Some(fetch) = self.fetches.get_mut(id) else { return };
        if fetch.job.is_none() {
            // A kept connection can only report its end.
            if event.readable || event.ended {
                self.drop_connection(id);
            }
            return;
        }
        fetch.readable |= event.readable || event.ended;
        fetch.ended |= event.ended;
        if fetch.connecting && (event.writable || event.gone) {
            fetch.connecting = false;
            let failed = !matches!(sockopt::socket_error(&fetch.socket), Ok(Ok(())));
            fetch.deadline_ms = self.now.ms + self.live.config.timeouts.origin.as_millis() as u64;
            if failed {
                return self.fail(id, StatusCode::BAD_GATEWAY, "no connection to the origin");
            }
        }
        self.fetch_ready(id);
    }

    /// Does all that can be done now.
    pub(super) fn fetch_ready(&mut self, id: DefaultKey) {
        match self.fetches.get_mut(id) {
            Some(fetch) if fetch.job.is_some() && !fetch.connecting => fetch.paused = false,
            _ => return,
        }
        if self.write_request(id) {
            self.read_response(id);
        }
        self.watch_fetch(id);
    }

    /// Writes what there is. False where the connection failed.
    fn write_request(&mut self, id: DefaultKey) -> bool {
        let Some(fetch) = self.fetches.get_mut(id) else { return false };
        while fetch.out_at < fetch.out.len() {
            match send(&fetch.socket, &fetch.out[fetch.out_at..], SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(written) => fetch.out_at += written,
                Err(rustix::io::Errno::AGAIN) => return true,
                // An answer may be there though the origin takes no more.
                Err(_) if fetch.readable => break,
                Err(_) => {
                    self.fail(id, StatusCode::BAD_GATEWAY, "the origin closed the connection");
                    return false;
                }
            }
        }
        fetch.out.clear();
        fetch.out_at = 0;
        if let Some(client) = fetch.job.as_ref().and_then(|job| job.uploader) {
            self.resume_upload(client);
        }
        true
    }

    fn watch_fetch(&mut self, id: DefaultKey) {
        let Some(fetch) = self.fetches.get_mut(id) else { return };
        let interest = Interest { read: !fetch.paused, write: fetch.connecting || fetch.out_at < fetch.out.len() };
        if interest != fetch.interest {
            fetch.interest = interest;
            self.engine.watch(fetch.socket.as_fd(), interest);
        }
    }

    /// The fetch came to nothing: another try where that is allowed, else the end.
    pub(super) fn fail(&mut self, id: DefaultKey, status: StatusCode, why: &'static str) {
        let Some(fetch) = self.fetches.get_mut(id) else { return };
        let (server, reused) = (Arc::clone(&fetch.server), fetch.reused);
        let job = fetch.job.take();
        self.drop_connection(id);
        let Some(mut job) = job else { return };
        if !reused && !job.begun {
            self.failed_server(&server);
        }
        if job.begun || !job.request.is_repeatable() {
            return self.give_up(*job, status, why);
        }
        self.counters().origin_retries.one();
        job.failure = (status, why);
        // A kept connection may have died of age, but not by being slow.
        if !reused || status == StatusCode::GATEWAY_TIMEOUT {
            job.tried.push(server);
        }
        self.try_next(job);
    }

    /// Ends a job without a whole response.
    pub(super) fn give_up(&mut self, job: Job, status: StatusCode, why: &'static str) {
        self.counters().origin_failures.one();
        if let (Some(key), true) = (&job.plan.key, job.plan.listed) {
            self.shared.store.leave(key, &job.flow);
        }
        if job.decoder.is_some() {
            return self.wake_all(&job.flow.finish(End::Broken));
        }
        let phase = self.stale_instead(&job).unwrap_or(Phase::Failed(status, why));
        self.wake_all(&job.flow.answer(phase, true));
    }

    /// The stored response, where it may stand in for an error.
    pub(super) fn stale_instead(&self, job: &Job) -> Option<Phase> {
        let entry = job.plan.stored.as_ref()?;
        let allowed = entry.terms.may_serve_after_error(&job.request.directives(), self.now.wall);
        allowed.then(|| Phase::Stored { entry: Arc::clone(entry), stale: true })
    }

    /// The client that gave this fetch its body has gone.
    pub(super) fn client_left(&mut self, id: DefaultKey, flow: &Arc<Flow>) {
        let waker = self.fetch_waker(id);
        let Some(fetch) = self.fetches.get_mut(id) else { return };
        let Some(job) = fetch.job.as_mut().filter(|job| Arc::ptr_eq(&job.flow, flow)) else { return };
        let unfinished = job.uploader.take().is_some();
        job.keep &= !unfinished;
        if unfinished || job.flow.demand(waker) == Demand::Nobody {
            let job = fetch.job.take();
            self.drop_connection(id);
            if let Some(job) = job {
                self.wake_all(&job.flow.finish(End::Broken));
            }
        }
    }

    pub(super) fn drop_connection(&mut self, id: DefaultKey) {
        let Some(fetch) = self.fetches.remove(id) else { return };
        self.engine.remove(fetch.socket.as_fd());
        if let Some(idle) = self.idle.get_mut(&fetch.server.config.address) {
            idle.retain(|kept| *kept != id);
        }
    }

    /// Keeps a connection after its request is done.
    pub(super) fn keep_connection(&mut self, id: DefaultKey) {
        let most = self.live.config.limits.idle_origin;
        let deadline = self.after(self.live.config.timeouts.idle);
        let Some(fetch) = self.fetches.get_mut(id) else { return };
        let idle = self.idle.entry(fetch.server.config.address).or_default();
        if fetch.ended || fetch.out_at < fetch.out.len() || idle.len() >= most {
            return self.drop_connection(id);
        }
        fetch.deadline_ms = deadline;
        fetch.input = Vec::new();
        idle.push(id);
    }
}

/// A socket on its way to an address, and whether it is still on its way.
fn begin_connection(address: &SocketAddr) -> rustix::io::Result<(OwnedFd, bool)> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    match connect(&socket, address) {
        Ok(()) => Ok((socket, false)),
        Err(rustix::io::Errno::INPROGRESS) => Ok((socket, true)),
        Err(error) => Err(error),
    }
}

/// Bytes of a body's chunk as the origin gets them.
pub fn chunk(out: &mut Vec<u8>, content: &[u8], chunked: bool) {
    if chunked && !content.is_empty() {
        out.extend_from_slice(format!("{:x}\r\n", content.len()).as_bytes());
    }
    out.extend_from_slice(content);
    if chunked && !content.is_empty() {
        out.extend_from_slice(b"\r\n");
    }
}
