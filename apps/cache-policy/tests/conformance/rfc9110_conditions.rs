//! RFC 9110: dates, fields of one connection, conditional requests, 304.

use crate::kit::{NOW, fields, fresh_for, get, kept, request};
use http::{Method, StatusCode};
use nearmiss_cache_policy::{Condition, WhyNot, condition, not_modified_fields};

const STORED: &str = "ETag: \"a\"\nLast-Modified: Sun, 06 Nov 1994 08:32:57 GMT\nDate: Sun, 06 Nov 1994 08:49:37 GMT";

fn judged(request_fields: &str) -> Condition {
    condition(&get(&fields(request_fields)), StatusCode::OK, &fields(STORED))
}

/// s5.6.7: "A recipient that parses a timestamp value in an HTTP field MUST accept all three HTTP-date formats."
#[test]
fn rfc9110_s5_6_7_three_formats() {
    for date in ["Sun, 06 Nov 1994 08:50:37 GMT", "Sunday, 06-Nov-94 08:50:37 GMT", "Sun Nov  6 08:50:37 1994"] {
        assert_eq!(fresh_for(&format!("Expires: {date}")), 60, "{date}");
    }
}

/// s5.6.7: "Recipients of a timestamp value in rfc850-date format, which uses a two-digit year, MUST interpret a
/// timestamp that appears to be more than 50 years in the future as representing the most recent year in the past that
/// had the same last two digits."
#[test]
fn rfc9110_s5_6_7_two_digits() {
    assert!(fresh_for("Expires: Thursday, 06-Nov-30 08:49:37 GMT") > 36 * 365 * 86_400);
    assert_eq!(fresh_for("Expires: Monday, 07-Nov-44 08:49:37 GMT"), 0);
}

/// s6.6.1: "A recipient with a clock that receives a response message without a Date header field MUST record the time
/// it was received and append a corresponding Date header field to the message's header section if it is cached"
#[test]
fn rfc9110_s6_6_1_date() {
    assert_eq!(kept("X: y")["date"], "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_eq!(kept("Date: garbage")["date"], "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_eq!(kept("Date: Sat, 05 Nov 1994 00:00:00 GMT")["date"], "Sat, 05 Nov 1994 00:00:00 GMT");
    assert_eq!(NOW.0, 784_111_777);
}

/// s9.3.3: "Responses to POST requests are only cacheable when they include explicit freshness information and a
/// Content-Location header field that has the same value as the POST's target URI": this cache stores none. s9.3.4,
/// s9.3.5, s9.3.7, s9.3.8: "Responses to the PUT method are not cacheable", nor those to DELETE, OPTIONS and TRACE.
#[test]
fn rfc9110_s9_3_methods() {
    let explicit = "Cache-Control: public, max-age=60\nContent-Location: /dir/page?q=1";
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS, Method::TRACE, Method::CONNECT] {
        assert_eq!(crate::kit::judged(&method, "", 200, explicit), Err(WhyNot::Method), "{method}");
    }
}

/// s13.1.2: "A recipient MUST use the weak comparison function when comparing entity tags for If-None-Match"
#[test]
fn rfc9110_s13_1_2_weak_comparison() {
    let pairs = [
        ("W/\"1\"", "W/\"1\"", true),
        ("W/\"1\"", "W/\"2\"", false),
        ("W/\"1\"", "\"1\"", true),
        ("\"1\"", "\"1\"", true),
        ("\"1\"", "\"A\"", false),
    ];
    for (tag, stored, equal) in pairs {
        let (request_fields, stored) = (fields(&format!("If-None-Match: {tag}")), fields(&format!("ETag: {stored}")));
        let judged = condition(&get(&request_fields), StatusCode::OK, &stored);
        assert_eq!(judged == Condition::NotModified, equal, "{request_fields:?} {stored:?}");
    }
}

/// s13.1.2: "If the field value is a list of entity tags, the condition is false if one of the listed tags matches the
/// entity tag of the selected representation."
#[test]
fn rfc9110_s13_1_2_list() {
    for tags in ["\"a\", \"b\"", "\"b\", \"a\"", "\"b\",W/\"a\"", "\"x,y\" , \"a\"", "\"b\"\nIf-None-Match: \"a\""] {
        assert_eq!(judged(&format!("If-None-Match: {tags}")), Condition::NotModified, "{tags}");
    }
    for tags in ["\"b\"", "\"A\"", "a", "\"a", "w/\"a\"", "\"b, \"a\", c\"", ""] {
        assert_eq!(judged(&format!("If-None-Match: {tags}")), Condition::Whole, "{tags}");
    }
}

/// Entity tags without quotation marks are not in the grammar, but servers send them: they equal tags of the same text.
#[test]
fn rfc9110_s13_1_2_unquoted() {
    let judged = |request_fields: &str| condition(&get(&fields(request_fields)), StatusCode::OK, &fields("ETag: abc"));
    assert_eq!(judged("If-None-Match: abc"), Condition::NotModified);
    assert_eq!(judged("If-None-Match: \"abc\""), Condition::Whole);
}

