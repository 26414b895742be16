//! The real binary before scripted origins, all on loopback.
#![allow(dead_code, reason = "every test file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test that fails by unwrap has failed well")]

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

pub const PATIENCE: Duration = Duration::from_secs(10);

/// An origin's handling of one request: true keeps the connection.
pub type Script = dyn Fn(&OriginRequest, &mut TcpStream) -> bool + Send + Sync;

/// A request that an origin received.
#[derive(Clone, Debug)]
pub struct OriginRequest {
    pub head: String,
    pub body: Vec<u8>,
}

impl OriginRequest {
    pub fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or("")
    }

    pub fn field(&self, name: &str) -> Option<&str> {
        field(&self.head, name)
    }
}

/// The value of a field in a head.
pub fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then_some(value.trim())
    })
}

/// A server that follows its script, and records the requests it got.
pub struct Origin {
    pub address: SocketAddr,
    pub seen: Arc<Mutex<Vec<OriginRequest>>>,
}

impl Origin {
    pub fn new(script: impl Fn(&OriginRequest, &mut TcpStream) -> bool + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Vec<OriginRequest>>> = Arc::default();
        let (script, log): (Arc<Script>, _) = (Arc::new(script), Arc::clone(&seen));
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let (script, log) = (Arc::clone(&script), Arc::clone(&log));
                std::thread::spawn(move || serve(socket, &*script, &log));
            }
        });
        Origin { address, seen }
    }

    /// One that answers every request with the same bytes.
    pub fn answering(answer: &str) -> Self {
        let answer = answer.to_owned();
        Origin::new(move |_, socket| socket.write_all(answer.as_bytes()).is_ok())
    }

    /// Requests seen so far, the health checks' connections not counted.
    pub fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    pub fn last(&self) -> OriginRequest {
        self.seen.lock().unwrap().last().expect("a request").clone()
    }
}

fn serve(mut socket: TcpStream, script: &Script, log: &Mutex<Vec<OriginRequest>>) {
    socket.set_nodelay(true).unwrap();
    let mut input = Vec::new();
    while let Some(head) = read_head(&mut socket, &mut input) {
        let mut seen = OriginRequest { head, body: Vec::new() };
        if seen.field("expect").is_none() {
            seen.body = read_body(&mut socket, &mut input, &seen.head);
        }
        log.lock().unwrap().push(seen.clone());
        if !script(&seen, &mut socket) {
            return;
        }
    }
}

fn more(socket: &mut TcpStream, input: &mut Vec<u8>) -> bool {
    let mut room = [0; 65536];
    match socket.read(&mut room) {
        Ok(size) if size > 0 => {
            input.extend_from_slice(&room[..size]);
            true
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("nothing came in time"),
        _ => false,
    }
}

/// A head with its empty line; none at the end of the connection.
pub fn read_head(socket: &mut TcpStream, input: &mut Vec<u8>) -> Option<String> {
    loop {
        if let Some(end) = input.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = input.split_off(end + 4);
            let head = std::mem::replace(input, rest);
            return Some(String::from_utf8(head).unwrap());
        }
        if !more(socket, input) {
            return None;
        }
    }
}

fn exactly(socket: &mut TcpStream, input: &mut Vec<u8>, size: usize) -> Vec<u8> {
    while input.len() < size && more(socket, input) {}
    let rest = input.split_off(size.min(input.len()));
    std::mem::replace(input, rest)
}

fn line(socket: &mut TcpStream, input: &mut Vec<u8>) -> String {
    loop {
        if let Some(end) = input.windows(2).position(|two| two == b"\r\n") {
            let text = exactly(socket, input, end + 2);
            return String::from_utf8(text[..end].to_vec()).unwrap();
        }
        assert!(more(socket, input), "a line broke off: {input:?}");
    }
}

/// Reads a body as its head frames it; trailers follow the content of a chunked one.
pub fn read_body(socket: &mut TcpStream, input: &mut Vec<u8>, head: &str) -> Vec<u8> {
    if let Some(length) = field(head, "content-length") {
        return exactly(socket, input, length.parse().unwrap());
    }
    let mut body = Vec::new();
    if field(head, "transfer-encoding") == Some("chunked") {
        loop {
            let size = usize::from_str_radix(&line(socket, input), 16).unwrap();
            if size == 0 {
                break;
            }
            body.extend_from_slice(&exactly(socket, input, size));
            assert_eq!(line(socket, input), "");
        }
        loop {
            let trailer = line(socket, input);
            if trailer.is_empty() {
                return body;
            }
            body.extend_from_slice(trailer.as_bytes());
        }
    }
    body
}

