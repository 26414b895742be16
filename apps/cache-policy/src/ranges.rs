//! Range requests against a stored response (RFC 9110 s14).

use crate::date::date_of;
use crate::validators::strongly_equal;
use crate::{RequestHead, Seconds};
use http::header::{DATE, ETAG, IF_RANGE, LAST_MODIFIED, RANGE};
use http::{HeaderMap, Method};

/// Which part of a stored 200 answers a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ranges {
    /// All of the response, with 200. Several ranges are answered so, too: a server may ignore Range (RFC 9110 s14.2).
    Whole,
    /// 206 with these bytes, both included.
    One {
        /// The first byte.
        first: u64,
        /// The last byte.
        last: u64,
    },
    /// 416 with `Content-Range: bytes */length`.
    Unsatisfiable,
}

/// Returns the part that the request selects of a stored 200 with `length` bytes of content.
#[must_use]
pub fn ranges(request: &RequestHead<'_>, stored: &HeaderMap, length: u64) -> Ranges {
    let mut lines = request.headers.get_all(RANGE).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return Ranges::Whole };
    if request.method != Method::GET || !if_range(request.headers, stored) {
        return Ranges::Whole;
    }
    one_range(line.as_bytes(), length).unwrap_or(Ranges::Whole)
}

/// Returns whether If-Range is absent, or names the stored response by a strong validator (RFC 9110 s13.1.5).
fn if_range(headers: &HeaderMap, stored: &HeaderMap) -> bool {
    let mut lines = headers.get_all(IF_RANGE).iter();
    let Some(wanted) = lines.next() else { return true };
    if lines.next().is_some() {
        return false;
    }
    if wanted.as_bytes().ends_with(b"\"") {
        return stored.get(ETAG).is_some_and(|tag| strongly_equal(tag.as_bytes(), wanted.as_bytes()));
    }
    let modified = date_of(stored, &LAST_MODIFIED, Seconds(0));
    let date = date_of(stored, &DATE, Seconds(0));
    // A date is a strong validator where the response was sent later (RFC 9110 s8.8.2.2).
    let strong = matches!((modified, date), (Some(modified), Some(date)) if date > modified);
    strong && stored.get(LAST_MODIFIED) == Some(wanted)
}

/// One range of bytes; `None` where the field is another unit, several ranges, or nonsense.
fn one_range(field: &[u8], length: u64) -> Option<Ranges> {
    let field = std::str::from_utf8(field).ok()?;
    let (unit, set) = field.split_once('=')?;
    let (first, last) = set.trim_matches([' ', '\t']).split_once('-')?;
    if !unit.eq_ignore_ascii_case("bytes") {
        return None;
    }
    if first.is_empty() {
        return suffix(number(last)?, length);
    }
    let first = number(first)?;
    let last = if last.is_empty() { u64::MAX } else { number(last)? };
    if last < first {
        return None;
    }
    Some(if first < length { Ranges::One { first, last: last.min(length - 1) } } else { Ranges::Unsatisfiable })
}

/// The last `wanted` bytes.
fn suffix(wanted: u64, length: u64) -> Option<Ranges> {
    if wanted == 0 {
        return Some(Ranges::Unsatisfiable);
    }
    let last = length.checked_sub(1)?;
    Some(Ranges::One { first: length.saturating_sub(wanted), last })
}

/// Decimal digits; greater numbers than fit count as the greatest.
fn number(digits: &str) -> Option<u64> {
    let decimal = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    decimal.then(|| digits.parse().unwrap_or(u64::MAX))
}
