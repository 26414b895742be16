//! A request's head, read where it lies in the buffer.

use super::fields::lists;
use super::length::Framing;
use super::{BodyLength, Refusal};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use std::mem::MaybeUninit;

/// Most fields of a head.
pub const FIELDS_MOST: usize = 100;
/// Room for the fields of a head; not initialised, so that it costs nothing.
pub type FieldRoom<'b> = [MaybeUninit<httparse::Header<'b>>; FIELDS_MOST];

/// Parts of a head that are read at once, without a copy.
#[derive(Debug)]
pub struct Head<'b> {
    /// The method as it came.
    pub method: &'b str,
    /// The target in origin form, `*`, or what CONNECT has.
    pub target: &'b str,
    /// Host, or the authority of an absolute target; empty in an HTTP/1.0 request without either.
    pub authority: &'b str,
    /// 0 or 1.
    pub minor: u8,
    /// All fields.
    pub fields: &'b [httparse::Header<'b>],
    /// How the body ends.
    pub body: BodyLength,
    /// The connection stays after the answer.
    pub keep: bool,
    /// A field is there that a cache must look at: conditions, ranges, directives.
    pub particular: bool,
    /// The client waits for 100 before its body.
    pub expects: bool,
    /// Bytes of the head with its empty line.
    pub size: usize,
}

/// Reads a head at the beginning of `buffer`; none where it is not complete.
pub fn parse<'b>(buffer: &'b [u8], room: &'b mut FieldRoom<'b>) -> Result<Option<Head<'b>>, Refusal> {
    let mut request = httparse::Request::new(&mut []);
    let size = match request.parse_with_uninit_headers(buffer, room) {
        Ok(httparse::Status::Complete(size)) => size,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    let (Some(method), Some(target), Some(minor)) = (request.method, request.path, request.version) else {
        return Ok(None);
    };
    let mut head = Head {
        method,
        target,
        authority: "",
        minor,
        fields: request.headers,
        body: BodyLength::None,
        keep: minor == 1,
        particular: false,
        expects: false,
        size,
    };
    head.read_fields()?;
    head.read_target()?;
    Ok(Some(head))
}

fn unreadable(error: httparse::Error) -> Refusal {
    use httparse::Error as E;
    match error {
        E::TooManyHeaders => Refusal { status: StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, why: "too many fields" },
        E::Version => Refusal { status: StatusCode::HTTP_VERSION_NOT_SUPPORTED, why: "not HTTP/1.0 or HTTP/1.1" },
        E::HeaderName => Refusal::bad("a field's name is not readable"),
        E::HeaderValue => Refusal::bad("a field's value is not readable"),
        E::NewLine => Refusal::bad("a line does not end in CR LF"),
        _ => Refusal::bad("the request line is not readable"),
    }
}

/// Fields of framing, connection or caching, distinguished from the others by length first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Host,
    Connection,
    ContentLength,
    TransferEncoding,
    Expect,
    Particular,
    Other,
}

fn kind(name: &str) -> Kind {
    let is = |other: &str| name.eq_ignore_ascii_case(other);
    match name.len() {
        4 if is("host") => Kind::Host,
        5 if is("range") => Kind::Particular,
        6 if is("expect") => Kind::Expect,
        6 if is("pragma") => Kind::Particular,
        8 if is("if-match") || is("if-range") => Kind::Particular,
        10 if is("connection") => Kind::Connection,
        13 if is("if-none-match") || is("cache-control") => Kind::Particular,
        14 if is("content-length") => Kind::ContentLength,
        17 if is("transfer-encoding") => Kind::TransferEncoding,
        17 if is("if-modified-since") => Kind::Particular,
        19 if is("if-unmodified-since") => Kind::Particular,
        _ => Kind::Other,
    }
}

