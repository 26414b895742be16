//! HTTP/1.1 messages: heads, the length of bodies, the fields that belong to one connection.

pub mod chunked;
pub mod fields;
pub mod hops;
pub mod length;
pub mod probe;
pub mod request;
pub mod response;
pub mod write;

use http::StatusCode;

/// A message that is not taken, with the status sent to its sender (a response's reader answers 502 instead).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{status}: {why}")]
pub struct Refusal {
    /// The status of the answer.
    pub status: StatusCode,
    /// The reason in a few words.
    pub why: &'static str,
}

impl Refusal {
    /// 400 with its reason.
    pub fn bad(why: &'static str) -> Self {
        Refusal { status: StatusCode::BAD_REQUEST, why }
    }
}

/// How a message's body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    /// There is none.
    None,
    /// A fixed number of bytes.
    Fixed(u64),
    /// With the last chunk.
    Chunked,
    /// With the connection (responses only).
    Close,
}
