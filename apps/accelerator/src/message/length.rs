//! The framing fields of a head: Content-Length and Transfer-Encoding (RFC 9112 section 6).

use super::Refusal;

/// Combined result of a head's framing fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Framing {
    /// Content-Length, where all values agree.
    pub length: Option<u64>,
    /// Transfer-Encoding is there, and the last coding is `chunked`, the only one.
    pub chunked: bool,
    /// Transfer-Encoding names another coding than `chunked`.
    other_coding: bool,
}

impl Framing {
    /// Adds a Content-Length field. A list of equal numbers counts as one of them.
    pub fn content_length(&mut self, value: &[u8]) -> Result<(), Refusal> {
        for part in value.split(|byte| *byte == b',') {
            let length = digits(part.trim_ascii()).ok_or(Refusal::bad("Content-Length is no number"))?;
            if self.length.is_some_and(|before| before != length) {
                return Err(Refusal::bad("Content-Length differs from an earlier one"));
            }
            self.length = Some(length);
        }
        Ok(())
    }

    /// Adds a Transfer-Encoding field.
    pub fn transfer_encoding(&mut self, value: &[u8]) -> Result<(), Refusal> {
        for coding in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            if self.chunked {
                return Err(Refusal::bad("Transfer-Encoding goes on after chunked"));
            }
            if coding.eq_ignore_ascii_case(b"chunked") {
                self.chunked = true;
            } else if coding.is_empty() || !coding.iter().all(|byte| token_byte(*byte)) {
                return Err(Refusal::bad("Transfer-Encoding is not readable"));
            } else {
                self.other_coding = true;
            }
        }
        Ok(())
    }

    /// Refuses what two readers could read differently. `minor` is that of the message's version.
    pub fn check(&self, minor: u8) -> Result<(), Refusal> {
        if !self.chunked && !self.other_coding {
            return Ok(());
        }
        if self.length.is_some() {
            return Err(Refusal::bad("both Content-Length and Transfer-Encoding"));
        }
        if minor == 0 {
            return Err(Refusal::bad("Transfer-Encoding in HTTP/1.0"));
        }
        if !self.chunked {
            return Err(Refusal::bad("Transfer-Encoding does not end in chunked"));
        }
        if self.other_coding {
            return Err(Refusal { status: http::StatusCode::NOT_IMPLEMENTED, why: "a transfer coding beside chunked" });
        }
        Ok(())
    }
}

/// Digits and nothing else, below 2^63.
fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 18 || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(text.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

/// A byte of a token (RFC 9110 section 5.6.2).
pub fn token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lengths: &[&str], encodings: &[&str]) -> Result<Framing, Refusal> {
        let mut framing = Framing::default();
        lengths.iter().try_for_each(|value| framing.content_length(value.as_bytes()))?;
        encodings.iter().try_for_each(|value| framing.transfer_encoding(value.as_bytes()))?;
        framing.check(1).map(|()| framing)
    }

    #[test]
    fn equal_lengths_are_one_length() {
        assert_eq!(of(&["5", "5, 5"], &[]).map(|f| f.length), Ok(Some(5)));
        assert_eq!(of(&[], &["Chunked"]).map(|f| f.chunked), Ok(true));
    }

    #[test]
    fn ambiguous_framings_are_refused() {
        for (lengths, encodings) in [
            (&["5", "6"][..], &[][..]),
            (&["+5"], &[]),
            (&["0x5"], &[]),
            (&[""], &[]),
            (&["5 5"], &[]),
            (&["99999999999999999999"], &[]),
            (&["5"], &["chunked"]),
            (&[], &["chunked, chunked"]),
            (&[], &["chunked", "gzip"]),
            (&[], &["gzip"]),
            (&[], &["gzip, chunked"]),
            (&[], &["chunked;q=1"]),
            (&[], &["\u{b}chunked"]),
            (&[], &["identity"]),
            (&[], &[""]),
        ] {
            assert!(of(lengths, encodings).is_err(), "{lengths:?} {encodings:?}");
        }
        assert!(Framing { chunked: true, ..Framing::default() }.check(0).is_err());
    }
}
