//! The access log: lines gathered in memory, written whole.

use super::Worker;
use super::client::Exchange;
use crate::cache::entry::Entry;
use crate::message::Refusal;
use crate::message::request::Head;
use crate::shared::Live;
use http::StatusCode;
use std::borrow::Cow;
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

    /// Flushes if there is much.
    pub fn flush_if_long(&mut self, live: &Live) {
        if self.lines.len() >= ENOUGH {
            self.flush(live);
        }
    }
}

/// Content of one line.
struct Line<'a> {
    peer: SocketAddr,
    /// Method, authority and target; none where the request was refused unread.
    request: Option<(&'a str, &'a str, &'a str)>,
    status: StatusCode,
    /// Bytes of the body, with the sizes of its chunks.
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
        let Line { peer, request, status, bytes, word, micros } = line;
        let (date, status) = (&self.log.date.1, status.as_u16());
        let lines = &mut self.log.lines;
        let _memory = write!(lines, "{} {date} \"", peer.ip());
        let _memory = match request {
            Some((method, authority, target)) => write!(lines, "{method} http://{authority}{}", plain(target)),
            None => write!(lines, "-"),
        };
        let _memory = writeln!(lines, "\" {status} {bytes} {word} {micros}us");
    }

    pub(super) fn log_hit(&mut self, peer: SocketAddr, head: &Head<'_>, entry: &Entry) {
        let request = Some((head.method, head.authority, head.target));
        let bytes = entry.body.len() as u64;
        self.write_line(Line { peer, request, status: entry.status, bytes, word: "hit", micros: 0 });
    }

    pub(super) fn log_exchange(&mut self, peer: SocketAddr, exchange: &Exchange, heads: u64) {
        let request = &exchange.request;
        let (status, word) = exchange.outcome;
        self.write_line(Line {
            peer,
            request: Some((request.method.as_str(), &request.authority, &request.target)),
            status,
            bytes: exchange.sent.saturating_sub(heads),
            word,
            micros: exchange.began.elapsed().as_micros(),
        });
    }

    pub(super) fn log_refusal(&mut self, peer: SocketAddr, refusal: Refusal, bytes: u64) {
        let status = refusal.status;
        self.write_line(Line { peer, request: None, status, bytes, word: "refused", micros: 0 });
    }
}

/// A target without what would end the quoted request or steer a terminal. Only that of CONNECT may have such bytes, and
/// the quotation mark.
fn plain(target: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'"';
    if target.bytes().all(is_plain) {
        return Cow::Borrowed(target);
    }
    let shown = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    Cow::Owned(target.bytes().map(shown).collect())
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn a_target_cannot_end_its_quotation() {
        assert_eq!(plain("/a?b"), "/a?b");
        assert_eq!(plain("/\"\u{9b}"), "/%22%C2%9B");
    }
}
