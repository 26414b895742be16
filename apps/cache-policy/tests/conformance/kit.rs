//! Short ways to write an exchange.

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use nearmiss_cache_policy::{
    Answer, HeadUpdate, Options, RequestDirectives, RequestHead, ResponseHead, Seconds, Terms, WhyNot, refreshed,
    store, stored_fields,
};

/// Time at which every response arrives without another time: Sun, 06 Nov 1994 08:49:37 GMT.
pub const NOW: Seconds = Seconds(784_111_777);

/// Fields from lines such as `Age: 5`.
pub fn fields(lines: &str) -> HeaderMap {
    let mut map = HeaderMap::new();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').expect("a colon");
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
        map.append(name, HeaderValue::from_bytes(value.trim().as_bytes()).expect("a value"));
    }
    map
}

/// A request with this method and these fields.
pub fn request<'a>(method: &'a Method, headers: &'a HeaderMap) -> RequestHead<'a> {
    RequestHead { method, target: "/dir/page?q=1", authority: "example.com", headers }
}

/// A GET with these fields.
pub fn get(headers: &HeaderMap) -> RequestHead<'_> {
    request(&Method::GET, headers)
}

/// Returns the decision of `store` on any exchange.
pub fn judged(method: &Method, request_fields: &str, status: u16, response: &str) -> Result<Terms, WhyNot> {
    let (request_fields, headers) = (fields(request_fields), fields(response));
    let response = ResponseHead { status: StatusCode::from_u16(status).unwrap(), headers: &headers };
    store(&Options::default(), &request(method, &request_fields), &response, NOW, NOW)
}

/// The terms of a 200 to a GET.
pub fn stored(response: &str) -> Result<Terms, WhyNot> {
    judged(&Method::GET, "", 200, response)
}

/// The seconds for which a 200 is fresh when it arrives.
pub fn fresh_for(response: &str) -> i64 {
    stored(&format!("{response}\nETag: \"a\"")).unwrap().time_to_live(NOW)
}

/// The answer of a stored 200 with an ETag to a GET with these fields, `after` seconds later.
pub fn answer(response: &str, request_fields: &str, after: u64) -> Answer {
    let terms = stored(&format!("{response}\nETag: \"a\"")).unwrap();
    terms.answer(&RequestDirectives::of(&get(&fields(request_fields))), Seconds(NOW.0 + after))
}

/// Returns whether a stored 200 with an ETag may be served in place of an error, `after` seconds later.
pub fn after_error(response: &str, request_fields: &str, after: u64) -> bool {
    let terms = stored(&format!("{response}\nETag: \"a\"")).unwrap();
    terms.may_serve_after_error(&RequestDirectives::of(&get(&fields(request_fields))), Seconds(NOW.0 + after))
}

/// The fields that are kept of a response.
pub fn kept(response: &str) -> HeaderMap {
    stored_fields(&Options::default(), &fields(response), NOW)
}

/// The fields after a 304 that arrives 100 seconds later.
pub fn merged(response: &str, not_modified: &str) -> HeaderMap {
    let mut headers = kept(response);
    let later = Seconds(NOW.0 + 100);
    nearmiss_cache_policy::merge_304(&Options::default(), &mut headers, &fields(not_modified), later);
    headers
}

/// The terms after a 304 that arrives 100 seconds later.
pub fn after_304(response: &str, not_modified: &str) -> Result<Terms, WhyNot> {
    let (old, later) = (stored(response).unwrap(), Seconds(NOW.0 + 100));
    let news = fields(not_modified);
    let news = ResponseHead { status: StatusCode::NOT_MODIFIED, headers: &news };
    refreshed(&Options::default(), &old, &get(&HeaderMap::new()), &kept(response), &news, later, later)
}

/// Returns the effect of a 200 to a HEAD with these fields on a stored response.
pub fn after_head(response: &str, status: u16, head: &str) -> HeadUpdate {
    let headers = fields(head);
    let head = ResponseHead { status: StatusCode::from_u16(status).unwrap(), headers: &headers };
    nearmiss_cache_policy::head_update(&kept(response), &head)
}
