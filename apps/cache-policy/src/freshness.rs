//! How long a response is fresh, and how old it already is (RFC 9111 s4.2).

use crate::control::Control;
use crate::date::date_of;
use crate::directives::{MOST_SECONDS, delta_seconds};
use crate::list::members;
use crate::{Options, Seconds};
use http::header::{AGE, DATE, EXPIRES, LAST_MODIFIED};
use http::{HeaderMap, StatusCode};

/// Returns the seconds, within the range of a delta.
pub(crate) fn bounded(seconds: u64) -> u32 {
    u32::try_from(seconds).unwrap_or(MOST_SECONDS).min(MOST_SECONDS)
}

/// Returns the response's explicit lifetime: s-maxage, else max-age, else Expires (RFC 9111 s4.2.1). `None` without any
/// of them.
pub(crate) fn explicit_lifetime(control: &Control, headers: &HeaderMap, received_at: Seconds) -> Option<u32> {
    control.s_maxage.or(control.max_age).or_else(|| {
        if control.targeted || !headers.contains_key(EXPIRES) {
            return None;
        }
        let date = date_of(headers, &DATE, received_at).unwrap_or(received_at);
        let expires = date_of(headers, &EXPIRES, received_at).unwrap_or(Seconds(0));
        Some(bounded(expires.since(date)))
    })
}

/// Returns whether the status may be fresh by a heuristic (RFC 9110 s15.1), partial content aside.
pub(crate) fn heuristic_status(status: StatusCode) -> bool {
    matches!(status.as_u16(), 200 | 203 | 204 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501)
}

/// A fraction of the time since the last modification (RFC 9111 s4.2.2).
pub(crate) fn heuristic_lifetime(options: &Options, headers: &HeaderMap, received_at: Seconds) -> u32 {
    let date = date_of(headers, &DATE, received_at).unwrap_or(received_at);
    let Some(modified) = date_of(headers, &LAST_MODIFIED, received_at) else { return 0 };
    let fraction = options.heuristic_fraction.clamp(0.0, 1.0);
    // A float turned into an integer saturates, and is 0 for what is not a number.
    bounded(((date.since(modified) as f64 * fraction) as u64).min(options.heuristic_most.0))
}

/// Returns the age at the time of receipt (RFC 9111 s4.2.3). If Age has several values the first counts, and nonsense
/// does not (s5.1).
pub(crate) fn corrected_initial_age(headers: &HeaderMap, requested_at: Seconds, received_at: Seconds) -> u32 {
    let apparent = date_of(headers, &DATE, received_at).map_or(0, |date| received_at.since(date));
    let stated = headers.get(AGE).and_then(|age| members(age.as_bytes()).next()).and_then(delta_seconds);
    let corrected = u64::from(stated.unwrap_or(0)) + received_at.since(requested_at);
    bounded(apparent.max(corrected))
}
