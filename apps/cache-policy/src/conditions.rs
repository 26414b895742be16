//! A client's conditional request against a stored response (RFC 9110 s13, RFC 9111 s4.3.2).

use crate::date::{date_of, parsed};
use crate::list::members;
use crate::validators::weakly_equal;
use crate::{RequestHead, Seconds};
use http::header::{
    CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, DATE, ETAG, IF_MATCH,
    IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE, LAST_MODIFIED,
};
use http::{HeaderMap, Method, StatusCode};

/// How a usable stored response answers a request with conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// With itself; a range of it where [`crate::ranges`] returns one.
    Whole,
    /// With 304.
    NotModified,
    /// Not at all: If-Match and If-Unmodified-Since are the origin's to judge, and a cache must not (RFC 9111 s4.3.2).
    /// Pass the request on as it is.
    ForOrigin,
}

/// Judges a request's conditions against the stored response.
#[must_use]
pub fn condition(request: &RequestHead<'_>, stored_status: StatusCode, stored: &HeaderMap) -> Condition {
    let headers = request.headers;
    if headers.contains_key(IF_MATCH) || headers.contains_key(IF_UNMODIFIED_SINCE) {
        return Condition::ForOrigin;
    }
    let safe = request.method == Method::GET || request.method == Method::HEAD;
    if !safe || !stored_status.is_success() {
        return Condition::Whole;
    }
    let unchanged =
        if headers.contains_key(IF_NONE_MATCH) { matches(headers, stored) } else { unmodified(headers, stored) };
    if unchanged { Condition::NotModified } else { Condition::Whole }
}

/// Returns whether If-None-Match names the stored response.
fn matches(headers: &HeaderMap, stored: &HeaderMap) -> bool {
    let current = stored.get(ETAG).map(|tag| tag.as_bytes());
    headers
        .get_all(IF_NONE_MATCH)
        .iter()
        .flat_map(|line| members(line.as_bytes()))
        .any(|listed| listed == b"*" || current.is_some_and(|current| weakly_equal(listed, current)))
}

/// Returns whether the stored response is no newer than If-Modified-Since. Without Last-Modified its date counts.
fn unmodified(headers: &HeaderMap, stored: &HeaderMap) -> bool {
    let mut lines = headers.get_all(IF_MODIFIED_SINCE).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return false };
    if stored.get(LAST_MODIFIED) == Some(line) {
        return true;
    }
    let date = date_of(stored, &DATE, Seconds(0));
    let now = date.unwrap_or_default();
    let modified = date_of(stored, &LAST_MODIFIED, now).or(date);
    matches!((modified, parsed(line.as_bytes(), now)), (Some(modified), Some(since)) if modified <= since)
}

/// The fields of a 304 for a stored response: all but the metadata that the client has already (RFC 9110 s15.4.5).
#[must_use]
pub fn not_modified_fields(stored: &HeaderMap) -> HeaderMap {
    let mut fields = stored.clone();
    for name in [CONTENT_TYPE, CONTENT_LENGTH, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_RANGE] {
        fields.remove(name);
    }
    if fields.contains_key(ETAG) {
        fields.remove(LAST_MODIFIED);
    }
    fields
}
