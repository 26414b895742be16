//! Work of an operator: start, check, reload, drain, look, purge; and the limits that protect the server.
#![allow(clippy::unwrap_used, reason = "a test that fails by unwrap has failed well")]

use crate::support::{Accelerator, Origin, config, until};
use std::io::Write;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

const STORED: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 1\r\n\r\nx";
const ADMIN: &str = "[admin]\nlisten = \"127.0.0.1:0\"\n";

fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_nearmiss-accelerator")).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_example_is_taken_and_what_is_wrong_is_not() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/accelerator.toml");
    let (code, out, _) = run(&["--config", example, "--check"]);
    assert_eq!((code, out), (Some(0), format!("{example}: taken\n")));
    let root = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/accelerator.toml")).unwrap();
    assert!(root == std::fs::read(example).unwrap(), "the two copies of the example differ");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.toml");
    std::fs::write(&path, "listen = [\"127.0.0.1:0\"]\nthreds = 2\n").unwrap();
    let (code, _, err) = run(&["--config", path.to_str().unwrap()]);
    assert_eq!(code, Some(2));
    assert!(err.contains("bad.toml:2: unknown field `threds`") && err.lines().count() == 1, "{err}");
    let (code, _, err) = run(&["--config", "/nowhere.toml"]);
    assert!(code == Some(2) && err.contains("/nowhere.toml: not read"), "{err}");
    let (code, help, _) = run(&["--help"]);
    assert!(code == Some(0) && help.contains("Examples:") && help.contains("kill -HUP"), "{help}");
}

#[test]
fn an_address_in_use_is_reported() {
    let origin = Origin::answering(STORED);
    let running = Accelerator::before(&[&origin], "threads = 2\n");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.toml");
    let address = running.address;
    std::fs::write(&path, config(&[&origin], "").replace("127.0.0.1:0", &address.to_string())).unwrap();
    let (code, _, err) = run(&["--config", path.to_str().unwrap()]);
    assert_eq!(code, Some(3));
    assert!(err.contains(&format!("listen {address}: ")) && err.contains("choose another address"), "{err}");
    let admin = format!("[admin]\nlisten = \"{address}\"\n");
    std::fs::write(&path, config(&[&origin], &admin)).unwrap();
    let (code, _, err) = run(&["--config", path.to_str().unwrap()]);
    let wanted = format!("nearmiss-accelerator: admin.listen {address}: Address already in use");
    assert!(code == Some(3) && err.starts_with(&wanted) && err.contains("choose another address"), "{err}");
    assert_eq!(err.lines().count(), 1, "{err}");
}

#[test]
fn an_origin_that_is_the_proxy_itself_is_refused_at_the_start_and_at_a_reload() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("itself.toml");
    for (settings, wanted) in [
        ("listen = [\"0.0.0.0:4\"]", "itself.toml: origin 127.0.0.1:4: this proxy itself, which listens on 0.0.0.0:4"),
        ("listen = [\"127.0.0.1:0\"]\npace = \"2s\"", "itself.toml:2: pace of 2s: must be within 10us and 1s"),
    ] {
        std::fs::write(&path, format!("{settings}\n[[origin]]\naddress = \"127.0.0.1:4\"\n")).unwrap();
        for more in [&[][..], &["--check"]] {
            let (code, out, err) = run(&[&["--config", path.to_str().unwrap()], more].concat());
            assert_eq!((code, out.as_str(), err.lines().count()), (Some(2), "", 1), "{err}");
            assert!(err.contains(wanted), "{err}");
        }
    }
    let origin = Origin::answering(STORED);
    let accelerator = Accelerator::before(&[&origin], "");
    let path = accelerator.folder.path().join("a.toml");
    let own = accelerator.address;
    // The file names no port: what counts is where the proxy listens.
    std::fs::write(&path, format!("listen = [\"127.0.0.1:0\"]\n[[origin]]\naddress = \"{own}\"\n")).unwrap();
    accelerator.signal("HUP");
    until("the refusal", || accelerator.stderr().contains("the configuration from before stays"));
    assert!(accelerator.stderr().contains(&format!("origin {own}: this proxy itself")), "{}", accelerator.stderr());
    assert_eq!(accelerator.get("/").text(), "x");
    std::fs::write(&path, config(&[&origin], "pace = \"5us\"\n")).unwrap();
    accelerator.signal("HUP");
    until("the refusal", || accelerator.stderr().contains("pace of 5us: must be within 10us and 1s"));
    assert_eq!(accelerator.get("/2").text(), "x");
}

