//! The parts of a message that a decision needs.

use http::{HeaderMap, Method, StatusCode};

/// A request without its content.
#[derive(Debug, Clone, Copy)]
pub struct RequestHead<'a> {
    /// The method.
    pub method: &'a Method,
    /// Path and query (origin form).
    pub target: &'a str,
    /// Host and port, as named by the client.
    pub authority: &'a str,
    /// The fields.
    pub headers: &'a HeaderMap,
}

/// A response without its content.
#[derive(Debug, Clone, Copy)]
pub struct ResponseHead<'a> {
    /// The status code.
    pub status: StatusCode,
    /// The fields.
    pub headers: &'a HeaderMap,
}
