//! RFC 9111, sections 1 to 3.

use crate::kit::{after_304, answer, fresh_for, judged, kept, merged, stored};
use http::Method;
use nearmiss_cache_policy::{Answer, WhyNot};

/// "If a cache receives a delta-seconds value greater than the greatest integer it can represent, or if any of its
/// subsequent calculations overflows, the cache MUST consider the value to be 2147483648 (2^31)"
#[test]
fn rfc9111_s1_2_2_delta_seconds_overflow() {
    for huge in ["2147483648", "2147483649", "4294967296", "18446744073709551616", "99999999999999999999999999"] {
        assert_eq!(fresh_for(&format!("Cache-Control: max-age={huge}")), 2_147_483_648, "{huge}");
    }
    assert_eq!(fresh_for("Cache-Control: max-age=2147483647"), 2_147_483_647);
    assert_eq!(fresh_for("Cache-Control: max-age=003600"), 3600);
    assert_eq!(fresh_for("Cache-Control: max-age=5\nAge: 99999999999999999999999999"), 5 - 2_147_483_648);
}

/// "A cache MUST NOT store a response to a request unless: the request method is understood by the cache"
#[test]
fn rfc9111_s3_method_understood() {
    for method in ["HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PURGE", "QUERY"] {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        assert_eq!(judged(&method, "", 200, "Cache-Control: public, max-age=60"), Err(WhyNot::Method), "{method}");
    }
    assert!(judged(&Method::GET, "", 200, "Cache-Control: max-age=60").is_ok());
}

/// "the response status code is final"
#[test]
fn rfc9111_s3_status_final() {
    for status in [100, 101, 102, 103, 199] {
        assert_eq!(judged(&Method::GET, "", status, "Cache-Control: public, max-age=60"), Err(WhyNot::Status));
    }
}

/// "if the response status code is 206 or 304, or the must-understand cache directive is present: the cache understands
/// the response status code"
#[test]
fn rfc9111_s3_status_understood() {
    assert_eq!(judged(&Method::GET, "", 206, "Cache-Control: max-age=60"), Err(WhyNot::Partial));
    assert_eq!(judged(&Method::GET, "", 304, "Cache-Control: max-age=60"), Err(WhyNot::Status));
    for status in [299, 418, 599, 999] {
        assert!(judged(&Method::GET, "", status, "Cache-Control: max-age=60").is_ok());
        let must = judged(&Method::GET, "", status, "Cache-Control: max-age=60, must-understand");
        assert_eq!(must, Err(WhyNot::Status), "{status}");
    }
}

/// "the no-store cache directive is not present in the response"
#[test]
fn rfc9111_s3_no_store() {
    for control in ["no-store", "max-age=60, No-StOrE", "public, no-store=x", "no-store=\"a\"", "a=\"b\", no-store"] {
        assert_eq!(stored(&format!("Cache-Control: {control}")), Err(WhyNot::NoStore), "{control}");
    }
    assert_eq!(stored("Cache-Control: max-age=60\nCache-Control: no-store"), Err(WhyNot::NoStore));
    assert_eq!(stored("Cache-Control: a=\"b, no-store, max-age=60"), Err(WhyNot::NoStore));
}

/// "if the cache is shared: the private response directive is either not present or allows a shared cache to store a
/// modified response"
#[test]
fn rfc9111_s3_private() {
    assert_eq!(stored("Cache-Control: private, max-age=60"), Err(WhyNot::Private));
    assert!(stored("Cache-Control: private=\"x-user\", max-age=60").is_ok());
}

/// "if the cache is shared: the Authorization header field is not present in the request or a response directive is
/// present that explicitly allows shared caching"
#[test]
fn rfc9111_s3_authorization() {
    let with = |control: &str| {
        judged(&Method::GET, "Authorization: Basic eDp5", 200, &format!("Cache-Control: {control}\nETag: \"a\""))
    };
    assert_eq!(with("max-age=60"), Err(WhyNot::Authorization));
    assert_eq!(with("max-age=60, proxy-revalidate"), Err(WhyNot::Authorization));
    assert!(with("max-age=60, public").is_ok());
}

