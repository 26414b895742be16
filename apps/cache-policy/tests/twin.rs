//! The crate `http-cache-semantics` as a twin: another reading of the same RFCs, by other people. If both agree, random
//! exchanges must get the same answers. If not, a test names the sentence of the RFCs that decides.

#![allow(clippy::unwrap_used, reason = "these functions are the tests' own")]

use http::{HeaderMap, HeaderName, Method, Request, Response, StatusCode};
use http_cache_semantics::{BeforeRequest, CacheOptions, CachePolicy};
use nearmiss_cache_policy::{
    Answer, Options, RequestDirectives, RequestHead, ResponseHead, Seconds, Terms, WhyNot, store, vary_key,
};
use proptest::prelude::*;
use std::time::{Duration, SystemTime};

/// Sun, 06 Nov 1994 08:49:37 GMT.
const NOW: u64 = 784_111_777;

/// An exchange to store and a later request.
#[derive(Debug, Clone, Default)]
struct Exchange {
    request: HeaderMap,
    status: u16,
    response: HeaderMap,
    later: HeaderMap,
    after: u64,
}

fn fields(lines: &[&str]) -> HeaderMap {
    let split = lines.iter().map(|line| line.split_once(':').unwrap());
    split.map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.trim().parse().unwrap())).collect()
}

fn options() -> Options {
    Options { heuristic_fraction: 0.5, heuristic_most: Seconds(u64::MAX), ..Options::default() }
}

fn get(headers: &HeaderMap) -> RequestHead<'_> {
    RequestHead { method: &Method::GET, target: "/", authority: "example.com", headers }
}

impl Exchange {
    fn new(response: &[&str], later: &[&str], after: u64) -> Self {
        let response = fields(response);
        Exchange { status: 200, response, later: fields(later), after, ..Exchange::default() }
    }

    fn ours(&self) -> Result<Terms, WhyNot> {
        let response = ResponseHead { status: StatusCode::from_u16(self.status).unwrap(), headers: &self.response };
        store(&options(), &get(&self.request), &response, Seconds(NOW), Seconds(NOW))
    }

    fn theirs(&self) -> CachePolicy {
        let mut response = Response::builder().status(self.status).body(()).unwrap();
        *response.headers_mut() = self.response.clone();
        let options = CacheOptions { cache_heuristic: 0.5, ..CacheOptions::default() };
        CachePolicy::new_options(&request(&self.request), &response, at(0), options)
    }

    /// Returns whether our stored response is served without a request to the origin.
    fn we_serve(&self, terms: &Terms) -> bool {
        let key = |headers| vary_key(&self.response, &get(headers));
        let answer = terms.answer(&RequestDirectives::of(&get(&self.later)), Seconds(NOW + self.after));
        key(&self.request) == key(&self.later) && matches!(answer, Answer::Fresh | Answer::Stale)
    }

    fn they_serve(&self) -> bool {
        let before = self.theirs().before_request(&request(&self.later), at(self.after));
        matches!(before, BeforeRequest::Fresh(_))
    }

    /// Returns our and their decisions on the later request; `None` where we do not store.
    fn both(&self) -> (Option<bool>, bool) {
        (self.ours().ok().map(|terms| self.we_serve(&terms)), self.they_serve())
    }
}

fn request(headers: &HeaderMap) -> Request<()> {
    let mut request = Request::builder().uri("http://example.com/").body(()).unwrap();
    *request.headers_mut() = headers.clone();
    request
}

fn at(after: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(NOW + after)
}

/// Any of these lines, each or none; a `N` stands for a number of seconds.
fn some_of(lines: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    let line = |text: &'static str| {
        prop::option::of((0u64..40).prop_map(move |seconds| text.replace('N', &seconds.to_string())))
    };
    lines.iter().map(|text| line(text)).collect::<Vec<_>>().prop_map(|lines| lines.into_iter().flatten().collect())
}

/// A field made of some of these members.
fn list(name: &'static str, members: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    some_of(members).prop_map(move |members| match members.as_slice() {
        [] => Vec::new(),
        members => vec![format!("{name}: {}", members.join(", "))],
    })
}

fn date(name: &'static str, from: u64, to: u64) -> impl Strategy<Value = Vec<String>> {
    prop::option::of(from..to).prop_map(move |at| {
        let text = |at| httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(at));
        at.map(|at| format!("{name}: {}", text(at))).into_iter().collect()
    })
}

fn together(parts: Vec<BoxedStrategy<Vec<String>>>) -> impl Strategy<Value = HeaderMap> {
    parts.prop_map(|parts| {
        let lines = parts.concat();
        fields(&lines.iter().map(String::as_str).collect::<Vec<_>>())
    })
}

