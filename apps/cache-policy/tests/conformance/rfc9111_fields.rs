//! RFC 9111, section 5.

use crate::kit::{after_error, answer, fresh_for, judged, kept, stored};
use http::Method;
use nearmiss_cache_policy::{Answer, WhyNot};

const HOUR: &str = "Cache-Control: max-age=3600";

fn age(age: &str) -> u64 {
    stored(&format!("{HOUR}\nETag: \"a\"\n{age}")).unwrap().age(crate::kit::NOW)
}

/// "a cache encountering a message with a list-based Age field value SHOULD use the first member of the field value,
/// discarding subsequent ones."
#[test]
fn rfc9111_s5_1_age_list() {
    assert_eq!(
        (age("Age: 7200, 0"), age("Age: 0, 7200"), age("Age: 0\nAge: 7200"), age("Age: 7200\nAge: 0")),
        (7200, 0, 0, 7200)
    );
}

/// "If the field value (after discarding additional members, as per above) is invalid (e.g., it contains something
/// other than a non-negative integer), a cache SHOULD ignore the field."
#[test]
fn rfc9111_s5_1_age_invalid() {
    for invalid in ["abc", "-7200", "7200.0", "7200;foo=bar", "\"7200\"", "", "abc, 7200", "72 00"] {
        assert_eq!(age(&format!("Age: {invalid}")), 0, "{invalid}");
    }
    assert_eq!((age("Age: 2147483647"), age("Age: 2147483649")), (2_147_483_647, 2_147_483_648));
}

/// "Cache directives are identified by a token, to be compared case-insensitively"
#[test]
fn rfc9111_s5_2_case() {
    assert_eq!(fresh_for("Cache-Control: MaX-aGe=60"), 60);
    assert_eq!(stored("Cache-Control: PRIVATE, max-age=60"), Err(WhyNot::Private));
}

/// "have an optional argument that can use both token and quoted-string syntax. For the directives defined below that
/// define arguments, recipients ought to accept both forms"
#[test]
fn rfc9111_s5_2_both_forms() {
    assert_eq!(fresh_for("Cache-Control: max-age=\"60\""), 60);
    assert_eq!(fresh_for("Cache-Control: max-age=\"\\60\""), 60);
    assert!(!kept("Cache-Control: no-cache=x-a\nX-A: 1").contains_key("x-a"));
}

/// A quoted string is one argument, with any content.
#[test]
fn rfc9111_s5_2_quoted_commas() {
    assert_eq!(fresh_for("Cache-Control: a=\"max-age=3600\", max-age=1"), 1);
    assert_eq!(fresh_for("Cache-Control: a=\"x, max-age=3600, y\", max-age=1"), 1);
    assert_eq!(fresh_for("Cache-Control: a=\"x\\\", max-age=3600, y\", max-age=1"), 1);
    assert_eq!(fresh_for("Cache-Control: ,,\t, max-age=1 ,, ,"), 1);
}

/// "The max-age request directive indicates that the client prefers a response whose age is less than or equal to the
/// specified number of seconds."
#[test]
fn rfc9111_s5_2_1_1_max_age() {
    let answer_after = |after| answer(HOUR, "Cache-Control: max-age=5", after);
    assert_eq!((answer_after(5), answer_after(6)), (Answer::Fresh, Answer::Validate));
    assert_eq!(answer(HOUR, "Cache-Control: max-age=x", 1), Answer::Validate);
}

/// "Unless the max-stale request directive is also present, the client does not wish to receive a stale response."
#[test]
fn rfc9111_s5_2_1_1_max_age_no_stale() {
    let stale = "Cache-Control: max-age=1, stale-while-revalidate=60";
    assert_eq!(answer(stale, "", 2), Answer::StaleWhileRevalidate);
    assert_eq!(answer(stale, "Cache-Control: max-age=60", 2), Answer::Validate);
    assert_eq!(answer("Cache-Control: max-age=1", "Cache-Control: max-age=60, max-stale", 2), Answer::Stale);
}

/// "If a value is present, then the client is willing to accept a response that has exceeded its freshness lifetime by
/// no more than the specified number of seconds. If no value is assigned to max-stale, then the client will accept a
/// stale response of any age."
#[test]
fn rfc9111_s5_2_1_2_max_stale() {
    let answer_to = |with: &str, after| answer("Cache-Control: max-age=10", with, after);
    assert_eq!(answer_to("Cache-Control: max-stale=5", 15), Answer::Stale);
    assert_eq!(answer_to("Cache-Control: max-stale=5", 16), Answer::Validate);
    assert_eq!(answer_to("Cache-Control: max-stale", 5_000_000_000), Answer::Stale);
    assert_eq!(answer_to("Cache-Control: max-stale=abc", 11), Answer::Validate);
    assert_eq!(answer_to("Cache-Control: max-stale=5", 9), Answer::Fresh);
}

