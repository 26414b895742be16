//! The secondary key (RFC 9111 s4.1).

use crate::RequestHead;
use crate::list::{members, trimmed};
use http::header::{ACCEPT, ACCEPT_CHARSET, ACCEPT_ENCODING, ACCEPT_LANGUAGE, VARY};
use http::{HeaderMap, HeaderName};

/// The values of the request fields that a stored response varies by. Two requests with equal keys select the same
/// stored response.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VaryKey(Vec<u8>);

impl VaryKey {
    /// Returns whether the response varies by nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes of heap that the key takes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.capacity()
    }
}

/// The request fields that a stored response varies by, read once from its Vary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selecting(Vec<HeaderName>);

impl Selecting {
    /// Reads the Vary of a stored response; `None` where it is `*` or no list of names, because such a response matches
    /// no request.
    #[must_use]
    pub fn of(stored: &HeaderMap) -> Option<Selecting> {
        let mut names = Vec::new();
        for line in stored.get_all(VARY) {
            for member in members(line.as_bytes()) {
                names.push(HeaderName::from_bytes(member).ok().filter(|name| name != "*")?);
            }
        }
        names.sort_by(|one, other| one.as_str().cmp(other.as_str()));
        names.dedup();
        Some(Selecting(names))
    }

    /// The fields' names. A request that validates without a client copies these fields of the request that the
    /// response answered (RFC 9111 s4.3.1).
    #[must_use]
    pub fn names(&self) -> &[HeaderName] {
        &self.0
    }

    /// The key of a request.
    #[must_use]
    pub fn key(&self, request: &RequestHead<'_>) -> VaryKey {
        let mut key = Vec::with_capacity(64 * self.0.len());
        for name in &self.0 {
            key.extend_from_slice(name.as_str().as_bytes());
            push_value(&mut key, name, request.headers);
        }
        VaryKey(key)
    }
}

/// The key of a request for the Vary of a stored response; `None` as of [`Selecting::of`].
#[must_use]
pub fn vary_key(stored: &HeaderMap, request: &RequestHead<'_>) -> Option<VaryKey> {
    Some(Selecting::of(stored)?.key(request))
}

/// Bytes that no field value holds.
const ABSENT: u8 = 0;
const PRESENT: u8 = b'\n';

fn push_value(key: &mut Vec<u8>, name: &HeaderName, headers: &HeaderMap) {
    let lines = || headers.get_all(name).iter().map(|line| line.as_bytes());
    if lines().next().is_none() {
        key.push(ABSENT);
        return;
    }
    key.push(PRESENT);
    if [ACCEPT, ACCEPT_CHARSET, ACCEPT_ENCODING, ACCEPT_LANGUAGE].contains(name) {
        push_list(key, name, lines().flat_map(members));
    } else {
        push_joined(key, lines().map(trimmed), b", ");
    }
    key.push(PRESENT);
}

fn push_joined<'a>(key: &mut Vec<u8>, parts: impl Iterator<Item = &'a [u8]>, between: &[u8]) {
    for (at, part) in parts.enumerate() {
        key.extend_from_slice(if at > 0 { between } else { &[] });
        key.extend_from_slice(part);
    }
}

/// The members without the white space between; without case where the syntax has none; in order where order has no
/// meaning.
fn push_list<'a>(key: &mut Vec<u8>, name: &HeaderName, list: impl Iterator<Item = &'a [u8]>) {
    let begin = key.len();
    if name == ACCEPT_ENCODING {
        let lower = |member: &'a [u8]| member.iter().map(u8::to_ascii_lowercase);
        let mut list: Vec<_> = list.collect();
        list.sort_unstable_by(|one, other| lower(one).cmp(lower(other)));
        push_joined(key, list.into_iter(), b",");
    } else {
        push_joined(key, list, b",");
    }
    if name != ACCEPT {
        key[begin..].make_ascii_lowercase();
    }
}
