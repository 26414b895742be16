//! RFC 9111, sections 4.3 and 4.4.

use crate::kit::{after_304, after_error, after_head, answer, fields, get, kept, merged, request, stored};
use http::{Method, StatusCode};
use nearmiss_cache_policy::{
    Answer, Condition, HeadUpdate, ResponseHead, Selecting, WhyNot, condition, conditional, invalidates, selects,
};

fn validating(stored: &str) -> Vec<(String, String)> {
    let pairs = conditional(&fields(stored));
    pairs.into_iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect()
}

/// "When generating a conditional request for validation, a cache: MUST send the relevant entity tags (using If-Match,
/// If-None-Match, or If-Range) if the entity tags were provided in the stored response(s) being validated."
#[test]
fn rfc9111_s4_3_1_entity_tags() {
    for tag in ["\"a\"", "W/\"a\"", "\"a,b\"", "unquoted"] {
        assert_eq!(validating(&format!("ETag: {tag}")), [("if-none-match".to_owned(), tag.to_owned())]);
    }
}

/// "SHOULD send the Last-Modified value (using If-Modified-Since) if the request is not for a subrange, a single stored
/// response is being validated, and that response contains a Last-Modified value."
#[test]
fn rfc9111_s4_3_1_last_modified() {
    let sent = validating("Last-Modified: Sun, 06 Nov 1994 08:32:57 GMT\nETag: \"a\"");
    assert_eq!(sent[1], ("if-modified-since".to_owned(), "Sun, 06 Nov 1994 08:32:57 GMT".to_owned()));
    assert_eq!((sent.len(), validating("X: y").len()), (2, 0));
}

/// "if it is initiating the request independently — synthesizes a request using a stored response by copying the
/// method, target URI, and request header fields identified by the Vary header field"
#[test]
fn rfc9111_s4_3_1_fields_to_copy() {
    let selecting = Selecting::of(&fields("Vary: Foo, accept\nVary: FOO")).unwrap();
    assert_eq!(selecting.names(), ["accept", "foo"]);
    assert_eq!(Selecting::of(&fields("Vary: *")), None);
}

/// Without a validator there is nothing to send: the response is requested anew.
#[test]
fn rfc9111_s4_3_1_nothing_to_validate_by() {
    let terms = stored("Cache-Control: max-age=60").unwrap();
    let directives = nearmiss_cache_policy::RequestDirectives::of(&get(&fields("Cache-Control: no-cache")));
    assert_eq!(terms.answer(&directives, crate::kit::NOW), Answer::Refetch);
}

fn judged(request_fields: &str, stored: &str) -> Condition {
    condition(&get(&fields(request_fields)), StatusCode::OK, &fields(stored))
}

/// "A cache MUST NOT evaluate conditional header fields that only apply to an origin server" "the If-Match and
/// If-Unmodified-Since conditional header fields are not applicable to a cache"
#[test]
fn rfc9111_s4_3_2_for_the_origin() {
    for request_fields in [
        "If-Match: \"a\"",
        "If-Match: *",
        "If-Unmodified-Since: Sun, 06 Nov 1994 08:32:57 GMT",
        "If-Match: \"a\"\nIf-None-Match: \"a\"",
    ] {
        assert_eq!(judged(request_fields, "ETag: \"a\""), Condition::ForOrigin, "{request_fields}");
    }
}

/// "... occur in a request with semantics that cannot be satisfied with a cached response"
#[test]
fn rfc9111_s4_3_2_other_methods() {
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS] {
        let request_fields = fields("If-None-Match: \"a\"");
        let judged = condition(&request(&method, &request_fields), StatusCode::OK, &fields("ETag: \"a\""));
        assert_eq!(judged, Condition::Whole, "{method}");
    }
}