/// "the client prefers a response whose freshness lifetime is no less than its current age plus the specified time in
/// seconds."
#[test]
fn rfc9111_s5_2_1_3_min_fresh() {
    let answer_after = |after| answer("Cache-Control: max-age=10", "Cache-Control: min-fresh=4", after);
    assert_eq!(
        (answer_after(6), answer_after(7), answer_after(11)),
        (Answer::Fresh, Answer::Validate, Answer::Validate)
    );
    assert_eq!(answer(HOUR, "Cache-Control: min-fresh=x", 0), Answer::Validate);
}

/// "The no-cache request directive indicates that the client prefers a stored response not be used to satisfy the
/// request without successful validation on the origin server."
#[test]
fn rfc9111_s5_2_1_4_no_cache() {
    assert_eq!(answer(HOUR, "Cache-Control: No-Cache", 0), Answer::Validate);
    assert!(!after_error(HOUR, "Cache-Control: no-cache", 0));
}

/// "The no-store request directive indicates that a cache MUST NOT store any part of either this request or any
/// response to it."
#[test]
fn rfc9111_s5_2_1_5_no_store() {
    assert_eq!(judged(&Method::GET, "Cache-Control: no-store", 200, HOUR), Err(WhyNot::RequestNoStore));
}

/// "if a request containing this directive is satisfied from a cache, the no-store request directive does not apply to
/// the already stored response."
#[test]
fn rfc9111_s5_2_1_5_no_store_served() {
    assert_eq!(answer(HOUR, "Cache-Control: no-store", 0), Answer::Fresh);
}

/// no-transform requests what this cache does anyway.
#[test]
fn rfc9111_s5_2_1_6_no_transform() {
    assert_eq!(answer(HOUR, "Cache-Control: no-transform", 0), Answer::Fresh);
}

/// "Caches that honor this request directive SHOULD, upon receiving it, respond with either a stored response
/// consistent with the other constraints of the request or a 504 (Gateway Timeout) status code."
#[test]
fn rfc9111_s5_2_1_7_only_if_cached() {
    assert_eq!(answer(HOUR, "Cache-Control: only-if-cached", 0), Answer::Fresh);
    assert_eq!(answer(HOUR, "Cache-Control: only-if-cached", 3600), Answer::OnlyIfCachedMiss);
    assert_eq!(answer(HOUR, "Cache-Control: only-if-cached, max-age=0", 1), Answer::OnlyIfCachedMiss);
    assert_eq!(answer(HOUR, "Cache-Control: only-if-cached, max-stale", 3600), Answer::Stale);
}

/// "the response is to be considered stale after its age is greater than the specified number of seconds"
#[test]
fn rfc9111_s5_2_2_1_max_age() {
    assert_eq!((fresh_for(HOUR), answer(HOUR, "", 3601)), (3600, Answer::Validate));
}

/// "once the response has become stale, a cache MUST NOT reuse that response to satisfy another request until it has
/// been successfully validated by the origin"
#[test]
fn rfc9111_s5_2_2_2_must_revalidate() {
    let control = "Cache-Control: max-age=10, must-revalidate, stale-while-revalidate=60";
    assert_eq!(answer(control, "", 9), Answer::Fresh);
    assert_eq!(answer(control, "Cache-Control: max-stale", 10), Answer::Validate);
}

/// "if a cache is disconnected, the cache MUST generate an error response rather than reuse the stale response"
#[test]
fn rfc9111_s5_2_2_2_must_revalidate_disconnected() {
    let control = "Cache-Control: max-age=10, must-revalidate, stale-if-error=60";
    assert!(after_error(control, "", 9) && !after_error(control, "", 10));
    assert!(!after_error(control, "Cache-Control: stale-if-error=60", 10));
}

/// "When a cache that implements the must-understand directive receives a response that includes it, the cache SHOULD
/// ignore the no-store directive if it understands and implements the status code's caching requirements."
#[test]
fn rfc9111_s5_2_2_3_must_understand() {
    let control = "Cache-Control: max-age=60, no-store, must-understand";
    assert!(stored(control).is_ok());
    assert_eq!(judged(&Method::GET, "", 599, control), Err(WhyNot::Status));
    assert_eq!(judged(&Method::GET, "Cache-Control: no-store", 200, control), Err(WhyNot::RequestNoStore));
}