impl<'b> Head<'b> {
    fn read_fields(&mut self) -> Result<(), Refusal> {
        let mut framing = Framing::default();
        let mut host = None;
        let fields: &'b [httparse::Header<'b>] = self.fields;
        for field in fields {
            match kind(field.name) {
                Kind::Other => {}
                Kind::Particular => self.particular = true,
                Kind::Host if host.is_some() => return Err(Refusal::bad("more than one Host")),
                Kind::Host => host = Some(field.value),
                Kind::Connection => self.read_connection(field.value),
                Kind::ContentLength => framing.content_length(field.value)?,
                Kind::TransferEncoding => framing.transfer_encoding(field.value)?,
                Kind::Expect => self.expects = self.minor == 1 && field.value.eq_ignore_ascii_case(b"100-continue"),
            }
        }
        framing.check(self.minor)?;
        self.body = match framing.length {
            _ if framing.chunked => BodyLength::Chunked,
            None => BodyLength::None,
            Some(length) => BodyLength::Fixed(length),
        };
        self.read_host(host)
    }

    fn read_connection(&mut self, value: &[u8]) {
        if lists(value, b"close") {
            self.keep = false;
        } else if self.minor == 0 && lists(value, b"keep-alive") {
            self.keep = true;
        }
    }

    fn read_host(&mut self, host: Option<&'b [u8]>) -> Result<(), Refusal> {
        match host {
            None if self.minor == 1 => Err(Refusal::bad("no Host")),
            None => Ok(()),
            Some(value) => {
                self.authority = authority(value)?;
                Ok(())
            }
        }
    }

    /// Brings an absolute target into origin form, and refuses what is no target.
    fn read_target(&mut self) -> Result<(), Refusal> {
        if self.method == "CONNECT" {
            return Ok(());
        }
        if !self.target.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') {
            return Err(Refusal::bad("the target has bytes that no target has"));
        }
        if self.target.starts_with('/') || (self.target == "*" && self.method == "OPTIONS") {
            return Ok(());
        }
        let scheme_end = self.target.find("://").ok_or(Refusal::bad("the target is no path and no URI"))?;
        if !self.target[..scheme_end].eq_ignore_ascii_case("http") {
            return Err(Refusal::bad("the target's scheme is not http"));
        }
        let rest = &self.target[scheme_end + 3..];
        let path = rest.find(['/', '?']).unwrap_or(rest.len());
        self.authority = authority(&rest.as_bytes()[..path])?;
        self.target = match &rest[path..] {
            "" if self.method == "OPTIONS" => "*",
            "" => "/",
            path if path.starts_with('?') => return Err(Refusal::bad("the target has no path")),
            path => path,
        };
        Ok(())
    }

    /// All fields as a map, those of the connection included.
    pub fn map(&self) -> Result<HeaderMap, Refusal> {
        map(self.fields)
    }

    /// The method as a value.
    pub fn method(&self) -> Result<Method, Refusal> {
        Method::from_bytes(self.method.as_bytes()).map_err(|_| Refusal::bad("the method is not readable"))
    }
}

