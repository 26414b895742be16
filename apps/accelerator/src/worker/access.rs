//! The access log: lines gathered in memory, written whole.

use super::Worker;
use super::client::Exchange;
use crate::cache::entry::Entry;
use crate::message::Refusal;
use crate::message::request::Head;
use crate::shared::Live;
use http::StatusCode;
use std::io::Write;
use std::net::SocketAddr;
use std::time::SystemTime;

/// Bytes that are gathered before they are written.
const ENOUGH: usize = 32 << 10;

/// Lines not written yet.
#[derive(Debug, Default)]
pub struct Log {
    lines: Vec<u8>,
    /// The date as text, and its second.
    date: (u64, String),
}

impl Log {
    fn date(&mut self, second: u64) {
        if self.date.0 != second {
            let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(second);
            self.date = (second, humantime::format_rfc3339_seconds(time).to_string());
        }
    }

    /// Writes what was gathered. A log that cannot be written must not stop the server.
    pub fn flush(&mut self, live: &Live) {
        if let (Some(mut file), false) = (live.log.as_ref(), self.lines.is_empty()) {
            let _lost = file.write_all(&self.lines).is_err();
        }
        self.lines.clear();
    }

    /// The same, if there is much.
    pub fn flush_if_long(&mut self, live: &Live) {
        if self.lines.len() >= ENOUGH {
            self.flush(live);
        }
    }
}

/// What one line says.
struct Line<'a> {
    peer: SocketAddr,
    method: &'a str,
    authority: &'a str,
    target: &'a str,
    status: StatusCode,
    bytes: u64,
    word: &'static str,
    micros: u128,
}

impl Worker {
    fn write_line(&mut self, line: Line<'_>) {
        if self.live.log.is_none() {
            return;
        }
        self.log.date(self.now.wall.0);
        let Line { peer, method, authority, target, status, bytes, word, micros } = line;
        let (date, status) = (&self.log.date.1, status.as_u16());
        let lines = &mut self.log.lines;
        let _memory = writeln!(
            lines,
            "{} {date} \"{method} http://{authority}{target}\" {status} {bytes} {word} {micros}us",
            peer.ip()
        );
    }

    pub(super) fn log_hit(&mut self, peer: SocketAddr, head: &Head<'_>, entry: &Entry) {
        let (method, authority, target) = (head.method, head.authority, head.target);
        let bytes = entry.body.len() as u64;
        self.write_line(Line { peer, method, authority, target, status: entry.status, bytes, word: "hit", micros: 0 });
    }

    pub(super) fn log_exchange(&mut self, peer: SocketAddr, exchange: &Exchange) {
        let request = &exchange.request;
        let (status, word) = exchange.outcome;
        self.write_line(Line {
            peer,
            method: request.method.as_str(),
            authority: &request.authority,
            target: &request.target,
            status,
            bytes: exchange.sent,
            word,
            micros: exchange.began.elapsed().as_micros(),
        });
    }

    pub(super) fn log_refusal(&mut self, peer: SocketAddr, refusal: Refusal) {
        let status = refusal.status;
        let dash = "-";
        self.write_line(Line {
            peer,
            method: dash,
            authority: dash,
            target: dash,
            status,
            bytes: 0,
            word: "refused",
            micros: 0,
        });
    }
}