#[test]
fn a_drain_lets_requests_end_and_takes_no_more() {
    let origin = Origin::new(|seen, socket| {
        if seen.path() == "/slow" {
            std::thread::sleep(Duration::from_millis(400));
        }
        socket.write_all(STORED.as_bytes()).is_ok()
    });
    let mut accelerator = Accelerator::before(&[&origin], "threads = 2\n");
    let (mut idle, mut busy) = (accelerator.connect(), accelerator.connect());
    idle.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    idle.answer();
    busy.send(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    until("the slow request", || origin.count() == 2);
    accelerator.signal("TERM");
    assert!(idle.is_closed());
    let answer = busy.answer();
    assert_eq!((answer.text().as_str(), answer.field("connection")), ("x", Some("close")));
    assert!(busy.is_closed());
    assert_eq!(accelerator.child.wait().unwrap().code(), Some(0));
    assert!(std::net::TcpStream::connect(accelerator.address).is_err());
}

#[test]
fn a_reload_changes_what_it_can_and_keeps_what_is_wrong_out() {
    let (one, two) = (Origin::answering(STORED), Origin::answering(&STORED.replace("\r\nx", "\r\ny")));
    let accelerator = Accelerator::before(&[&one], "");
    let path = accelerator.folder.path().join("a.toml");
    assert_eq!(accelerator.get("/1").text(), "x");
    std::fs::write(&path, "nonsense").unwrap();
    accelerator.signal("HUP");
    until("the refusal", || accelerator.stderr().contains("the configuration from before stays"));
    assert_eq!(accelerator.get("/2").text(), "x");
    std::fs::write(&path, config(&[&two], "threads = 2\n")).unwrap();
    accelerator.signal("HUP");
    until("the reload", || accelerator.stderr().contains("read again"));
    assert!(accelerator.stderr().contains("threads: a change takes a restart"), "{}", accelerator.stderr());
    until("the new origin", || accelerator.get(&format!("/{}", two.count() + one.count() + 10)).text() == "y");
    assert_eq!(accelerator.get("/1").text(), "x", "what is stored stays stored");
}

#[test]
fn the_operator_sees_and_purges() {
    let origin = Origin::answering(STORED);
    let accelerator = Accelerator::before(&[&origin], ADMIN);
    for path in ["/a/1", "/a/2", "/b", "/b"] {
        accelerator.get(path);
    }
    assert_eq!(accelerator.metric("nearmiss_hits_total"), 1);
    assert_eq!(accelerator.metric("nearmiss_misses_total"), 3);
    assert_eq!(accelerator.metric("nearmiss_store_keys"), 3);
    assert_eq!(accelerator.operate("GET /health HTTP/1.1\r\n\r\n").text(), "well\n");
    let purge = |query: &str| accelerator.operate(&format!("POST /purge?{query} HTTP/1.1\r\n\r\n"));
    assert_eq!(purge("host=a&path=/b").text(), "1 purged\n");
    assert_eq!(purge("host=a&path=/b").text(), "0 purged\n");
    assert_eq!(purge("host=a&prefix=/a/").text(), "2 purged\n");
    for wrong in
        ["nothing", "host=a", "host=a&path=b", "host=a&prefix=", "path=/b&host=a", "host=a:b&path=/", "host=&path=/"]
    {
        assert_eq!(purge(wrong).status(), 400, "{wrong}");
    }
    // The key is as in the client's request: another port is another key, the default one is none.
    let of = |host: &str, target: &str| accelerator.request(&format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    of("B:8081", "/q?x=1&path=%2f");
    assert_eq!(purge("host=b&path=/q?x=1&path=%2f").text(), "0 purged\n");
    assert_eq!(purge("host=b:8081&path=/q?x=1").text(), "0 purged\n");
    assert_eq!(purge("host=b:8081&path=/q?x=1&path=%2f").text(), "1 purged\n");
    of("b:80", "/q");
    assert_eq!(purge("host=B:80&prefix=/q").text(), "1 purged\n");
    of("[::1]:8081", "/q");
    assert_eq!(purge("host=[::1]:8081&path=/q").text(), "1 purged\n");
    accelerator.get("/c");
    assert_eq!(purge("all").text(), "1 purged\n");
    assert_eq!(accelerator.operate("GET /other HTTP/1.1\r\n\r\n").status(), 404);
    assert_eq!(accelerator.operate("nonsense\r\n\r\n").status(), 400);
}

#[test]
fn a_token_opens_the_operators_port() {
    let origin = Origin::answering(STORED);
    let accelerator = Accelerator::before(&[&origin], &format!("{ADMIN}token = \"secret\"\n"));
    let status = |fields: &str| accelerator.operate(&format!("GET /health HTTP/1.1\r\n{fields}\r\n")).status();
    assert_eq!(
        [status(""), status("Authorization: Bearer secreT\r\n"), status("Authorization: Bearer secret\r\n")],
        [401, 401, 200]
    );
    let refused = accelerator.operate("GET /health HTTP/1.1\r\n\r\n");
    assert!(refused.field("www-authenticate") == Some("Bearer") && refused.field("date").is_some(), "{}", refused.head);
}

#[test]
fn a_slow_caller_does_not_keep_the_operator_out() {
    let origin = Origin::answering(STORED);
    let accelerator = Accelerator::before(&[&origin], ADMIN);
    assert_eq!(accelerator.operate("\r\n\r\n").status(), 400);
    let mut slow = std::net::TcpStream::connect(accelerator.admin.unwrap()).unwrap();
    let dripping = std::thread::spawn(move || {
        while slow.write_all(b"G").is_ok() {
            std::thread::sleep(Duration::from_millis(300));
        }
    });
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(accelerator.operate("GET /health HTTP/1.1\r\n\r\n").text(), "well\n");
    dripping.join().unwrap();
}

#[test]
fn health_follows_the_origin() {
    let well = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let of_origin = Arc::clone(&well);
    let origin = Origin::new(move |_, socket| {
        let status = if of_origin.load(std::sync::atomic::Ordering::SeqCst) { "200 OK" } else { "503 No" };
        write!(socket, "HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").is_ok()
    });
    let more = format!("[timeouts]\nhealth = \"50ms\"\n{ADMIN}");
    let text = config(&[&origin], &more).replace("[timeouts]", "health = \"/health\"\n[timeouts]");
    let accelerator = Accelerator::with(&text);
    let status = || accelerator.operate("GET /health HTTP/1.1\r\n\r\n").status();
    until("not well", || status() == 503);
    well.store(true, std::sync::atomic::Ordering::SeqCst);
    until("well again", || status() == 200);
    until("reported", || accelerator.stderr().contains("well again"));
}

#[test]
fn connections_have_a_limit_and_idle_ones_go_sooner_near_it() {
    let origin = Origin::answering(STORED);
    let more = format!("[limits]\nconnections = 4\nshorten_from = 1\n[timeouts]\nidle = \"2s\"\n{ADMIN}");
    let accelerator = Accelerator::before(&[&origin], &more);
    let mut clients: Vec<_> = (0..4).map(|_| accelerator.connect()).collect();
    for client in &mut clients {
        client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(client.answer().text(), "x");
    }
    assert!(accelerator.connect().is_closed());
    assert_eq!(accelerator.metric("nearmiss_connections_refused_total"), 1);
    let began = std::time::Instant::now();
    assert!(clients.pop().unwrap().is_closed());
    assert!(began.elapsed() < Duration::from_millis(1500), "{:?}", began.elapsed());
    assert_eq!(accelerator.get("/").text(), "x");
}

#[test]
fn the_access_log_has_a_line_a_request() {
    let origin = Origin::answering(STORED);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let accelerator = Accelerator::before(&[&origin], &format!("access_log = {path:?}\n"));
    accelerator.get("/a");
    accelerator.get("/a");
    accelerator.request("GET nonsense HTTP/1.1\r\nHost: a\r\n\r\n");
    let read = || std::fs::read_to_string(&path).unwrap();
    until("three lines", || read().lines().count() == 3);
    let text = read();
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].contains("\"GET http://a/a\" 200 ") && lines[0].contains(" miss "), "{}", lines[0]);
    assert!(lines[1].starts_with("127.0.0.1 20") && lines[1].contains("\"GET http://a/a\" 200 1 hit "), "{}", lines[1]);
    let refused = "400 Bad Request: the target is no path and no URI\n".len();
    assert!(lines[2].contains(&format!(" \"-\" 400 {refused} refused ")), "{}", lines[2]);
}

