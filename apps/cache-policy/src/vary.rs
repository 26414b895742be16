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
    /// Whether the response varies by nothing.
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

/// The key of a request for the Vary of a stored response; `None` where Vary is `*` or no list of names, because such a
/// response matches no request.
#[must_use]
pub fn vary_key(stored: &HeaderMap, request: &RequestHead<'_>) -> Option<VaryKey> {
    let mut names = Vec::new();
    for line in stored.get_all(VARY) {
        for member in members(line.as_bytes()) {
            names.push(HeaderName::from_bytes(member).ok().filter(|name| name != "*")?);
        }
    }
    names.sort_by(|one, other| one.as_str().cmp(other.as_str()));
    names.dedup();
    let mut key = Vec::new();
    for name in names {
        key.extend_from_slice(name.as_str().as_bytes());
        push_value(&mut key, &name, request.headers);
    }
    Some(VaryKey(key))
}

/// Bytes that no field value holds.
const ABSENT: u8 = 0;
const PRESENT: u8 = b'\n';

fn push_value(key: &mut Vec<u8>, name: &HeaderName, headers: &HeaderMap) {
    let mut lines = headers.get_all(name).iter().map(|line| line.as_bytes()).peekable();
    if lines.peek().is_none() {
        key.push(ABSENT);
        return;
    }
    key.push(PRESENT);
    if [ACCEPT, ACCEPT_CHARSET, ACCEPT_ENCODING, ACCEPT_LANGUAGE].contains(name) {
        push_list(key, name, lines.flat_map(members).collect());
    } else {
        let lines: Vec<_> = lines.map(trimmed).collect();
        key.extend_from_slice(&lines.join(&b", "[..]));
    }
    key.push(PRESENT);
}

/// The members without the white space between; without case where the syntax has none; in order where order has no
/// meaning.
fn push_list(key: &mut Vec<u8>, name: &HeaderName, list: Vec<&[u8]>) {
    let mut list: Vec<Vec<u8>> = list.into_iter().map(<[u8]>::to_vec).collect();
    if name != ACCEPT {
        list.iter_mut().for_each(|member| member.make_ascii_lowercase());
    }
    if name == ACCEPT_ENCODING {
        list.sort();
    }
    key.extend_from_slice(&list.join(&b","[..]));
}
