//! A response on its way to the store, without its body.

use crate::cache::body::Body;
use crate::cache::entry::Entry;
use http::{HeaderMap, StatusCode};
use nearmiss_cache_policy::{Terms, VaryKey};
use std::sync::Arc;

/// Data to store once the body is whole.
#[derive(Debug)]
pub struct Storing {
    pub(super) status: StatusCode,
    pub(super) fields: HeaderMap,
    pub(super) terms: Terms,
    pub(super) variant: VaryKey,
}

impl Storing {
    /// The response with its body.
    pub fn entry(self, body: Body, marks: &str) -> Arc<Entry> {
        Arc::new(Entry::new(self.status, self.fields, body, self.terms, self.variant, marks))
    }
}