/// The binary, running; ended when dropped.
pub struct Accelerator {
    pub address: SocketAddr,
    pub admin: Option<SocketAddr>,
    pub child: Child,
    pub folder: TempDir,
}

impl Accelerator {
    /// Before these origins. `more` is configuration: top-level settings first, then tables.
    pub fn before(origins: &[&Origin], more: &str) -> Self {
        Self::with(&config(origins, more))
    }

    /// With this configuration.
    pub fn with(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.toml"), config).unwrap();
        Self::start(folder, config.contains("[admin]"))
    }

    /// Starts with the configuration in this folder; its standard error goes to the file `stderr` there.
    pub fn start(folder: TempDir, with_admin: bool) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_nearmiss-accelerator"))
            .arg("--config")
            .arg(folder.path().join("a.toml"))
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(folder.path().join("stderr")).unwrap())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut address = || {
            let line = lines.next().expect("a line with the listening address").unwrap();
            line.rsplit(' ').next().unwrap().parse().unwrap()
        };
        let (main, admin) = (address(), with_admin.then(&mut address));
        Accelerator { address: main, admin, child, folder }
    }

    pub fn connect(&self) -> Client {
        Client::new(self.address)
    }

    /// One GET on a connection of its own.
    pub fn get(&self, path: &str) -> Answer {
        self.request(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"))
    }

    pub fn request(&self, request: &str) -> Answer {
        let mut client = self.connect();
        client.send(request.as_bytes());
        client.answer_to(request)
    }

    pub fn stderr(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("stderr")).unwrap()
    }

    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Returns the answer of the operator's port.
    pub fn operate(&self, request: &str) -> Answer {
        let mut client = Client::new(self.admin.expect("an operator's port"));
        client.send(request.as_bytes());
        client.answer_to(request)
    }

    /// One counter or gauge.
    pub fn metric(&self, name: &str) -> u64 {
        let text = self.operate("GET /metrics HTTP/1.1\r\n\r\n").text();
        let line = text.lines().find(|line| line.split(' ').next() == Some(name));
        line.and_then(|line| line.rsplit(' ').next()).expect(name).parse().unwrap()
    }
}

impl Drop for Accelerator {
    fn drop(&mut self) {
        let _ended = self.child.kill().is_ok();
        let _reaped = self.child.wait().is_ok();
    }
}

pub fn config(origins: &[&Origin], more: &str) -> String {
    let tables = more.find("[").unwrap_or(more.len());
    let (settings, tables) = more.split_at(tables);
    let mut text = format!("listen = [\"127.0.0.1:0\"]\n{settings}\n");
    for origin in origins {
        text += &format!("[[origin]]\naddress = \"{}\"\n", origin.address);
    }
    text + tables
}

/// A response.
#[derive(Clone, Debug)]
pub struct Answer {
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn status(&self) -> u16 {
        self.head.split(' ').nth(1).unwrap_or("0").parse().unwrap()
    }

    pub fn field(&self, name: &str) -> Option<&str> {
        field(&self.head, name)
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}

/// A client's connection.
pub struct Client {
    pub socket: TcpStream,
    pub input: Vec<u8>,
}

impl Client {
    pub fn new(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Client { socket, input: Vec::new() }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).unwrap();
    }

    pub fn head(&mut self) -> Option<String> {
        read_head(&mut self.socket, &mut self.input)
    }

    /// The next answer, if it is one to a GET.
    pub fn answer(&mut self) -> Answer {
        self.answer_to("GET")
    }

    pub fn answer_to(&mut self, request: &str) -> Answer {
        let head = self.head().expect("an answer");
        let status = head.split(' ').nth(1).unwrap_or("");
        let none = request.starts_with("HEAD") || status.starts_with('1') || ["204", "304"].contains(&status);
        let delimited = field(&head, "content-length").is_some() || field(&head, "transfer-encoding").is_some();
        let body = match (none, delimited) {
            (true, _) => Vec::new(),
            (_, true) => read_body(&mut self.socket, &mut self.input, &head),
            (_, false) => self.rest(),
        };
        Answer { head, body }
    }

    /// All that comes until the connection ends.
    pub fn rest(&mut self) -> Vec<u8> {
        while more(&mut self.socket, &mut self.input) {}
        std::mem::take(&mut self.input)
    }

    pub fn is_closed(&mut self) -> bool {
        self.rest().is_empty()
    }
}

/// Waits until something is so.
pub fn until(what: &str, is_so: impl Fn() -> bool) {
    let begin = std::time::Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