/// "the response contains at least one of the following: a public response directive; an Expires header field; a
/// max-age response directive; if the cache is shared: an s-maxage response directive; a status code that is defined as
/// heuristically cacheable"
#[test]
fn rfc9111_s3_allowed_to_be_stored() {
    let found = |response: &str| judged(&Method::GET, "", 302, &format!("{response}\nETag: \"a\""));
    assert_eq!(found(""), Err(WhyNot::NotAllowed));
    assert_eq!(found("Cache-Control: must-revalidate"), Err(WhyNot::NotAllowed));
    let allowing = ["public", "max-age=60", "s-maxage=60"];
    assert!(allowing.iter().all(|control| found(&format!("Cache-Control: {control}")).is_ok()));
    assert!(found("Expires: Sun, 06 Nov 1994 09:49:37 GMT").is_ok());
    for status in 200..600 {
        let heuristic = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501].contains(&status);
        assert_eq!(judged(&Method::GET, "", status, "ETag: \"a\"").is_ok(), heuristic, "{status}");
    }
}

/// "some caches will not store a response that has neither a cache validator nor an explicit expiration time"
#[test]
fn rfc9111_s3_useless() {
    assert_eq!(stored(""), Err(WhyNot::Useless));
    assert_eq!(stored("Cache-Control: max-age=0"), Err(WhyNot::Useless));
    assert_eq!(stored("Cache-Control: no-cache, max-age=60"), Err(WhyNot::Useless));
    assert!(stored("ETag: \"a\"").is_ok() && stored("Cache-Control: max-age=0, stale-if-error=60").is_ok());
}

/// "Caches MUST include all received response header fields — including unrecognized ones — when storing a response"
#[test]
fn rfc9111_s3_1_all_fields() {
    let all = "Cache-Control: max-age=60\nX-New: 1\nX-New: 2\nSet-Cookie: a=b\nContent-Length: 5\nTrailer: X-Sum\n\
        Warning: 110 - \"old\"\nCDN-Cache-Control: x\nDate: Sun, 06 Nov 1994 08:49:37 GMT";
    assert_eq!(kept(all), crate::kit::fields(all));
}

/// "The Connection header field and fields whose names are listed in it are required by Section 7.6.1 of [HTTP] to be
/// removed before forwarding the message."
#[test]
fn rfc9111_s3_1_connection() {
    let kept = kept(
        "Connection: close, X-Hop\nConnection: x-other,,bad name\nX-Hop: 1\nX-Other: 2\nX-Stays: 3\nUpgrade: h2c\n\
        Keep-Alive: timeout=5\nProxy-Connection: close\nTE: trailers\nTransfer-Encoding: chunked",
    );
    let mut names: Vec<_> = kept.keys().map(|name| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["date", "x-stays"]);
}

/// "The no-cache and private cache directives can have arguments that prevent storage of header fields by all caches
/// and shared caches, respectively."
#[test]
fn rfc9111_s3_1_withheld() {
    let kept = kept(
        "Cache-Control: private=\"X-User, set-cookie\", no-cache=X-Token, max-age=60\nX-User: 1\nX-Token: 2\nSet-Cookie: a=b\nX-Stays: 3",
    );
    assert!(["x-user", "x-token", "set-cookie"].iter().all(|name| !kept.contains_key(*name)));
    assert_eq!(kept["x-stays"], "3");
}

/// "Header fields that are specific to the proxy that a cache uses when forwarding a request MUST NOT be stored"
#[test]
fn rfc9111_s3_1_proxy() {
    let kept =
        kept("Proxy-Authenticate: Basic\nProxy-Authentication-Info: x\nProxy-Authorization: y\nWWW-Authenticate: z");
    assert_eq!((kept.len(), &kept["www-authenticate"]), (2, &"z".parse().unwrap()));
}

/// "the cache MUST add each header field in the provided response to the stored response, replacing field values that
/// are already present"
#[test]
fn rfc9111_s3_2_update_replaces() {
    let merged = merged(
        "Cache-Control: max-age=60\nX-Twice: 1\nX-Twice: 2\nX-Old: stays\nETag: \"a\"",
        "Cache-Control: max-age=90\nX-Twice: 3\nX-New: 4\nX-New: 5\nSet-Cookie: a=b",
    );
    let all = |name: &str| merged.get_all(name).iter().map(|v| v.to_str().unwrap()).collect::<Vec<_>>();
    assert_eq!(all("cache-control"), ["max-age=90"]);
    assert_eq!((all("x-twice"), all("x-new")), (vec!["3"], vec!["4", "5"]));
    assert_eq!((all("x-old"), all("set-cookie")), (vec!["stays"], vec!["a=b"]));
}