fn exchange() -> impl Strategy<Value = Exchange> {
    let selecting = || prop_oneof![Just(vec![]), Just(vec!["Foo: 1".to_owned()]), Just(vec!["Foo: 2".to_owned()])];
    let request = together(vec![
        selecting().boxed(),
        prop_oneof![4 => Just(vec![]), 1 => Just(vec!["Authorization: Basic eDp5".to_owned()])].boxed(),
    ]);
    let response = together(vec![
        list("Cache-Control", &["max-age=N", "s-maxage=N", "public", "no-cache", "must-revalidate", "foo=N"]).boxed(),
        prop_oneof![9 => Just(vec![]), 1 => Just(vec!["Cache-Control: private".to_owned()])].boxed(),
        prop_oneof![9 => Just(vec![]), 1 => Just(vec!["Cache-Control: no-store".to_owned()])].boxed(),
        date("Expires", NOW - 30, NOW + 60).boxed(),
        date("Last-Modified", NOW - 90, NOW + 10).boxed(),
        some_of(&["ETag: \"N\"", "Age: N"]).boxed(),
        prop_oneof![Just(vec![]), Just(vec!["Vary: Foo".to_owned()])].boxed(),
    ]);
    let later = together(vec![
        selecting().boxed(),
        list("Cache-Control", &["max-age=N", "min-fresh=N", "no-cache", "no-transform"]).boxed(),
        prop_oneof![3 => Just(vec![]), 1 => Just(vec!["Cache-Control: max-stale".to_owned()])].boxed(),
    ]);
    let statuses = prop::sample::select(vec![200u16, 203, 204, 300, 301, 302, 303, 307, 308, 404, 405, 410, 414, 501]);
    (request, statuses, response, later, 0u64..60).prop_map(|(request, status, response, later, after)| Exchange {
        request,
        status,
        response,
        later,
        after,
    })
}

