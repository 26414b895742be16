//! RFC 5861: stale-while-revalidate and stale-if-error.

use crate::kit::{NOW, after_error, answer, fields, get};
use nearmiss_cache_policy::{Answer, Options, RequestDirectives, ResponseHead, Seconds, store};

/// s3: "When present in an HTTP response, the stale-while-revalidate Cache-Control extension indicates that caches MAY
/// serve the response in which it appears after it becomes stale, up to the indicated number of seconds." "If
/// delta-seconds passes without the cached entity being revalidated, it SHOULD NOT continue to be served stale, absent
/// other information."
#[test]
fn rfc5861_s3_while_revalidate() {
    let at = |after| answer("Cache-Control: max-age=600, stale-while-revalidate=30", "", after);
    assert_eq!(
        (at(599), at(600), at(630), at(631)),
        (Answer::Fresh, Answer::StaleWhileRevalidate, Answer::StaleWhileRevalidate, Answer::Validate)
    );
    assert_eq!(answer("Cache-Control: max-age=1, stale-while-revalidate=x", "", 2), Answer::Validate);
}

/// s3: the client's own directives still hold.
#[test]
fn rfc5861_s3_not_against_the_client() {
    let stale = "Cache-Control: max-age=1, stale-while-revalidate=60";
    for directive in ["no-cache", "max-age=1", "min-fresh=1"] {
        assert_eq!(answer(stale, &format!("Cache-Control: {directive}"), 2), Answer::Validate, "{directive}");
    }
    assert_eq!(answer(stale, "Cache-Control: only-if-cached", 2), Answer::StaleWhileRevalidate);
}

/// s4: "The stale-if-error Cache-Control extension indicates that when an error is encountered, a cached stale response
/// MAY be used to satisfy the request, regardless of other freshness information." "Its value indicates the upper limit
/// to staleness; when the cached response is more stale than the indicated amount, the cached response SHOULD NOT be
/// used"
#[test]
fn rfc5861_s4_if_error() {
    let at = |after| after_error("Cache-Control: max-age=600, stale-if-error=1200", "", after);
    assert!(at(599) && at(600) && at(1800) && !at(1801));
    assert!(!after_error("Cache-Control: max-age=1, stale-if-error=x", "", 2));
}

/// s4: "When used as a request Cache-Control extension, its scope of application is the request it appears in"
#[test]
fn rfc5861_s4_if_error_of_the_request() {
    let at = |after| after_error("Cache-Control: max-age=10", "Cache-Control: stale-if-error=5", after);
    assert!(at(15) && !at(16));
    assert!(after_error("Cache-Control: max-age=10", "Cache-Control: no-cache, stale-if-error=5", 3));
}

/// An operator may give times for responses without any.
#[test]
fn rfc5861_defaults() {
    let options = Options {
        default_stale_while_revalidate: Seconds(5),
        default_stale_if_error: Seconds(50),
        ..Options::default()
    };
    let answers = |control: &str| {
        let (none, headers) = (fields(""), fields(&format!("Cache-Control: {control}")));
        let response = ResponseHead { status: http::StatusCode::OK, headers: &headers };
        let terms = store(&options, &get(&none), &response, NOW, NOW).unwrap();
        let (directives, later) = (RequestDirectives::default(), Seconds(NOW.0 + 14));
        (terms.answer(&directives, later), terms.may_serve_after_error(&directives, Seconds(NOW.0 + 60)))
    };
    assert_eq!(answers("max-age=10"), (Answer::StaleWhileRevalidate, true));
    assert_eq!(answers("max-age=10, stale-while-revalidate=0, stale-if-error=0"), (Answer::Refetch, false));
    assert_eq!(answers("max-age=10, must-revalidate"), (Answer::Refetch, false));
}
