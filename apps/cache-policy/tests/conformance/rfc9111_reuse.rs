//! RFC 9111, sections 4 to 4.2.4.

use crate::kit::{NOW, after_error, answer, fields, fresh_for, get, judged, kept, stored};
use http::Method;
use nearmiss_cache_policy::{Answer, Options, ResponseHead, Seconds, VaryKey, WhyNot, store, vary_key};

const HOUR: &str = "Cache-Control: max-age=3600";

fn key(vary: &str, request: &str) -> Option<VaryKey> {
    vary_key(&fields(vary), &get(&fields(request)))
}

/// Returns whether two requests select the same stored response.
fn same(vary: &str, one: &str, other: &str) -> bool {
    key(vary, one).is_some() && key(vary, one) == key(vary, other)
}

/// "a cache MUST NOT reuse a stored response unless: … the stored response does not contain the no-cache directive,
/// unless it is successfully validated"
#[test]
fn rfc9111_s4_no_cache() {
    assert_eq!(answer("Cache-Control: max-age=3600, no-cache", "", 0), Answer::Validate);
}

/// "the stored response is one of the following: fresh, or allowed to be served stale, or successfully validated"
#[test]
fn rfc9111_s4_fresh_or_allowed_or_validated() {
    assert_eq!(answer(HOUR, "", 3599), Answer::Fresh);
    assert_eq!(answer(HOUR, "", 3600), Answer::Validate);
    assert_eq!(answer(HOUR, "Cache-Control: max-stale", 3600), Answer::Stale);
}

/// "a cache MUST generate an Age header field, replacing any present in the response with a value equal to the stored
/// response's current_age"
#[test]
fn rfc9111_s4_age() {
    let terms = stored("Cache-Control: max-age=3600\nAge: 30").unwrap();
    assert_eq!(terms.age(Seconds(NOW.0 + 5)), 35);
    assert!(!kept("Age: 30").contains_key("age"));
}

/// "A cache MUST write through requests with methods that are unsafe": nothing is stored to answer them with.
#[test]
fn rfc9111_s4_write_through() {
    assert_eq!(judged(&Method::POST, "", 200, "Cache-Control: max-age=60"), Err(WhyNot::Method));
}

/// "When more than one suitable response is stored, a cache MUST use the most recent one (as determined by the Date
/// header field)."
#[test]
fn rfc9111_s4_most_recent() {
    let dated = |date: &str| stored(&format!("{HOUR}\nDate: {date}")).unwrap().date();
    assert!(dated("Sun, 06 Nov 1994 08:49:36 GMT") > dated("Sun, 06 Nov 1994 08:49:35 GMT"));
    assert_eq!(stored(HOUR).unwrap().date(), NOW);
}

/// "the cache MUST NOT use that stored response without revalidation unless all the presented request header fields
/// nominated by that Vary field value match those fields in the original request"
#[test]
fn rfc9111_s4_1_vary() {
    let vary = "Vary: Foo, Bar\nVary: baz";
    assert!(same(vary, "Foo: 1\nBar: a\nBaz: x\nQux: 1", "BAR: a\nFOO: 1\nBAZ: x"));
    for other in ["Foo: 2\nBar: a\nBaz: x", "Foo: 1\nBar: b\nBaz: x", "Foo: 1\nBar: a\nBaz: y", "Foo: 1\nBar: a", ""] {
        assert!(!same(vary, "Foo: 1\nBar: a\nBaz: x", other), "{other}");
    }
    assert!(!same("Vary: Foo", "Foo: A", "Foo: a"));
    assert!(!same("Vary: A, B", "A: 1", "B: 1"));
    assert!(key("", "Foo: 1").unwrap().is_empty());
    assert_eq!(key("Vary:, ,Foo,", "Foo: 1"), key("Vary: Foo", "Foo: 1"));
}

/// "adding or removing whitespace, where allowed in the header field's syntax; combining multiple header field lines
/// with the same field name; normalizing both header field values in a way that is known to have identical semantics"
#[test]
fn rfc9111_s4_1_normalized() {
    assert!(same("Vary: Accept-Encoding", "Accept-Encoding: gzip,br", "Accept-Encoding: BR ,\t gzip"));
    assert!(same(
        "Vary: Accept-Language",
        "Accept-Language: en, de;q=0.5",
        "Accept-Language: EN\nAccept-Language: de;q=0.5"
    ));
    assert!(same("Vary: Foo", "Foo: 1\nFoo: 2", "Foo: 1, 2"));
    assert!(!same("Vary: Foo", "Foo: 1,2", "Foo: 1, 2"));
    assert!(!same("Vary: Accept", "Accept: a/b;c=\"x,y\"", "Accept: a/b;c=\"x, y\""));
    assert!(!same("Vary: Accept-Encoding", "Accept-Encoding: gzip;q=0", "Accept-Encoding: gzip"));
}

/// "If (after any normalization that might take place) a header field is absent from a request, it can only match
/// another request if it is also absent there."
#[test]
fn rfc9111_s4_1_absent() {
    assert!(same("Vary: Foo", "", "Bar: 1"));
    assert!(!same("Vary: Foo", "Foo:", "Bar: 1") && !same("Vary: Accept-Encoding", "Accept-Encoding:", ""));
}

