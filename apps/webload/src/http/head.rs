//! The head of a response.

use crate::load::{Fault, Served};
use std::mem::MaybeUninit;

/// A response with more fields than this is refused.
const MOST_FIELDS: usize = 100;

/// How the end of a body is found (RFC 9112, section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// A fixed number of bytes.
    Length(u64),
    /// Chunks.
    Chunked,
    /// All until the connection ends.
    UntilEnd,
}

/// Parts of a response's head that a client uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Bytes of the head.
    pub bytes: usize,
    /// The status.
    pub status: u16,
    /// How the body ends, had it one.
    pub framing: Framing,
    /// Whether the connection may carry another request.
    pub keeps_connection: bool,
    /// Hit or miss; none: the head reports neither.
    pub served: Option<Served>,
}

/// Values in the fields of one head.
#[derive(Default)]
struct HeadValues {
    length: Option<u64>,
    is_chunked: bool,
    closes: bool,
    keeps: bool,
    by_cache_status: Option<Served>,
    by_x_cache: Option<Served>,
    by_echo: Option<Served>,
    by_age: Option<Served>,
}

/// Reads a head; `None` while it is not whole. `id` is the number that the request carried for the origin to echo.
pub fn read(bytes: &[u8], id: Option<u64>) -> Result<Option<Head>, Fault> {
    let mut fields = [const { MaybeUninit::uninit() }; MOST_FIELDS];
    let mut response = httparse::Response::new(&mut []);
    let parsed =
        httparse::ParserConfig::default().parse_response_with_uninit_headers(&mut response, bytes, &mut fields);
    let length = match parsed {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(Fault::Malformed),
    };
    let mut values = HeadValues::default();
    for field in response.headers.iter() {
        values.field(field.name, field.value, id)?;
    }
    let is_1_1 = response.version == Some(1);
    Ok(Some(Head {
        bytes: length,
        status: response.code.ok_or(Fault::Malformed)?,
        framing: values.framing()?,
        keeps_connection: !values.closes && (is_1_1 || values.keeps),
        served: values.by_cache_status.or(values.by_x_cache).or(values.by_echo).or(values.by_age),
    }))
}

impl HeadValues {
    fn field(&mut self, name: &str, value: &[u8], id: Option<u64>) -> Result<(), Fault> {
        let is = |wanted: &str| name.eq_ignore_ascii_case(wanted);
        match name.len() {
            3 if is("age") => self.by_age = number(value).filter(|age| *age > 0).map(|_| Served::Hit),
            7 if is("x-cache") => self.by_x_cache = served_by_x_cache(value),
            10 if is("connection") => {
                self.closes |= has_word(value, b"close");
                self.keeps |= has_word(value, b"keep-alive");
            }
            10 if is("webload-id") => self.by_echo = served_by_echo(value, id),
            12 if is("cache-status") => self.by_cache_status = served_by_cache_status(value).or(self.by_cache_status),
            14 if is("x-cache-status") => self.by_x_cache = served_by_x_cache(value),
            14 if is("content-length") => {
                let length = number(value).ok_or(Fault::Malformed)?;
                if self.length.is_some_and(|before| before != length) {
                    return Err(Fault::Malformed);
                }
                self.length = Some(length);
            }
            17 if is("transfer-encoding") => self.is_chunked = has_word(value, b"chunked"),
            _ => {}
        }
        Ok(())
    }

    fn framing(&self) -> Result<Framing, Fault> {
        match (self.is_chunked, self.length) {
            (true, None) => Ok(Framing::Chunked),
            (false, Some(length)) => Ok(Framing::Length(length)),
            (false, None) => Ok(Framing::UntilEnd),
            // Both at once is how responses are smuggled.
            (true, Some(_)) => Err(Fault::Malformed),
        }
    }
}

