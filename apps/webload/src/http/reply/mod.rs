//! A response, read piece by piece and judged against what the request must get.

use super::chunked::Chunks;
use super::head::{self, Framing, Head};
use crate::content::{Content, mix};
use crate::load::{Answer, Fault};

/// A longer head is refused.
const LONGEST_HEAD: usize = 64 << 10;

/// Expected body of a right answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// Bytes of this content, so many.
    Content(Content, u64),
    /// Anything that the server sends, as long as the framing is right.
    Any,
    /// Any body; its fingerprint is taken.
    First,
    /// The body with this fingerprint.
    Same(u64),
}

/// The statuses that a right answer may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statuses {
    /// From 200 to 399.
    Any,
    /// 200 only.
    Ok,
    /// 304, or 200 from a cache that does not apply the condition to what it passes through.
    NotModified,
}

impl Statuses {
    fn allow(self, status: u16) -> bool {
        match self {
            Statuses::Any => (200..400).contains(&status),
            Statuses::Ok => status == 200,
            Statuses::NotModified => matches!(status, 200 | 304),
        }
    }
}

/// Answer that a request must get.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// The body.
    pub body: Body,
    /// The status.
    pub statuses: Statuses,
    /// Whether the request was a HEAD.
    pub is_head: bool,
    /// Whether hit ratios count the request.
    pub is_plain: bool,
    /// The number that the request carried for the origin to echo.
    pub id: Option<u64>,
}

#[derive(Debug, Default)]
enum Stage {
    #[default]
    Head,
    Length(u64),
    Chunked(Chunks),
    UntilEnd,
}

/// How far a response has been read.
#[derive(Debug, Default)]
pub struct Reply {
    stage: Stage,
    head: Option<Head>,
    /// The beginning of a head that came in pieces.
    begun: Vec<u8>,
    /// Bytes of the body so far.
    at: u64,
    /// Hash of the body so far, where bodies are compared with one another.
    fingerprint: u64,
}

impl Reply {
    /// Reads on; the answer once it is whole.
    pub fn read(&mut self, expected: &Expected, bytes: &[u8]) -> Result<Option<Answer>, Fault> {
        if !matches!(self.stage, Stage::Head) {
            return self.body(expected, bytes);
        }
        if self.begun.is_empty() {
            return match self.head(expected, bytes)? {
                Some(length) => self.body(expected, &bytes[length..]),
                None => self.keep(bytes),
            };
        }
        let mut begun = std::mem::take(&mut self.begun);
        begun.extend_from_slice(bytes);
        match self.head(expected, &begun)? {
            Some(length) => self.body(expected, &begun[length..]),
            None => self.keep(&begun),
        }
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<Option<Answer>, Fault> {
        if bytes.len() > LONGEST_HEAD {
            return Err(Fault::Malformed);
        }
        self.begun.extend_from_slice(bytes);
        Ok(None)
    }

    /// Reads heads, interim responses included, and returns where the body begins.
    fn head(&mut self, expected: &Expected, bytes: &[u8]) -> Result<Option<usize>, Fault> {
        let mut at = 0;
        loop {
            let Some(head) = head::read(&bytes[at..], expected.id)? else { return Ok(None) };
            at += head.bytes;
            if (100..200).contains(&head.status) {
                continue;
            }
            if !expected.statuses.allow(head.status) {
                return Err(Fault::Status);
            }
            let has_body = !expected.is_head && !matches!(head.status, 204 | 304);
            self.stage = match head.framing {
                _ if !has_body => Stage::Length(0),
                Framing::Length(length) => Stage::Length(length),
                Framing::Chunked => Stage::Chunked(Chunks::default()),
                Framing::UntilEnd => Stage::UntilEnd,
            };
            self.head = Some(head);
            return Ok(Some(at));
        }
    }

    fn body(&mut self, expected: &Expected, bytes: &[u8]) -> Result<Option<Answer>, Fault> {
        let (taken, is_whole) = match &mut self.stage {
            Stage::Length(left) => {
                let taken = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= taken as u64;
                let is_whole = *left == 0;
                self.data(expected, &bytes[..taken])?;
                (taken, is_whole)
            }
            Stage::Chunked(chunks) => {
                let mut chunks = std::mem::take(chunks);
                let taken = chunks.read(bytes, |data| self.data(expected, data))?;
                let is_done = chunks.is_done();
                self.stage = Stage::Chunked(chunks);
                (taken, is_done)
            }
            _ => {
                self.data(expected, bytes)?;
                (bytes.len(), false)
            }
        };
        if is_whole && taken < bytes.len() {
            return Err(Fault::Malformed);
        }
        if !is_whole {
            return Ok(None);
        }
        self.judge(expected).map(Some)
    }

    fn data(&mut self, expected: &Expected, bytes: &[u8]) -> Result<(), Fault> {
        let is_right = match expected.body {
            Body::Content(content, size) => self.at + bytes.len() as u64 <= size && content.is(self.at, bytes),
            Body::Any => true,
            Body::First | Body::Same(_) => {
                self.fingerprint = bytes
                    .iter()
                    .fold(self.fingerprint, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
                true
            }
        };
        self.at += bytes.len() as u64;
        if is_right { Ok(()) } else { Err(Fault::Body) }
    }

    fn judge(&mut self, expected: &Expected) -> Result<Answer, Fault> {
        let head = self.head.take().ok_or(Fault::Malformed)?;
        let has_body = !expected.is_head && head.status == 200;
        let is_right = match expected.body {
            Body::Content(_, size) => !has_body || self.at == size,
            Body::Any | Body::First => true,
            Body::Same(fingerprint) => !has_body || self.mark() == fingerprint,
        };
        if !is_right {
            return Err(Fault::Body);
        }
        let until_end = matches!(self.stage, Stage::UntilEnd);
        let answer = Answer {
            served: head.served,
            is_plain: expected.is_plain,
            is_not_modified: head.status == 304,
            is_absent: false,
            keeps_connection: head.keeps_connection && !until_end,
            bytes: self.at,
        };
        Ok(answer)
    }

    /// The fingerprint of the body read so far, its length included.
    fn mark(&self) -> u64 {
        mix(self.fingerprint ^ self.at)
    }

    /// The fingerprint of the body of one whole response.
    pub fn mark_of(response: &[u8]) -> Result<u64, Fault> {
        let expected =
            Expected { body: Body::First, statuses: Statuses::Any, is_head: false, is_plain: true, id: None };
        let mut reply = Reply::default();
        let mut answer = reply.read(&expected, response)?;
        if answer.is_none() {
            answer = Some(reply.end(&expected)?);
        }
        answer.map(|_| reply.mark()).ok_or(Fault::Closed)
    }

    /// The answer that the end of the connection makes whole, if it does.
    pub fn end(&mut self, expected: &Expected) -> Result<Answer, Fault> {
        match self.stage {
            Stage::UntilEnd => self.judge(expected),
            _ => Err(Fault::Closed),
        }
    }
}

#[cfg(test)]
mod tests;
