//! HTTP dates (RFC 9110 s5.6.7), read as RFC 9111 s4.2 asks of a cache: without regard to case, GMT alone.

use crate::Seconds;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::time::{Duration, SystemTime};

/// The date of the field's first line; `None` where the field is absent or is no date.
pub(crate) fn date_of(headers: &HeaderMap, field: &HeaderName, now: Seconds) -> Option<Seconds> {
    parsed(headers.get(field)?.as_bytes(), now)
}

/// A date in any of the three forms. `now` settles the century of a year with two digits.
pub(crate) fn parsed(text: &[u8], now: Seconds) -> Option<Seconds> {
    let text = std::str::from_utf8(text).ok().filter(|text| text.len() <= 40 && text.is_ascii())?;
    let text = cased(text);
    let date = httpdate::parse_http_date(&text).ok()?;
    let seconds = date.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs();
    Some(if has_short_year(&text) { century(seconds, now) } else { Seconds(seconds) })
}

/// Whether the form is RFC 850's.
fn has_short_year(text: &str) -> bool {
    text.find(',').is_some_and(|comma| text.get(comma + 4..comma + 5) == Some("-"))
}

/// The words in the case that the grammar has: `Sun, 06 Nov 1994 08:49:37 GMT`.
fn cased(text: &str) -> String {
    let mut inside = false;
    let mut cased = String::with_capacity(text.len());
    for letter in text.chars() {
        cased.push(if inside { letter.to_ascii_lowercase() } else { letter.to_ascii_uppercase() });
        inside = letter.is_ascii_alphabetic();
    }
    if cased.ends_with(" Gmt") {
        cased.truncate(cased.len() - 3);
        cased.push_str("GMT");
    }
    cased
}

/// A hundred years of the Gregorian calendar that hold no century without a leap day, as 1970 to 2070 do.
const CENTURY: u64 = 36_525 * 86_400;
const FIFTY_YEARS: u64 = CENTURY / 2;

/// A two-digit year is the one in the past where it would lie more than 50 years ahead (RFC 9110 s5.6.7).
fn century(seconds: u64, now: Seconds) -> Seconds {
    if seconds > now.0 + FIFTY_YEARS {
        Seconds(seconds.saturating_sub(CENTURY))
    } else if seconds + CENTURY <= now.0 + FIFTY_YEARS {
        Seconds(seconds + CENTURY)
    } else {
        Seconds(seconds)
    }
}

/// The field value of an instant.
pub(crate) fn written(at: Seconds) -> Option<HeaderValue> {
    // The year 9999 is the last one that the format holds.
    let at = Duration::from_secs(at.0.min(253_402_300_799));
    HeaderValue::from_str(&httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + at)).ok()
}
