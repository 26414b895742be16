//! From what was found to an answer's bytes: a stored response, or one under way, whole or in part.

use super::Worker;
use super::client::{Client, Exchange, Role};
use super::outgoing::Framing;
use super::request::Request;
use crate::cache::entry::Entry;
use crate::cache::flow::{Arrived, Flow, Phase};
use crate::message::write;
use http::{HeaderMap, HeaderName, Method, StatusCode, header};
use nearmiss_cache_policy::{Condition, Forward, Handled, Ranges, cache_status, condition, ranges, vary_key};
use slotmap::DefaultKey;
use std::sync::Arc;

/// The fields of a stored response that its 304 bears (RFC 9110 section 15.4.5).
const OF_304: [HeaderName; 6] =
    [header::CACHE_CONTROL, header::CONTENT_LOCATION, header::DATE, header::ETAG, header::EXPIRES, header::VARY];

/// As what a stored response is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// Fresh.
    Fresh,
    /// Stale, as the request or the response allows.
    Stale,
    /// Just validated at the origin.
    Validated,
    /// Stale, in place of the origin's error.
    InPlaceOfError,
}

/// Which part of a response a request gets.
struct ResponsePart {
    status: StatusCode,
    /// From here to behind there; nothing where no body goes out.
    body: Option<(u64, u64)>,
    length: Option<u64>,
    content_range: Option<String>,
    /// Our own 304, which bears few fields.
    reduced: bool,
}

impl Worker {
    /// Answers from the store, with the request's conditions and ranges.
    pub(super) fn serve_entry(&mut self, id: DefaultKey, entry: &Arc<Entry>, served: Served) {
        let (now, name, draining) = (self.now.wall, self.live.config.cache.name.clone(), self.drained_ms.is_some());
        if matches!(served, Served::Stale | Served::InPlaceOfError) {
            self.counters().hits_stale.one();
        }
        let Some(client) = self.clients.get_mut(id) else { return };
        let Some(request) = client.exchange.as_ref().map(|exchange| Arc::clone(&exchange.request)) else { return };
        let part = part_of(&request, entry.status, &entry.fields, Some(entry.body.len() as u64));
        let mut head = Vec::with_capacity(512);
        write_fields(&mut head, &part, &entry.fields);
        let handled = handled(served, entry.terms.time_to_live(now));
        write::field(&mut head, "via", format!("1.1 {name}").as_bytes());
        write::field(&mut head, "cache-status", cache_status(&name, &handled).as_bytes());
        write::number_field(&mut head, "age", entry.terms.age(now));
        write_length(&mut head, &part);
        client.end_head(head, &request, draining);
        if let Some((from, upto)) = part.body {
            client.outgoing.entry(Arc::clone(entry), from as usize, upto as usize);
        }
        client.note(part.status, word(served));
    }

    /// Goes on with a request that has not got its head yet.
    pub(super) fn answer(&mut self, id: DefaultKey) {
        let Some(client) = self.clients.get_mut(id) else { return };
        if !client.outgoing.is_empty() {
            return;
        }
        let Some(exchange) = &mut client.exchange else { return };
        let Some(flow) = exchange.flow.clone() else { return };
        let (phase, interim) = flow.phase(exchange.interim);
        exchange.interim += interim.len();
        if exchange.request.minor == 1 && exchange.role != Role::Joined {
            interim.iter().for_each(|head| client.outgoing.head(head));
        }
        match phase {
            Phase::Waiting => {}
            Phase::Failed(status, why) => {
                self.leave_flow(id, &flow);
                self.own_answer(id, status, why);
            }
            Phase::Stored { entry, stale } => self.answer_stored(id, &flow, &entry, stale),
            Phase::Arrived(arrived) => self.answer_arrived(id, &flow, &arrived),
        }
    }

    fn answer_stored(&mut self, id: DefaultKey, flow: &Arc<Flow>, entry: &Arc<Entry>, stale: bool) {
        let Some(exchange) = self.exchange(id) else { return };
        let request = Arc::clone(&exchange.request);
        self.leave_flow(id, flow);
        if vary_key(&entry.fields, &request.head()).as_ref() != Some(&entry.variant) {
            return self.pass(id, &request, Forward::VaryMiss);
        }
        self.serve_entry(id, entry, if stale { Served::InPlaceOfError } else { Served::Validated });
    }

    fn answer_arrived(&mut self, id: DefaultKey, flow: &Arc<Flow>, arrived: &Arc<Arrived>) {
        let Some(exchange) = self.exchange(id) else { return };
        let request = Arc::clone(&exchange.request);
        let mine = arrived.shared.is_some() && vary_key(&arrived.fields, &request.head()) == arrived.shared;
        let whole = arrived.status != StatusCode::PARTIAL_CONTENT && request.takes_the_whole();
        let less = request.is_partial_or_conditional();
        let as_requested = exchange.role == Role::Leads && (!less || whole) && request.method == Method::GET;
        let passed = exchange.role == Role::Passed;
        if !mine && !as_requested && !passed {
            self.leave_flow(id, flow);
            return self.pass(id, &request, Forward::UriMiss);
        }
        self.stream(id, flow, arrived, &request, (mine || less) && !passed);
    }

    /// Writes the head of a response under way, and lets the body follow.
    fn stream(&mut self, id: DefaultKey, flow: &Arc<Flow>, arrived: &Arrived, request: &Request, partly: bool) {
        let draining = self.drained_ms.is_some();
        let part = match partly {
            true => part_of(request, arrived.status, &arrived.fields, arrived.length),
            false => whole(request, arrived.status, arrived.length),
        };
        let mut head = Vec::with_capacity(512);
        write_fields(&mut head, &part, &arrived.fields);
        let Some(client) = self.clients.get_mut(id) else { return };
        let framing = framing(&part, request, arrived.length.is_some());
        match framing {
            Framing::Chunked if part.body.is_some() => write::field(&mut head, "transfer-encoding", b"chunked"),
            Framing::Close if part.body.is_some() => client.keep = false,
            _ => write_length(&mut head, &part),
        }
        client.end_head(head, request, draining);
        client.note(part.status, if partly { "miss" } else { "pass" });
        match part.body {
            Some((from, _)) => client.outgoing.flow(from, framing),
            None => self.leave_flow(id, flow),
        }
    }