/// "with the following exceptions: Header fields excepted from storage in Section 3.1"
#[test]
fn rfc9111_s3_2_update_not_of_fields_that_are_not_stored() {
    let merged =
        merged("ETag: \"a\"", "Connection: X-Hop\nX-Hop: 1\nTransfer-Encoding: chunked\nAge: 5\nProxy-Authenticate: x");
    let mut names: Vec<_> = merged.keys().map(|name| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["date", "etag"]);
}

/// "and The Content-Length header field." "Implementations MAY automatically omit such header fields from updates"
#[test]
fn rfc9111_s3_2_update_not_of_the_content() {
    let whole = "Content-Length: 5\nContent-Encoding: gzip\nContent-Type: text/plain\nETag: \"a\"";
    let merged =
        merged(whole, "Content-Length: 0\nContent-Encoding: br\nContent-Type: text/html\nContent-Range: bytes */9");
    assert_eq!(
        (&merged["content-length"], &merged["content-encoding"]),
        (&"5".parse().unwrap(), &"gzip".parse().unwrap())
    );
    assert_eq!(merged["content-type"], "text/plain");
    assert!(!merged.contains_key("content-range"));
}

/// "a cache MUST NOT store incomplete or partial-content responses if it does not support the Range and Content-Range
/// header fields": this cache stores no partial content at all.
#[test]
fn rfc9111_s3_3_no_partial_content() {
    let partial = "Cache-Control: public, max-age=60\nContent-Range: bytes 0-4/9\nETag: \"a\"";
    assert_eq!(judged(&Method::GET, "Range: bytes=0-4", 206, partial), Err(WhyNot::Partial));
}

/// "A shared cache MUST NOT use a cached response to a request with an Authorization header field to satisfy any
/// subsequent request unless the response contains a Cache-Control field with a response directive that allows it"
/// "must-revalidate, public, and s-maxage"
#[test]
fn rfc9111_s3_5_authenticated() {
    for (control, stored) in [
        ("max-age=60", false),
        ("no-cache", false),
        ("max-age=60, public", true),
        ("max-age=60, must-revalidate", true),
        ("s-maxage=60", true),
        ("s-maxage=0", true),
    ] {
        let response = format!("Cache-Control: {control}\nETag: \"a\"");
        assert_eq!(judged(&Method::GET, "Authorization: Bearer x", 200, &response).is_ok(), stored, "{control}");
    }
}

/// "and the cache conforms to the requirements of that directive for that response"
#[test]
fn rfc9111_s3_5_requirements_of_the_directive() {
    assert_eq!(answer("Cache-Control: max-age=60, must-revalidate", "Cache-Control: max-stale", 60), Answer::Validate);
}

/// RFC 9111 s7.3: "the Set-Cookie response header field … does not inhibit caching". This cache requires the origin to
/// allow it explicitly.
#[test]
fn rfc9111_s7_3_set_cookie() {
    assert!(stored("Cache-Control: max-age=60\nSet-Cookie: a=b").is_ok());
    assert!(stored("Cache-Control: public\nETag: \"a\"\nSet-Cookie: a=b").is_ok());
    let modified = "Last-Modified: Sun, 06 Nov 1994 07:49:37 GMT";
    assert!(stored(modified).is_ok());
    assert_eq!(stored(&format!("{modified}\nSet-Cookie: a=b")), Err(WhyNot::SetCookie));
    assert_eq!(stored("Cache-Control: no-cache\nETag: \"a\"\nSet-Cookie: a=b"), Err(WhyNot::SetCookie));
    assert_eq!(stored("Cache-Control: max-age=0\nETag: \"a\"\nSet-Cookie: a=b"), Err(WhyNot::SetCookie));
    assert_eq!(after_304("ETag: \"a\"", "Set-Cookie: session=1"), Err(WhyNot::SetCookie));
}