/// "A stored response with a Vary header field value containing a member "*" always fails to match."
#[test]
fn rfc9111_s4_1_star() {
    for vary in
        ["Vary: *", "Vary: *, *", "Vary: *\nVary: *", "Vary: , *", "Vary:\nVary: *", "Vary: *, Foo", "Vary: Foo, *"]
    {
        assert_eq!(key(vary, ""), None, "{vary}");
        assert_eq!(stored(&format!("{HOUR}\n{vary}")), Err(WhyNot::VaryStar), "{vary}");
    }
    assert_eq!(key("Vary: no name", ""), None);
}

/// "response_is_fresh = (freshness_lifetime > current_age)"
#[test]
fn rfc9111_s4_2_fresh() {
    assert_eq!(answer("Cache-Control: max-age=1", "", 0), Answer::Fresh);
    assert_eq!(answer("Cache-Control: max-age=1", "", 1), Answer::Validate);
    assert_eq!(answer("Cache-Control: max-age=0", "", 0), Answer::Validate);
}

/// "Although all date formats are specified to be case-sensitive, a cache recipient SHOULD match the field value
/// case-insensitively."
#[test]
fn rfc9111_s4_2_dates_without_case() {
    assert_eq!(fresh_for("Expires: SUN, 06 nov 1994 08:49:47 gmt"), 10);
}

/// "A cache recipient MUST NOT allow local time zones to influence the calculation or comparison of an age or
/// expiration time." "A cache recipient SHOULD consider a date with a zone abbreviation other than "GMT" to be invalid
/// for calculating expiration."
#[test]
fn rfc9111_s4_2_zones() {
    for zone in ["UTC", "CET", "EST", "+0000", ""] {
        assert_eq!(fresh_for(&format!("Expires: Sun, 06 Nov 1994 20:49:37 {zone}")), 0, "{zone}");
    }
}

/// "A cache can calculate the freshness lifetime of a response by evaluating the following rules and using the first
/// match"
#[test]
fn rfc9111_s4_2_1_order() {
    let expires = "Expires: Sun, 06 Nov 1994 08:49:47 GMT";
    assert_eq!(fresh_for(&format!("Cache-Control: max-age=60, s-maxage=90\n{expires}")), 90);
    assert_eq!(fresh_for(&format!("Cache-Control: max-age=60\n{expires}")), 60);
    assert_eq!(fresh_for(expires), 10);
    let lagging = stored(&format!("Date: Sun, 06 Nov 1994 08:49:27 GMT\n{expires}")).unwrap();
    assert_eq!((lagging.lifetime(), lagging.age(NOW)), (20, 10));
}

/// "When there is more than one value present for a given directive, either the first occurrence should be used or the
/// response should be considered stale."
#[test]
fn rfc9111_s4_2_1_several_values() {
    assert_eq!(fresh_for("Cache-Control: max-age=60, max-age=90"), 60);
    assert_eq!(fresh_for("Cache-Control: max-age=90\nCache-Control: max-age=60"), 90);
    assert_eq!(fresh_for("Expires: Sun, 06 Nov 1994 08:49:47 GMT\nExpires: Sun, 06 Nov 1994 09:49:47 GMT"), 10);
    assert_eq!(fresh_for("Cache-Control: max-age=x, max-age=90"), 0);
}

/// "If directives conflict (e.g., both max-age and no-cache are present), the most restrictive directive should be
/// honored."
#[test]
fn rfc9111_s4_2_1_conflict() {
    assert_eq!(answer("Cache-Control: no-cache, max-age=60", "", 0), Answer::Validate);
    assert_eq!(stored("Cache-Control: public, private, max-age=60"), Err(WhyNot::Private));
}

/// "Caches are encouraged to consider responses that have invalid freshness information (e.g., a max-age directive with
/// non-integer content) to be stale."
#[test]
fn rfc9111_s4_2_1_invalid() {
    for age in ["-5", "1.5", "1.0", "a60", "60a", "'60'", "", "\"60", " 60", "+60", "0x60", "60;a=b"] {
        assert_eq!(fresh_for(&format!("Cache-Control: max-age={age}")), 0, "{age}");
    }
    assert_eq!(fresh_for("Cache-Control: max-age"), 0);
    assert_eq!(fresh_for("Cache-Control: max-age =60"), 0);
    assert_eq!(fresh_for("Cache-Control: s-maxage=x, max-age=60"), 0);
}

const MODIFIED: &str = "Last-Modified: Sun, 06 Nov 1994 08:32:57 GMT";

/// "A cache MUST NOT use heuristics to determine freshness when an explicit expiration time is present in the stored
/// response."
#[test]
fn rfc9111_s4_2_2_not_beside_explicit() {
    for explicit in ["Cache-Control: max-age=0", "Cache-Control: max-age=x", "Cache-Control: s-maxage=0", "Expires: 0"]
    {
        assert_eq!(fresh_for(&format!("{MODIFIED}\n{explicit}")), 0, "{explicit}");
    }
    assert_eq!(fresh_for(MODIFIED), 100);
}