    fn exchange(&mut self, id: DefaultKey) -> Option<&mut Exchange> {
        self.clients.get_mut(id)?.exchange.as_deref_mut()
    }

    /// The client reads from this flow no more.
    pub(super) fn leave_flow(&mut self, id: DefaultKey, flow: &Arc<Flow>) {
        let waker = self.client_waker(id);
        self.wake_all(flow.detach(waker).as_slice());
        if let Some(exchange) = self.exchange(id) {
            exchange.flow = None;
        }
    }

    /// Nothing of this exchange is needed any more.
    pub(super) fn let_go(&mut self, id: DefaultKey, exchange: &Exchange) {
        if let Some(flow) = &exchange.flow {
            let waker = self.client_waker(id);
            self.wake_all(flow.detach(waker).as_slice());
            if let Some(fetch) = exchange.fetch {
                self.client_left(fetch, flow);
            }
        }
    }
}

impl Client {
    fn end_head(&mut self, mut head: Vec<u8>, request: &Request, draining: bool) {
        self.keep &= request.keep && !draining;
        // The rest of an unread body would be taken for the next request.
        self.keep &= self.exchange.as_ref().is_none_or(|exchange| exchange.upload.is_none());
        match (self.keep, request.minor) {
            (true, 1) => {}
            (true, _) => write::field(&mut head, "connection", b"keep-alive"),
            (false, _) => write::field(&mut head, "connection", b"close"),
        }
        head.extend_from_slice(b"\r\n");
        self.outgoing.head(&head);
    }

    fn note(&mut self, status: StatusCode, word: &'static str) {
        if let Some(exchange) = &mut self.exchange {
            exchange.outcome = (status, word);
            exchange.answered = true;
        }
    }
}

fn has_no_body(request: &Request, status: StatusCode) -> bool {
    request.method == Method::HEAD || status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED
}

fn whole(request: &Request, status: StatusCode, length: Option<u64>) -> ResponsePart {
    let none = has_no_body(request, status);
    let length = length.filter(|_| status != StatusCode::NO_CONTENT);
    ResponsePart {
        status,
        body: (!none).then_some((0, length.unwrap_or(u64::MAX))),
        length,
        content_range: None,
        reduced: false,
    }
}

/// Returns the part of a response that conditions and ranges leave.
fn part_of(request: &Request, status: StatusCode, fields: &HeaderMap, length: Option<u64>) -> ResponsePart {
    if condition(&request.head(), status, fields) == Condition::NotModified {
        return ResponsePart {
            status: StatusCode::NOT_MODIFIED,
            body: None,
            length: None,
            content_range: None,
            reduced: true,
        };
    }
    let Some(all) = length.filter(|_| status == StatusCode::OK) else { return whole(request, status, length) };
    match ranges(&request.head(), fields, all) {
        Ranges::Whole => whole(request, status, length),
        Ranges::One { first, last } => ResponsePart {
            status: StatusCode::PARTIAL_CONTENT,
            body: Some((first, last + 1)),
            length: Some(last + 1 - first),
            content_range: Some(format!("bytes {first}-{last}/{all}")),
            reduced: false,
        },
        Ranges::Unsatisfiable => ResponsePart {
            status: StatusCode::RANGE_NOT_SATISFIABLE,
            body: None,
            length: Some(0),
            content_range: Some(format!("bytes */{all}")),
            reduced: false,
        },
    }
}

fn framing(part: &ResponsePart, request: &Request, length_known: bool) -> Framing {
    match part.body {
        Some((_, end)) if length_known => Framing::Known { end },
        Some(_) if request.minor == 1 => Framing::Chunked,
        Some(_) => Framing::Close,
        None => Framing::Known { end: 0 },
    }
}

fn write_fields(head: &mut Vec<u8>, part: &ResponsePart, fields: &HeaderMap) {
    write::status_line(head, part.status);
    for (name, value) in fields {
        let of_another = part.status == StatusCode::RANGE_NOT_SATISFIABLE && *name == header::CONTENT_TYPE;
        let left_out = part.reduced && !OF_304.contains(name);
        if !of_another && !left_out {
            write::field(head, name.as_str(), value.as_bytes());
        }
    }
    if let Some(range) = &part.content_range {
        write::field(head, "content-range", range.as_bytes());
    }
}

fn write_length(head: &mut Vec<u8>, part: &ResponsePart) {
    if let Some(length) = part.length {
        write::number_field(head, "content-length", length);
    }
}

fn handled(served: Served, time_to_live: i64) -> Handled<'static> {
    let time_to_live = Some(time_to_live);
    match served {
        Served::Fresh | Served::Stale => Handled { time_to_live, ..Handled::default() },
        Served::Validated => Handled {
            forward: Some(Forward::Stale),
            forward_status: Some(StatusCode::NOT_MODIFIED),
            time_to_live,
            ..Handled::default()
        },
        Served::InPlaceOfError => Handled { time_to_live, detail: Some("origin-error"), ..Handled::default() },
    }
}

fn word(served: Served) -> &'static str {
    match served {
        Served::Fresh => "hit",
        Served::Stale => "stale",
        Served::Validated => "validated",
        Served::InPlaceOfError => "stale-error",
    }
}