/// Every line of the log against what came out of the socket.
#[test]
fn the_access_log_records_the_answer_of_each_client() {
    let origin = Origin::new(|seen, socket| match seen.path() {
        "/dies" => false,
        "/breaks" => {
            let _sent = socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc").is_ok();
            false
        }
        "/hints" => {
            let early = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
            socket.write_all([early, STORED].concat().as_bytes()).is_ok()
        }
        _ => socket.write_all(STORED.as_bytes()).is_ok(),
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let more =
        format!("access_log = {path:?}\n[limits]\nhead = 2000\ntarget = 900\nbody = 5\n[timeouts]\nhead = \"300ms\"\n");
    let accelerator = Accelerator::before(&[&origin], &more);
    let long = "x".repeat(2100);
    let with = |line: &str, fields: &str| format!("{line} HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    let mut wanted = Vec::new();
    for (request, status, word) in [
        (with("GET /s", ""), 200, "miss"),
        (with("GET /s", ""), 200, "hit"),
        (with("GET /s", "Range: bytes=0-0\r\n"), 206, "hit"),
        (with("HEAD /s", ""), 200, "hit"),
        (with("GET /s\"", "Range: bytes=7-\r\n"), 416, "miss"),
        (with("GET nonsense", ""), 400, "refused"),
        (with("GET /s", &format!("A: {long}\r\n")), 431, "refused"),
        (with(&format!("GET /{long}"), ""), 414, "refused"),
        (with("GET /s", "Transfer-Encoding: gzip, chunked\r\n"), 501, "refused"),
        ("GET / HTTP/2.0\r\n\r\n".to_owned(), 505, "refused"),
        ("GET / HT".to_owned(), 408, "refused"),
        (with("CONNECT a:1", ""), 405, "own"),
        (with("POST /s", "Content-Length: 6\r\n"), 413, "own"),
        (with("POST /s", "Transfer-Encoding: chunked\r\n") + "x", 400, "own"),
        (with("GET /other", "Cache-Control: only-if-cached\r\n"), 504, "own"),
        (with("HEAD /other", "Cache-Control: only-if-cached\r\n"), 504, "own"),
        (with("GET /s2", "Via: 1.1 nearmiss\r\n"), 508, "own"),
        (with("GET /dies", ""), 502, "own"),
        (with("GET /hints", ""), 200, "miss"),
    ] {
        let mut client = accelerator.connect();
        client.send(request.as_bytes());
        let mut answer = client.answer_to(&request);
        if answer.status() == 103 {
            answer = client.answer();
        }
        assert_eq!(answer.status(), status, "{request}");
        let date = answer.field("date").map(httpdate::parse_http_date);
        assert!(matches!(date, Some(Ok(_))), "{request} {}", answer.head);
        wanted.push(format!("{status} {} {word} ", answer.body.len()));
    }
    let mut client = accelerator.connect();
    client.send(with("GET /breaks", "").as_bytes());
    let head = client.head().unwrap();
    assert!(head.starts_with("HTTP/1.1 200") && client.rest() == b"abc");
    wanted.push("200 3 broken ".to_owned());
    until("all lines", || std::fs::read_to_string(&path).unwrap().lines().count() == wanted.len());
    for (line, wanted) in std::fs::read_to_string(&path).unwrap().lines().zip(wanted) {
        assert!(line.contains(&format!("\" {wanted}")) && line.matches('"').count() == 2, "{line}: not {wanted}");
    }
}

#[test]
fn a_full_disk_behind_standard_error_ends_nothing() {
    let origin = Origin::new(|_, _| false);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.toml"), config(&[&origin], "")).unwrap();
    std::os::unix::fs::symlink("/dev/full", folder.path().join("stderr")).unwrap();
    let accelerator = Accelerator::start(folder, false);
    for _ in 0..3 {
        assert_eq!(accelerator.get("/").status(), 502);
        accelerator.signal("HUP");
    }
}

#[test]
fn wrong_use_is_one_line() {
    for (arguments, wanted) in [
        (&["--confg", "x"][..], "unexpected argument '--confg' found; a similar argument exists: '--config'"),
        (&[], "the following required arguments were not provided: --config <FILE>"),
        (&["generate"], "the verb is missing: nearmiss-accelerator generate <COMMAND>"),
    ] {
        let verb = if arguments == ["generate"] { " generate" } else { "" };
        let line = format!("nearmiss-accelerator: {wanted}; see nearmiss-accelerator{verb} --help\n");
        assert_eq!(run(arguments), (Some(2), String::new(), line));
    }
}
