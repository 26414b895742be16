//! Answers of the origin: decided from the request's head alone.

use crate::object::Object;
use httpdate::HttpDate;
use std::io::Write as _;
use std::time::{Duration, UNIX_EPOCH};

/// A request with more fields than this is refused.
const MOST_FIELDS: usize = 100;

/// How the end of a request's body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestBody {
    /// A fixed number of bytes.
    Length(u64),
    /// Chunks.
    Chunked,
}

/// A request in short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Bytes of the head.
    pub bytes: usize,
    /// The object, if the target names one.
    pub object: Option<Object>,
    /// The status to answer with.
    pub status: u16,
    /// Result of If-None-Match and If-Modified-Since: whether the client has the object as it is.
    by_tag: Option<bool>,
    by_date: Option<bool>,
    /// Whether only a head is requested.
    pub is_head: bool,
    /// Whether the method is POST: the answer is not to be kept.
    pub is_post: bool,
    /// Whether the target is the origin's own counts.
    pub is_for_counts: bool,
    /// Whether the client waits for an interim answer before it sends the body.
    pub waits_for_continue: bool,
    /// The number to echo.
    pub id: Option<u64>,
    /// Whether the connection may carry another request.
    pub keeps_connection: bool,
    /// How the request's body ends.
    pub body: RequestBody,
}

/// The entity tag of an object.
fn tag(object: &Object) -> u64 {
    crate::content::mix(object.hash() ^ 4)
}

/// Reads a request; `None` while the head is not whole, an error where it is none.
pub fn read(bytes: &[u8]) -> Result<Option<Request>, httparse::Error> {
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut parsed = httparse::Request::new(&mut fields);
    let httparse::Status::Complete(length) = parsed.parse(bytes)? else { return Ok(None) };
    let target = parsed.path.unwrap_or_default();
    // A proxy without another form may send the absolute one.
    let target = target.strip_prefix("http://").map_or(target, |rest| rest.find('/').map_or("/", |at| &rest[at..]));
    let method = parsed.method.unwrap_or_default();
    let mut request = Request {
        bytes: length,
        object: Object::named(target),
        status: 200,
        by_tag: None,
        by_date: None,
        is_head: method == "HEAD",
        is_post: method == "POST",
        is_for_counts: target == "/webload/counts",
        waits_for_continue: false,
        id: None,
        keeps_connection: parsed.version == Some(1),
        body: RequestBody::Length(0),
    };
    for field in parsed.headers.iter() {
        request.field(field.name, std::str::from_utf8(field.value).unwrap_or_default().trim());
    }
    request.status = match method {
        "GET" | "HEAD" | "POST" if request.object.is_none() && !request.is_for_counts => 404,
        "GET" | "HEAD" if request.is_unchanged() => 304,
        "GET" | "HEAD" => 200,
        "POST" => 200,
        _ => 405,
    };
    Ok(Some(request))
}

impl Request {
    fn field(&mut self, name: &str, value: &str) {
        let is = |wanted: &str| name.eq_ignore_ascii_case(wanted);
        if is("connection") {
            self.keeps_connection &= !value.split(',').any(|word| word.trim().eq_ignore_ascii_case("close"));
        } else if is("content-length") {
            self.body = RequestBody::Length(value.parse().unwrap_or(0));
        } else if is("transfer-encoding") {
            self.body = RequestBody::Chunked;
        } else if is("webload-id") {
            self.id = value.parse().ok();
        } else if is("expect") {
            self.waits_for_continue = true;
        } else if is("if-none-match") {
            let matches = |object: Object| value == "*" || value.contains(&format!("{:016x}", tag(&object)));
            self.by_tag = Some(self.object.is_some_and(matches));
        } else if is("if-modified-since") {
            let since = httpdate::parse_http_date(value).ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            let is_unchanged = |object: Object| since.is_some_and(|since| object.modified() <= since.as_secs());
            self.by_date = Some(self.object.is_some_and(is_unchanged));
        }
    }

    /// Returns whether the client has the object as it is: the tag decides where there is one (RFC 9110, section
    /// 13.2.2).
    fn is_unchanged(&self) -> bool {
        self.by_tag.or(self.by_date).unwrap_or(false)
    }

    /// Bytes of the answer's body.
    pub fn length(&self) -> u64 {
        match self.object {
            Some(object) if self.status == 200 && !self.is_head => object.size(),
            _ => 0,
        }
    }

    /// Writes the head of the answer.
    pub fn head(&self, max_age: u64, now: u64, out: &mut Vec<u8>) {
        let reason = match self.status {
            200 => "OK",
            304 => "Not Modified",
            400 => "Bad Request",
            404 => "Not Found",
            _ => "Method Not Allowed",
        };
        let date = |seconds| HttpDate::from(UNIX_EPOCH + Duration::from_secs(seconds));
        // Writing into memory cannot fail.
        _ = write!(out, "HTTP/1.1 {} {reason}\r\nDate: {}\r\nServer: nearmiss-webload\r\n", self.status, date(now));
        match self.object {
            Some(object) if matches!(self.status, 200 | 304) => {
                if self.status == 200 {
                    _ = write!(out, "Content-Type: {}\r\nContent-Length: {}\r\n", object.media_type(), object.size());
                }
                _ = write!(out, "Last-Modified: {}\r\nETag: \"{:016x}\"\r\n", date(object.modified()), tag(&object));
                match object.is_cachable() && !self.is_post {
                    true => _ = write!(out, "Cache-Control: max-age={max_age}\r\n"),
                    false => out.extend_from_slice(b"Cache-Control: private, no-cache\r\n"),
                }
            }
            _ => out.extend_from_slice(b"Content-Length: 0\r\nCache-Control: no-store\r\n"),
        }
        if let Some(id) = self.id {
            _ = write!(out, "Webload-Id: {id}\r\n");
        }
        if !self.keeps_connection {
            out.extend_from_slice(b"Connection: close\r\n");
        }
        out.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Kind;

    const OBJECT: Object = Object { kind: Kind::WebAxe(0), world: 0, number: 1 };

    fn status(fields: &str) -> u16 {
        let text = format!("GET {OBJECT} HTTP/1.1\r\nHost: x\r\n{fields}\r\n");
        read(text.as_bytes()).expect("a request").expect("whole").status
    }

    fn date(seconds: u64) -> String {
        HttpDate::from(UNIX_EPOCH + Duration::from_secs(seconds)).to_string()
    }

    #[test]
    fn conditions_are_answered() {
        let modified = OBJECT.modified();
        let since = |seconds| format!("If-Modified-Since: {}\r\n", date(seconds));
        let (right, wrong) = (format!("If-None-Match: \"{:016x}\"\r\n", tag(&OBJECT)), "If-None-Match: \"x\"\r\n");
        assert_eq!((status(""), status(&since(modified)), status(&since(modified - 1))), (200, 304, 200));
        assert_eq!((status(&right), status(wrong)), (304, 200));
        // The tag decides, whichever field comes first (RFC 9110, section 13.2.2).
        assert_eq!(status(&format!("{right}{}", since(modified - 1))), 304);
        assert_eq!(status(&format!("{}{right}", since(modified - 1))), 304);
        assert_eq!(status(&format!("{wrong}{}", since(modified))), 200);
        assert_eq!(status(&format!("{}{wrong}", since(modified))), 200);
    }
}
