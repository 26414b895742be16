//! Interface between the engine and a load: the next request, and the check of its answer.

use serde::{Deserialize, Serialize};

/// Source of an answer, as far as the answer reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// A cache answered by itself.
    Hit,
    /// The request went to the origin.
    Miss,
}

/// A whole and right answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Hit or miss; none: the answer reports neither.
    pub served: Option<Served>,
    /// Whether the request had no condition, no reload and the method GET: what hit ratios are counted over.
    pub is_plain: bool,
    /// Whether the answer was "not modified" (304).
    pub is_not_modified: bool,
    /// Whether the answer was a miss of the keys of a store: right, but without a value.
    pub is_absent: bool,
    /// Whether the connection may carry another request.
    pub keeps_connection: bool,
    /// Bytes of the body.
    pub bytes: u64,
}

/// Why a request has no right answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The connection could not be made.
    Connect,
    /// The connection ended before the answer did.
    Closed,
    /// The answer is none of the protocol's.
    Malformed,
    /// The status is not the one that the request must get.
    Status,
    /// The body is not the content of the object.
    Body,
    /// No answer within the time limit.
    Timeout,
    /// No answer when the run ended.
    Unanswered,
}

impl Fault {
    /// All faults, in the order in which reports list them.
    pub const ALL: [Fault; 7] = [
        Fault::Connect,
        Fault::Closed,
        Fault::Malformed,
        Fault::Status,
        Fault::Body,
        Fault::Timeout,
        Fault::Unanswered,
    ];

    /// Name of the fault in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Fault::Connect => "connect",
            Fault::Closed => "closed",
            Fault::Malformed => "malformed",
            Fault::Status => "status",
            Fault::Body => "body",
            Fault::Timeout => "timeout",
            Fault::Unanswered => "unanswered",
        }
    }
}

/// A source of requests with the right answers.
pub trait Load {
    /// A request in short: enough to write it and to judge its answer.
    type Request: Copy + Default;
    /// How far the answer on one connection has been read.
    type Reply: Default;
    /// Whether the server ends a connection that carries one request, so that the client's port is free at once.
    const SERVER_CLOSES: bool;

    /// Draws the next request of the phase with that index.
    fn pick(&mut self, phase: usize) -> Self::Request;
    /// Appends the request's bytes.
    fn write(&self, request: &Self::Request, out: &mut Vec<u8>);
    /// Reads on with `bytes`; the answer once it is whole.
    fn read(&self, request: &Self::Request, reply: &mut Self::Reply, bytes: &[u8]) -> Result<Option<Answer>, Fault>;
    /// The answer that the end of the connection makes whole, if it does.
    fn end(&self, request: &Self::Request, reply: &mut Self::Reply) -> Result<Answer, Fault>;
    /// Returns whether a phase that lasts until the load has filled the cache is over.
    fn is_filled(&self) -> bool {
        true
    }
}