/// "If-None-Match takes precedence over If-Modified-Since"
#[test]
fn rfc9111_s4_3_2_precedence() {
    let stored = "ETag: \"a\"\nLast-Modified: Sun, 06 Nov 1994 08:32:57 GMT";
    let since = "If-Modified-Since: Sun, 06 Nov 1994 08:32:57 GMT";
    assert_eq!(judged(&format!("{since}\nIf-None-Match: \"b\""), stored), Condition::Whole);
    assert_eq!(
        judged("If-Modified-Since: Sat, 05 Nov 1994 00:00:00 GMT\nIf-None-Match: \"a\"", stored),
        Condition::NotModified
    );
    assert_eq!(judged(since, stored), Condition::NotModified);
}

/// "If a request contains an If-Modified-Since header field and the Last-Modified header field is not present in a
/// stored response, a cache SHOULD use the stored response's Date field value (or, if no Date field is present, the
/// time that the stored response was received) to evaluate the conditional."
#[test]
fn rfc9111_s4_3_2_date_for_last_modified() {
    let stored = kept("X: y");
    for (since, judged) in [("08:49:37", Condition::NotModified), ("08:49:36", Condition::Whole)] {
        let request_fields = fields(&format!("If-Modified-Since: Sun, 06 Nov 1994 {since} GMT"));
        assert_eq!(condition(&get(&request_fields), StatusCode::OK, &stored), judged, "{since}");
    }
}

/// "If the response to the forwarded request is 304 (Not Modified) and has an ETag field value with an entity tag that
/// is not in the client's list, the cache MUST generate a 200 (OK) response for the client by reusing its corresponding
/// stored response, as updated by the 304 response metadata"
#[test]
fn rfc9111_s4_3_2_tag_not_in_the_clients_list() {
    let updated = merged("ETag: \"mine\"\nX: old", "ETag: \"mine\"\nX: new");
    let request_fields = fields("If-None-Match: \"yours\"");
    assert_eq!(condition(&get(&request_fields), StatusCode::OK, &updated), Condition::Whole);
    assert_eq!(updated["x"], "new");
}

/// "if a cache receives a 5xx (Server Error) response while attempting to validate a response, it can either forward
/// this response to the requesting client or act as if the server failed to respond. In the latter case, the cache can
/// send a previously stored response, subject to its constraints on doing so"
#[test]
fn rfc9111_s4_3_3_server_error() {
    assert!(after_error("Cache-Control: max-age=2, stale-if-error=60", "", 62));
    assert!(!after_error("Cache-Control: max-age=2, stale-if-error=60", "", 63));
    assert!(!after_error("Cache-Control: max-age=2, stale-if-error=60, no-cache", "", 0));
}

fn chosen(not_modified: &str, stored: &str) -> bool {
    selects(&fields(not_modified), &fields(stored))
}

/// "If the new response contains one or more strong validators … All the stored responses in the initial set with one
/// of those same strong validators are identified for update. If none of the initial set contains at least one of the
/// same strong validators, then the cache MUST NOT use the new response to update any stored responses."
#[test]
fn rfc9111_s4_3_4_strong() {
    assert!(chosen("ETag: \"a\"", "ETag: \"a\""));
    for stored in ["ETag: \"b\"", "ETag: W/\"a\"", "", "Last-Modified: Sun, 06 Nov 1994 08:32:57 GMT"] {
        assert!(!chosen("ETag: \"a\"\nLast-Modified: Sun, 06 Nov 1994 08:32:57 GMT", stored), "{stored}");
    }
}

/// "If the new response contains no strong validators but does contain one or more weak validators, and those
/// validators correspond to one of the initial set's stored responses, then the most recent of those matching stored
/// responses is identified for update."
#[test]
fn rfc9111_s4_3_4_weak() {
    assert!(chosen("ETag: W/\"a\"", "ETag: W/\"a\"") && chosen("ETag: W/\"a\"", "ETag: \"a\""));
    assert!(!chosen("ETag: W/\"a\"", "ETag: W/\"b\"") && !chosen("ETag: W/\"a\"", ""));
    let modified = "Last-Modified: Sun, 06 Nov 1994 08:32:57 GMT";
    assert!(chosen(modified, modified) && chosen(modified, &format!("{modified}\nETag: \"a\"")));
    assert!(!chosen(modified, "Last-Modified: Sun, 06 Nov 1994 08:32:58 GMT") && !chosen(modified, "ETag: \"a\""));
}

