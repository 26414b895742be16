//! A request that outlives the buffer it came in.

use crate::cache::key::Key;
use crate::message::request::Head;
use crate::message::{BodyLength, Refusal, fields};
use http::{HeaderMap, Method, header};
use nearmiss_cache_policy::{RequestDirectives, RequestHead};
use std::net::IpAddr;

/// A request without its body.
#[derive(Debug)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// In origin form.
    pub target: String,
    /// In lower case.
    pub authority: String,
    /// The end-to-end fields.
    pub fields: HeaderMap,
    /// The client's version.
    pub minor: u8,
    /// How its body ends.
    pub body: BodyLength,
    /// Whether the connection stays.
    pub keep: bool,
    /// Address of the client.
    pub peer: IpAddr,
}

impl Request {
    /// Copies a head.
    pub fn new(head: &Head<'_>, peer: IpAddr) -> Result<Self, Refusal> {
        let mut fields = head.map()?;
        fields::strip(&mut fields);
        Ok(Request {
            method: head.method()?,
            target: head.target.to_owned(),
            authority: head.authority.to_ascii_lowercase(),
            fields,
            minor: head.minor,
            body: head.body,
            keep: head.keep,
            peer,
        })
    }

    /// Returns the head in the caching policy's form.
    pub fn head(&self) -> RequestHead<'_> {
        RequestHead { method: &self.method, target: &self.target, authority: &self.authority, headers: &self.fields }
    }

    /// Returns the request's directives for a cache.
    pub fn directives(&self) -> RequestDirectives {
        RequestDirectives::of(&self.head())
    }

    /// Returns the request's key.
    pub fn key(&self) -> Key {
        Key::new(&self.authority, &self.target)
    }

    /// Returns whether a stored response can be its answer at all.
    pub fn is_cacheable(&self) -> bool {
        let bodyless = matches!(self.body, BodyLength::None | BodyLength::Fixed(0));
        (self.method == Method::GET || self.method == Method::HEAD) && bodyless
    }

    /// Returns whether it can be sent again without harm.
    pub fn is_repeatable(&self) -> bool {
        let idempotent = [Method::GET, Method::HEAD, Method::OPTIONS, Method::PUT, Method::DELETE];
        idempotent.contains(&self.method) && matches!(self.body, BodyLength::None | BodyLength::Fixed(0))
    }

    /// Returns whether the request takes less than the whole response: a part of it, or none under a condition.
    pub fn is_partial_or_conditional(&self) -> bool {
        LESS.iter().any(|name| self.fields.contains_key(name))
    }

    /// Returns whether the whole response, stored or not, is all that its answer takes: it requests no part, and its
    /// conditions can be judged by the response's fields.
    pub fn takes_the_whole(&self) -> bool {
        !TO_THE_ORIGIN.iter().any(|name| self.fields.contains_key(name))
    }
}

/// The fields that leave an answer to the origin, though the whole response is at hand.
const TO_THE_ORIGIN: [header::HeaderName; 3] = [header::RANGE, header::IF_MATCH, header::IF_UNMODIFIED_SINCE];

/// The fields that make a response less than whole.
pub const LESS: [header::HeaderName; 6] = [
    header::RANGE,
    header::IF_RANGE,
    header::IF_NONE_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_MATCH,
    header::IF_UNMODIFIED_SINCE,
];
