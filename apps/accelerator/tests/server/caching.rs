//! Answers from the store, with the origin's view of them.
#![allow(clippy::unwrap_used, reason = "a test that fails by unwrap has failed well")]

use crate::support::{self, Accelerator, Answer, Origin, OriginRequest, until};
use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, SystemTime};

fn write_response(socket: &mut TcpStream, status: &str, fields: &str, body: &str) -> bool {
    write!(socket, "HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n{body}", body.len()).is_ok()
}

/// The origin's answer to each request in turn; the last one again and again.
fn origin_of(answers: &'static [(&'static str, &'static str, &'static str)]) -> Origin {
    let turn = AtomicUsize::new(0);
    Origin::new(move |_, socket| {
        let (status, fields, body) = answers[turn.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1)];
        write_response(socket, status, fields, body)
    })
}

fn outcome(answer: &Answer) -> (u16, String, String) {
    (answer.status(), answer.text(), answer.field("cache-status").unwrap_or("").to_owned())
}

fn http_date(ago: u64) -> String {
    httpdate::fmt_http_date(SystemTime::now() - Duration::from_secs(ago))
}

#[test]
fn a_fresh_answer_is_kept_with_its_age() {
    let origin = Origin::new(|_, socket| {
        let fields = format!("Date: {}\r\nAge: 7\r\nCache-Control: max-age=60\r\nX-A: b\r\n", http_date(0));
        write_response(socket, "200 OK", &fields, "hello")
    });
    let accelerator = Accelerator::before(&[&origin], "");
    let first = accelerator.get("/x");
    assert_eq!(outcome(&first), (200, "hello".into(), "nearmiss; fwd=uri-miss; fwd-status=200; stored".into()));
    let second = accelerator.get("/x");
    assert_eq!(outcome(&second), (200, "hello".into(), "nearmiss; hit".into()));
    let age: u64 = second.field("age").unwrap().parse().unwrap();
    assert!((7..10).contains(&age), "{age}");
    assert_eq!(
        (second.field("x-a"), second.field("via"), second.field("date")),
        (Some("b"), Some("1.1 nearmiss"), first.field("date"))
    );
    assert_eq!(accelerator.request("GET http://A/x HTTP/1.1\r\nHost: b\r\n\r\n").text(), "hello");
    assert_eq!(origin.count(), 1);
    accelerator.get("/x?");
    accelerator.request("GET /x HTTP/1.1\r\nHost: b\r\n\r\n");
    assert_eq!(origin.count(), 3);
}

