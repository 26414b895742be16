//! ETag and Last-Modified (RFC 9110 s8.8) and the requests that validate by them (RFC 9111 s4.3.1).

use http::header::{ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED};
use http::{HeaderMap, HeaderName, HeaderValue};

/// The parts of an entity tag: whether it is weak, and the opaque tag with its quotation marks.
fn tag(text: &[u8]) -> Option<(bool, &[u8])> {
    let (weak, opaque) = text.strip_prefix(b"W/").map_or((false, text), |opaque| (true, opaque));
    let inner = opaque.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    (!inner.contains(&b'"')).then_some((weak, opaque))
}

/// Weak comparison (RFC 9110 s8.8.3.2). Tags without quotation marks, which some servers send, equal tags of the same
/// text.
pub(crate) fn weakly_equal(one: &[u8], other: &[u8]) -> bool {
    one == other || matches!((tag(one), tag(other)), (Some((_, one)), Some((_, other))) if one == other)
}

/// Strong comparison: neither is weak.
pub(crate) fn strongly_equal(one: &[u8], other: &[u8]) -> bool {
    matches!((tag(one), tag(other)), (Some((false, one)), Some((false, other))) if one == other)
}

/// Returns whether a response can be validated once the withheld fields are gone.
pub(crate) fn has_validator(headers: &HeaderMap, withheld: &[HeaderName]) -> bool {
    [ETAG, LAST_MODIFIED].iter().any(|field| headers.contains_key(field) && !withheld.contains(field))
}

/// The fields of a request that validates the stored response.
#[must_use]
pub fn conditional(stored: &HeaderMap) -> Vec<(HeaderName, HeaderValue)> {
    let pairs = [(ETAG, IF_NONE_MATCH), (LAST_MODIFIED, IF_MODIFIED_SINCE)];
    pairs.into_iter().filter_map(|(from, to)| Some((to, stored.get(from)?.clone()))).collect()
}

/// Returns whether a 304 refers to this stored response, the only one that the request had validated (RFC 9111 s4.3.4).
/// A strong tag must be the stored one; a weak tag, or else a date, must correspond to the stored one. A 304 without
/// validators refers to it, because nothing else was validated.
#[must_use]
pub fn selects(not_modified: &HeaderMap, stored: &HeaderMap) -> bool {
    let Some(new) = not_modified.get(ETAG) else {
        return not_modified.get(LAST_MODIFIED).is_none_or(|new| stored.get(LAST_MODIFIED) == Some(new));
    };
    let same = if matches!(tag(new.as_bytes()), Some((true, _))) { weakly_equal } else { identical };
    stored.get(ETAG).is_some_and(|old| same(new.as_bytes(), old.as_bytes()))
}

fn identical(one: &[u8], other: &[u8]) -> bool {
    one == other
}
