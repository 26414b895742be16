//! Effect of a 304 or the answer to a HEAD on a stored response (RFC 9111 s3.2, 4.3.4, 4.3.5).

use crate::fields::{finish, without_hops};
use crate::storing::Exchange;
use crate::targeted;
use crate::{Options, RequestHead, ResponseHead, Seconds, Terms, WhyNot};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, DATE, ETAG, LAST_MODIFIED};
use http::{HeaderMap, HeaderName};

/// Fields that describe the stored bytes (RFC 9111 s3.2).
const NEVER_UPDATED: [HeaderName; 4] = [CONTENT_LENGTH, CONTENT_ENCODING, CONTENT_TYPE, CONTENT_RANGE];

/// Replaces the stored fields by those of a 304 (RFC 9111 s3.2), except those that describe the stored bytes.
pub fn merge_304(options: &Options, stored: &mut HeaderMap, not_modified: &HeaderMap, received_at: Seconds) {
    let mut news = without_hops(not_modified);
    for name in NEVER_UPDATED {
        news.remove(name);
    }
    stored.remove(DATE);
    for name in news.keys() {
        stored.remove(name);
    }
    for (name, value) in &news {
        // Fails where the map is full, which a bound on a message's fields prevents.
        _ = stored.try_append(name, value.clone());
    }
    finish(options, stored, received_at);
}

/// Returns the terms of a stored response after a 304 (RFC 9111 s4.3.4). An error means that the 304 forbids to keep
/// what it updated: the caller answers this one request with the updated response. Then the caller drops the stored
/// one, or leaves it as it was where [`WhyNot::is_of_the_request`].
pub fn refreshed(
    options: &Options,
    terms: &Terms,
    request: &RequestHead<'_>,
    stored: &HeaderMap,
    not_modified: &ResponseHead<'_>,
    requested_at: Seconds,
    received_at: Seconds,
) -> Result<Terms, WhyNot> {
    let mut merged = stored.clone();
    merge_304(options, &mut merged, not_modified.headers, received_at);
    if let Some(age) = not_modified.headers.get(http::header::AGE) {
        _ = merged.try_insert(http::header::AGE, age.clone());
    }
    let control = targeted::control(options, &merged);
    let exchange = Exchange { options, request, control: &control, requested_at, received_at };
    exchange.judged(terms.status, &merged)
}

/// Effect of the answer to a HEAD on the stored answer to a GET (RFC 9111 s4.3.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadUpdate {
    /// The stored response is still current: update it like after a 304.
    Freshens,
    /// The stored response is not current any more: make it stale, or drop it.
    Outdated,
    /// Nothing follows: the answer is no 200.
    Nothing,
}

/// Compares the answer to a HEAD with the stored answer to a GET.
#[must_use]
pub fn head_update(stored: &HeaderMap, head: &ResponseHead<'_>) -> HeadUpdate {
    if head.status != http::StatusCode::OK {
        return HeadUpdate::Nothing;
    }
    let same = |field: &HeaderName| match (head.headers.get(field), stored.get(field)) {
        (Some(new), old) => old == Some(new),
        (None, _) => true,
    };
    if [ETAG, LAST_MODIFIED, CONTENT_LENGTH].iter().all(same) { HeadUpdate::Freshens } else { HeadUpdate::Outdated }
}