/// Returns whether the twin serves a stale response that it must not (see `rfc9111_s4_2_4_...` below).
fn twin_may_serve_forbidden(exchange: &Exchange, terms: &Terms) -> bool {
    let has_directive = |map: &HeaderMap, word| {
        map.get_all("cache-control").iter().any(|line| line.to_str().is_ok_and(|line| line.contains(word)))
    };
    let bound = has_directive(&exchange.response, "s-maxage") || has_directive(&exchange.response, "no-cache");
    let stale = terms.time_to_live(Seconds(NOW + exchange.after)) <= 0;
    has_directive(&exchange.later, "max-stale") && bound && (stale || has_directive(&exchange.response, "no-cache"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_agree(exchange in exchange()) {
        let theirs = exchange.theirs();
        match exchange.ours() {
            Err(WhyNot::Useless) => prop_assert_eq!(theirs.time_to_live(at(0)), Duration::ZERO),
            Err(why) => prop_assert!(!theirs.is_storable(), "{:?}", why),
            Ok(terms) => {
                prop_assert!(theirs.is_storable());
                let now = Seconds(NOW + exchange.after);
                prop_assert_eq!(theirs.age(at(exchange.after)).as_secs(), terms.age(now));
                let no_cache = exchange.response.get_all("cache-control").iter().any(|line| line.to_str().unwrap().contains("no-cache"));
                if !no_cache {
                    let left = theirs.time_to_live(at(exchange.after)).as_secs();
                    prop_assert_eq!(left, u64::try_from(terms.time_to_live(now)).unwrap_or(0));
                }
                if !twin_may_serve_forbidden(&exchange, &terms) {
                    prop_assert_eq!(exchange.they_serve(), exchange.we_serve(&terms));
                }
            }
        }
    }
}

const FRESH: &str = "Cache-Control: max-age=60";

/// RFC 9111 s4.2.4: "A cache MUST NOT generate a stale response if it is prohibited by an explicit in-protocol
/// directive": the twin does under max-stale.
#[test]
fn rfc9111_s4_2_4_s_maxage_and_no_cache_under_max_stale() {
    let stale = Exchange::new(&["Cache-Control: s-maxage=5", "ETag: \"a\""], &["Cache-Control: max-stale"], 6);
    assert_eq!(stale.both(), (Some(false), true));
    let no_cache = Exchange::new(&["Cache-Control: no-cache", "ETag: \"a\""], &["Cache-Control: max-stale"], 0);
    assert_eq!(no_cache.both(), (Some(false), true));
}

/// RFC 9111 s4.2.3: "corrected_initial_age = max(apparent_age, corrected_age_value)": the twin has no apparent age,
/// which the RFC allows.
#[test]
fn rfc9111_s4_2_3_apparent_age() {
    let old = Exchange::new(&[FRESH, "Date: Sun, 06 Nov 1994 08:48:37 GMT", "ETag: \"a\""], &[], 0);
    assert_eq!(old.both(), (Some(false), true));
}

/// RFC 9111 s5.2: "Cache directives are identified by a token, to be compared case-insensitively": not by the twin.
#[test]
fn rfc9111_s5_2_case() {
    assert_eq!(Exchange::new(&["Cache-Control: Max-Age=60"], &[], 0).both(), (Some(true), false));
    assert_eq!(Exchange::new(&["Cache-Control: No-Store, max-age=60"], &[], 0).both(), (None, true));
}

/// RFC 9111 s5.2: a quoted string is one argument; the twin splits it at its commas.
#[test]
fn rfc9111_s5_2_quoted_strings() {
    let quoted = Exchange::new(&["Cache-Control: a=\"x, max-age=60, y\", max-age=1"], &[], 0);
    assert_eq!((quoted.ours().unwrap().lifetime(), quoted.theirs().time_to_live(at(0)).as_secs()), (1, 60));
    let named = Exchange::new(&["Cache-Control: max-age=60, private=\"x-user\""], &[], 0);
    assert_eq!((named.ours().is_ok(), named.theirs().is_storable()), (true, false));
}

/// RFC 9111 s1.2.2: "the cache MUST consider the value to be 2147483648 (2^31) or the greatest positive integer it can
/// conveniently represent": the twin takes what overflows its integers for no time at all.
#[test]
fn rfc9111_s1_2_2_overflow() {
    assert_eq!(Exchange::new(&["Cache-Control: max-age=99999999999999999999"], &[], 0).both(), (Some(true), false));
}

/// RFC 9111 s5.2.2.8: proxy-revalidate forbids stale responses; the twin does not serve fresh ones either.
#[test]
fn rfc9111_s5_2_2_8_fresh_with_proxy_revalidate() {
    assert_eq!(Exchange::new(&["Cache-Control: max-age=60, proxy-revalidate"], &[], 0).both(), (Some(true), false));
}

/// RFC 9111 s5.2.1.2: "exceeded its freshness lifetime by no more than the specified number of seconds": by less in the
/// twin.
#[test]
fn rfc9111_s5_2_1_2_boundary() {
    let request_fields = ["Cache-Control: max-stale=5"];
    assert_eq!(Exchange::new(&[FRESH, "ETag: \"a\""], &request_fields, 65).both(), (Some(true), false));
    assert_eq!(Exchange::new(&[FRESH, "ETag: \"a\""], &request_fields, 64).both(), (Some(true), true));
}

/// RFC 9111 s4.2.1: of several values "either the first occurrence should be used or the response should be considered
/// stale": both use the first, and the twin adds must-revalidate.
#[test]
fn rfc9111_s4_2_1_several_values() {
    let twice = |after| {
        Exchange::new(&["Cache-Control: max-age=60, max-age=90", "ETag: \"a\""], &["Cache-Control: max-stale"], after)
    };
    assert_eq!((twice(59).both(), twice(61).both()), ((Some(true), true), (Some(true), false)));
}

/// RFC 9111 s5.4: Pragma "in responses was never specified": the twin takes it for no-cache.
#[test]
fn rfc9111_s5_4_pragma_in_a_response() {
    let expires = "Expires: Sun, 06 Nov 1994 20:49:37 GMT";
    assert_eq!(Exchange::new(&[expires, "Pragma: no-cache"], &[], 0).both(), (Some(true), false));
}

/// RFC 9111 s7.3: the Set-Cookie field "does not inhibit caching": the twin requires public beside max-age.
#[test]
fn rfc9111_s7_3_set_cookie() {
    assert_eq!(Exchange::new(&[FRESH, "Set-Cookie: a=b"], &[], 0).both(), (Some(true), false));
}

/// RFC 9111 s5.2.2.3: must-understand overrides no-store: unknown to the twin.
#[test]
fn rfc9111_s5_2_2_3_must_understand() {
    assert!(Exchange::new(&["Cache-Control: no-store, must-understand, max-age=60"], &[], 0).ours().is_ok());
    let unknown = Exchange::new(&["Cache-Control: no-store, must-understand, max-age=60"], &[], 0);
    assert!(!unknown.theirs().is_storable());
}

/// RFC 9111 s5.1: "a cache encountering a message with a list-based Age field value SHOULD use the first member": the
/// twin ignores such a field.
#[test]
fn rfc9111_s5_1_age_list() {
    assert_eq!(Exchange::new(&[FRESH, "Age: 7200, 0", "ETag: \"a\""], &[], 0).both(), (Some(false), true));
}

/// RFC 9110 s5.6.7: "MUST accept all three HTTP-date formats": the twin reads one.
#[test]
fn rfc9110_s5_6_7_three_formats() {
    assert_eq!(Exchange::new(&["Expires: Sunday, 06-Nov-94 20:49:37 GMT"], &[], 0).both(), (Some(true), false));
}

/// RFC 9111 s3: a status code needs to be understood only where the response has must-understand.
#[test]
fn rfc9111_s3_other_statuses() {
    let forbidden = Exchange { status: 403, ..Exchange::new(&[FRESH], &[], 0) };
    assert_eq!(forbidden.both(), (Some(true), false));
}
