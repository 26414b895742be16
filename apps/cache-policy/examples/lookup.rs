//! Cost of a look-up, measured, beside `http-cache-semantics`: `cargo run --release -p nearmiss-cache-policy --example
//! lookup`.

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_cache_semantics::{CacheOptions, CachePolicy};
use nearmiss_cache_policy::{Options, RequestDirectives, RequestHead, ResponseHead, Seconds, Selecting, store};
use std::hint::black_box;
use std::time::{Duration, Instant, SystemTime};

const NOW: u64 = 784_111_777;
const ROUNDS: u32 = 200_000;

const BROWSER: [(&str, &str); 10] = [
    ("host", "example.com"),
    ("user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"),
    ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
    ("accept-language", "en-US,en;q=0.5"),
    ("accept-encoding", "gzip, deflate, br, zstd"),
    ("connection", "keep-alive"),
    ("upgrade-insecure-requests", "1"),
    ("sec-fetch-dest", "document"),
    ("sec-fetch-mode", "navigate"),
    ("cookie", "session=0123456789abcdef; theme=dark"),
];

const RESPONSE: [(&str, &str); 6] = [
    ("cache-control", "public, max-age=3600, stale-while-revalidate=60"),
    ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
    ("etag", "\"0123456789abcdef\""),
    ("last-modified", "Sun, 06 Nov 1994 08:32:57 GMT"),
    ("content-type", "text/html; charset=utf-8"),
    ("content-length", "4096"),
];

fn fields(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    lines.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
}

/// The median of 15 runs, in nanoseconds a call.
fn median_ns(mut call: impl FnMut()) -> f64 {
    let mut run = || {
        let begun = Instant::now();
        (0..ROUNDS).for_each(|_| call());
        begun.elapsed().as_nanos() as f64 / f64::from(ROUNDS)
    };
    let mut runs: Vec<f64> = (0..15).map(|_| run()).collect();
    runs.sort_by(f64::total_cmp);
    runs[runs.len() / 2]
}

fn ours(headers: &HeaderMap, response: &HeaderMap) -> f64 {
    let method = Method::GET;
    let request = RequestHead { method: &method, target: "/", authority: "example.com", headers };
    let stored = ResponseHead { status: StatusCode::OK, headers: response };
    let Ok(terms) = store(&Options::default(), &request, &stored, Seconds(NOW), Seconds(NOW)) else { return f64::NAN };
    median_ns(|| {
        let directives = RequestDirectives::of(black_box(&request));
        black_box(black_box(&terms).answer(&directives, Seconds(NOW + 5)));
    })
}

fn vary(headers: &HeaderMap) -> f64 {
    let method = Method::GET;
    let request = RequestHead { method: &method, target: "/", authority: "example.com", headers };
    let selecting = Selecting::of(&fields(&[("vary", "accept-encoding")])).unwrap_or_default();
    median_ns(|| _ = black_box(black_box(&selecting).key(black_box(&request))))
}

fn theirs(headers: &HeaderMap, response: &HeaderMap) -> f64 {
    let mut request = Request::new(());
    *request.headers_mut() = headers.clone();
    let mut stored = Response::new(());
    *stored.headers_mut() = response.clone();
    let at = |after| SystemTime::UNIX_EPOCH + Duration::from_secs(NOW + after);
    let policy = CachePolicy::new_options(&request, &stored, at(0), CacheOptions::default());
    median_ns(|| _ = black_box(black_box(&policy).before_request(black_box(&request), at(5))))
}

fn main() {
    let response = fields(&RESPONSE);
    let plain = fields(&BROWSER);
    let mut reload = plain.clone();
    reload.insert("cache-control", HeaderValue::from_static("max-age=0"));
    println!("measured, ns a look-up, median of 15 runs of {ROUNDS}");
    println!("{:<34}{:>10}{:>24}", "request", "nearmiss", "http-cache-semantics");
    for (name, headers) in [("browser's GET", &plain), ("the same with max-age=0", &reload)] {
        println!("{name:<34}{:>10.1}{:>24.1}", ours(headers, &response), theirs(headers, &response));
    }
    println!("{:<34}{:>10.1}{:>24}", "key for Vary: accept-encoding", vary(&plain), "within the above");
}