#[test]
fn parts_and_conditions_are_answered_from_what_is_stored() {
    let origin =
        origin_of(&[("200 OK", "Cache-Control: max-age=60\r\nETag: \"e\"\r\nContent-Type: a/b\r\n", "0123456789")]);
    let accelerator = Accelerator::before(&[&origin], "");
    let request = |fields: &str| accelerator.request(&format!("GET /x HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n"));
    let part = request("Range: bytes=2-4");
    assert_eq!((part.status(), part.field("content-range"), part.text().as_str()), (206, Some("bytes 2-4/10"), "234"));
    assert_eq!((origin.count(), origin.last().field("range")), (1, None), "a response to store is requested whole");
    let last = request("Range: bytes=-3");
    assert_eq!((last.status(), last.field("content-length"), last.text().as_str()), (206, Some("3"), "789"));
    let none = request("Range: bytes=10-");
    assert_eq!((none.status(), none.field("content-range"), none.body.len()), (416, Some("bytes */10"), 0));
    assert_eq!(request("Range: bytes=2-4\r\nIf-Range: \"f\"").status(), 200);
    let same = request("If-None-Match: \"x\", W/\"e\"");
    assert_eq!((same.status(), same.field("etag"), same.field("content-type")), (304, Some("\"e\""), None));
    assert_eq!(request("If-None-Match: \"x\"").status(), 200);
    let head = accelerator.request("HEAD /x HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!((head.status(), head.field("content-length"), head.body.len()), (200, Some("10"), 0));
    assert_eq!(origin.count(), 1);
    assert_eq!(request("If-Match: \"x\"").status(), 200);
    assert_eq!(origin.last().field("if-match"), Some("\"x\""), "If-Match is the origin's to judge");
}

#[test]
fn stale_answers_are_validated_and_updated() {
    let origin = Origin::new(|seen, socket| match seen.field("if-none-match") {
        Some("\"e\"") => socket
            .write_all(b"HTTP/1.1 304 Not Modified\r\nETag: \"e\"\r\nCache-Control: max-age=60\r\nX-New: 1\r\n\r\n")
            .is_ok(),
        _ => write_response(socket, "200 OK", "Cache-Control: max-age=0\r\nETag: \"e\"\r\nX-New: 0\r\n", "hello"),
    });
    let accelerator = Accelerator::before(&[&origin], "");
    assert_eq!(accelerator.get("/").text(), "hello");
    let validated = accelerator.get("/");
    assert_eq!((validated.text().as_str(), validated.field("x-new"), validated.status()), ("hello", Some("1"), 200));
    assert!(validated.field("cache-status").unwrap().starts_with("nearmiss; fwd=stale; fwd-status=304"));
    let hit = accelerator.get("/");
    assert_eq!((hit.field("x-new"), hit.field("cache-status"), origin.count()), (Some("1"), Some("nearmiss; hit"), 2));
    let reload = accelerator.request("GET / HTTP/1.1\r\nHost: a\r\nCache-Control: no-cache\r\n\r\n");
    assert_eq!((reload.status(), origin.count()), (200, 3));
}

#[test]
fn stale_answers_stand_in_while_and_instead() {
    let origin = origin_of(&[
        ("200 OK", "Cache-Control: max-age=0, stale-while-revalidate=60\r\n", "old"),
        ("200 OK", "Cache-Control: max-age=0, stale-if-error=60\r\n", "new"),
        ("503 Busy", "", "busy"),
        ("200 OK", "Cache-Control: max-age=0, must-revalidate\r\nETag: \"e\"\r\n", "strict"),
        ("503 Busy", "", "busy"),
    ]);
    let accelerator = Accelerator::before(&[&origin], "");
    assert_eq!(accelerator.get("/").text(), "old");
    assert_eq!(accelerator.get("/").text(), "old");
    until("the validation behind", || origin.count() == 2);
    std::thread::sleep(Duration::from_millis(50));
    let instead = accelerator.get("/");
    assert_eq!((instead.status(), instead.text().as_str(), origin.count()), (200, "new", 3));
    assert_eq!(accelerator.get("/").text(), "strict");
    assert_eq!(accelerator.get("/").status(), 503);
}

/// RFC 9110 section 13.1.2: the holder of the response judges the condition; no second request goes to the origin for
/// it.
#[test]
fn a_condition_on_what_is_not_stored_takes_one_request() {
    let origin = origin_of(&[("200 OK", "Cache-Control: private\r\nETag: \"1\"\r\n", "one")]);
    let accelerator = Accelerator::before(&[&origin], "");
    let request = |path: &str, tag: &str| {
        accelerator.request(&format!("GET {path} HTTP/1.1\r\nHost: a\r\nIf-None-Match: {tag}\r\n\r\n"))
    };
    assert_eq!((request("/1", "\"2\"").text().as_str(), origin.count()), ("one", 1));
    assert_eq!((request("/2", "\"1\"").status(), origin.count()), (304, 2));
}

#[test]
fn only_if_cached_sends_no_request_to_the_origin() {
    let origin = origin_of(&[("200 OK", "Cache-Control: max-age=60\r\n", "x")]);
    let accelerator = Accelerator::before(&[&origin], "");
    let request = || accelerator.request("GET / HTTP/1.1\r\nHost: a\r\nCache-Control: only-if-cached\r\n\r\n").status();
    assert_eq!((request(), origin.count()), (504, 0));
    accelerator.get("/");
    assert_eq!((request(), origin.count()), (200, 1));
}

#[test]
fn variants_are_kept_apart() {
    let origin = Origin::new(|seen, socket| {
        let language = seen.field("accept-language").unwrap_or("none").to_owned();
        write_response(socket, "200 OK", "Cache-Control: max-age=60\r\nVary: Accept-Language\r\n", &language)
    });
    let accelerator = Accelerator::before(&[&origin], "");
    for _ in 0..2 {
        for language in ["de", "ja"] {
            let answer =
                accelerator.request(&format!("GET / HTTP/1.1\r\nHost: a\r\nAccept-Language: {language}\r\n\r\n"));
            assert_eq!(answer.text(), language);
        }
        assert_eq!(accelerator.get("/").text(), "none");
    }
    assert_eq!(origin.count(), 3);
}

#[test]
fn changes_make_invalid() {
    let origin = Origin::new(|seen, socket| {
        let fail = seen.path() == "/fail";
        let fields = if seen.head.starts_with("POST") { "Location: /b\r\n" } else { "Cache-Control: max-age=60\r\n" };
        write_response(socket, if fail { "500 No" } else { "200 OK" }, fields, "x")
    });
    let accelerator = Accelerator::before(&[&origin], "");
    let change = |path: &str| {
        accelerator.request(&format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")).status()
    };
    for path in ["/a", "/b", "/c"] {
        accelerator.get(path);
    }
    assert_eq!((change("/fail"), origin.count()), (500, 4));
    assert_eq!(accelerator.get("/a").field("cache-status"), Some("nearmiss; hit"));
    assert_eq!(change("/a"), 200);
    for (path, count) in [("/a", 6), ("/b", 7), ("/c", 7)] {
        accelerator.get(path);
        assert_eq!(origin.count(), count, "{path}");
    }
}

#[test]
fn responses_that_must_not_be_stored_are_not() {
    let origin = Origin::new(|seen, socket| match seen.path() {
        "/no-store" => write_response(socket, "200 OK", "Cache-Control: no-store\r\n", "x"),
        "/private" => write_response(socket, "200 OK", "Cache-Control: private, max-age=60\r\n", "x"),
        "/star" => write_response(socket, "200 OK", "Cache-Control: max-age=60\r\nVary: *\r\n", "x"),
        "/long" => write_response(socket, "200 OK", "Cache-Control: max-age=60\r\n", &"x".repeat(70_000)),
        _ => write_response(socket, "200 OK", "Cache-Control: max-age=60\r\n", "x"),
    });
    let accelerator = Accelerator::before(&[&origin], "[cache]\nobject = \"64KiB\"\n");
    for path in ["/no-store", "/private", "/star", "/long"] {
        let before = origin.count();
        let (first, second) = (accelerator.get(path), accelerator.get(path));
        assert_eq!((first.status(), first.body.len(), origin.count()), (200, second.body.len(), before + 2), "{path}");
    }
    for _ in 0..2 {
        accelerator.request("GET /auth HTTP/1.1\r\nHost: a\r\nAuthorization: x\r\n\r\n");
    }
    assert_eq!(origin.count(), 10);
    let part = accelerator.request("GET /long HTTP/1.1\r\nHost: a\r\nRange: bytes=0-1\r\n\r\n");
    assert_eq!(
        origin.last().field("range"),
        Some("bytes=0-1"),
        "a response that is not stored is requested as by the client"
    );
    assert_eq!(part.body.len(), 70_000);
}

/// Sends half of a body, waits for all, sends the rest.
fn half_then_half(gate: &Barrier, socket: &mut TcpStream) -> bool {
    let body = "0123456789".repeat(10_000);
    write!(socket, "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: {}\r\n\r\n", body.len()).unwrap();
    socket.write_all(&body.as_bytes()[..50_000]).unwrap();
    gate.wait();
    socket.write_all(&body.as_bytes()[50_000..]).is_ok()
}

#[test]
fn many_wait_for_one_fetch_and_read_while_it_grows() {
    for settings in
        ["threads = 1\n", "threads = 2\n", "threads = 2\nengine = \"poll\"\n", "pace = \"1ms\"\n", "pace = \"busy\"\n"]
    {
        let gate = Arc::new(Barrier::new(2));
        let of_origin = Arc::clone(&gate);
        let origin = Origin::new(move |_: &OriginRequest, socket: &mut TcpStream| half_then_half(&of_origin, socket));
        let accelerator = Accelerator::before(&[&origin], settings);
        let mut clients: Vec<_> = (0..20).map(|_| accelerator.connect()).collect();
        for client in &mut clients {
            client.send(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
        }
        let heads: Vec<_> = clients.iter_mut().map(|client| client.head().unwrap()).collect();
        let first = &mut clients[0];
        let half = support::read_body(&mut first.socket, &mut first.input, "x\r\nContent-Length: 50000\r\n");
        assert_eq!(half.len(), 50_000, "before the rest is there");
        gate.wait();
        let expected = "0123456789".repeat(10_000);
        for (client, head) in clients.iter_mut().zip(&heads).skip(1) {
            let body = support::read_body(&mut client.socket, &mut client.input, head);
            assert!(body == expected.as_bytes(), "{settings} {}", body.len());
        }
        assert_eq!(origin.count(), 1, "{settings}");
        assert_eq!(accelerator.get("/big").body.len(), 100_000);
        assert_eq!(origin.count(), 1, "{settings}");
    }
}

#[test]
fn clients_that_waited_for_an_answer_not_shared_send_their_own_requests() {
    let gate = Arc::new(Barrier::new(2));
    let (of_origin, turn) = (Arc::clone(&gate), AtomicUsize::new(0));
    let origin = Origin::new(move |_, socket| {
        let turn = turn.fetch_add(1, Ordering::SeqCst);
        if turn == 0 {
            of_origin.wait();
        }
        write_response(socket, "200 OK", "Cache-Control: private\r\n", &turn.to_string())
    });
    let accelerator = Accelerator::before(&[&origin], "");
    let mut clients: Vec<_> = (0..3).map(|_| accelerator.connect()).collect();
    for client in &mut clients {
        client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    std::thread::sleep(Duration::from_millis(100));
    gate.wait();
    let mut bodies: Vec<_> = clients.iter_mut().map(|client| client.answer().text()).collect();
    bodies.sort();
    assert_eq!((bodies, origin.count()), (vec!["0".to_owned(), "1".to_owned(), "2".to_owned()], 3));
}

#[test]
fn the_store_stays_within_its_bytes() {
    let origin =
        Origin::new(|_, socket| write_response(socket, "200 OK", "Cache-Control: max-age=60\r\n", &"x".repeat(50_000)));
    let accelerator = Accelerator::before(
        &[&origin],
        "[cache]\nmemory = \"2MiB\"\nobject = \"64KiB\"\n[admin]\nlisten = \"127.0.0.1:0\"\n",
    );
    for number in 0..100 {
        assert_eq!(accelerator.get(&format!("/{number}")).body.len(), 50_000);
    }
    let bytes = accelerator.metric("nearmiss_store_bytes");
    assert!(bytes <= 2 << 20 && bytes > 1 << 20, "{bytes}");
    assert_eq!(accelerator.metric("nearmiss_stored_total"), 100);
}

/// Bytes that contain their own position.
fn counted(length: usize) -> String {
    (0..).map(|number| format!("{number:07} ")).flat_map(String::into_bytes).map(char::from).take(length).collect()
}

#[test]
fn bodies_of_all_lengths_come_back_byte_by_byte() {
    let origin = Origin::new(|seen, socket| {
        let length: usize = seen.path()[1..].parse().unwrap();
        write_response(socket, "200 OK", "Cache-Control: max-age=60\r\n", &counted(length))
    });
    for engine in ["epoll", "poll"] {
        let accelerator = Accelerator::before(&[&origin], &format!("engine = \"{engine}\"\n"));
        for length in [0, 1, 4095, 16_383, 16_384, 16_385, 65_536, 1_000_000, 7_000_003] {
            let expected = counted(length);
            for _ in 0..3 {
                let answer = accelerator.get(&format!("/{length}"));
                assert!(answer.body == expected.as_bytes(), "{length} {}", answer.body.len());
            }
            if length > 10 {
                let (first, last) = (length / 3, length / 3 + length / 2);
                let request = format!("GET /{length} HTTP/1.1\r\nHost: a\r\nRange: bytes={first}-{last}\r\n\r\n");
                let answer = accelerator.request(&request);
                assert!(answer.status() == 206 && answer.body == expected.as_bytes()[first..=last], "{length}");
            }
        }
    }
    assert_eq!(origin.count(), 18);
}

#[test]
fn a_response_replaced_while_it_is_sent_stays_as_it_was() {
    let turn = AtomicUsize::new(0);
    let origin = Origin::new(move |_, socket| {
        let letter = char::from(b'a' + turn.fetch_add(1, Ordering::SeqCst) as u8);
        write_response(socket, "200 OK", "Cache-Control: max-age=60\r\n", &letter.to_string().repeat(6_000_000))
    });
    let accelerator =
        Accelerator::before(&[&origin], "[cache]\nmemory = \"16MiB\"\n[admin]\nlisten = \"127.0.0.1:0\"\n");
    accelerator.get("/");
    let mut slow = accelerator.connect();
    slow.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let head = slow.head().unwrap();
    for _ in 0..5 {
        accelerator.operate("POST /purge?all HTTP/1.1\r\n\r\n");
        accelerator.get("/");
    }
    let body = support::read_body(&mut slow.socket, &mut slow.input, &head);
    assert_eq!(body.len(), 6_000_000);
    assert_eq!(body.iter().find(|byte| **byte != b'a'), None);
}
