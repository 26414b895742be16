//! Ends of messages, and the parts that go on: exact bytes between a client and an origin.
#![allow(clippy::unwrap_used, reason = "a test that fails by unwrap has failed well")]

use crate::support::{Accelerator, Origin, field, until};
use std::io::Write;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nCache-Control: no-store\r\n\r\nok";

#[test]
fn ambiguous_requests_are_refused_and_never_reach_the_origin() {
    let origin = Origin::answering(OK);
    let accelerator = Accelerator::before(&[&origin], "");
    let with = |fields: &str| {
        format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\nHost: a\r\n\r\n")
    };
    for (request, status) in [
        (with("Content-Length: 5\r\nTransfer-Encoding: chunked"), 400),
        (with("Content-Length: 5\r\nContent-Length: 6"), 400),
        (with("Content-Length: 5, 6"), 400),
        (with("Content-Length: -5"), 400),
        (with("Transfer-Encoding: chunked, identity"), 400),
        (with("Transfer-Encoding: identity"), 400),
        (with("Transfer-Encoding: gzip, chunked"), 501),
        (with("Transfer-Encoding : chunked"), 400),
        (with("Transfer-Encoding: chunked\r\n folded"), 400),
        (with("A: b\rContent-Length: 3"), 400),
        (with("A: \0"), 400),
        (with("Host: b"), 400),
        ("GET / HTTP/1.1\r\nHost: :80\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\nHost: a:b\r\n\r\n".to_owned(), 400),
        ("GET http://[::1/ HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), 400),
        (with("Expect : 100-continue"), 400),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/3.0\r\nHost: a\r\n\r\n".to_owned(), 505),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), 505),
        ("\u{16}\u{3}\u{1}\0\u{1}".to_owned(), 400),
        ("CONNECT b:443 HTTP/1.1\r\nHost: b:443\r\n\r\n".to_owned(), 405),
        ("TRACE / HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), 405),
        (format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(9000)), 414),
        (format!("GET /{}", "x".repeat(9000)), 414),
        (with(&format!("A: {}", "x".repeat(40_000))), 431),
        (with(&"A: b\r\n".repeat(120)), 431),
    ] {
        let mut client = accelerator.connect();
        client.send(request.as_bytes());
        let answer = client.answer();
        assert_eq!(answer.status(), status, "{request:?}");
        if status != 405 {
            assert_eq!((answer.field("connection"), client.is_closed()), (Some("close"), true), "{request:?}");
        }
    }
    assert_eq!(origin.count(), 0);
}

#[test]
fn a_broken_chunk_ends_the_request() {
    let origin = Origin::answering(OK);
    let accelerator = Accelerator::before(&[&origin], "");
    for chunks in [
        "zz\r\n",
        "3\nabc\r\n0\r\n\r\n",
        "3\r\nabcd\r\n0\r\n\r\n",
        "10000000000000000\r\n",
        "0\r\nA : b\r\n\r\n",
        "0 3\r\n\r\n",
        "3 x\r\nabc\r\n0\r\n\r\n",
    ] {
        let mut client = accelerator.connect();
        client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}").as_bytes());
        assert_eq!(client.answer().status(), 400, "{chunks:?}");
        assert!(client.is_closed());
    }
}

