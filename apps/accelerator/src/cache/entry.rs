//! One stored response.

use super::body::Body;
use crate::message::write;
use http::{HeaderMap, StatusCode};
use nearmiss_cache_policy::{Terms, VaryKey};

/// A whole response with what was decided about it. Its body is shared, never copied.
#[derive(Debug)]
pub struct Entry {
    /// The status.
    pub status: StatusCode,
    /// The end-to-end fields.
    pub fields: HeaderMap,
    /// The body.
    pub body: Body,
    /// How long the response may be used, and for what.
    pub terms: Terms,
    /// Which requests this variant is for.
    pub variant: VaryKey,
    /// Whether there may be other variants.
    pub varies: bool,
    /// The head of the usual answer up to and with `age: `.
    hit_head: Box<[u8]>,
}

impl Entry {
    /// Prepares a response for being served. `marks` are the fields that this cache adds to a hit.
    pub fn new(
        status: StatusCode,
        mut fields: HeaderMap,
        body: Body,
        terms: Terms,
        variant: VaryKey,
        marks: &str,
    ) -> Self {
        // The age of now takes its place.
        fields.remove(http::header::AGE);
        let mut head = Vec::with_capacity(512);
        write::status_line(&mut head, status);
        write::fields(&mut head, &fields);
        if status != StatusCode::NO_CONTENT {
            write::number_field(&mut head, "content-length", body.len() as u64);
        }
        head.extend_from_slice(marks.as_bytes());
        head.extend_from_slice(b"age: ");
        let varies = fields.contains_key(http::header::VARY);
        Entry { status, fields, body, terms, variant, varies, hit_head: head.into_boxed_slice() }
    }

    /// The head of the usual answer, which the age's digits and the empty line follow.
    pub fn hit_head(&self) -> &[u8] {
        &self.hit_head
    }

    /// Bytes that it takes in memory, near enough.
    pub fn size(&self) -> usize {
        let fields: usize = self.fields.iter().map(|(name, value)| name.as_str().len() + value.len() + 64).sum();
        std::mem::size_of::<Self>() + self.body.len() + self.hit_head.len() + self.variant.size() + fields
    }
}