/// "If the new response does not include any form of validator, and there is only one stored response in the initial
/// set, and that stored response also lacks a validator, then that stored response is identified for update." This
/// cache validates one stored response, and takes such an answer for it even if it has a validator, because many
/// servers send none.
#[test]
fn rfc9111_s4_3_4_none() {
    assert!(chosen("", "") && chosen("Date: Sun, 06 Nov 1994 08:49:37 GMT", "ETag: \"a\""));
}

/// "For each stored response identified, the cache MUST update its header fields with the header fields provided in the
/// 304 (Not Modified) response, as per Section 3.2."
#[test]
fn rfc9111_s4_3_4_update() {
    let terms = after_304("Cache-Control: max-age=2\nETag: \"a\"", "Cache-Control: max-age=60").unwrap();
    let later = nearmiss_cache_policy::Seconds(crate::kit::NOW.0 + 100);
    assert_eq!((terms.lifetime(), terms.age(later), terms.date()), (60, 0, later));
    let terms = after_304("Cache-Control: max-age=2\nAge: 1\nETag: \"a\"", "Age: 7").unwrap();
    assert_eq!((terms.lifetime(), terms.age(later), terms.status()), (2, 7, StatusCode::OK));
    assert_eq!(merged("ETag: \"a\"", "X: y")["date"], "Sun, 06 Nov 1994 08:51:17 GMT");
}

/// The updated fields count like those of a new response (s3).
#[test]
fn rfc9111_s4_3_4_update_that_forbids_to_store() {
    let old = "Cache-Control: max-age=2\nETag: \"a\"";
    assert_eq!(after_304(old, "Cache-Control: no-store"), Err(WhyNot::NoStore));
    assert_eq!(after_304(old, "Cache-Control: private, max-age=60"), Err(WhyNot::Private));
    assert_eq!(after_304(old, "Vary: *"), Err(WhyNot::VaryStar));
    assert_eq!(merged("Cache-Control: no-cache=\"x\", max-age=2\nX: 1", "X: 2").get("x"), None);
}

/// s5.2.1.5 and s3.5: a request may forbid to store its answer, the update included; the stored response stays.
#[test]
fn rfc9111_s4_3_4_update_that_the_request_forbids() {
    let of_request = |why: WhyNot| why.is_of_the_request();
    assert!([WhyNot::Method, WhyNot::RequestNoStore, WhyNot::Authorization].into_iter().all(of_request));
    assert!(![WhyNot::NoStore, WhyNot::Private, WhyNot::VaryStar, WhyNot::Useless].into_iter().any(of_request));
    let both = crate::kit::judged(&Method::GET, "Cache-Control: no-store", 200, "Cache-Control: no-store");
    assert_eq!(both, Err(WhyNot::NoStore));
}

/// "When a cache makes an inbound HEAD request for a target URI and receives a 200 (OK) response, the cache SHOULD
/// update or invalidate each of its stored GET responses that could have been chosen for that request"
#[test]
fn rfc9111_s4_3_5_head_of_200_alone() {
    assert_eq!(after_head("ETag: \"a\"", 200, ""), HeadUpdate::Freshens);
    assert!(
        [204, 304, 404, 410, 500]
            .iter()
            .all(|&status| after_head("ETag: \"a\"", status, "ETag: \"b\"") == HeadUpdate::Nothing)
    );
}

