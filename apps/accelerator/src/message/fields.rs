//! Which fields belong to one connection and go no further (RFC 9110 section 7.6.1).

use super::hops::CDN_LOOP;
use http::{HeaderMap, HeaderName, header};

/// Fields that are never passed on as they are. `te` and `upgrade` are dropped too: nothing is upgraded here, and
/// trailers are passed on only where they come unasked.
const OF_THE_CONNECTION: [HeaderName; 7] = [
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::CONTENT_LENGTH,
    header::UPGRADE,
    header::TE,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
];
const MORE: [&str; 3] = ["keep-alive", "proxy-connection", "http2-settings"];
/// Fields that `Connection` cannot take away: without them the message would mean something else.
const KEPT: [HeaderName; 5] = [header::HOST, header::CACHE_CONTROL, header::DATE, header::VIA, CDN_LOOP];

/// Fields that decide how a message is framed, routed, authorised, cached or read, sorted. No trailer may set them (RFC
/// 9110 section 6.5.1, with the list of RFC 7230 section 4.1.2).
const NOT_IN_TRAILERS: [&str; 39] = [
    "age",
    "authorization",
    "cache-control",
    "cdn-loop",
    "connection",
    "content-encoding",
    "content-length",
    "content-location",
    "content-range",
    "content-type",
    "cookie",
    "date",
    "expect",
    "expires",
    "forwarded",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "keep-alive",
    "location",
    "max-forwards",
    "pragma",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "range",
    "retry-after",
    "set-cookie",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "vary",
    "via",
    "www-authenticate",
    "x-forwarded-for",
];

/// Returns whether a trailer of this name may go on.
pub fn is_trailer(name: &str) -> bool {
    NOT_IN_TRAILERS.binary_search(&name.to_ascii_lowercase().as_str()).is_err()
}

/// Removes the connection's own fields: the fixed ones and those that `Connection` lists.
pub fn strip(fields: &mut HeaderMap) {
    let listed: Vec<HeaderName> = fields
        .get_all(header::CONNECTION)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        .filter(|name| !KEPT.contains(name))
        .collect();
    let goes =
        |name: &HeaderName| listed.contains(name) || OF_THE_CONNECTION.contains(name) || MORE.contains(&name.as_str());
    // Removing one by one would change the order of the others.
    let mut kept = HeaderMap::with_capacity(fields.len() + 4);
    for (name, value) in fields.iter().filter(|(name, _)| !goes(name)) {
        kept.append(name, value.clone());
    }
    *fields = kept;
}

/// Returns whether a comma-separated field's value has this word, in any case.
pub fn lists(value: &[u8], word: &[u8]) -> bool {
    value.split(|byte| *byte == b',').any(|part| part.trim_ascii().eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn every_name_of_the_list_is_found() {
        assert!(NOT_IN_TRAILERS.is_sorted());
        assert!(NOT_IN_TRAILERS.iter().all(|name| !is_trailer(&name.to_uppercase())));
        assert!(is_trailer("Server-Timing") && is_trailer("etag"));
    }

    #[test]
    fn listed_fields_go_and_the_rest_stays() {
        let mut fields = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Mine"),
            ("connection", "host"),
            ("x-mine", "1"),
            ("keep-alive", "3"),
            ("host", "a"),
            ("x-other", "2"),
            ("te", "trailers"),
        ] {
            fields.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        strip(&mut fields);
        let left: Vec<_> = fields.keys().map(HeaderName::as_str).collect();
        assert_eq!(left, ["host", "x-other"]);
        assert!(lists(b"a, Close", b"close") && !lists(b"closed", b"close"));
    }
}