/// "in its unqualified form (without an argument), indicates that the response MUST NOT be used to satisfy any other
/// request without forwarding it for validation and receiving a successful response"
#[test]
fn rfc9111_s5_2_2_4_no_cache() {
    for control in ["no-cache", "no-cache=\"\"", "no-cache=", "no-cache=\"a b\"", "no-cache=\"open", "no-cache=\",\""] {
        let control = format!("Cache-Control: max-age=60, {control}");
        assert_eq!(answer(&control, "Cache-Control: max-stale", 0), Answer::Validate, "{control}");
        assert!(!after_error(&control, "Cache-Control: stale-if-error=60", 0), "{control}");
    }
}

/// "a cache MAY use the response to satisfy a subsequent request, … if the listed header fields are excluded from the
/// subsequent response" "Field names are case-insensitive."
#[test]
fn rfc9111_s5_2_2_4_no_cache_of_fields() {
    let control = "Cache-Control: max-age=60, no-cache=\"X-A, x-b\"";
    assert_eq!(answer(control, "", 0), Answer::Fresh);
    let kept = kept(&format!("{control}\nx-a: 1\nX-B: 2\nX-C: 3"));
    assert!(!kept.contains_key("x-a") && !kept.contains_key("x-b") && kept.contains_key("x-c"));
}

/// A validator that is not kept validates nothing.
#[test]
fn rfc9111_s5_2_2_4_no_cache_of_validators() {
    let stale = "Cache-Control: max-age=0, no-cache=\"etag, last-modified\"";
    assert_eq!(stored(&format!("{stale}\nETag: \"a\"")), Err(WhyNot::Useless));
    assert!(stored(&format!("{stale}\nETag: \"a\"").replace("etag, ", "")).is_ok());
}

/// A response cannot be used without some fields; the directive then applies to the whole response.
#[test]
fn rfc9111_s5_2_2_4_no_cache_of_needed_fields() {
    for field in ["Content-Type", "content-encoding", "Vary", "Cache-Control", "X-A, vary"] {
        let control = format!("Cache-Control: max-age=60, no-cache=\"{field}\"");
        assert_eq!(answer(&control, "", 0), Answer::Validate, "{field}");
    }
}

/// "a cache MUST NOT store any part of either the immediate request or the response and MUST NOT use the response to
/// satisfy any other request."
#[test]
fn rfc9111_s5_2_2_5_no_store() {
    assert_eq!(stored("Cache-Control: no-store, max-age=60\nETag: \"a\""), Err(WhyNot::NoStore));
}

/// "The unqualified private response directive indicates that a shared cache MUST NOT store the response"
#[test]
fn rfc9111_s5_2_2_7_private() {
    for control in [
        "private",
        "private=\"\"",
        "private=",
        "private=\"a b\"",
        "private=\"set-cookie",
        "private=\"vary\"",
        "private =x",
    ] {
        assert_eq!(stored(&format!("Cache-Control: max-age=60, {control}")), Err(WhyNot::Private), "{control}");
    }
}

/// "a shared cache MUST NOT store the listed header fields if they are present in the original response but MAY store
/// the remainder of the response message without those header fields"
#[test]
fn rfc9111_s5_2_2_7_private_fields() {
    let control = "Cache-Control: max-age=60, private=\"Set-Cookie, X-User\"";
    assert_eq!(answer(control, "", 0), Answer::Fresh);
    let kept = kept(&format!("{control}\nSet-Cookie: a=b\nSet-Cookie: c=d\nX-User: 1"));
    assert!(!kept.contains_key("set-cookie") && !kept.contains_key("x-user"));
}

/// "once the response has become stale, a shared cache MUST NOT reuse that response to satisfy another request until it
/// has been successfully validated by the origin"
#[test]
fn rfc9111_s5_2_2_8_proxy_revalidate() {
    let control = "Cache-Control: max-age=10, proxy-revalidate, stale-while-revalidate=60, stale-if-error=60";
    assert_eq!(
        (answer(control, "", 9), answer(control, "Cache-Control: max-stale", 10)),
        (Answer::Fresh, Answer::Validate)
    );
    assert!(!after_error(control, "", 10));
}

