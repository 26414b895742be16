//! Reads and writes of a key-value store: RESP (redis) and memcached's text protocol.

use super::Arguments;
use crate::content::{Content, mix};
use crate::laws;
use crate::load::{Answer, Fault, Load};
use crate::object::{Kind, Object};
use crate::outcome::Problem;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Values are written so many at once before the run.
const AT_ONCE: u32 = 100;
/// The longest text before a value.
const LONGEST_HEAD: usize = 64;

/// The words of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Redis's serialization protocol, version 2.
    Resp,
    /// memcached's text protocol.
    Memcached,
}

impl Dialect {
    const fn stored(self) -> &'static [u8] {
        match self {
            Dialect::Resp => b"+OK\r\n",
            Dialect::Memcached => b"STORED\r\n",
        }
    }

    const fn absent(self) -> &'static [u8] {
        match self {
            Dialect::Resp => b"$-1\r\n",
            Dialect::Memcached => b"END\r\n",
        }
    }

    const fn behind_value(self) -> &'static [u8] {
        match self {
            Dialect::Resp => b"\r\n",
            Dialect::Memcached => b"\r\nEND\r\n",
        }
    }

    fn is_refusal(self, bytes: &[u8]) -> bool {
        match self {
            Dialect::Resp => bytes.starts_with(b"-"),
            Dialect::Memcached => [&b"ERROR"[..], b"CLIENT_ERROR", b"SERVER_ERROR", b"NOT_STORED"]
                .into_iter()
                .any(|word| bytes.starts_with(word)),
        }
    }
}

/// One read or write.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyOperation {
    key: u32,
    is_set: bool,
}

/// Reads and writes of keys; the value of a key never changes.
pub struct Keys {
    dialect: Dialect,
    keys: u32,
    value_bytes: u32,
    sets: f64,
    seed: u64,
    drawn: u64,
}

/// How much of a right answer the bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Match {
    Whole,
    Begun,
    WrongValue,
    Other,
}

impl Keys {
    /// Creates the reads and writes that the arguments specify.
    pub fn new(dialect: Dialect, arguments: &Arguments, seed: u64) -> Keys {
        Keys {
            dialect,
            keys: arguments.objects,
            value_bytes: arguments.value_bytes,
            sets: arguments.sets / 100.0,
            seed,
            drawn: 0,
        }
    }

    /// Writes every key once.
    pub fn prime(&self, to: SocketAddr) -> Result<(), Problem> {
        let wrong = |why: &str| Problem::Run(format!("{to}: the keys cannot be written ({why})"));
        let mut socket = TcpStream::connect(to).map_err(|error| wrong(&error.to_string()))?;
        // Without a limit a server of another protocol would be awaited for ever.
        _ = socket.set_read_timeout(Some(Duration::from_secs(10)));
        let (mut requests, mut answers) = (Vec::new(), Vec::new());
        for first in (0..self.keys).step_by(AT_ONCE as usize) {
            let keys = first..self.keys.min(first + AT_ONCE);
            requests.clear();
            keys.clone().for_each(|key| self.write(&KeyOperation { key, is_set: true }, &mut requests));
            let right = self.dialect.stored().repeat(keys.len());
            answers.resize(right.len(), 0);
            let done = socket.write_all(&requests).and_then(|()| socket.read_exact(&mut answers));
            done.map_err(|error| wrong(&error.to_string()))?;
            if answers != right {
                return Err(wrong("the server does not store them"));
            }
        }
        Ok(())
    }

    fn content(&self, key: u32) -> Content {
        Object { kind: Kind::Fixed(self.value_bytes), world: 0, number: key }.content()
    }

    fn value(&self, key: u32, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + self.value_bytes as usize, 0);
        self.content(key).fill(0, &mut out[start..]);
    }

    fn compare(&self, operation: &KeyOperation, bytes: &[u8]) -> Match {
        if operation.is_set {
            return plain(bytes, self.dialect.stored());
        }
        let mut text = [0; LONGEST_HEAD];
        let mut rest = &mut text[..];
        let size = self.value_bytes;
        // The text has at most 48 bytes.
        _ = match self.dialect {
            Dialect::Resp => write!(rest, "${size}\r\n"),
            Dialect::Memcached => write!(rest, "VALUE nearmiss:{:08} 0 {size}\r\n", operation.key),
        };
        let length = LONGEST_HEAD - rest.len();
        let head = &text[..length];
        if bytes.len() <= head.len() {
            return if head.starts_with(bytes) { Match::Begun } else { Match::Other };
        }
        let Some(rest) = bytes.strip_prefix(head) else { return Match::Other };
        let (value, behind) = rest.split_at(rest.len().min(size as usize));
        if !self.content(operation.key).is(0, value) {
            return Match::WrongValue;
        }
        match plain(behind, self.dialect.behind_value()) {
            Match::Other => Match::WrongValue,
            as_it_is => as_it_is,
        }
    }

    fn judge(&self, operation: &KeyOperation, bytes: &[u8]) -> Result<Option<Answer>, Fault> {
        let right = |is_absent, bytes| {
            Ok(Some(Answer {
                served: None,
                is_plain: true,
                is_not_modified: false,
                is_absent,
                keeps_connection: true,
                bytes,
            }))
        };
        let absent = if operation.is_set { Match::Other } else { plain(bytes, self.dialect.absent()) };
        match (self.compare(operation, bytes), absent) {
            (Match::Whole, _) => right(false, self.value_bytes.into()),
            (_, Match::Whole) => right(true, 0),
            (Match::Begun, _) | (_, Match::Begun) => Ok(None),
            (Match::WrongValue, _) => Err(Fault::Body),
            (Match::Other, _) if self.dialect.is_refusal(bytes) => Err(Fault::Status),
            (Match::Other, _) => Err(Fault::Malformed),
        }
    }
}

