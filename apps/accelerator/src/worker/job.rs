//! The work of a fetch: the request, its purpose, and how far the answer is.

use super::request::Request;
use super::storing::Storing;
use crate::cache::entry::Entry;
use crate::cache::flow::Flow;
use crate::cache::key::Key;
use crate::message::chunked::Decoder;
use crate::origins::Server;
use http::StatusCode;
use nearmiss_cache_policy::{Forward, Seconds};
use slotmap::DefaultKey;
use std::sync::Arc;

/// Purpose of a fetch.
#[derive(Debug)]
pub struct Plan {
    /// Key under which the answer may be stored. None: the request goes as it is, and nothing is stored.
    pub(super) key: Option<Key>,
    /// The stored response that the fetch validates, or that stands in for an error.
    pub(super) stored: Option<Arc<Entry>>,
    /// Other requests may have joined the fetch.
    pub(super) listed: bool,
    /// Reason for the request to the origin.
    pub(super) why: Forward,
}

/// The request of a fetch.
#[derive(Debug)]
pub struct Job {
    pub(super) request: Arc<Request>,
    pub(super) flow: Arc<Flow>,
    pub(super) plan: Plan,
    /// Result of the last try.
    pub(super) failure: (StatusCode, &'static str),
    /// Servers that failed already.
    pub(super) tried: Vec<Arc<Server>>,
    /// The client that sends the body.
    pub(super) uploader: Option<DefaultKey>,
    pub(super) requested_at: Seconds,
    /// The store's turn when the request was made.
    pub(super) since: u64,
    /// Interim answers so far.
    pub(super) interims: usize,
    /// A part of the answer was read: nothing can be tried again.
    pub(super) begun: bool,
    /// The head is there, and the body is stored with these once it is whole.
    pub(super) storing: Option<Storing>,
    pub(super) decoder: Option<Decoder>,
    /// Bytes of the body.
    pub(super) size: u64,
    /// The connection can be used again.
    pub(super) keep: bool,
}