/// "heuristics can only be used on responses without explicit freshness whose status codes are defined as heuristically
/// cacheable and on responses without explicit freshness that have been marked as explicitly cacheable"
#[test]
fn rfc9111_s4_2_2_statuses() {
    assert_eq!(judged(&Method::GET, "", 404, MODIFIED).unwrap().lifetime(), 100);
    for status in [201, 202, 302, 303, 307, 403, 418, 429, 500, 502, 503, 504, 599] {
        assert_eq!(judged(&Method::GET, "", status, MODIFIED), Err(WhyNot::NotAllowed), "{status}");
        let public = judged(&Method::GET, "", status, &format!("{MODIFIED}\nCache-Control: public"));
        assert_eq!(public.unwrap().lifetime(), 100, "{status}");
    }
}

/// "caches are encouraged to use a heuristic expiration value that is no more than some fraction of the interval since
/// that time"
#[test]
fn rfc9111_s4_2_2_fraction() {
    assert_eq!(fresh_for("Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"), 0);
    assert_eq!(fresh_for("Last-Modified: Sun, 06 Nov 1994 09:49:37 GMT"), 0);
    assert_eq!(fresh_for("Last-Modified: Sun, 06 Nov 1983 08:49:37 GMT"), 24 * 3600);
    assert_eq!(fresh_for("Last-Modified: yesterday"), 0);
    for (fraction, lifetime) in [(0.0, 0), (0.5, 500), (7.0, 1000), (f64::NAN, 0), (-1.0, 0)] {
        let options = Options { heuristic_fraction: fraction, ..Options::default() };
        let (none, headers) = (fields(""), fields(&format!("{MODIFIED}\nETag: \"a\"")));
        let response = ResponseHead { status: http::StatusCode::OK, headers: &headers };
        assert_eq!(store(&options, &get(&none), &response, NOW, NOW).unwrap().lifetime(), lifetime);
    }
}

fn age(response: &str, requested: u64, received: u64) -> u64 {
    let (none, headers) = (fields(""), fields(&format!("{HOUR}\n{response}")));
    let response = ResponseHead { status: http::StatusCode::OK, headers: &headers };
    let times = (Seconds(NOW.0 + requested), Seconds(NOW.0 + received));
    store(&Options::default(), &get(&none), &response, times.0, times.1).unwrap().age(Seconds(NOW.0 + received + 7))
}

/// "apparent_age = max(0, response_time - date_value); response_delay = response_time - request_time;
/// corrected_age_value = age_value + response_delay; corrected_initial_age = max(apparent_age, corrected_age_value);
/// resident_time = now - response_time; current_age = corrected_initial_age + resident_time;"
#[test]
fn rfc9111_s4_2_3_age() {
    let date = "Date: Sun, 06 Nov 1994 08:49:37 GMT";
    assert_eq!(age(date, 0, 0), 7);
    assert_eq!(age(date, 10, 12), 12 + 7);
    assert_eq!(age(&format!("{date}\nAge: 30"), 10, 12), 30 + 2 + 7);
    assert_eq!(age("Age: 30", 0, 0), 30 + 7);
    assert_eq!(age("Date: Sun, 06 Nov 1994 09:49:37 GMT", 0, 0), 7);
    assert_eq!(age("Date: garbage", 0, 0), 7);
}

/// "A cache MUST interpret this value relative to the time the request was initiated, not the time that the response
/// was received."
#[test]
fn rfc9111_s4_2_3_from_the_request_on() {
    assert_eq!(age("Age: 30", 0, 20), 30 + 20 + 7);
}

/// "A cache MUST NOT generate a stale response if it is prohibited by an explicit in-protocol directive (e.g., by a
/// no-cache response directive, a must-revalidate response directive, or an applicable s-maxage or proxy-revalidate
/// response directive)"
#[test]
fn rfc9111_s4_2_4_prohibited() {
    for control in ["no-cache", "must-revalidate", "proxy-revalidate", "s-maxage=2", "Must-Revalidate=x"] {
        let control = format!("Cache-Control: max-age=2, stale-while-revalidate=60, stale-if-error=60, {control}");
        for request_fields in ["", "Cache-Control: max-stale", "Cache-Control: max-stale=60, stale-if-error=60"] {
            assert_eq!(answer(&control, request_fields, 3), Answer::Validate, "{control} {request_fields}");
            assert!(!after_error(&control, request_fields, 3), "{control} {request_fields}");
        }
    }
}

/// "A cache MUST NOT generate a stale response unless it is disconnected or doing so is explicitly permitted by the
/// client or origin server"
#[test]
fn rfc9111_s4_2_4_permitted() {
    assert_eq!(answer("Cache-Control: max-age=2", "", 3), Answer::Validate);
    assert!(!after_error("Cache-Control: max-age=2", "", 3));
    assert!(after_error("Cache-Control: max-age=2", "Cache-Control: stale-if-error=60", 3));
}