fn plain(bytes: &[u8], right: &[u8]) -> Match {
    match bytes {
        bytes if bytes == right => Match::Whole,
        bytes if right.starts_with(bytes) => Match::Begun,
        _ => Match::Other,
    }
}

impl Load for Keys {
    type Request = KeyOperation;
    /// The beginning of an answer that came in pieces.
    type Reply = Vec<u8>;
    const SERVER_CLOSES: bool = false;

    fn pick(&mut self, _phase: usize) -> KeyOperation {
        self.drawn += 1;
        let hash = mix(mix(self.seed) ^ self.drawn);
        KeyOperation { key: (mix(hash) % u64::from(self.keys)) as u32, is_set: laws::unit(hash) < self.sets }
    }

    fn write(&self, operation: &KeyOperation, out: &mut Vec<u8>) {
        let (key, size) = (operation.key, self.value_bytes);
        // Writing into memory cannot fail.
        _ = match (self.dialect, operation.is_set) {
            (Dialect::Resp, false) => write!(out, "*2\r\n$3\r\nGET\r\n$17\r\nnearmiss:{key:08}\r\n"),
            (Dialect::Resp, true) => write!(out, "*3\r\n$3\r\nSET\r\n$17\r\nnearmiss:{key:08}\r\n${size}\r\n"),
            (Dialect::Memcached, false) => write!(out, "get nearmiss:{key:08}\r\n"),
            (Dialect::Memcached, true) => write!(out, "set nearmiss:{key:08} 0 0 {size}\r\n"),
        };
        if operation.is_set {
            self.value(key, out);
            out.extend_from_slice(b"\r\n");
        }
    }

    fn read(&self, operation: &KeyOperation, reply: &mut Vec<u8>, bytes: &[u8]) -> Result<Option<Answer>, Fault> {
        if reply.is_empty() {
            let judged = self.judge(operation, bytes);
            if judged == Ok(None) {
                reply.extend_from_slice(bytes);
            }
            return judged;
        }
        reply.extend_from_slice(bytes);
        self.judge(operation, reply)
    }

    fn end(&self, _operation: &KeyOperation, _reply: &mut Vec<u8>) -> Result<Answer, Fault> {
        Err(Fault::Closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(dialect: Dialect) -> Keys {
        Keys { dialect, keys: 100, value_bytes: 20, sets: 0.1, seed: 1, drawn: 0 }
    }

    fn right_value(keys: &Keys, key: u32) -> Vec<u8> {
        let mut answer = match keys.dialect {
            Dialect::Resp => b"$20\r\n".to_vec(),
            Dialect::Memcached => format!("VALUE nearmiss:{key:08} 0 20\r\n").into_bytes(),
        };
        keys.value(key, &mut answer);
        answer.extend_from_slice(keys.dialect.behind_value());
        answer
    }

    #[test]
    fn answers_read_the_same_however_they_arrive() {
        for dialect in [Dialect::Resp, Dialect::Memcached] {
            let keys = keys(dialect);
            let get = KeyOperation { key: 7, is_set: false };
            let set = KeyOperation { key: 7, is_set: true };
            let cases = [
                (get, right_value(&keys, 7), false),
                (get, dialect.absent().to_vec(), true),
                (set, dialect.stored().to_vec(), false),
            ];
            for (operation, bytes, is_absent) in cases {
                for step in 1..=bytes.len() {
                    let mut reply = Vec::new();
                    let mut answers =
                        bytes.chunks(step).map(|piece| keys.read(&operation, &mut reply, piece).expect("right"));
                    let answer = answers.find_map(|answer| answer).expect("whole");
                    assert_eq!(answer.is_absent, is_absent, "{dialect:?} in steps of {step}");
                    assert_eq!(answers.count(), 0, "whole before the end");
                }
            }
        }
    }

    #[test]
    fn wrong_values_refusals_and_noise_are_distinguished() {
        for (dialect, refusal) in [(Dialect::Resp, &b"-ERR no\r\n"[..]), (Dialect::Memcached, b"SERVER_ERROR\r\n")] {
            let keys = keys(dialect);
            let read = |bytes: &[u8]| keys.read(&KeyOperation { key: 7, is_set: false }, &mut Vec::new(), bytes).err();
            let mut wrong = right_value(&keys, 7);
            let middle = wrong.len() - 12;
            wrong[middle] ^= 1;
            assert_eq!(read(&wrong), Some(Fault::Body), "{dialect:?}");
            assert_eq!(read(refusal), Some(Fault::Status));
            assert_eq!(read(b"HTTP/1.1 400 Bad Request\r\n"), Some(Fault::Malformed));
            let mut more = right_value(&keys, 7);
            more.push(b'x');
            assert_eq!(read(&more), Some(Fault::Body));
        }
    }

    #[test]
    fn a_tenth_of_the_requests_write() {
        let mut keys = keys(Dialect::Resp);
        let sets = (0..100_000).filter(|_| keys.pick(0).is_set).count();
        assert!((9_700..10_300).contains(&sets), "{sets}");
    }
}
