//! Origins and clients that die, stall, trickle and send garbage: no wrong or short body is ever taken for a whole one.
#![allow(clippy::unwrap_used, reason = "a test that fails by unwrap has failed well")]

use crate::support::{self, Accelerator, Origin};
use std::io::Write;
use std::net::{Shutdown, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const SHORT: &str = "[timeouts]\nhead = \"300ms\"\nbody = \"300ms\"\nidle = \"600ms\"\norigin = \"400ms\"\nconnect = \"300ms\"\nhealth = \"100ms\"\nwrite = \"500ms\"\n";

#[test]
fn a_body_cut_off_is_never_stored_nor_passed_as_whole() {
    for head in [
        "Content-Length: 10\r\n\r\n01234",
        "Transfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n",
        "Transfer-Encoding: chunked\r\n\r\nA\r\n01234",
    ] {
        let turn = AtomicUsize::new(0);
        let origin = Origin::new(move |_, socket| {
            let first = turn.fetch_add(1, Ordering::SeqCst) == 0;
            let whole =
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 10\r\n\r\n0123456789".to_owned();
            let cut = format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n{head}");
            socket.write_all(if first { cut } else { whole }.as_bytes()).is_ok() && !first
        });
        let accelerator = Accelerator::before(&[&origin], "");
        let mut client = accelerator.connect();
        client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        let text = String::from_utf8(client.rest()).unwrap();
        assert!(text.starts_with("HTTP/1.1 200") && text.contains("01234"), "{text:?}");
        assert!(!text.ends_with("0\r\n\r\n"), "{text:?}");
        let again = accelerator.get("/");
        assert_eq!((again.text().as_str(), origin.count()), ("0123456789", 2));
    }
}

#[test]
fn an_origin_that_closes_at_once_gets_a_retry_only_where_that_is_safe() {
    let origin = Origin::new(|_, _| false);
    let accelerator = Accelerator::before(&[&origin], "[limits]\ntries = 1\n");
    assert_eq!((accelerator.get("/").status(), origin.count()), (502, 1));
    let post = accelerator.request("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx");
    assert_eq!((post.status(), origin.count()), (502, 2));
}

#[test]
fn another_origin_answers_in_place_of_a_dead_one() {
    let dead = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = dead.local_addr().unwrap();
    drop(dead);
    let (dead, alive) = (
        Origin { address, ..Origin::answering("") },
        Origin::answering("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"),
    );
    let dying = Origin::new(|_, _| false);
    let accelerator = Accelerator::before(&[&dead, &dying, &alive], "");
    for path in ["/1", "/2", "/3", "/4", "/5", "/6"] {
        assert_eq!(accelerator.get(path).text(), "x");
    }
    assert!(accelerator.stderr().contains(&format!("origin {address}: not well")), "{}", accelerator.stderr());
}

#[test]
fn a_kept_connection_that_died_is_replaced() {
    let turn = AtomicUsize::new(0);
    let origin = Origin::new(move |_, socket| {
        socket.write_all(b"HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 1\r\n\r\nx").unwrap();
        turn.fetch_add(1, Ordering::SeqCst).is_multiple_of(2)
    });
    let accelerator = Accelerator::before(&[&origin], "[admin]\nlisten = \"127.0.0.1:0\"\n");
    for _ in 0..10 {
        assert_eq!(accelerator.get("/").text(), "x");
    }
    assert!(accelerator.metric("nearmiss_origin_reused_total") >= 3);
}

#[test]
fn an_origin_that_stalls_gives_504_or_breaks_off() {
    let origin = Origin::new(|seen, socket| {
        if seen.path() == "/half" {
            socket
                .write_all(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 10\r\n\r\n01234")
                .unwrap();
        }
        std::thread::sleep(Duration::from_secs(2));
        false
    });
    let accelerator = Accelerator::before(&[&origin], SHORT);
    let began = Instant::now();
    assert_eq!(accelerator.get("/").status(), 504);
    assert!(began.elapsed() < Duration::from_millis(1500), "{:?}", began.elapsed());
    let half = accelerator.get("/half");
    assert_eq!((half.status(), half.text().as_str()), (200, "01234"));
}

#[test]
fn an_origin_that_trickles_is_waited_for() {
    let origin = Origin::new(|_, socket| {
        for byte in
            b"HTTP/1.1 200 OK\r\nCache-Control: max-age=9\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
        {
            socket.write_all(&[*byte]).unwrap();
            std::thread::sleep(Duration::from_millis(3));
        }
        true
    });
    let accelerator = Accelerator::before(&[&origin], SHORT);
    assert_eq!(accelerator.get("/").text(), "abc");
    assert_eq!((accelerator.get("/").text().as_str(), origin.count()), ("abc", 1));
}

#[test]
fn garbage_behind_an_answer_ends_the_connection_to_the_origin() {
    let origin = Origin::answering(
        "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
    );
    let accelerator = Accelerator::before(&[&origin], "");
    for _ in 0..5 {
        assert_eq!(accelerator.get("/").text(), "x");
    }
}

#[test]
fn slow_clients_are_sent_away() {
    let origin = Origin::answering("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
    let accelerator = Accelerator::before(&[&origin], SHORT);
    let (mut idle, mut head, mut body) = (accelerator.connect(), accelerator.connect(), accelerator.connect());
    head.send(b"GET / HTTP/1.1\r\nHo");
    body.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc");
    assert_eq!(head.answer().status(), 408);
    assert_eq!(body.answer().status(), 408);
    assert!(head.is_closed() && body.is_closed() && idle.is_closed());
    assert_eq!(accelerator.get("/").text(), "x");
}

#[test]
fn a_client_that_reads_nothing_holds_up_nobody_and_no_memory() {
    let size: usize = 40 << 20;
    let origin = Origin::new(move |seen, socket| {
        let size = if seen.path() == "/big" { size } else { 1 };
        write!(socket, "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: {size}\r\n\r\n").unwrap();
        let room = [b'x'; 65536];
        (0..size.div_ceil(65536)).all(|part| socket.write_all(&room[..(size - part * 65536).min(65536)]).is_ok())
    });
    let accelerator = Accelerator::before(&[&origin], "");
    let mut lazy = accelerator.connect();
    lazy.send(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
    std::thread::sleep(Duration::from_millis(500));
    let status = std::fs::read_to_string(format!("/proc/{}/status", accelerator.child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap().to_owned();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kilobytes < 30 << 10, "{line}");
    assert_eq!(accelerator.get("/small").text(), "x");
    let head = lazy.head().unwrap();
    assert_eq!(support::read_body(&mut lazy.socket, &mut lazy.input, &head).len(), size);
}

#[test]
fn clients_that_leave_take_their_fetch_along() {
    let origin = Origin::new(|_, socket| {
        if write!(socket, "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 999999999\r\n\r\n").is_err() {
            return false;
        }
        while socket.write_all(&[b'x'; 65536]).is_ok() {}
        false
    });
    let accelerator = Accelerator::before(&[&origin], "[admin]\nlisten = \"127.0.0.1:0\"\n");
    for _ in 0..20 {
        let mut client = accelerator.connect();
        client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        client.head().unwrap();
        client.socket.shutdown(Shutdown::Both).unwrap();
    }
    support::until("no connection is left", || accelerator.metric("nearmiss_open_connections") == 0);
    support::until("no descriptor is left", || {
        std::fs::read_dir(format!("/proc/{}/fd", accelerator.child.id())).unwrap().count() < 16
    });
}

#[test]
fn without_descriptors_nothing_spins_and_later_all_is_well() {
    let origin = Origin::answering("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nCache-Control: max-age=60\r\n\r\nx");
    for engine in ["epoll", "poll"] {
        let more = format!("engine = \"{engine}\"\n[admin]\nlisten = \"127.0.0.1:0\"\n");
        let accelerator = Accelerator::before(&[&origin], &more);
        assert_eq!(accelerator.get("/").text(), "x");
        let process = accelerator.child.id().to_string();
        let limited = std::process::Command::new("prlimit").args(["--nofile=40:40", "--pid", &process]).status();
        assert!(limited.unwrap().success());
        let before = accelerator.metric("nearmiss_waits_total");
        let clients: Vec<_> = (0..80).map(|_| accelerator.connect()).collect();
        std::thread::sleep(Duration::from_secs(1));
        drop(clients);
        support::until("an answer", || {
            let mut client = accelerator.connect();
            client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
            client.head().is_some()
        });
        let waits = accelerator.metric("nearmiss_waits_total") - before;
        assert!(waits < 2000, "{engine}: {waits} waits");
    }
}

#[test]
fn a_half_closed_client_still_gets_its_answer() {
    let origin = Origin::new(|_, socket| {
        std::thread::sleep(Duration::from_millis(50));
        socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx").is_ok()
    });
    let accelerator = Accelerator::before(&[&origin], "");
    let mut client = accelerator.connect();
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    client.socket.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.answer().text(), "x");
    assert!(client.is_closed());
}
