//! Heads as bytes.

use http::{HeaderMap, StatusCode};
use nearmiss_cache_policy::Seconds;
use std::time::{Duration, SystemTime};

/// `HTTP/1.1 200 OK`.
pub fn status_line(out: &mut Vec<u8>, status: StatusCode) {
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(status.canonical_reason().unwrap_or("").as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// One field.
pub fn field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Writes one field with a number as its value.
pub fn number_field(out: &mut Vec<u8>, name: &str, value: u64) {
    let mut room = Digits::default();
    field(out, name, room.of(value));
}

/// All fields of a map.
pub fn fields(out: &mut Vec<u8>, map: &HeaderMap) {
    for (name, value) in map {
        field(out, name.as_str(), value.as_bytes());
    }
}

/// Returns a time in the form that fields have.
pub fn date(now: Seconds) -> String {
    httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(now.0))
}

/// Writes an answer of our own: its head and its text. Its date can come from no other server (RFC 9110 section 6.6.1).
pub fn own_answer(status: StatusCode, why: &str, keep: bool, now: Seconds) -> (Vec<u8>, String) {
    let text = format!("{status}: {why}\n");
    let mut out = Vec::with_capacity(200);
    status_line(&mut out, status);
    field(&mut out, "date", date(now).as_bytes());
    if status == StatusCode::METHOD_NOT_ALLOWED {
        field(&mut out, "allow", b"GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH");
    }
    field(&mut out, "content-type", b"text/plain");
    number_field(&mut out, "content-length", text.len() as u64);
    if !keep {
        field(&mut out, "connection", b"close");
    }
    out.extend_from_slice(b"\r\n");
    (out, text)
}

/// A number's decimal digits without an allocation.
#[derive(Debug, Default)]
pub struct Digits([u8; 20]);

impl Digits {
    /// The digits of `value`.
    pub fn of(&mut self, mut value: u64) -> &[u8] {
        let mut at = self.0.len();
        loop {
            at -= 1;
            self.0[at] = b'0' + (value % 10) as u8;
            value /= 10;
            if value == 0 {
                return &self.0[at..];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_full() {
        for value in [0, 7, 10, 12_345, u64::MAX] {
            assert_eq!(Digits::default().of(value), value.to_string().as_bytes());
        }
    }
}