/// "if the stored response and HEAD response have matching values for any received validator fields (ETag and
/// Last-Modified) and, if the HEAD response has a Content-Length header field, the value of Content-Length matches that
/// of the stored response, the cache SHOULD update the stored response; otherwise, the cache SHOULD consider the stored
/// response to be stale."
#[test]
fn rfc9111_s4_3_5_head_matches() {
    let stored = "ETag: \"a\"\nLast-Modified: Sun, 06 Nov 1994 08:32:57 GMT\nContent-Length: 5";
    for head in ["ETag: \"a\"", "Content-Length: 5", stored, "X: y"] {
        assert_eq!(after_head(stored, 200, head), HeadUpdate::Freshens, "{head}");
    }
    for head in [
        "ETag: \"b\"",
        "Content-Length: 6",
        "ETag: \"a\"\nContent-Length: 6",
        "Last-Modified: Sun, 06 Nov 1994 08:32:58 GMT",
    ] {
        assert_eq!(after_head(stored, 200, head), HeadUpdate::Outdated, "{head}");
    }
    assert_eq!(after_head("X: y", 200, "ETag: \"a\""), HeadUpdate::Outdated);
}

fn invalid(scheme: &str, method: &str, status: u16, response: &str) -> Vec<String> {
    let (none, headers) = (fields(""), fields(response));
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let response = ResponseHead { status: StatusCode::from_u16(status).unwrap(), headers: &headers };
    invalidates(scheme, &request(&method, &none), &response)
}

/// "A cache MUST invalidate the target URI when it receives a non-error status code in response to an unsafe request
/// method (including methods whose safety is unknown)."
#[test]
fn rfc9111_s4_4_target() {
    for method in ["POST", "PUT", "DELETE", "PATCH", "M-SEARCH", "get"] {
        assert_eq!(invalid("http", method, 200, ""), ["/dir/page?q=1"], "{method}");
        assert_eq!(invalid("http", method, 303, ""), ["/dir/page?q=1"], "{method}");
    }
    for method in ["GET", "HEAD", "OPTIONS", "TRACE"] {
        assert!(invalid("http", method, 200, "Location: /x").is_empty(), "{method}");
    }
}

/// "A "non-error response" is one with a 2xx (Successful) or 3xx (Redirection) status code."
#[test]
fn rfc9111_s4_4_errors_invalidate_nothing() {
    assert!(
        [100, 400, 404, 409, 500, 503].iter().all(|&status| invalid("http", "POST", status, "Location: /x").is_empty())
    );
}

/// "the URI(s) in the Location and Content-Location response header fields (if present) are candidates for
/// invalidation"
#[test]
fn rfc9111_s4_4_location() {
    let named = |reference: &str| invalid("http", "POST", 201, &format!("Location: {reference}")).get(1).cloned();
    for (reference, target) in [
        ("/new", "/new"),
        ("new", "/dir/new"),
        ("../up", "/up"),
        ("?q=2", "/dir/page?q=2"),
        ("#part", ""),
        ("http://example.com/x#y", "/x"),
        ("HTTP://EXAMPLE.com:80", "/"),
        ("//example.com/y", "/y"),
    ] {
        assert_eq!(named(reference).unwrap_or_default(), target, "{reference}");
    }
    let both = invalid("http", "POST", 201, "Location: /a\nContent-Location: /b");
    assert_eq!(both, ["/dir/page?q=1", "/a", "/b"]);
    assert_eq!(invalid("http", "POST", 201, "Location: /a\nContent-Location: /a").len(), 2);
}

/// "However, a cache MUST NOT trigger an invalidation under these conditions if the origin of the URI to be invalidated
/// differs from that of the target URI."
#[test]
fn rfc9111_s4_4_other_origins() {
    for other in [
        "http://example.org/x",
        "https://example.com/x",
        "http://example.com:8080/x",
        "//evil.com/x",
        "ftp://example.com/x",
        "mailto:a@b",
        "http://[",
        "%zz",
        "http://example.com:99999/",
    ] {
        assert_eq!(invalid("http", "POST", 201, &format!("Location: {other}")), ["/dir/page?q=1"], "{other}");
    }
    assert_eq!(invalid("https", "POST", 201, "Location: https://example.com:443/x")[1], "/x");
}

/// A stored response is validated only where it is not usable as it is.
#[test]
fn rfc9111_s4_3_fresh_needs_no_validation() {
    assert_eq!(answer("Cache-Control: max-age=60, immutable", "", 59), Answer::Fresh);
    assert_eq!(answer("Cache-Control: max-age=60, immutable", "", 60), Answer::Validate);
}