#[test]
fn a_request_goes_on_with_its_own_fields_only() {
    let origin = Origin::answering(OK);
    let accelerator = Accelerator::before(&[&origin], "");
    let answer = accelerator.request(
        "POST http://Site:80/p?q HTTP/1.1\r\nHost: other\r\nConnection: X-Hop, keep-alive\r\nX-Hop: 1\r\nX-End: 2\r\n\
         Upgrade: h2c\r\nHTTP2-Settings: x\r\nTE: trailers\r\nKeep-Alive: 5\r\nVia: 1.0 before\r\n\
         X-Forwarded-For: 192.0.2.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nT: u\r\n\r\n",
    );
    assert_eq!(answer.status(), 200);
    let seen = origin.last();
    assert_eq!(
        seen.head,
        "POST /p?q HTTP/1.1\r\nhost: site\r\nx-end: 2\r\nvia: 1.0 before, 1.1 nearmiss\r\n\
         cdn-loop: nearmiss\r\nx-forwarded-for: 192.0.2.1, 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    assert_eq!(seen.body, b"abcdeT: u");
}

/// RFC 9110 section 6.5.1: trailers must not set what frames, routes, authorises or caches a message.
#[test]
fn trailers_go_on_without_what_would_change_the_message() {
    let origin = Origin::answering(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nCache-Control: no-store\r\n\r\n2\r\nok\r\n0\r\n\
         Server-Timing: a\r\nSet-Cookie: b=c\r\nContent-Length: 9\r\n\r\n",
    );
    let accelerator = Accelerator::before(&[&origin], "");
    let answer = accelerator.request(
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nT: u\r\nHost: evil\r\n\
         Authorization: x\r\ncontent-length: 3\r\n\r\n",
    );
    assert_eq!(answer.text(), "okServer-Timing: a");
    assert_eq!(origin.last().body, b"xT: u");
}

#[test]
fn interim_answers_and_heads_have_an_end() {
    let flood = Origin::new(|_, socket| {
        (0..100_000).all(|_| socket.write_all(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n").is_ok())
    });
    let accelerator = Accelerator::before(&[&flood], "[limits]\ntries = 1\n");
    let mut client = accelerator.connect();
    client.send(b"GET / HTTP/1.0\r\nHost: a\r\n\r\n");
    assert_eq!(client.answer().status(), 502);
    let long = Origin::answering(&format!("HTTP/1.1 200 OK\r\nA: {}\r\nContent-Length: 0\r\n\r\n", "x".repeat(70_000)));
    assert_eq!(Accelerator::before(&[&long], "").get("/").status(), 502);
}

#[test]
fn requests_in_one_piece_are_answered_in_turn() {
    let origin = Origin::new(|seen, socket| {
        let body = format!("{} {}", seen.path(), String::from_utf8_lossy(&seen.body));
        write!(socket, "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: {}\r\n\r\n{body}", body.len())
            .is_ok()
    });
    for engine in ["epoll", "poll"] {
        let accelerator = Accelerator::before(&[&origin], &format!("engine = \"{engine}\"\n"));
        for _ in 0..2 {
            let mut client = accelerator.connect();
            client.send(
                b"\r\nGET /1 HTTP/1.1\r\nHost: a\r\n\r\nPOST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc\
                  GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /3 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nGET /4",
            );
            let answers: Vec<_> = (0..4).map(|_| client.answer().text()).collect();
            assert_eq!(answers, ["/1 ", "/2 abc", "/1 ", "/3 "]);
            assert!(client.is_closed());
        }
    }
}

#[test]
fn a_request_may_come_byte_by_byte() {
    let origin = Origin::answering(OK);
    let accelerator = Accelerator::before(&[&origin], "");
    let mut client = accelerator.connect();
    for byte in b"PUT /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" {
        client.send(&[*byte]);
    }
    assert_eq!(client.answer().text(), "ok");
    assert_eq!(origin.last().body, b"abc");
}

#[test]
fn bodies_come_framed_as_the_client_understands() {
    let origin = Origin::new(|seen, socket| match seen.path() {
        "/chunked" => {
            let text =
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: T\r\n\r\n3\r\nabc\r\n0\r\nT: u\r\n\r\n";
            socket.write_all(text.as_bytes()).is_ok()
        }
        "/close" => {
            let _sent = socket.write_all(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=9\r\n\r\nabc").is_ok();
            false
        }
        "/204" => socket.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").is_ok(),
        _ => socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n").is_ok(),
    });
    let accelerator = Accelerator::before(&[&origin], "");
    let chunked = accelerator.get("/chunked");
    assert_eq!((chunked.field("transfer-encoding"), chunked.text().as_str()), (Some("chunked"), "abcT: u"));
    let old = accelerator.request("GET /chunked HTTP/1.0\r\nHost: a\r\n\r\n");
    assert_eq!(
        (old.field("transfer-encoding"), old.field("connection"), old.text().as_str()),
        (None, Some("close"), "abc")
    );
    for _ in 0..2 {
        let close = accelerator.get("/close");
        assert_eq!((close.field("transfer-encoding"), close.text().as_str()), (Some("chunked"), "abc"));
        assert!(close.field("cache-status").unwrap().contains("fwd"), "what may be cut off is not stored");
    }
    let mut client = accelerator.connect();
    client.send(
        b"GET /204 HTTP/1.1\r\nHost: a\r\n\r\nHEAD /h HTTP/1.1\r\nHost: a\r\n\r\nGET /204 HTTP/1.1\r\nHost: a\r\n\r\n",
    );
    let none = client.answer();
    assert_eq!((none.status(), none.field("content-length"), none.field("transfer-encoding")), (204, None, None));
    assert_eq!(client.answer_to("HEAD").field("content-length"), Some("7"));
    assert_eq!(client.answer().status(), 204);
}

#[test]
fn old_clients_keep_their_connection_on_request() {
    let origin = Origin::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nCache-Control: max-age=9\r\n\r\nok");
    let accelerator = Accelerator::before(&[&origin], "");
    let mut client = accelerator.connect();
    for _ in 0..3 {
        client.send(b"GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n");
        let answer = client.answer();
        assert_eq!((answer.field("connection"), answer.text().as_str()), (Some("keep-alive"), "ok"));
    }
    client.send(b"GET / HTTP/1.0\r\nHost: a\r\n\r\n");
    assert_eq!(client.answer().field("connection"), Some("close"));
    assert!(client.is_closed());
}

#[test]
fn interim_answers_are_passed_on() {
    let origin = Origin::new(|seen, socket| {
        if seen.field("expect").is_some() {
            socket.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").unwrap();
            let mut body = [0; 3];
            std::io::Read::read_exact(socket, &mut body).unwrap();
            assert_eq!(&body, b"abc");
        } else {
            socket.write_all(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: x\r\n\r\n").unwrap();
        }
        socket.write_all(OK.as_bytes()).is_ok()
    });
    let accelerator = Accelerator::before(&[&origin], "");
    let mut client = accelerator.connect();
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    assert_eq!(client.head().unwrap(), "HTTP/1.1 100 Continue\r\n\r\n");
    client.send(b"abc");
    assert_eq!(client.answer().text(), "ok");
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.head().unwrap(), "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n");
    assert_eq!(client.answer().text(), "ok");
    let old = accelerator.request("GET / HTTP/1.0\r\nHost: a\r\n\r\n");
    assert_eq!((old.status(), old.text().as_str()), (200, "ok"));
}

#[test]
fn an_answer_before_the_body_ends_the_connection() {
    let origin = Origin::new(|_, socket| {
        let _sent = socket.write_all(b"HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n").is_ok();
        false
    });
    let accelerator = Accelerator::before(&[&origin], "");
    let mut client = accelerator.connect();
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    let answer = client.answer();
    assert_eq!((answer.status(), answer.field("connection")), (417, Some("close")));
    client.send(b"GET /not-a-request HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(client.is_closed());
    assert_eq!(origin.count(), 1);
}

#[test]
fn answers_that_can_be_read_in_two_ways_become_502() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nA : b\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\n\r\n",
        "nonsense\r\n\r\n",
    ] {
        let origin = Origin::answering(answer);
        let accelerator = Accelerator::before(&[&origin], "");
        assert_eq!(accelerator.get("/").status(), 502, "{answer:?}");
    }
}

#[test]
fn options_for_the_server_go_on_or_end_here() {
    let origin = Origin::answering(OK);
    let accelerator = Accelerator::before(&[&origin], "");
    assert_eq!(accelerator.request("OPTIONS * HTTP/1.1\r\nHost: a\r\nMax-Forwards: 1\r\n\r\n").text(), "ok");
    let seen = origin.last();
    assert!(seen.head.starts_with("OPTIONS * HTTP/1.1\r\n"), "{}", seen.head);
    assert_eq!(field(&seen.head, "max-forwards"), Some("0"));
    assert_eq!(accelerator.request("OPTIONS * HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n").status(), 200);
    assert_eq!(origin.count(), 1);
}

#[test]
fn large_bodies_go_both_ways_whole() {
    let origin = Origin::new(|seen, socket| {
        write!(socket, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", seen.body.len()).unwrap();
        socket.write_all(&seen.body).is_ok()
    });
    let body: Vec<u8> = (0..5_000_000u32).map(|number| (number / 3) as u8).collect();
    for engine in ["epoll", "poll"] {
        let accelerator = Accelerator::before(&[&origin], &format!("engine = \"{engine}\"\n"));
        let mut client = accelerator.connect();
        for chunked in [false, true] {
            let (mut sender, sent) = (client.socket.try_clone().unwrap(), body.clone());
            let sending = std::thread::spawn(move || match chunked {
                false => {
                    write!(sender, "PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", sent.len()).unwrap();
                    sender.write_all(&sent).unwrap();
                }
                true => {
                    sender.write_all(b"PUT /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
                    for piece in sent.chunks(77_777) {
                        sender
                            .write_all(&[format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat())
                            .unwrap();
                    }
                    sender.write_all(b"0\r\n\r\n").unwrap();
                }
            });
            let answer = client.answer();
            sending.join().unwrap();
            assert!(answer.status() == 200 && answer.body == body, "{engine} {chunked} {}", answer.body.len());
        }
    }
}

/// RFC 9110 sections 7.6 and 7.6.3, RFC 8586: a proxy must not forward a message to itself without an end.
#[test]
fn a_request_that_comes_back_goes_no_further() {
    let origin = Origin::answering(OK);
    let accelerator = Accelerator::before(&[&origin], "");
    for fields in [
        "Via: 1.1 nearmiss",
        "Via: 1.0 a, 1.1 NearMiss (x)",
        "CDN-Loop: a, nearmiss; b=c",
        "Via: 1.1 nearmiss\r\nConnection: Via",
    ] {
        let mut client = accelerator.connect();
        client.send(format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n").as_bytes());
        assert_eq!(client.answer().status(), 508, "{fields}");
        client.send(b"GET / HTTP/1.1\r\nHost: a\r\nVia: 1.1 nearmiss-2\r\nCDN-Loop: b\r\n\r\n");
        assert_eq!(client.answer().text(), "ok");
        let seen = origin.last();
        assert_eq!(
            (seen.field("via"), seen.field("cdn-loop")),
            (Some("1.1 nearmiss-2, 1.1 nearmiss"), Some("b, nearmiss"))
        );
    }
    assert_eq!(origin.count(), 4);
}

/// Two proxies that are each other's origin, which no configuration alone shows.
#[test]
fn proxies_in_a_loop_answer_508_at_once() {
    let elsewhere = Origin::answering(OK);
    let (one, two) =
        (Accelerator::before(&[&elsewhere], ""), Accelerator::before(&[&elsewhere], "[cache]\nname = \"b\"\n"));
    for (proxy, other, name) in [(&one, &two, "nearmiss"), (&two, &one, "b")] {
        let path = proxy.folder.path().join("a.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(path, text.replace(&elsewhere.address.to_string(), &other.address.to_string())).unwrap();
        proxy.signal("HUP");
        until(name, || proxy.stderr().contains("read again"));
    }
    for request in ["GET /x HTTP/1.1\r\nHost: a\r\n\r\n", "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"] {
        until("the reload in the event loop", || one.request(request).status() == 508);
        assert_eq!(two.request(request).status(), 508, "{request}");
    }
}
