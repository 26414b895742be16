//! HTTP dates (RFC 9110 s5.6.7), read as RFC 9111 s4.2 requires of a cache: without regard to case, GMT alone.

use crate::Seconds;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::time::{Duration, SystemTime};

/// The date of the field's first line; `None` where the field is absent or is no date.
pub(crate) fn date_of(headers: &HeaderMap, field: &HeaderName, now: Seconds) -> Option<Seconds> {
    parsed(headers.get(field)?.as_bytes(), now)
}

/// A date in any of the three forms. `now` settles the century of a year with two digits.
pub(crate) fn parsed(text: &[u8], now: Seconds) -> Option<Seconds> {
    let text = std::str::from_utf8(text).ok().filter(|text| text.is_ascii())?;
    match text.len() {
        24 => asctime(text),
        29 if text.get(3..5)? == ", " => day_of(text.get(..3)?, text.get(5..)?),
        30..=33 => rfc850(text, now),
        _ => None,
    }
}

const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// Reads a date of the form `06 Nov 1994 08:49:37 GMT`. The day of the week has to be one, but need not be the date's:
/// the grammar does not require that, and servers are wrong about it.
fn day_of(weekday: &str, rest: &str) -> Option<Seconds> {
    let named = DAYS.iter().position(|day| day[..3].eq_ignore_ascii_case(weekday))?;
    // A leap second has no number of its own.
    let rest = cased(rest).replace(":60 GMT", ":59 GMT");
    let days = DAYS[named..].iter().chain(&DAYS[..named]);
    let date = { days }.find_map(|day| httpdate::parse_http_date(&format!("{}, {rest}", &day[..3])).ok())?;
    Some(Seconds(date.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs()))
}

/// `Sun Nov  6 08:49:37 1994`.
fn asctime(text: &str) -> Option<Seconds> {
    let (weekday, month, time) = (text.get(..4)?, text.get(4..8)?, text.get(11..19)?);
    let day = text.get(8..10)?.replace(' ', "0");
    let year = text.get(19..)?.strip_prefix(' ')?;
    day_of(weekday.strip_suffix(' ')?, &format!("{day} {month}{year} {time} GMT"))
}

const YEAR: u64 = 31_556_952;

/// `Sunday, 06-Nov-94 08:49:37 GMT`. A year that would lie more than 50 years ahead is the one in the past (RFC 9110
/// s5.6.7).
fn rfc850(text: &str, now: Seconds) -> Option<Seconds> {
    let (weekday, date) = text.split_once(", ")?;
    DAYS.iter().find(|day| day.eq_ignore_ascii_case(weekday))?;
    let mut parts = date.get(..9)?.splitn(3, '-');
    let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
    let year: u64 = year.bytes().all(|digit| digit.is_ascii_digit()).then(|| year.parse().ok())??;
    let latest = 1970 + now.0 / YEAR + 50;
    let year = latest - (latest + 100 - year) % 100;
    let in_year = |year: u64| day_of(weekday.get(..3)?, &format!("{day} {month} {year:04}{}", date.get(9..)?));
    let ahead = |at: &Seconds| at.since(now) > 50 * YEAR;
    in_year(year).filter(|at| !ahead(at)).or_else(|| in_year(year - 100))
}

/// The words in the case that the grammar has.
fn cased(text: &str) -> String {
    let mut inside = false;
    let mut cased = String::with_capacity(text.len());
    for letter in text.chars() {
        cased.push(if inside { letter.to_ascii_lowercase() } else { letter.to_ascii_uppercase() });
        inside = letter.is_ascii_alphabetic();
    }
    cased.replace(" Gmt", " GMT")
}

/// The last second of the year 9999, which is the last year that the format holds.
const LAST: u64 = 253_402_300_799;

/// The field value of an instant.
pub(crate) fn written(at: Seconds) -> Option<HeaderValue> {
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(at.0.min(LAST));
    HeaderValue::from_str(&httpdate::fmt_http_date(at)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Seconds = Seconds(1_795_000_000); // 2026-11-18

    fn at(text: &str) -> Option<u64> {
        parsed(text.as_bytes(), NOW).map(|at| at.0)
    }

    #[test]
    fn three_forms_are_one_instant() {
        for text in ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
            assert_eq!(at(text), Some(784_111_777), "{text}");
        }
    }

    #[test]
    fn case_weekday_and_leap_seconds_do_not_matter() {
        for text in ["sUN, 06 nOV 1994 08:49:37 gmt", "Mon, 06 Nov 1994 08:49:37 GMT", "SUNDAY, 06-nov-94 08:49:37 GMT"]
        {
            assert_eq!(at(text), Some(784_111_777), "{text}");
        }
        assert_eq!(at("Sat, 31 Dec 2016 23:59:60 GMT"), at("Sat, 31 Dec 2016 23:59:59 GMT"));
        assert_eq!(at("Thu Aug  8 02:01:18 2050"), Some(2_543_536_878));
    }

    #[test]
    fn a_short_year_lies_at_most_fifty_years_ahead() {
        assert_eq!(at("Thursday, 18-Aug-50 02:01:18 GMT"), at("Thu, 18 Aug 2050 02:01:18 GMT"));
        assert_eq!(at("Tuesday, 17-Nov-76 00:00:00 GMT"), at("Tue, 17 Nov 2076 00:00:00 GMT"));
        assert_eq!(at("Friday, 31-Dec-76 00:00:00 GMT"), at("Fri, 31 Dec 1976 00:00:00 GMT"));
        assert_eq!(at("Saturday, 01-Jan-77 00:00:00 GMT"), at("Sat, 01 Jan 1977 00:00:00 GMT"));
    }

    #[test]
    fn other_text_is_no_date() {
        for text in [
            "0",
            "",
            "-1",
            "now",
            "Thu, 18 Aug 2050 02:01:18 UTC",
            "Thu, 18 Aug 2050 02:01:18 AEST",
            "Thu, 18 Aug 50 02:01:18 GMT",
            "Thu 18 Aug 2050 02:01:18 GMT",
            "Thu, 18  Aug  2050 02:01:18 GMT",
            "Thu, 18-Aug-2050 02:01:18 GMT",
            "Thu, 18 Aug 2050 02.01.18 GMT",
            "Thu, 18 Aug 2050 2:01:18 GMT",
            "Thu, 31 Feb 2050 02:01:18 GMT",
            "Xyz, 18 Aug 2050 02:01:18 GMT",
            "Thursday, 18-Aug-2050 02:01:18 GMT",
            "Thu, 18 Aug 2050 02:01:18 GMT GMT",
            "Thursday, 18-Aug--1 02:01:18 GMT",
            "Thü, 18 Aug 2050 02:01:18 GM",
        ] {
            assert_eq!(at(text), None, "{text}");
        }
    }

    #[test]
    fn dates_are_written_as_they_are_read() {
        let date = written(Seconds(784_111_777)).unwrap();
        assert_eq!(date, "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(written(Seconds(u64::MAX)).unwrap(), "Fri, 31 Dec 9999 23:59:59 GMT");
    }
}
