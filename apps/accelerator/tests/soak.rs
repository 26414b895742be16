//! Everything goes wrong at once, for NEARMISS_SOAK_SECONDS (4 by default): origins that die, stall, trickle, cut off and
//! send garbage; clients that leave, trickle and send garbage, and more of them than the limit; reloads, purges. No body may be wrong, nothing may leak, nothing may crash.
#![allow(clippy::unwrap_used, reason = "a test that fails by unwrap has failed well")]

#[path = "server/support/mod.rs"]
mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::{Accelerator, Origin, config, field};

/// Connections that the configuration allows at once.
const CONNECTIONS: usize = 100;

/// A small generator that repeats its numbers for a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// The only right body of a path `/NUMBER/LENGTH`.
fn body_of(path: &str) -> Vec<u8> {
    let mut parts = path.trim_start_matches('/').split('/');
    let number: u64 = parts.next().unwrap().parse().unwrap();
    let length: usize = parts.next().unwrap().parse().unwrap();
    let mut dice = Dice(number);
    (0..length).map(|_| b'a' + dice.below(26) as u8).collect()
}

fn misbehave(path: &str, socket: &mut TcpStream, turn: u64) -> std::io::Result<bool> {
    let body = body_of(path);
    let mut dice = Dice(turn);
    let fresh = ["max-age=1", "max-age=0, stale-while-revalidate=2", "no-store", "max-age=60"][dice.below(4) as usize];
    let head = format!("HTTP/1.1 200 OK\r\nCache-Control: {fresh}\r\nETag: \"{path}\"\r\n");
    let with_length = format!("{head}Content-Length: {}\r\n\r\n", body.len());
    match dice.below(20) {
        0 => return Ok(false),
        1 => socket.write_all(&[with_length.as_bytes(), &body[..body.len() / 2]].concat())?,
        2 => socket.write_all(b"\0\xffgarbage\r\n\r\n")?,
        3 => socket.write_all(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")?,
        4 => {
            socket.write_all(with_length.as_bytes())?;
            for piece in body.chunks(body.len() / 5 + 1) {
                socket.write_all(piece)?;
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        5 => std::thread::sleep(Duration::from_millis(700)),
        6..9 => {
            let chunk = format!("{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n", body.len());
            let end: &[u8] = if turn.is_multiple_of(3) { b"\r\n" } else { b"\r\n0\r\n\r\n" };
            socket.write_all(&[chunk.as_bytes(), &body, end].concat())?;
            return Ok(!turn.is_multiple_of(3));
        }
        _ => {
            socket.write_all(&[with_length.as_bytes(), &body].concat())?;
            return Ok(dice.below(8) > 0);
        }
    }
    Ok(false)
}

/// One client: right bodies, or visible ends. Returns how many whole answers it got.
fn client(address: SocketAddr, seed: u64, end: Instant) -> u64 {
    let (mut dice, mut whole) = (Dice(seed), 0);
    while Instant::now() < end {
        let Ok(mut socket) = TcpStream::connect(address) else { continue };
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        for _ in 0..dice.below(8) + 1 {
            let path = format!("/{}/{}", dice.below(40), [1, 900, 20_000, 300_000][dice.below(4) as usize]);
            if !send_request(&mut socket, &path, &mut dice) {
                break;
            }
            match answer(&mut socket, &path) {
                Some(true) => whole += 1,
                Some(false) => {}
                None => break,
            }
        }
    }
    whole
}

/// One request, well or badly sent. Returns whether its answer is to be read; the client leaves where it is not.
fn send_request(socket: &mut TcpStream, path: &str, dice: &mut Dice) -> bool {
    let get = format!("GET {path} HTTP/1.1\r\nHost: a\r\n");
    let plain = format!("{get}\r\n");
    let part = format!("bytes={}-{}", dice.below(1000), 1000 + dice.below(20_000));
    match dice.below(60) {
        0 => {
            let _left = socket.write_all(plain.as_bytes()).is_ok();
            false
        }
        1 => socket.write_all(b"\0\xff garbage\r\n\r\n").is_ok(),
        2 => plain.bytes().all(|byte| {
            std::thread::sleep(Duration::from_millis(1));
            socket.write_all(&[byte]).is_ok()
        }),
        3 => {
            let _left = socket.write_all(plain.as_bytes()).and_then(|()| socket.read(&mut [0; 700]));
            false
        }
        4 => {
            let _left = write!(socket, "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 90000\r\n\r\nxxx");
            false
        }
        5 => write!(socket, "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nxxx").is_ok(),
        6..14 => write!(socket, "{get}Range: {part}\r\n\r\n").is_ok(),
        14..20 => write!(socket, "{get}If-None-Match: \"{path}\"\r\n\r\n").is_ok(),
        20..24 => write!(socket, "{get}Cache-Control: no-cache\r\n\r\n").is_ok(),
        _ => socket.write_all(plain.as_bytes()).is_ok(),
    }
}

/// Clients up to the limit and above it, which send nothing, or half a head, and all leave at once.
fn crowd(address: SocketAddr, end: Instant) {
    while Instant::now() < end {
        let sockets: Vec<_> = (0..CONNECTIONS + 20).filter_map(|_| TcpStream::connect(address).ok()).collect();
        for mut socket in sockets.iter().step_by(2) {
            let _refused = socket.write_all(b"GET / HTTP/1.1\r\nHo").is_ok();
        }
        std::thread::sleep(Duration::from_millis(300));
        drop(sockets);
        std::thread::sleep(Duration::from_secs(2));
    }
}

/// Returns whether the answer was the whole body; none where the connection ended. A wrong body ends the test.
fn answer(socket: &mut TcpStream, path: &str) -> Option<bool> {
    let mut input = Vec::new();
    let head = support::read_head(socket, &mut input)?;
    if head.starts_with("HTTP/1.1 304") {
        return Some(false);
    }
    let mut room = [0; 65536];
    let chunked = field(&head, "transfer-encoding").is_some();
    let length: usize = field(&head, "content-length").and_then(|text| text.parse().ok()).unwrap_or(usize::MAX);
    while if chunked { !input.ends_with(b"\r\n0\r\n\r\n") } else { input.len() < length } {
        match socket.read(&mut room) {
            Ok(size) if size > 0 => input.extend_from_slice(&room[..size]),
            outcome => {
                assert!(outcome.is_ok() || !format!("{outcome:?}").contains("WouldBlock"), "no answer in time: {head}");
                return None;
            }
        }
    }
    let body = if chunked { joined(&input) } else { input };
    let right = match head.split(' ').nth(1).unwrap() {
        "200" => body_of(path),
        "206" => body_of(path)[range(field(&head, "content-range").unwrap())].to_vec(),
        _ => return Some(false),
    };
    assert!(body == right, "a wrong body of {} bytes for {path}: {head}", body.len());
    Some(true)
}

/// The bytes that a Content-Range names.
fn range(value: &str) -> std::ops::RangeInclusive<usize> {
    let (first, last) = value.strip_prefix("bytes ").unwrap().split('/').next().unwrap().split_once('-').unwrap();
    first.parse().unwrap()..=last.parse().unwrap()
}

fn joined(mut chunks: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let end = chunks.windows(2).position(|two| two == b"\r\n").unwrap();
        let size = usize::from_str_radix(std::str::from_utf8(&chunks[..end]).unwrap(), 16).unwrap();
        if size == 0 {
            return body;
        }
        body.extend_from_slice(&chunks[end + 2..end + 2 + size]);
        chunks = &chunks[end + 4 + size..];
    }
}

/// Returns the bytes of the memory file of long bodies.
fn bytes_in_file(process: u32) -> u64 {
    let descriptors = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap().flatten();
    let is_file = |path: &std::path::PathBuf| {
        std::fs::read_link(path).is_ok_and(|link| link.to_string_lossy().contains("memfd:nearmiss-bodies"))
    };
    let file = descriptors.map(|entry| entry.path()).find(is_file).unwrap();
    std::fs::metadata(file).unwrap().blocks() * 512
}

#[test]
fn no_body_is_wrong_and_nothing_leaks_on_any_failure() {
    let seconds = std::env::var("NEARMISS_SOAK_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(4);
    let origin = || {
        let turn = AtomicU64::new(0);
        Origin::new(move |seen, socket| {
            misbehave(seen.path(), socket, turn.fetch_add(1, Ordering::SeqCst)).unwrap_or(false)
        })
    };
    let origins = [origin(), origin()];
    let all = [&origins[0], &origins[1]];
    let text = |object: &str| {
        let more = format!(
            "threads = 2\n[cache]\nmemory = \"4MiB\"\nobject = \"{object}\"\n[limits]\nconnections = {CONNECTIONS}\nshorten_from = 50\n\
             [timeouts]\nhead = \"500ms\"\norigin = \"400ms\"\nhealth = \"50ms\"\nidle = \"2s\"\n[admin]\nlisten = \"127.0.0.1:0\"\n"
        );
        config(&all, &more)
    };
    let accelerator = Arc::new(Accelerator::with(&text("256KiB")));
    let end = Instant::now() + Duration::from_secs(seconds);
    let address = accelerator.address;
    let clients: Vec<_> = (0..16).map(|seed| std::thread::spawn(move || client(address, seed, end))).collect();
    let crowd = std::thread::spawn(move || crowd(address, end));
    let file = accelerator.folder.path().join("a.toml");
    for turn in 0.. {
        if Instant::now() >= end {
            break;
        }
        // Every fifth configuration is wrong and changes nothing.
        let object = ["256KiB", "64KiB", "1MiB", "16KiB", "much"][turn % 5];
        std::fs::write(&file, text(object)).unwrap();
        accelerator.signal("HUP");
        origins.iter().for_each(|origin| origin.seen.lock().unwrap().clear());
        accelerator.operate("POST /purge?host=a&prefix=/1 HTTP/1.1\r\n\r\n");
        std::thread::sleep(Duration::from_millis(200));
    }
    let whole: u64 = clients.into_iter().map(|client| client.join().unwrap()).sum();
    crowd.join().unwrap();
    println!("measured: {whole} whole answers, {} stored", accelerator.metric("nearmiss_stored_total"));
    assert!(whole > 10 * seconds, "{whole}");
    support::until("no connection is left", || accelerator.metric("nearmiss_open_connections") == 0);
    let descriptors = || std::fs::read_dir(format!("/proc/{}/fd", accelerator.child.id())).unwrap().count();
    support::until("no descriptor is left", || descriptors() < 24);
    let status = std::fs::read_to_string(format!("/proc/{}/status", accelerator.child.id())).unwrap();
    let resident = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    let kilobytes: u64 = resident.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kilobytes < 60 << 10, "{resident}");
    let bodies = bytes_in_file(accelerator.child.id());
    assert!(bodies <= 4 << 20, "{bodies} bytes of bodies are kept in 4 MiB");
}
