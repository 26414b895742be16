//! RFC 9213: targeted Cache-Control.

use crate::kit::{NOW, fields, fresh_for, get, kept, merged, stored};
use http::HeaderName;
use nearmiss_cache_policy::{Options, ResponseHead, Terms, WhyNot, store};

/// The terms for a cache with a list of two targets.
fn listed(response: &str) -> Result<Terms, WhyNot> {
    let targeted = ["example-cache-control", "cdn-cache-control"].map(HeaderName::from_static).to_vec();
    let (none, headers) = (fields(""), fields(&format!("{response}\nETag: \"a\"")));
    let response = ResponseHead { status: http::StatusCode::OK, headers: &headers };
    store(&Options { targeted, ..Options::default() }, &get(&none), &response, NOW, NOW)
}

/// s2.1: "If a targeted field in a given response is empty, or a parsing error is encountered, that field MUST be
/// ignored by the cache"
#[test]
fn rfc9213_s2_1_ignored() {
    for value in [
        "",
        "max-age=10000, &&&&&",
        "max-age=, x",
        "max-age =100",
        "max-age= 100",
        "MaX-aGe=100",
        "max-age=100,",
        "max-age=1000000000000000",
    ] {
        assert_eq!(fresh_for(&format!("CDN-Cache-Control: {value}\nCache-Control: max-age=60")), 60, "{value}");
        assert_eq!(stored(&format!("CDN-Cache-Control: {value}\nCache-Control: no-store")), Err(WhyNot::NoStore));
    }
}

/// s2.1: "Implementations SHOULD NOT consume values that violate these inferred constraints."
#[test]
fn rfc9213_s2_1_types() {
    for value in
        ["max-age=\"60\"", "max-age=60.0", "max-age", "max-age=token", "max-age=(60)", "max-age=-60", "max-age=?0"]
    {
        assert_eq!(fresh_for(&format!("CDN-Cache-Control: {value}")), 0, "{value}");
    }
    assert!(stored("CDN-Cache-Control: max-age=60, no-store=?0, private=?0, no-cache=5").is_ok());
    assert_eq!(fresh_for("CDN-Cache-Control: max-age=60, no-store=5, must-revalidate=1.5"), 60);
}

/// s2.1: "Parameters received on cache directives are to be ignored, unless other handling is explicitly specified."
#[test]
fn rfc9213_s2_1_parameters() {
    assert_eq!(fresh_for("CDN-Cache-Control: max-age=60;a=b, x;y=1"), 60);
}

/// s2.2: "the cache MUST select the first (in target-list order) field with a valid, non-empty value and use its value
/// to determine the caching policy for the response"
#[test]
fn rfc9213_s2_2_order() {
    let lifetime = |response: &str| listed(response).unwrap().lifetime();
    let both = "CDN-Cache-Control: max-age=20\nExample-Cache-Control: max-age=10\nCache-Control: max-age=30";
    assert_eq!(lifetime(both), 10);
    assert_eq!(lifetime("CDN-Cache-Control: max-age=20\nExample-Cache-Control: &\nCache-Control: max-age=30"), 20);
    assert_eq!(lifetime("CDN-Cache-Control: max-age=20\nCDN-Cache-Control: x\nCache-Control: max-age=30"), 20);
}

/// s2.2: "and it MUST ignore the Cache-Control and Expires header fields in that response, unless no valid, non-empty
/// value is available from the listed header fields."
#[test]
fn rfc9213_s2_2_others_ignored() {
    assert_eq!(fresh_for("CDN-Cache-Control: max-age=60\nCache-Control: no-store, private\nExpires: 0"), 60);
    assert_eq!(
        fresh_for("CDN-Cache-Control: none\nCache-Control: max-age=60\nExpires: Sun, 06 Nov 1994 20:49:37 GMT"),
        0
    );
    assert!(stored("CDN-Cache-Control: none\nCache-Control: no-store\nETag: \"a\"").is_ok());
}

/// s2.2: "Targeted fields that are not on a cache's target list MUST NOT change that cache's behavior and MUST be
/// passed through."
#[test]
fn rfc9213_s2_2_not_listed() {
    assert_eq!(fresh_for("Other-Cache-Control: no-store\nCache-Control: max-age=60"), 60);
    assert_eq!(kept("Other-Cache-Control: no-store, &")["other-cache-control"], "no-store, &");
    assert_eq!(merged("X: y", "CDN-Cache-Control: max-age=5")["cdn-cache-control"], "max-age=5");
}

/// s2.2: "Caches that use a targeted field MUST implement the semantics of the following cache directives: max-age,
/// must-revalidate, no-store, no-cache, private"
#[test]
fn rfc9213_s2_2_directives() {
    let cdn = |value: &str| format!("CDN-Cache-Control: {value}\nCache-Control: max-age=60");
    assert_eq!(fresh_for(&cdn("max-age=99999999999")), 2_147_483_648);
    assert_eq!(stored(&cdn("no-store, max-age=60")), Err(WhyNot::NoStore));
    assert_eq!(stored(&cdn("private, max-age=60")), Err(WhyNot::Private));
    let answer = |value: &str, after| crate::kit::answer(&cdn(value), "Cache-Control: max-stale", after);
    assert_eq!(answer("no-cache, max-age=60", 0), nearmiss_cache_policy::Answer::Validate);
    assert_eq!(answer("must-revalidate, max-age=60", 60), nearmiss_cache_policy::Answer::Validate);
    assert_eq!(answer("max-age=60, stale-while-revalidate=5", 60), nearmiss_cache_policy::Answer::StaleWhileRevalidate);
    assert!(!kept(&format!("{}\nX-A: 1", cdn("max-age=60, private=\"X-A\""))).contains_key("x-a"));
}