/// s13.1.2: "If the field value is "*", the condition is false if the origin server has a current representation for
/// the target resource."
#[test]
fn rfc9110_s13_1_2_star() {
    assert_eq!(judged("If-None-Match: *"), Condition::NotModified);
}

/// s13.1.3: "A recipient MUST ignore If-Modified-Since if the request contains an If-None-Match header field"
#[test]
fn rfc9110_s13_1_3_beside_if_none_match() {
    assert_eq!(judged("If-None-Match: \"b\"\nIf-Modified-Since: Sun, 06 Nov 1994 08:32:57 GMT"), Condition::Whole);
}

/// s13.1.3: "A recipient MUST ignore the If-Modified-Since header field if the received field value is not a valid
/// HTTP-date, the field value has more than one member, or if the request method is neither GET nor HEAD."
#[test]
fn rfc9110_s13_1_3_ignored() {
    let since = "If-Modified-Since: Sun, 06 Nov 1994 08:32:57 GMT";
    for request_fields in
        ["If-Modified-Since: today", "If-Modified-Since: Sun, 06 Nov 1994 09:00:00 GMT, Sun, 06 Nov 1994 09:00:00 GMT"]
    {
        assert_eq!(judged(request_fields), Condition::Whole, "{request_fields}");
    }
    assert_eq!(judged(&format!("{since}\n{since}")), Condition::Whole);
    for (method, outcome) in [(Method::HEAD, Condition::NotModified), (Method::PUT, Condition::Whole)] {
        assert_eq!(condition(&request(&method, &fields(since)), StatusCode::OK, &fields(STORED)), outcome);
    }
}

/// s13.1.3: "If the selected representation's last modification date is earlier or equal to the date provided in the
/// field value, the condition is false." "A recipient MUST interpret an If-Modified-Since field value's timestamp in
/// terms of the origin server's clock."
#[test]
fn rfc9110_s13_1_3_dates() {
    for (time, outcome) in
        [("08:32:56", Condition::Whole), ("08:32:57", Condition::NotModified), ("09:00:00", Condition::NotModified)]
    {
        assert_eq!(judged(&format!("If-Modified-Since: Sun, 06 Nov 1994 {time} GMT")), outcome, "{time}");
    }
    assert_eq!(judged("If-Modified-Since: Sunday, 06-Nov-94 08:32:57 GMT"), Condition::NotModified);
}

/// s13.1.1 and s13.1.4: "A cache or intermediary MAY ignore If-Match" and "If-Unmodified-Since": this cache leaves the
/// request to the origin.
#[test]
fn rfc9110_s13_1_4_left_to_the_origin() {
    assert_eq!(judged("If-Unmodified-Since: Sun, 06 Nov 1994 08:32:57 GMT"), Condition::ForOrigin);
}

/// s13.2.1: "A server MUST ignore all received preconditions if its response to the same request without those
/// conditions … would have been a status code other than a 2xx (Successful) or 412"
#[test]
fn rfc9110_s13_2_1_other_statuses() {
    for status in [301, 404, 410, 501] {
        let status = StatusCode::from_u16(status).unwrap();
        assert_eq!(condition(&get(&fields("If-None-Match: \"a\"")), status, &fields(STORED)), Condition::Whole);
    }
}

/// s13.2.1: "a server MUST ignore the conditional request header fields defined by this specification when received
/// with a request method that does not involve the selection or modification of a selected representation"
#[test]
fn rfc9110_s13_2_1_other_methods() {
    let request_fields = fields("If-None-Match: \"a\"");
    assert_eq!(
        condition(&request(&Method::OPTIONS, &request_fields), StatusCode::OK, &fields(STORED)),
        Condition::Whole
    );
}

/// s13.2.2: "When If-None-Match is present, evaluate the If-None-Match precondition: … if false for GET/HEAD, respond
/// 304 (Not Modified)"
#[test]
fn rfc9110_s13_2_2_head() {
    let request_fields = fields("If-None-Match: \"a\"");
    assert_eq!(
        condition(&request(&Method::HEAD, &request_fields), StatusCode::OK, &fields(STORED)),
        Condition::NotModified
    );
}

/// s15.4.5: "The server generating a 304 response MUST generate any of the following header fields that would have been
/// sent in a 200 (OK) response to the same request: Content-Location, Date, ETag, and Vary; Cache-Control and Expires"
#[test]
fn rfc9110_s15_4_5_fields_of_304() {
    let needed = "Content-Location: /x\nDate: Sun, 06 Nov 1994 08:49:37 GMT\nETag: \"a\"\nVary: Accept\nCache-Control: max-age=5\nExpires: 0\nX-Other: 1";
    let whole = format!(
        "{needed}\nContent-Type: a/b\nContent-Length: 5\nContent-Encoding: gzip\nContent-Language: en\nLast-Modified: Sun, 06 Nov 1994 08:32:57 GMT"
    );
    assert_eq!(not_modified_fields(&fields(&whole)), fields(needed));
    let modified = fields("Last-Modified: Sun, 06 Nov 1994 08:32:57 GMT");
    assert_eq!(not_modified_fields(&modified), modified);
}
