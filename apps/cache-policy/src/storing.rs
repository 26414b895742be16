//! Whether a response may be stored (RFC 9111 s3).

use crate::control::Control;
use crate::date::date_of;
use crate::freshness::{bounded, corrected_initial_age, explicit_lifetime, heuristic_lifetime, heuristic_status};
use crate::list::members;
use crate::targeted;
use crate::validators::has_validator;
use crate::{Options, RequestDirectives, RequestHead, ResponseHead, Seconds, Terms};
use http::header::{AUTHORIZATION, DATE, SET_COOKIE, VARY};
use http::{HeaderMap, Method, StatusCode};

/// Why a response is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WhyNot {
    /// Only answers to GET are stored.
    Method,
    /// The status is not final, or must-understand comes with a status that this cache does not implement.
    Status,
    /// Partial content, which this cache does not combine.
    Partial,
    /// The request has no-store.
    RequestNoStore,
    /// The response has no-store.
    NoStore,
    /// The response has private.
    Private,
    /// The request carries Authorization, and the response does not allow sharing (RFC 9111 s3.5).
    Authorization,
    /// `Vary: *`, which matches no other request.
    VaryStar,
    /// Neither the response nor its status allows storing.
    NotAllowed,
    /// A response that sets a cookie, and does not itself allow sharing.
    SetCookie,
    /// The response is stale already, cannot be validated, and may not be served stale.
    Useless,
}

impl WhyNot {
    /// Returns whether the request forbids to store its answer, so that nothing follows for what is stored already.
    #[must_use]
    pub fn is_of_the_request(self) -> bool {
        matches!(self, WhyNot::Method | WhyNot::RequestNoStore | WhyNot::Authorization)
    }
}

/// The terms under which the answer to `request` may be stored (RFC 9111 s3), or why it may not. The times are those
/// at which the request was sent to the origin and the response's head arrived.
pub fn store(
    options: &Options,
    request: &RequestHead<'_>,
    response: &ResponseHead<'_>,
    requested_at: Seconds,
    received_at: Seconds,
) -> Result<Terms, WhyNot> {
    if request.method != Method::GET {
        return Err(WhyNot::Method);
    }
    let control = targeted::control(options, response.headers);
    let exchange = Exchange { options, request, control: &control, requested_at, received_at };
    exchange.judged(response.status, response.headers)
}

/// All that a judgement of a response needs beside the response.
pub(crate) struct Exchange<'a> {
    pub options: &'a Options,
    pub request: &'a RequestHead<'a>,
    pub control: &'a Control,
    pub requested_at: Seconds,
    pub received_at: Seconds,
}

impl Exchange<'_> {
    /// The terms of a response with this status and these fields.
    pub fn judged(&self, status: StatusCode, headers: &HeaderMap) -> Result<Terms, WhyNot> {
        self.permitted(status, headers)?;
        let (control, options) = (self.control, self.options);
        let or_default = |stated: Option<u32>, default: Seconds| stated.unwrap_or_else(|| bounded(default.0));
        let (revalidate, error) = (options.default_stale_while_revalidate, options.default_stale_if_error);
        let terms = Terms {
            received_at: self.received_at,
            initial_age: corrected_initial_age(headers, self.requested_at, self.received_at),
            lifetime: self.lifetime(status, headers)?,
            stale_while_revalidate: or_default(control.stale_while_revalidate, revalidate),
            stale_if_error: or_default(control.stale_if_error, error),
            date: date_of(headers, &DATE, self.received_at).unwrap_or(self.received_at),
            status,
            validators: has_validator(headers, &control.withheld),
            always_validate: control.no_cache,
            never_stale: control.forbids_stale(),
        };
        if terms.is_useless() { Err(WhyNot::Useless) } else { Ok(terms) }
    }

    /// Returns how long the response is fresh: its explicit lifetime, else by the heuristic where that is allowed.
    fn lifetime(&self, status: StatusCode, headers: &HeaderMap) -> Result<u32, WhyNot> {
        let explicit = explicit_lifetime(self.control, headers, self.received_at);
        if explicit.is_none() && !self.control.public && !heuristic_status(status) {
            return Err(WhyNot::NotAllowed);
        }
        if headers.contains_key(SET_COOKIE) && !self.control.public && explicit.unwrap_or(0) == 0 {
            return Err(WhyNot::SetCookie);
        }
        Ok(explicit.unwrap_or_else(|| heuristic_lifetime(self.options, headers, self.received_at)))
    }

    /// The prohibitions of the response, then those of the request.
    fn permitted(&self, status: StatusCode, headers: &HeaderMap) -> Result<(), WhyNot> {
        let control = self.control;
        let understood = understood(status);
        if status == StatusCode::PARTIAL_CONTENT {
            return Err(WhyNot::Partial);
        }
        if status.is_informational() || status == StatusCode::NOT_MODIFIED || (control.must_understand && !understood) {
            return Err(WhyNot::Status);
        }
        // must-understand lets a cache that implements the status ignore no-store (RFC 9111 s5.2.2.3).
        if control.no_store && !control.must_understand {
            return Err(WhyNot::NoStore);
        }
        if control.private {
            return Err(WhyNot::Private);
        }
        if headers.get_all(VARY).iter().any(|line| members(line.as_bytes()).any(|member| member == b"*")) {
            return Err(WhyNot::VaryStar);
        }
        self.permitted_by_request()
    }

    /// The prohibitions of the request.
    fn permitted_by_request(&self) -> Result<(), WhyNot> {
        let control = self.control;
        if RequestDirectives::of(self.request).no_store() {
            return Err(WhyNot::RequestNoStore);
        }
        let shareable = control.public || control.must_revalidate || control.s_maxage.is_some();
        if self.request.headers.contains_key(AUTHORIZATION) && !shareable {
            return Err(WhyNot::Authorization);
        }
        Ok(())
    }
}

/// Returns whether this crate obeys the status's meaning for a cache: a final code of RFC 9110.
fn understood(status: StatusCode) -> bool {
    matches!(status.as_u16(), 200..=205 | 300..=303 | 305 | 307 | 308 | 400..=417 | 421 | 422 | 426 | 500..=505)
}

impl Terms {
    fn is_useless(&self) -> bool {
        let stale = self.always_validate || self.initial_age >= self.lifetime;
        let served_stale = !self.never_stale && (self.stale_while_revalidate > 0 || self.stale_if_error > 0);
        stale && !self.validators && !served_stale
    }
}
