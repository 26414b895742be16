//! GET requests of one URL, or of many objects of one pattern.

use super::Arguments;
use crate::content::mix;
use crate::http::reply::{Body, Expected, Reply, Statuses};
use crate::load::{Answer, Fault, Load};
use crate::object::Object;
use crate::outcome::Problem;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A URL of the scheme `http`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Host and port.
    pub authority: String,
    /// The path with its query.
    pub target: String,
}

impl Url {
    /// Reads `http://HOST[:PORT][/PATH]` or `HOST:PORT[/PATH]`.
    pub fn read(text: &str) -> Result<Url, Problem> {
        let wrong = |why: &str| Problem::Input(format!("{text}: {why}; give a URL such as http://127.0.0.1:8080/"));
        if text.starts_with("https://") {
            return Err(wrong("there is no TLS here"));
        }
        let rest = text.strip_prefix("http://").unwrap_or(text);
        let scheme = rest.split_once("://").map_or("", |(scheme, _)| scheme);
        if !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b)) {
            return Err(wrong("the scheme must be http"));
        }
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if authority.is_empty() || rest.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(wrong("that is no URL"));
        }
        let port = authority.rsplit_once(':').map(|(_, port)| port).filter(|port| !port.ends_with(']'));
        if port.is_some_and(|port| port.parse::<u16>().map_or(true, |port| port == 0)) {
            return Err(wrong("a port is a number from 1 to 65535"));
        }
        Ok(Url {
            authority: if port.is_some() { authority.to_owned() } else { format!("{authority}:80") },
            target: if path.is_empty() { "/".to_owned() } else { path.to_owned() },
        })
    }
}

/// GETs of one pattern.
pub struct Requests {
    /// Text before the object's number, and behind it.
    before: String,
    behind: String,
    is_pattern: bool,
    objects: u32,
    one_object: Option<Object>,
    same_body: Option<u64>,
    drawn: u64,
    seed: u64,
}

impl Requests {
    /// Requests of `url` to the server at `to`.
    pub fn new(url: &Url, to: SocketAddr, arguments: &Arguments, seed: u64) -> Result<Requests, Problem> {
        let (start, end) = url.target.split_once("{}").unwrap_or((&url.target, ""));
        let connection = if arguments.connection_a_request { "Connection: close\r\n" } else { "" };
        let mut requests = Requests {
            before: format!("GET {start}"),
            behind: format!(
                "{end} HTTP/1.1\r\nHost: {}\r\nUser-Agent: nearmiss-webload\r\nAccept: */*\r\n{connection}\r\n",
                url.authority
            ),
            is_pattern: url.target.contains("{}"),
            objects: arguments.objects,
            one_object: Object::named(&url.target.replace("{}", "0")),
            same_body: None,
            drawn: 0,
            seed,
        };
        if arguments.same_body {
            requests.same_body = Some(requests.first_body(to)?);
        }
        Ok(requests)
    }

    fn expected(&self, number: u32) -> Expected {
        let body = match (self.one_object, self.same_body) {
            (Some(object), _) => {
                let object = if self.is_pattern { Object { number, ..object } } else { object };
                Body::Content(object.content(), object.size())
            }
            (None, Some(mark)) => Body::Same(mark),
            (None, None) => Body::Any,
        };
        Expected { body, statuses: Statuses::Any, is_head: false, is_plain: true, id: None }
    }

    /// Fetches the URL once; the mark of its body.
    fn first_body(&self, to: SocketAddr) -> Result<u64, Problem> {
        let wrong = |why: String| Problem::Run(format!("{to}: the first answer cannot be read ({why})"));
        let fetch = || -> std::io::Result<Vec<u8>> {
            let mut socket = TcpStream::connect(to)?;
            socket.set_read_timeout(Some(Duration::from_secs(10)))?;
            let mut request = Vec::new();
            self.write(&0, &mut request);
            let text = String::from_utf8_lossy(&request).replace("Accept:", "Connection: close\r\nAccept:");
            socket.write_all(text.as_bytes())?;
            let mut answer = Vec::new();
            socket.read_to_end(&mut answer)?;
            Ok(answer)
        };
        let answer = fetch().map_err(|error| wrong(error.to_string()))?;
        Reply::mark_of(&answer).map_err(|fault| wrong(fault.name().to_owned()))
    }
}

impl Load for Requests {
    type Request = u32;
    type Reply = Reply;
    const SERVER_CLOSES: bool = true;

    fn pick(&mut self, _phase: usize) -> u32 {
        self.drawn += 1;
        (mix(mix(self.seed) ^ self.drawn) % u64::from(self.objects)) as u32
    }

    fn write(&self, number: &u32, out: &mut Vec<u8>) {
        out.extend_from_slice(self.before.as_bytes());
        if self.is_pattern {
            // Writing into memory cannot fail.
            _ = write!(out, "{number}");
        }
        out.extend_from_slice(self.behind.as_bytes());
    }

    fn read(&self, number: &u32, reply: &mut Reply, bytes: &[u8]) -> Result<Option<Answer>, Fault> {
        reply.read(&self.expected(*number), bytes)
    }

    fn end(&self, number: &u32, reply: &mut Reply) -> Result<Answer, Fault> {
        reply.end(&self.expected(*number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read() {
        let url = |text: &str| Url::read(text).map(|url| (url.authority, url.target)).ok();
        let both = |a: &str, t: &str| Some((a.to_owned(), t.to_owned()));
        assert_eq!(url("http://127.0.0.1:8080/a?b"), both("127.0.0.1:8080", "/a?b"));
        assert_eq!(url("127.0.0.1:8080"), both("127.0.0.1:8080", "/"));
        assert_eq!(url("http://localhost"), both("localhost:80", "/"));
        assert_eq!(url("http://[::1]:81/x"), both("[::1]:81", "/x"));
        assert_eq!(url("127.0.0.1:80/?to=ftp://x"), both("127.0.0.1:80", "/?to=ftp://x"));
        assert_eq!(url("http://[::1]/"), both("[::1]:80", "/"));
        let refused = |text: &str| Url::read(text).expect_err(text).to_string();
        assert!(refused("ftp://x").contains("the scheme must be http"));
        for text in ["http://127.0.0.1:99999/", "http://127.0.0.1:0/", "localhost:http"] {
            assert!(refused(text).contains("a number from 1 to 65535"), "{text}");
        }
        assert_eq!((url("https://x/"), url("http:///x"), url("http://a/b c")), (None, None, None));
    }
}
