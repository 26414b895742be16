//! Invariants for any fields. The fuzz target and the bounded test share this.

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use nearmiss_cache_policy::*;

/// The fields that this crate reads.
const READ: [&str; 24] = [
    "cache-control",
    "cdn-cache-control",
    "expires",
    "date",
    "age",
    "vary",
    "etag",
    "last-modified",
    "pragma",
    "range",
    "if-none-match",
    "if-modified-since",
    "if-range",
    "if-match",
    "if-unmodified-since",
    "connection",
    "location",
    "content-location",
    "content-length",
    "accept-encoding",
    "accept",
    "set-cookie",
    "authorization",
    "x-other",
];

/// Reads lines: the first byte of each names a field and the rest is its value. Bytes that no field can hold are left
/// out.
fn fields(bytes: &[u8]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for line in bytes.split(|&byte| byte == b'\n').take(1000) {
        if let Some((&name, value)) = line.split_first()
            && let Ok(value) = HeaderValue::from_bytes(value)
        {
            map.append(HeaderName::from_static(READ[usize::from(name) % READ.len()]), value);
        }
    }
    map
}

/// A response begins with its status, and a request precedes it, up to an empty line.
pub fn exercise(bytes: &[u8]) {
    let middle = bytes.windows(2).position(|pair| pair == b"\n\n").unwrap_or(0);
    let (request_fields, answered) = bytes.split_at(middle);
    let (request_fields, headers) = (fields(request_fields), fields(answered));
    let status = u16::from(bytes.first().copied().unwrap_or(0)) * 2 + 100;
    let response = ResponseHead { status: StatusCode::from_u16(status).unwrap_or(StatusCode::OK), headers: &headers };
    let target = std::str::from_utf8(answered).unwrap_or("/");
    for method in [Method::GET, Method::HEAD, Method::POST] {
        let request = RequestHead { method: &method, target, authority: target, headers: &request_fields };
        storing(&request, &response);
        reading(&request, &response);
    }
}

fn storing(request: &RequestHead<'_>, response: &ResponseHead<'_>) {
    let (options, now) = (Options::default(), Seconds(1_800_000_000));
    let directives = RequestDirectives::of(request);
    if let Ok(terms) = store(&options, request, response, now, now) {
        assert!(!directives.no_store() && request.method == Method::GET);
        assert!(vary_key(response.headers, request).is_some() || response.headers.contains_key("vary"));
        for after in [0, 1, 1 << 31, 1 << 33, u64::MAX - now.0] {
            let later = Seconds(now.0 + after);
            let fresh = terms.time_to_live(later) > 0;
            assert!(terms.age(later) <= 1 << 31);
            assert!(fresh || terms.answer(&directives, later) != Answer::Fresh);
            assert!(
                fresh
                    || directives != RequestDirectives::default()
                    || terms.answer(&directives, later) != Answer::Stale
            );
            _ = terms.may_serve_after_error(&directives, later);
        }
        let news = ResponseHead { status: StatusCode::NOT_MODIFIED, headers: request.headers };
        _ = refreshed(&options, &terms, request, response.headers, &news, now, Seconds(now.0 + 5));
    }
    let mut kept = stored_fields(&options, response.headers, now);
    for name in ["connection", "age", "transfer-encoding", "te"] {
        assert!(!kept.contains_key(name));
    }
    assert!(kept.contains_key("date"));
    merge_304(&options, &mut kept, request.headers, now);
    assert_eq!(stored_fields(&options, &kept, now), kept);
}

fn reading(request: &RequestHead<'_>, response: &ResponseHead<'_>) {
    let judged = condition(request, response.status, response.headers);
    assert!(judged != Condition::NotModified || response.status.is_success());
    for length in [0, 1, 1000, u64::MAX] {
        if let Ranges::One { first, last } = ranges(request, response.headers, length) {
            assert!(first <= last && last < length);
        }
    }
    _ = selects(request.headers, response.headers);
    _ = head_update(response.headers, response);
    assert!(conditional(response.headers).len() <= 2);
    for target in invalidates("http", request, response).iter().skip(1) {
        assert!(target.starts_with('/'), "{target}");
    }
    let text = request.target;
    let handled = Handled { key: Some(text), detail: Some(text), ..Handled::default() };
    assert!(sfv::Parser::new(cache_status(text, &handled).as_bytes()).parse::<sfv::List>().is_ok());
}
