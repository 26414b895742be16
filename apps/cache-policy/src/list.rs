//! Comma-separated lists (RFC 9110 s5.6.1), read from any bytes.

/// Returns whether a byte is optional white space (RFC 9110 s5.6.3).
pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// `bytes` without the white space around.
pub(crate) fn trimmed(mut bytes: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = bytes
        && is_blank(*first)
    {
        bytes = rest;
    }
    while let [rest @ .., last] = bytes
        && is_blank(*last)
    {
        bytes = rest;
    }
    bytes
}

/// The non-empty members of a list. A comma within a quoted string does not separate. A quotation mark without its
/// partner is an ordinary byte, so that a list cannot hide a directive behind it.
pub(crate) struct Members<'a> {
    rest: &'a [u8],
    /// No later quotation mark has a partner.
    unpaired: bool,
}

/// The members of `value`.
pub(crate) fn members(value: &[u8]) -> Members<'_> {
    Members { rest: value, unpaired: false }
}

/// Returns the end of the quoted string that begins at `bytes[0]`: the index after the closing quotation mark.
fn quoted_end(bytes: &[u8]) -> Option<usize> {
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    None
}

impl<'a> Members<'a> {
    /// The index of the comma that ends the first member, or the length.
    fn end_of_first(&mut self) -> usize {
        let mut at = 0;
        while at < self.rest.len() {
            match self.rest[at] {
                b',' => return at,
                b'"' if !self.unpaired => match quoted_end(&self.rest[at..]) {
                    Some(length) => at += length,
                    None => self.unpaired = true,
                },
                _ => at += 1,
            }
        }
        at
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        while !self.rest.is_empty() {
            let end = self.end_of_first();
            let member = trimmed(&self.rest[..end]);
            self.rest = self.rest.get(end + 1..).unwrap_or_default();
            if !member.is_empty() {
                return Some(member);
            }
        }
        None
    }
}

/// The content of a quoted string with its escapes resolved; `None` where `bytes` is not one.
pub(crate) fn unquoted(bytes: &[u8]) -> Option<Vec<u8>> {
    if bytes.first() != Some(&b'"') || quoted_end(bytes) != Some(bytes.len()) {
        return None;
    }
    let mut content = Vec::with_capacity(bytes.len());
    let mut inner = bytes[1..bytes.len() - 1].iter();
    while let Some(&byte) = inner.next() {
        content.push(if byte == b'\\' { inner.next().copied().unwrap_or(byte) } else { byte });
    }
    Some(content)
}
