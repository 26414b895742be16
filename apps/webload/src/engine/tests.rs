use super::*;
use crate::arrivals::Spacing;
use crate::clock::{MILLISECOND, SECOND};
use crate::load::{Answer, Load};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A request is one byte, an answer is one byte.
struct Bytes;

impl Load for Bytes {
    type Request = ();
    type Reply = ();
    const SERVER_CLOSES: bool = false;

    fn pick(&mut self, _phase: usize) {}

    fn write(&self, (): &(), out: &mut Vec<u8>) {
        out.push(b'?');
    }

    fn read(&self, (): &(), (): &mut (), bytes: &[u8]) -> Result<Option<Answer>, Fault> {
        let answer = Answer {
            served: None,
            is_plain: true,
            is_not_modified: false,
            is_absent: false,
            keeps_connection: true,
            bytes: 1,
        };
        if bytes == b"!" { Ok(Some(answer)) } else { Err(Fault::Malformed) }
    }

    fn end(&self, (): &(), (): &mut ()) -> Result<Answer, Fault> {
        Err(Fault::Closed)
    }
}

/// A server with a thread a connection, which lives as long as its connections.
fn server(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let serve = Arc::clone(&serve);
            thread::spawn(move || serve(socket));
        }
    });
    address
}

/// Answers every byte; `before` runs before each answer.
fn answer_all(mut socket: TcpStream, mut before: impl FnMut() -> bool) {
    let mut byte = [0];
    while socket.read_exact(&mut byte).is_ok() {
        if !before() || socket.write_all(b"!").is_err() {
            return;
        }
    }
}

fn plan(to: SocketAddr, rate: f64, count: usize) -> Plan {
    Plan {
        connections: Connections { to, count, one_request_each: false, sources: 1, most_uses: 0, delay_ns: 0 },
        phases: vec![Phase { rate, most_ns: SECOND, until_filled: false }],
        spacing: Spacing::Even,
        seed: 1,
        timeout_ns: 5 * SECOND,
        grace_ns: SECOND,
    }
}

fn run(plan: Plan) -> Measure {
    let mut engine = Engine::new(Bytes, plan).expect("an engine");
    engine.open().expect("connections");
    engine.run().expect("a run").remove(0)
}

#[test]
fn a_server_that_stalls_is_charged_with_all_that_came_due_meanwhile() {
    let began = Instant::now();
    let address = server(move |socket| {
        answer_all(socket, || {
            let at = began.elapsed().as_millis() as u64;
            // Each connection stalls from 500 ms to 700 ms, so that no connection can take a request over.
            if (500..700).contains(&at) {
                thread::sleep(Duration::from_millis(700 - at));
            }
            true
        });
    });
    let measure = run(plan(address, 1000.0, 4));
    let counts = measure.counts;
    assert!((999..=1000).contains(&counts.due) && counts.right == counts.due, "{counts:?}");
    // A fifth of the requests came due while the server stalled, evenly spread over 0 to 200 ms.
    assert!((150.0..250.0).contains(&measure.all.quantile_ms(0.99)), "{}", measure.all.quantile_ms(0.99));
    assert!((60.0..140.0).contains(&measure.all.quantile_ms(0.90)), "{}", measure.all.quantile_ms(0.90));
    assert!(counts.waited > 150, "{counts:?}");
    // The generator had no part in that.
    assert!(measure.behind.quantile_ms(0.90) < 60.0 && measure.late.quantile_ms(0.90) > 60.0);
}

#[test]
fn each_request_may_have_a_connection_of_its_own() {
    let accepted = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&accepted);
    let address = server(move |socket| {
        count.fetch_add(1, Ordering::Relaxed);
        answer_all(socket, || true);
    });
    let mut plan = plan(address, 200.0, 50);
    plan.connections.one_request_each = true;
    plan.connections.sources = 3;
    let counts = run(plan).counts;
    assert_eq!((counts.right, counts.faults.iter().sum::<u64>()), (counts.due, 0), "{counts:?}");
    assert_eq!(accepted.load(Ordering::Relaxed) as u64, counts.due);
}

#[test]
fn the_client_ends_connections_after_as_many_requests_as_it_draws() {
    let accepted = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&accepted);
    let address = server(move |socket| {
        count.fetch_add(1, Ordering::Relaxed);
        answer_all(socket, || true);
    });
    let mut plan = plan(address, 300.0, 20);
    plan.connections.most_uses = 2;
    let counts = run(plan).counts;
    assert_eq!((counts.right, counts.sent_again), (counts.due, 0), "{counts:?}");
    // Two of three connections carry one request, the third two: 4/3 requests a connection.
    let accepted = accepted.load(Ordering::Relaxed) as f64 - 20.0;
    assert!((0.65..0.85).contains(&(accepted / counts.due as f64)), "{accepted} {counts:?}");
}

#[test]
fn requests_that_cross_with_the_end_of_a_kept_connection_are_sent_again() {
    let address = server(|socket| {
        let mut left = 3;
        answer_all(socket, || {
            left -= 1;
            left >= 0
        });
    });
    let counts = run(plan(address, 200.0, 5)).counts;
    assert_eq!((counts.right, counts.faults.iter().sum::<u64>()), (counts.due, 0), "{counts:?}");
    assert!(counts.sent_again > 30, "{counts:?}");
}

#[test]
fn unanswered_requests_are_counted() {
    let silent = server(|mut socket| while matches!(socket.read(&mut [0; 64]), Ok(1..)) {});
    let mut plan = plan(silent, 100.0, 3);
    plan.grace_ns = 10 * MILLISECOND;
    let counts = run(plan.clone()).counts;
    assert_eq!((counts.right, counts.faults[Fault::Unanswered as usize]), (0, counts.due), "{counts:?}");
    plan.timeout_ns = 200 * MILLISECOND;
    let counts = run(plan).counts;
    assert!(counts.faults[Fault::Timeout as usize] > counts.due / 2, "{counts:?}");
    assert_eq!(counts.faults.iter().sum::<u64>(), counts.due, "{counts:?}");
}

#[test]
fn the_clients_delay_holds_connections_and_is_not_in_the_times() {
    let address = server(|socket| answer_all(socket, || true));
    let mut plan = plan(address, 100.0, 10);
    plan.connections.delay_ns = 40 * MILLISECOND;
    let measure = run(plan.clone());
    // Each request holds a connection for 80 ms: eight of ten are in use.
    assert!((measure.counts.waited, measure.counts.right) == (0, measure.counts.due), "{:?}", measure.counts);
    assert!(measure.all.quantile_ms(0.5) < 20.0, "{}", measure.all.quantile_ms(0.5));
    plan.connections.count = 5;
    let counts = run(plan).counts;
    assert!(counts.answered_in_time < counts.due * 7 / 10 && counts.waited > 0, "{counts:?}");
}

#[test]
fn malformed_answers_and_absent_servers_are_reported() {
    let wrong =
        server(|mut socket| while matches!(socket.read(&mut [0; 64]), Ok(1..)) && socket.write_all(b"x").is_ok() {});
    let counts = run(plan(wrong, 50.0, 2)).counts;
    assert_eq!(counts.faults[Fault::Malformed as usize], counts.due, "{counts:?}");
    let gone = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let mut engine = Engine::new(Bytes, plan(gone, 1.0, 2)).expect("an engine");
    assert!(engine.open().is_err_and(|error| error.to_string().contains("0 of 2 connections")));
}
