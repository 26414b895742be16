//! RFC 9110: range requests, If-Range.

use crate::kit::{fields, get, request};
use http::Method;
use nearmiss_cache_policy::{Ranges, ranges};

const STORED: &str = "ETag: \"a\"\nLast-Modified: Sun, 06 Nov 1994 08:32:57 GMT\nDate: Sun, 06 Nov 1994 08:49:37 GMT";

fn part(range: &str, length: u64) -> Ranges {
    requested(&format!("Range: {range}"), length)
}

fn requested(lines: &str, length: u64) -> Ranges {
    ranges(&get(&fields(lines)), &fields(STORED), length)
}

fn one(first: u64, last: u64) -> Ranges {
    Ranges::One { first, last }
}

/// s14.1.2: "If the last-pos value is absent, or if the value is greater than or equal to the current length of the
/// representation data, the byte range is interpreted as the remainder of the representation"
#[test]
fn rfc9110_s14_1_2_int_ranges() {
    assert_eq!((part("bytes=0-499", 10_000), part("bytes=9500-", 10_000)), (one(0, 499), one(9500, 9999)));
    assert_eq!((part("bytes=0-10000", 10_000), part("BYTES= 5-5 ", 10_000)), (one(0, 9999), one(5, 5)));
}

/// s14.1.2: "A client can refer to the last N bytes (N > 0) of the selected representation using a suffix-range. If the
/// selected representation is shorter than the specified suffix-length, the entire representation is used."
#[test]
fn rfc9110_s14_1_2_suffix_ranges() {
    assert_eq!((part("bytes=-500", 10_000), part("bytes=-500", 7)), (one(9500, 9999), one(0, 6)));
}

/// s14.1.2: "When a selected representation has zero length, the only satisfiable form of range-spec in a GET request
/// is a suffix-range with a non-zero suffix-length."
#[test]
fn rfc9110_s14_1_2_nothing_to_choose_from() {
    assert_eq!((part("bytes=0-", 0), part("bytes=-5", 0)), (Ranges::Unsatisfiable, Ranges::Whole));
}

/// s14.1.2: "recipients MUST anticipate potentially large decimal numerals and prevent parsing errors due to integer
/// conversion overflows."
#[test]
fn rfc9110_s14_1_2_large_numerals() {
    let huge = "99999999999999999999999999";
    assert_eq!(part(&format!("bytes=5-{huge}"), 10), one(5, 9));
    assert_eq!(part(&format!("bytes=-{huge}"), 10), one(0, 9));
    assert_eq!(part(&format!("bytes={huge}-"), 10), Ranges::Unsatisfiable);
}

/// s14.2: "A server MUST ignore a Range header field received with a request method that is unrecognized or for which
/// range handling is not defined."
#[test]
fn rfc9110_s14_2_get_alone() {
    for method in [Method::HEAD, Method::POST, Method::from_bytes(b"QUERY").unwrap()] {
        assert_eq!(ranges(&request(&method, &fields("Range: bytes=0-1")), &fields(STORED), 10), Ranges::Whole);
    }
}

/// s14.2: "An origin server MUST ignore a Range header field that contains a range unit it does not understand." "A
/// server that supports range requests MAY ignore or reject a Range header field that contains an invalid
/// ranges-specifier"
#[test]
fn rfc9110_s14_2_ignored() {
    for range in [
        "lines=0-1",
        "bytes",
        "bytes=",
        "bytes=-",
        "bytes=5-2",
        "bytes=a-b",
        "bytes=1-2x",
        "bytes=+1-2",
        "bytes=--5",
        "bytes 0-1",
        "=0-1",
        "bytes=0-1\nRange: bytes=2-3",
    ] {
        assert_eq!(part(range, 10), Ranges::Whole, "{range}");
    }
}

/// s14.2: "A server MAY ignore the Range header field": this cache does so where there are several ranges.
#[test]
fn rfc9110_s14_2_several_ranges() {
    assert_eq!((part("bytes=0-1,4-5", 10), part("bytes=0-0,-1", 10)), (Ranges::Whole, Ranges::Whole));
}

/// s14.2: "... or the ranges-specifier is unsatisfiable with respect to the selected representation, the server SHOULD
/// send a 416 (Range Not Satisfiable) response."
#[test]
fn rfc9110_s14_2_unsatisfiable() {
    assert_eq!((part("bytes=10-", 10), part("bytes=10-20", 10)), (Ranges::Unsatisfiable, Ranges::Unsatisfiable));
    assert_eq!(part("bytes=-0", 10), Ranges::Unsatisfiable);
}

fn if_range(validator: &str) -> bool {
    requested(&format!("Range: bytes=0-1\nIf-Range: {validator}"), 10) == one(0, 1)
}

/// s13.1.5: "A server MUST ignore an If-Range header field received in a request that does not contain a Range header
/// field."
#[test]
fn rfc9110_s13_1_5_without_range() {
    assert_eq!(requested("If-Range: \"a\"", 10), Ranges::Whole);
}

/// s13.1.5: "If the entity-tag validator provided exactly matches the ETag field value for the selected representation
/// using the strong comparison function, the condition is true." "A recipient of an If-Range header field MUST ignore
/// the Range header field if the If-Range condition evaluates to false."
#[test]
fn rfc9110_s13_1_5_entity_tag() {
    assert!(if_range("\"a\"") && !if_range("\"b\"") && !if_range("W/\"a\"") && !if_range("a") && !if_range(""));
    let weak = fields("ETag: W/\"a\"");
    assert_eq!(ranges(&get(&fields("Range: bytes=0-1\nIf-Range: W/\"a\"")), &weak, 10), Ranges::Whole);
    assert!(!if_range("\"a\"\nIf-Range: \"b\""));
}

/// s13.1.5: "If the HTTP-date validator provided exactly matches the Last-Modified field value for the selected
/// representation, the condition is true."
#[test]
fn rfc9110_s13_1_5_date() {
    assert!(if_range("Sun, 06 Nov 1994 08:32:57 GMT"));
    assert!(!if_range("Sun, 06 Nov 1994 08:32:58 GMT") && !if_range("Sunday, 06-Nov-94 08:32:57 GMT"));
}

/// s13.1.5: "If the HTTP-date validator provided is not a strong validator in the sense defined by Section 8.8.2.2, the
/// condition is false."
#[test]
fn rfc9110_s13_1_5_weak_date() {
    let at_once = fields("Last-Modified: Sun, 06 Nov 1994 08:32:57 GMT\nDate: Sun, 06 Nov 1994 08:32:57 GMT");
    let request_fields = fields("Range: bytes=0-1\nIf-Range: Sun, 06 Nov 1994 08:32:57 GMT");
    assert_eq!(ranges(&get(&request_fields), &at_once, 10), Ranges::Whole);
}
