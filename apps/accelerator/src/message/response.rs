//! A response's head from an origin.

use super::length::Framing;
use super::request::{FIELDS_MOST, map};
use super::{BodyLength, Refusal, fields};
use http::{HeaderMap, Method, StatusCode, header};
use std::mem::MaybeUninit;

/// A head that was read.
#[derive(Debug)]
pub struct Head {
    /// The status.
    pub status: StatusCode,
    /// The fields without those of the connection.
    pub fields: HeaderMap,
    /// How the body ends.
    pub body: BodyLength,
    /// The length that the response to a GET would have, also where no body comes.
    pub length: Option<u64>,
    /// The connection can be used again.
    pub keep: bool,
    /// Bytes of the head.
    pub size: usize,
}

/// Reads a head at the beginning of `buffer`; none where it is not complete. `method` is that of the request.
pub fn parse(buffer: &[u8], method: &Method) -> Result<Option<Head>, Refusal> {
    let mut room = [const { MaybeUninit::uninit() }; FIELDS_MOST];
    let mut response = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    let size = match config.parse_response_with_uninit_headers(&mut response, buffer, &mut room) {
        Ok(httparse::Status::Complete(size)) => size,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(Refusal::bad("the head is not readable")),
    };
    let (Some(code), Some(minor)) = (response.code, response.version) else { return Ok(None) };
    let status = StatusCode::from_u16(code).map_err(|_| Refusal::bad("the status is no status"))?;
    let mut fields = map(response.headers)?;
    let framing = framing(&fields, minor)?;
    let body = body_length(status, method, framing);
    let keep = keep(&fields, minor) && body != BodyLength::Close;
    fields::strip(&mut fields);
    Ok(Some(Head { status, fields, body, length: framing.length, keep, size }))
}

fn framing(fields: &HeaderMap, minor: u8) -> Result<Framing, Refusal> {
    let mut framing = Framing::default();
    for value in fields.get_all(header::CONTENT_LENGTH) {
        framing.content_length(value.as_bytes())?;
    }
    for value in fields.get_all(header::TRANSFER_ENCODING) {
        framing.transfer_encoding(value.as_bytes())?;
    }
    framing.check(minor)?;
    Ok(framing)
}

/// RFC 9112 section 6.3.
fn body_length(status: StatusCode, method: &Method, framing: Framing) -> BodyLength {
    let without = status.is_informational() || status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED;
    match framing.length {
        _ if without || method == Method::HEAD => BodyLength::None,
        _ if framing.chunked => BodyLength::Chunked,
        Some(length) => BodyLength::Fixed(length),
        None => BodyLength::Close,
    }
}

fn keep(fields: &HeaderMap, minor: u8) -> bool {
    let lists = |word: &[u8]| fields.get_all(header::CONNECTION).iter().any(|v| fields::lists(v.as_bytes(), word));
    !lists(b"close") && (minor == 1 || lists(b"keep-alive"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(text: &str, method: Method) -> Result<BodyLength, Refusal> {
        parse(text.as_bytes(), &method).map(|head| head.unwrap().body)
    }

    #[test]
    fn the_length_follows_status_method_and_fields() {
        let get = Method::GET;
        assert_eq!(body("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", get.clone()), Ok(BodyLength::Fixed(3)));
        assert_eq!(body("HTTP/1.1 200\r\n\r\n", get.clone()), Ok(BodyLength::Close));
        assert_eq!(body("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", get.clone()), Ok(BodyLength::Chunked));
        for status in [100, 103, 204, 304] {
            let text = format!("HTTP/1.1 {status} x\r\nContent-Length: 3\r\n\r\n");
            assert_eq!(body(&text, get.clone()), Ok(BodyLength::None));
        }
        assert_eq!(body("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", Method::HEAD), Ok(BodyLength::None));
    }

    #[test]
    fn ambiguous_and_unreadable_heads_are_refused() {
        for fields in [
            "Content-Length: 3\r\nContent-Length: 4",
            "Content-Length: 3\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: gzip",
            "A : b",
            "A: b\r\n c",
            "A: b\0",
        ] {
            assert!(body(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n"), Method::GET).is_err(), "{fields}");
        }
        assert!(body("ICY 200 OK\r\n\r\n", Method::GET).is_err());
        assert!(body("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Method::GET).is_err());
    }
}
