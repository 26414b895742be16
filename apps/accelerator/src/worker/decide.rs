//! Source of a request's answer: the store, a fetch of its own, or one that it shares.

use super::Worker;
use super::answer::Served;
use super::client::{Exchange, Role};
use super::job::Plan;
use super::request::Request;
use crate::cache::entry::Entry;
use crate::cache::flow::{Flow, Phase};
use crate::message::chunked::Decoder;
use crate::message::hops::came_through;
use crate::message::request::Head;
use crate::message::{BodyLength, write};
use http::{Method, StatusCode, header};
use nearmiss_cache_policy::{Answer, Condition, Forward, RequestDirectives, condition};
use slotmap::DefaultKey;
use std::sync::Arc;
use std::time::Instant;

impl Worker {
    /// Decides about a head that the short way did not take.
    pub(super) fn decide_head(&mut self, id: DefaultKey, head: &Head<'_>) {
        let Some(client) = self.clients.get_mut(id) else { return };
        let peer = client.peer.ip();
        client.keep = head.keep;
        match Request::new(head, peer) {
            Ok(request) => self.begin_exchange(id, Arc::new(request)),
            Err(refusal) => self.refuse(id, refusal),
        }
    }

    fn begin_exchange(&mut self, id: DefaultKey, request: Arc<Request>) {
        let upload = (request.body != BodyLength::None).then(|| Decoder::new(request.body));
        let deadline = self.after(self.live.config.timeouts.body);
        let exchange = Exchange {
            request: Arc::clone(&request),
            flow: None,
            interim: 0,
            role: Role::Passed,
            upload: upload.filter(|decoder| !decoder.done()),
            fetch: None,
            taken: 0,
            answered: false,
            began: Instant::now(),
            outcome: (StatusCode::OK, "-"),
            sent: 0,
        };
        let Some(client) = self.clients.get_mut(id) else { return };
        client.exchange = Some(Box::new(exchange));
        client.outgoing.heads = 0;
        client.deadline_ms = deadline;
        self.decide(id, &request);
    }

    fn decide(&mut self, id: DefaultKey, request: &Arc<Request>) {
        let hops = request.fields.get(header::MAX_FORWARDS).is_some_and(|hops| hops == "0");
        let too_long = matches!(request.body, BodyLength::Fixed(length) if length > self.live.config.limits.body);
        match request.method {
            Method::CONNECT | Method::TRACE => {
                self.own_answer(id, StatusCode::METHOD_NOT_ALLOWED, "not through this proxy")
            }
            Method::OPTIONS if hops => self.own_answer(id, StatusCode::OK, "the request goes no further"),
            _ if came_through(&request.fields, &self.live.config.cache.name) => self.own_answer(
                id,
                StatusCode::LOOP_DETECTED,
                "a proxy of this name forwarded it before; proxies in a row need a cache.name each",
            ),
            _ if too_long => self.own_answer(id, StatusCode::PAYLOAD_TOO_LARGE, "the body is too long"),
            _ if request.is_cacheable() => self.look_up(id, request),
            _ => self.pass(id, request, Forward::Method),
        }
    }

    fn look_up(&mut self, id: DefaultKey, request: &Arc<Request>) {
        let (directives, key) = (request.directives(), request.key());
        let resource = self.shared.store.get(&key.parts());
        match resource.as_ref().and_then(|resource| resource.select(&request.head())) {
            Some(entry) => self.use_entry(id, request, entry, &directives),
            None if directives.only_if_cached() => self.only_if_cached(id),
            None => {
                let why = if resource.is_some() { Forward::VaryMiss } else { Forward::UriMiss };
                let not_stored = self.shared.store.passes(&key, self.now.wall.0);
                if request.method == Method::HEAD
                    || directives.no_store()
                    || (not_stored && request.is_partial_or_conditional())
                {
                    self.pass(id, request, why);
                } else if not_stored {
                    self.fetch_alone(id, request, None, why);
                } else {
                    self.share(id, request, None, why, directives != RequestDirectives::default());
                }
            }
        }
    }

    fn only_if_cached(&mut self, id: DefaultKey) {
        self.own_answer(id, StatusCode::GATEWAY_TIMEOUT, "not stored, and the request takes only a stored response");
    }