fn number(value: &[u8]) -> Option<u64> {
    let digits = value.trim_ascii();
    let is_number = !digits.is_empty() && digits.len() < 19 && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| digits.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

fn has_word(value: &[u8], word: &[u8]) -> bool {
    value.split(|byte| *byte == b',').any(|item| item.trim_ascii().eq_ignore_ascii_case(word))
}

/// RFC 9211: a cache on the way had a hit, or all forwarded the request.
fn served_by_cache_status(value: &[u8]) -> Option<Served> {
    let parameters = || value.split(|byte| matches!(byte, b',' | b';')).map(<[u8]>::trim_ascii);
    if parameters().any(|parameter| parameter == b"hit") {
        return Some(Served::Hit);
    }
    parameters().any(|parameter| parameter.starts_with(b"fwd=")).then_some(Served::Miss)
}

/// nginx's and others' words; stale and updating answers did not wait for the origin.
fn served_by_x_cache(value: &[u8]) -> Option<Served> {
    let starts = |word: &[u8]| value.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    if [&b"hit"[..], b"stale", b"updating"].into_iter().any(starts) {
        return Some(Served::Hit);
    }
    [&b"miss"[..], b"expired", b"revalidated", b"bypass", b"pass"].into_iter().any(starts).then_some(Served::Miss)
}

/// The origin echoes the number of the request that it answered: another request's number comes out of a cache.
fn served_by_echo(value: &[u8], id: Option<u64>) -> Option<Served> {
    let echoed = number(value)?;
    Some(if id? == echoed { Served::Miss } else { Served::Hit })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(fields: &str) -> Head {
        let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        let head = read(text.as_bytes(), Some(7)).expect("a head").expect("a whole head");
        assert_eq!(head.bytes, text.len());
        head
    }

    #[test]
    fn framings_are_recognized() {
        assert_eq!(head("Content-Length: 12\r\n").framing, Framing::Length(12));
        assert_eq!(head("transfer-encoding: Chunked\r\n").framing, Framing::Chunked);
        assert_eq!(head("").framing, Framing::UntilEnd);
    }

    #[test]
    fn a_part_of_a_head_is_waited_for() {
        assert_eq!(read(b"HTTP/1.1 200 OK\r\nContent-Le", None), Ok(None));
    }

    #[test]
    fn ambiguous_or_broken_heads_are_refused() {
        for fields in [
            "Content-Length: 1\r\nContent-Length: 2\r\n",
            "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
            "Content-Length: -1\r\n",
            "Content-Length: 99999999999999999999\r\n",
            "no field\r\n",
        ] {
            let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
            assert_eq!(read(text.as_bytes(), None), Err(Fault::Malformed), "{fields}");
        }
    }

    #[test]
    fn the_end_of_the_connection_is_recognized() {
        assert!(head("Connection: keep-alive\r\n").keeps_connection && head("").keeps_connection);
        assert!(!head("Connection: foo, Close\r\n").keeps_connection);
        let old = |fields: &str| {
            let text = format!("HTTP/1.0 200 OK\r\n{fields}\r\n");
            read(text.as_bytes(), None).expect("a head").expect("whole").keeps_connection
        };
        assert!(!old("") && old("Connection: keep-alive\r\n"));
    }

    #[test]
    fn hits_and_misses_follow_the_most_specific_field() {
        let (hit, miss) = (Some(Served::Hit), Some(Served::Miss));
        assert_eq!(head("Cache-Status: one; hit; ttl=3\r\n").served, hit);
        assert_eq!(head("Cache-Status: one; fwd=uri-miss; stored\r\n").served, miss);
        assert_eq!(head("Cache-Status: \"one\"; hit, two; fwd=miss\r\n").served, hit);
        assert_eq!(head("X-Cache: HIT from x\r\n").served, hit);
        assert_eq!(head("X-Cache-Status: REVALIDATED\r\n").served, miss);
        assert_eq!(head("Webload-Id: 7\r\n").served, miss);
        assert_eq!(head("Webload-Id: 6\r\n").served, hit);
        assert_eq!(head("Age: 0\r\n").served, None);
        assert_eq!(head("Age: 3\r\n").served, hit);
        assert_eq!(head("Age: 3\r\nX-Cache: MISS\r\n").served, miss);
        assert_eq!(head("Webload-Id: 7\r\nCache-Status: one; hit\r\n").served, hit);
        assert_eq!(head("Server: x\r\n").served, None);
    }
}
