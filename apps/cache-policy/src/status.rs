//! The Cache-Status field (RFC 9211).

use http::{HeaderValue, StatusCode};
use std::fmt::Write;

/// Why a request went to the origin (RFC 9211 s2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forward {
    /// The cache was configured not to handle the request.
    Bypass,
    /// The method's semantics need the origin.
    Method,
    /// Nothing is stored for the URI.
    UriMiss,
    /// Something is stored for the URI, but nothing for this request's fields.
    VaryMiss,
    /// Nothing stored could be used.
    Miss,
    /// The request's own fields need the origin.
    Request,
    /// The stored response was stale.
    Stale,
    /// The stored response was partial.
    Partial,
}

impl Forward {
    fn token(self) -> &'static str {
        match self {
            Self::Bypass => "bypass",
            Self::Method => "method",
            Self::UriMiss => "uri-miss",
            Self::VaryMiss => "vary-miss",
            Self::Miss => "miss",
            Self::Request => "request",
            Self::Stale => "stale",
            Self::Partial => "partial",
        }
    }
}

/// How a request was handled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Handled<'a> {
    /// Why it went to the origin; `None` for a hit.
    pub forward: Option<Forward>,
    /// Status of the origin's answer.
    pub forward_status: Option<StatusCode>,
    /// The freshness left, in seconds ([`crate::Terms::time_to_live`]).
    pub time_to_live: Option<i64>,
    /// The origin's answer was stored.
    pub stored: bool,
    /// The request shared another one's way to the origin.
    pub collapsed: bool,
    /// The key under which the response is stored.
    pub key: Option<&'a str>,
    /// More, for people.
    pub detail: Option<&'a str>,
}

/// The value of Cache-Status for one request, to append to the response. `name` is this cache's.
#[must_use]
pub fn cache_status(name: &str, handled: &Handled<'_>) -> HeaderValue {
    let mut value = String::with_capacity(64);
    push_item(&mut value, name);
    match handled.forward {
        None => value.push_str("; hit"),
        Some(why) => push_forward(&mut value, why, handled),
    }
    if let Some(seconds) = handled.time_to_live {
        _ = write!(value, "; ttl={}", seconds.clamp(-MOST_INTEGER, MOST_INTEGER));
    }
    for (name, text) in [("key", handled.key), ("detail", handled.detail)] {
        if let Some(text) = text {
            _ = write!(value, "; {name}=");
            push_string(&mut value, text);
        }
    }
    HeaderValue::try_from(value).unwrap_or_else(|_| HeaderValue::from_static("cache"))
}

/// The greatest integer of a structured field (RFC 9651 s3.3.1).
const MOST_INTEGER: i64 = 999_999_999_999_999;

fn push_forward(value: &mut String, why: Forward, handled: &Handled<'_>) {
    _ = write!(value, "; fwd={}", why.token());
    if let Some(status) = handled.forward_status {
        _ = write!(value, "; fwd-status={}", status.as_u16());
    }
    for (flag, name) in [(handled.stored, "stored"), (handled.collapsed, "collapsed")] {
        if flag {
            _ = write!(value, "; {name}");
        }
    }
}

/// A token where the text is one, else a string.
fn push_item(value: &mut String, text: &str) {
    let in_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte);
    let starts = |first: &u8| first.is_ascii_alphabetic() || *first == b'*';
    if text.as_bytes().first().is_some_and(starts) && text.bytes().all(in_token) {
        value.push_str(text);
    } else {
        push_string(value, text);
    }
}

/// A string; what a string cannot hold is left out.
fn push_string(value: &mut String, text: &str) {
    value.push('"');
    for letter in text.chars().filter(|letter| matches!(letter, ' '..='~')) {
        if matches!(letter, '"' | '\\') {
            value.push('\\');
        }
        value.push(letter);
    }
    value.push('"');
}
