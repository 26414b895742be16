//! The fields that are stored (RFC 9111 s3.1).

use crate::date::{date_of, written};
use crate::list::members;
use crate::targeted;
use crate::{Options, Seconds};
use http::header::{AGE, CONNECTION, DATE, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName};

/// Fields of one connection (RFC 9110 s7.6.1) and of one proxy (RFC 9111 s3.1); and Age, which is in the terms.
const NEVER_STORED: [HeaderName; 10] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("proxy-authentication-info"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
    AGE,
];

/// Takes out what this connection alone concerns: the fields that Connection lists, and those that are never stored.
pub(crate) fn without_hops(headers: &HeaderMap) -> HeaderMap {
    let mut kept = headers.clone();
    for line in headers.get_all(CONNECTION) {
        for name in members(line.as_bytes()).filter_map(|name| HeaderName::from_bytes(name).ok()) {
            kept.remove(name);
        }
    }
    for name in NEVER_STORED {
        kept.remove(name);
    }
    kept
}

/// The fields of a response to store: all but those of the connection, and those that a qualified no-cache or private
/// withholds. A response without a date gets the time of its receipt (RFC 9110 s6.6.1).
#[must_use]
pub fn stored_fields(options: &Options, response: &HeaderMap, received_at: Seconds) -> HeaderMap {
    let mut kept = without_hops(response);
    finish(options, &mut kept, received_at);
    kept
}

/// Takes out what is withheld, and dates the response.
pub(crate) fn finish(options: &Options, kept: &mut HeaderMap, received_at: Seconds) {
    for name in targeted::control(options, kept).withheld {
        kept.remove(name);
    }
    if date_of(kept, &DATE, received_at).is_none()
        && let Some(date) = written(received_at)
    {
        _ = kept.try_insert(DATE, date);
    }
}