/// Fields as a map.
pub fn map(fields: &[httparse::Header<'_>]) -> Result<HeaderMap, Refusal> {
    let mut map = HeaderMap::with_capacity(fields.len() + 4);
    for field in fields {
        let name = HeaderName::from_bytes(field.name.as_bytes());
        let value = HeaderValue::from_bytes(field.value);
        let (Ok(name), Ok(value)) = (name, value) else {
            return Err(Refusal::bad("a field is not readable"));
        };
        map.append(name, value);
    }
    Ok(map)
}

/// A name or an address with its port, if that is not the default one.
pub fn authority(value: &[u8]) -> Result<&str, Refusal> {
    let text = std::str::from_utf8(value).unwrap_or("");
    let bracketed = text.starts_with('[');
    let host_end = if bracketed { text.find(']').map(|at| at + 1) } else { text.find(':') };
    let (host, port) = text.split_at(host_end.unwrap_or(text.len()));
    if !(if bracketed { is_literal(host) } else { is_name(host) }) || !is_port(port) {
        return Err(Refusal::bad("Host is not readable"));
    }
    Ok(if matches!(port, ":" | ":80") { host } else { text })
}

/// A registered name or an IPv4 address (RFC 3986 section 3.2.2), without the comma, which would make a list of Host.
fn is_name(host: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+;=".contains(&byte);
    !host.is_empty() && host.bytes().all(fits)
}

/// An IPv6 address in its brackets.
fn is_literal(host: &str) -> bool {
    let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inner.is_some_and(|inner| inner.parse::<std::net::Ipv6Addr>().is_ok())
}

/// Nothing, or a colon with a port that there is, or with nothing.
fn is_port(port: &str) -> bool {
    let digits = port.strip_prefix(':').unwrap_or(port);
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.parse::<u16>().is_ok();
    port.is_empty() || port == ":" || is_number
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(text: &str) -> u16 {
        let mut room = [const { MaybeUninit::uninit() }; FIELDS_MOST];
        match parse(text.as_bytes(), &mut room) {
            Ok(Some(_)) => 200,
            Ok(None) => 100,
            Err(refusal) => refusal.status.as_u16(),
        }
    }

    #[test]
    fn a_head_is_read_in_place() {
        let text = "POST http://B:80/x?y HTTP/1.1\r\nHost: a\r\nConnection: X, close\r\nContent-Length: 3\r\n\
                    Expect: 100-Continue\r\n\r\nabc";
        let mut room = [const { MaybeUninit::uninit() }; FIELDS_MOST];
        let head = parse(text.as_bytes(), &mut room).unwrap().unwrap();
        assert_eq!((head.method, head.target, head.authority, head.minor), ("POST", "/x?y", "B", 1));
        assert_eq!((head.body, head.keep, head.particular, head.expects), (BodyLength::Fixed(3), false, false, true));
        assert_eq!(head.size, text.len() - 3);
    }

    #[test]
    fn versions_decide_about_the_connection() {
        for (text, keep) in [
            ("GET / HTTP/1.0\r\n\r\n", false),
            ("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true),
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", true),
            ("GET / HTTP/1.1\r\nHost: a\r\nConnection: close, keep-alive\r\n\r\n", false),
        ] {
            let mut room = [const { MaybeUninit::uninit() }; FIELDS_MOST];
            assert_eq!(parse(text.as_bytes(), &mut room).unwrap().unwrap().keep, keep, "{text}");
        }
    }

    #[test]
    fn a_host_is_a_name_or_an_address_with_a_port_that_there_is() {
        for (host, expected) in [
            ("a.b-c_d", Some("a.b-c_d")),
            ("a:80", Some("a")),
            ("a:", Some("a")),
            ("a:8080", Some("a:8080")),
            ("[::1]", Some("[::1]")),
            ("[::1]:80", Some("[::1]")),
            ("[::1]:81", Some("[::1]:81")),
        ] {
            assert_eq!(authority(host.as_bytes()).ok(), expected, "{host}");
        }
        for host in [
            "", ":80", ":", "a:b", "a:1:2", "a:99999", "a:-1", "a:+1", "::1", "[::1", "[]", "[a", "[x]", "a]b",
            "[::1]x",
        ] {
            assert!(authority(host.as_bytes()).is_err(), "{host}");
        }
    }

    #[test]
    fn malformed_requests_are_refused() {
        let with = |field: &str| format!("GET / HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\n");
        for (text, expected) in [
            (with("A: b"), 200),
            ("GET / HTTP/1.1\r\nHos".to_owned(), 100),
            (with("A : b"), 400),
            (with("A: b\r\n c"), 400),
            (with("A: b\rc"), 400),
            (with("A: b\0c"), 400),
            (with("A"), 400),
            (with(": b"), 400),
            (with("Host: b"), 400),
            (with("Content-Length: 1\r\nContent-Length: 2"), 400),
            (with("Content-Length: 1\r\nTransfer-Encoding: chunked"), 400),
            (with("Transfer-Encoding: gzip"), 400),
            (with("Transfer-Encoding: gzip, chunked"), 501),
            ("GET / HTTP/1.1\r\n\r\n".to_owned(), 400),
            ("GET / HTTP/1.1\r\nHost:\r\n\r\n".to_owned(), 400),
            ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n".to_owned(), 400),
            ("GET / HTTP/2.0\r\nHost: a\r\n\r\n".to_owned(), 505),
            ("GET x HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), 400),
            ("GET /#x HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), 400),
            ("GET * HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), 400),
            ("GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), 400),
            ("G\0T / HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), 400),
            (with(&"A: b\r\n".repeat(101)), 431),
        ] {
            assert_eq!(status(&text), expected, "{text:?}");
        }
    }
}
