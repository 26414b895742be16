//! Purges of answers on their way: an answer requested before a purge is not stored after it.
#![allow(clippy::unwrap_used, reason = "a test that fails by unwrap has failed well")]

use crate::support::{Accelerator, Origin};
use std::io::Write;
use std::sync::{Arc, Barrier};

const ADMIN: &str = "[admin]\nlisten = \"127.0.0.1:0\"\n";

/// An origin that holds its answer number `held` at the gate, twice: once at the request, once before the answer.
fn held(gate: &Arc<Barrier>, held: usize, fields: fn(usize) -> &'static str) -> Origin {
    let (gate, turn) = (Arc::clone(gate), std::sync::atomic::AtomicUsize::new(0));
    Origin::new(move |seen, socket| {
        let number = turn.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        if number == held {
            gate.wait();
            gate.wait();
        }
        if seen.field("if-none-match").is_some() {
            return write!(socket, "HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\nCache-Control: max-age=60\r\n\r\n")
                .is_ok();
        }
        write!(socket, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n{}\r\n{number}", fields(number)).is_ok()
    })
}

/// Returns the answer for `/x` after `forget` ran between a request and its answer.
fn after(accelerator: &Accelerator, gate: &Barrier, forget: &str) -> String {
    let mut client = accelerator.connect();
    client.send(b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
    gate.wait();
    assert_eq!(accelerator.operate(&format!("POST /purge?{forget} HTTP/1.1\r\n\r\n")).status(), 200);
    gate.wait();
    assert_eq!(client.answer().text(), "0");
    accelerator.get("/x").text()
}

#[test]
fn a_purge_reaches_what_is_under_way() {
    for forget in ["host=a&path=/x", "host=a&prefix=/", "all"] {
        let gate = Arc::new(Barrier::new(2));
        let origin = held(&gate, 0, |_| "Cache-Control: max-age=60\r\n");
        let accelerator = Accelerator::before(&[&origin], ADMIN);
        assert_eq!(after(&accelerator, &gate, forget), "1", "{forget}");
    }
}

#[test]
fn a_validation_revives_nothing_that_was_purged_meanwhile() {
    let gate = Arc::new(Barrier::new(2));
    let origin = held(&gate, 1, |_| "Cache-Control: max-age=0\r\nETag: \"1\"\r\n");
    let accelerator = Accelerator::before(&[&origin], ADMIN);
    assert_eq!(accelerator.get("/x").text(), "0");
    assert_eq!(after(&accelerator, &gate, "host=a&path=/x"), "2");
}

/// RFC 9111 section 4.4: the answer to an unsafe request invalidates what an earlier request may still bring.
#[test]
fn a_change_reaches_a_fetch_that_nobody_may_join() {
    let gate = Arc::new(Barrier::new(2));
    let origin =
        held(
            &gate,
            1,
            |number| if number == 0 { "Cache-Control: no-store\r\n" } else { "Cache-Control: max-age=60\r\n" },
        );
    let accelerator = Accelerator::before(&[&origin], ADMIN);
    // From what was not stored on, requests do not wait for each other.
    assert_eq!(accelerator.get("/x").text(), "0");
    let mut client = accelerator.connect();
    client.send(b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
    gate.wait();
    assert_eq!(accelerator.request("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n").text(), "2");
    gate.wait();
    assert_eq!(client.answer().text(), "1");
    assert_eq!(accelerator.get("/x").text(), "3");
}