/// "If a response with the public directive has no explicit freshness information, it is heuristically cacheable"
#[test]
fn rfc9111_s5_2_2_9_public() {
    let public = "Cache-Control: public\nLast-Modified: Sun, 06 Nov 1994 08:32:57 GMT";
    assert_eq!(judged(&Method::GET, "", 302, public).unwrap().lifetime(), 100);
    assert_eq!(stored("Cache-Control: public, no-store"), Err(WhyNot::NoStore));
}

/// "for a shared cache, the maximum age specified by this directive overrides the maximum age specified by either the
/// max-age directive or the Expires header field."
#[test]
fn rfc9111_s5_2_2_10_s_maxage() {
    assert_eq!(fresh_for("Cache-Control: max-age=3600, s-maxage=1"), 1);
    assert_eq!(fresh_for("Cache-Control: s-maxage=3600, max-age=0\nExpires: 0"), 3600);
}

/// "A shared cache MUST NOT reuse a stale response with s-maxage to satisfy another request until it has been
/// successfully validated by the origin"
#[test]
fn rfc9111_s5_2_2_10_s_maxage_stale() {
    let control = "Cache-Control: s-maxage=10, stale-while-revalidate=60, stale-if-error=60";
    assert_eq!(answer(control, "Cache-Control: max-stale", 10), Answer::Validate);
    assert!(!after_error(control, "", 10));
}

/// "A cache MUST ignore unrecognized cache directives."
#[test]
fn rfc9111_s5_2_3_unrecognized() {
    assert_eq!(
        fresh_for(
            "Cache-Control: foobar, x=\"y\", community=\"UCI\", max-age=60, a-name-longer-than-any-that-is-known, =,=5, \"x\""
        ),
        60
    );
    assert_eq!(answer(HOUR, "Cache-Control: foobar, x=\"no-cache\", only-if-cached-not", 0), Answer::Fresh);
}

/// "A cache recipient MUST interpret invalid date formats, especially the value "0", as representing a time in the
/// past"
#[test]
fn rfc9111_s5_3_invalid() {
    for expires in
        ["0", "-1", "", "never", "Sun, 06 Nov 1994 20:49:37", "Sun, 6 Nov 1994 20:49:37 GMT", "2095-01-01T00:00:00Z"]
    {
        assert_eq!(
            fresh_for(&format!("Expires: {expires}\nLast-Modified: Sun, 06 Nov 1983 08:49:37 GMT")),
            0,
            "{expires}"
        );
    }
}

/// As above, where the origin's clock lags: "a time in the past" is past for that clock, too.
#[test]
fn rfc9111_s5_3_invalid_and_an_old_date() {
    let response = stored("Expires: 0\nDate: Sun, 06 Nov 1994 07:49:37 GMT\nETag: \"a\"");
    assert_eq!(response.unwrap().lifetime(), 0);
}

/// "If a response includes a Cache-Control header field with the max-age directive, a recipient MUST ignore the Expires
/// header field."
#[test]
fn rfc9111_s5_3_beside_max_age() {
    assert_eq!(fresh_for("Cache-Control: max-age=0\nExpires: Sun, 06 Nov 1994 20:49:37 GMT"), 0);
    assert_eq!(fresh_for("Cache-Control: max-age=60\nExpires: 0"), 60);
}

/// "Likewise, if a response includes the s-maxage directive, a shared cache recipient MUST ignore the Expires header
/// field."
#[test]
fn rfc9111_s5_3_beside_s_maxage() {
    assert_eq!(fresh_for("Cache-Control: s-maxage=0\nExpires: Sun, 06 Nov 1994 20:49:37 GMT"), 0);
}

/// "this specification deprecates Pragma": a request's counts where there is no Cache-Control, as before; a response's
/// "was never specified", and does not count.
#[test]
fn rfc9111_s5_4_pragma() {
    assert_eq!(answer(HOUR, "Pragma: No-Cache", 0), Answer::Validate);
    assert_eq!(answer(HOUR, "Pragma: no-cache\nCache-Control: max-age=60", 0), Answer::Fresh);
    assert_eq!(answer(HOUR, "Pragma: foo", 0), Answer::Fresh);
    assert_eq!(fresh_for(&format!("Pragma: no-cache\n{HOUR}")), 3600);
}

/// "The "Warning" header field was used to carry additional information. This specification obsoletes it": nothing is
/// added to a stored response.
#[test]
fn rfc9111_s5_5_warning() {
    assert!(!kept(HOUR).contains_key("warning"));
}