    fn use_entry(
        &mut self,
        id: DefaultKey,
        request: &Arc<Request>,
        entry: &Arc<Entry>,
        directives: &RequestDirectives,
    ) {
        if condition(&request.head(), entry.status, &entry.fields) == Condition::ForOrigin {
            return self.pass(id, request, Forward::Request);
        }
        match entry.terms.answer(directives, self.now.wall) {
            Answer::Fresh => {
                self.counters().hits.one();
                self.serve_entry(id, entry, Served::Fresh);
            }
            Answer::Stale => self.serve_entry(id, entry, Served::Stale),
            Answer::StaleWhileRevalidate => {
                self.serve_entry(id, entry, Served::Stale);
                self.revalidate_behind(request, entry);
            }
            Answer::Refetch if request.method == Method::HEAD => self.pass(id, request, Forward::Stale),
            Answer::Validate | Answer::Refetch => {
                self.share(
                    id,
                    request,
                    Some(Arc::clone(entry)),
                    Forward::Stale,
                    *directives != RequestDirectives::default(),
                );
            }
            Answer::OnlyIfCachedMiss => self.only_if_cached(id),
        }
    }

    /// Validates without a client that waits.
    fn revalidate_behind(&mut self, request: &Arc<Request>, entry: &Arc<Entry>) {
        let key = request.key();
        let (flow, leads) = self.shared.store.join(&key, Flow::new);
        if leads {
            let plan = Plan { key: Some(key), stored: Some(Arc::clone(entry)), listed: true, why: Forward::Stale };
            self.start_fetch(request, &flow, plan, None);
        }
    }

    /// Joins the fetch under way for this key, or starts one. A `particular` request joins only one that has no answer
    /// yet: an answer from before the request may be older than it allows.
    fn share(
        &mut self,
        id: DefaultKey,
        request: &Arc<Request>,
        stored: Option<Arc<Entry>>,
        why: Forward,
        particular: bool,
    ) {
        let (key, waker) = (request.key(), self.client_waker(id));
        let (flow, leads) = self.shared.store.join(&key, Flow::new);
        let late = particular && !matches!(flow.phase(0).0, Phase::Waiting);
        if !leads && (late || !flow.attach(waker)) {
            return self.fetch_alone(id, request, stored, why);
        }
        if leads {
            flow.attach(waker);
        }
        self.set_flow(id, &flow, if leads { Role::Leads } else { Role::Joined });
        if leads {
            let plan = Plan { key: Some(key), stored, listed: true, why };
            self.start_fetch(request, &flow, plan, None);
        } else {
            self.counters().collapsed.one();
        }
    }

    /// Starts a fetch that no other request joins; its answer may be stored.
    fn fetch_alone(&mut self, id: DefaultKey, request: &Arc<Request>, stored: Option<Arc<Entry>>, why: Forward) {
        let flow = Flow::new();
        flow.attach(self.client_waker(id));
        self.set_flow(id, &flow, Role::Leads);
        let plan = Plan { key: Some(request.key()), stored, listed: false, why };
        self.start_fetch(request, &flow, plan, None);
    }

    /// Hands the request to an origin as it is.
    pub(super) fn pass(&mut self, id: DefaultKey, request: &Arc<Request>, why: Forward) {
        self.counters().passed.one();
        let flow = Flow::new();
        flow.attach(self.client_waker(id));
        self.set_flow(id, &flow, Role::Passed);
        let uploads = self.clients.get(id).and_then(|c| c.exchange.as_ref()).is_some_and(|e| e.upload.is_some());
        let plan = Plan { key: None, stored: None, listed: false, why };
        let fetch = self.start_fetch(request, &flow, plan, uploads.then_some(id));
        if let Some(exchange) = self.clients.get_mut(id).and_then(|client| client.exchange.as_mut()) {
            exchange.fetch = fetch;
        }
    }

    fn set_flow(&mut self, id: DefaultKey, flow: &Arc<Flow>, role: Role) {
        if let Some(exchange) = self.clients.get_mut(id).and_then(|client| client.exchange.as_mut()) {
            exchange.flow = Some(Arc::clone(flow));
            exchange.role = role;
        }
    }

    /// Answers without a fetch.
    pub(super) fn own_answer(&mut self, id: DefaultKey, status: StatusCode, why: &'static str) {
        let (draining, now) = (self.drained_ms.is_some(), self.now.wall);
        let Some(client) = self.clients.get_mut(id) else { return };
        let upload = client.exchange.as_ref().is_some_and(|exchange| exchange.upload.is_some());
        client.keep &= !draining && !upload;
        let http_0 = client.exchange.as_ref().is_some_and(|exchange| exchange.request.minor == 0);
        client.keep &= !http_0;
        let (head, text) = write::own_answer(status, why, client.keep, now);
        client.outgoing.head(&head);
        if client.exchange.as_ref().is_none_or(|exchange| exchange.request.method != Method::HEAD) {
            client.outgoing.text(&text);
        }
        if let Some(exchange) = &mut client.exchange {
            exchange.outcome = (status, "own");
            exchange.answered = true;
        }
    }
}
