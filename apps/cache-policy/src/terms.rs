//! Decisions made when a response was stored, and their consequences for a look-up.

use crate::directives::MOST_SECONDS;
use crate::{RequestDirectives, Seconds};
use http::StatusCode;

/// Permitted uses of a stored response: a few numbers, decided once by [`crate::store`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    pub(crate) received_at: Seconds,
    pub(crate) initial_age: u32,
    pub(crate) lifetime: u32,
    pub(crate) stale_while_revalidate: u32,
    pub(crate) stale_if_error: u32,
    pub(crate) date: Seconds,
    pub(crate) status: StatusCode,
    /// There is an ETag or a Last-Modified to validate by.
    pub(crate) validators: bool,
    /// no-cache: every use needs a validation.
    pub(crate) always_validate: bool,
    /// must-revalidate or an equivalent: never served stale.
    pub(crate) never_stale: bool,
}

/// Action for a request for which a response is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Serve the stored response.
    Fresh,
    /// Serve the stored response, though stale: the client allows that (max-stale).
    Stale,
    /// Serve the stored response, though stale, and validate it meanwhile (RFC 5861 s3).
    StaleWhileRevalidate,
    /// Validate the stored response at the origin, with [`crate::conditional`].
    Validate,
    /// Fetch a new response from the origin: there is nothing to validate by.
    Refetch,
    /// Answer 504: the client takes a stored response alone, and this one does not do (only-if-cached).
    OnlyIfCachedMiss,
}

impl Terms {
    /// The current age (RFC 9111 s4.2.3), for the Age field; at most 2147483648 (s1.2.2).
    #[must_use]
    pub fn age(&self, now: Seconds) -> u64 {
        let age = u64::from(self.initial_age).saturating_add(now.since(self.received_at));
        age.min(u64::from(MOST_SECONDS))
    }

    /// The seconds of freshness left; negative once stale (RFC 9211 s2.4).
    #[must_use]
    pub fn time_to_live(&self, now: Seconds) -> i64 {
        i64::from(self.lifetime) - self.age(now).cast_signed()
    }

    /// Returns how long the response is fresh from its generation on, in seconds.
    #[must_use]
    pub fn lifetime(&self) -> u32 {
        self.lifetime
    }

    /// Returns when the response was generated, from its Date. If several stored responses suit a request, the latest
    /// one is used (RFC 9111 s4).
    #[must_use]
    pub fn date(&self) -> Seconds {
        self.date
    }

    /// The status of the stored response.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the action for a request that selects this response (RFC 9111 s4).
    #[must_use]
    pub fn answer(&self, directives: &RequestDirectives, now: Seconds) -> Answer {
        match self.usable(directives, now) {
            Some(answer) => answer,
            None if directives.only_if_cached => Answer::OnlyIfCachedMiss,
            None if self.validators => Answer::Validate,
            None => Answer::Refetch,
        }
    }

    /// Returns how the response may be served without a request to the origin, if at all.
    fn usable(&self, directives: &RequestDirectives, now: Seconds) -> Option<Answer> {
        let age = self.age(now);
        if self.always_validate || directives.no_cache || age > u64::from(directives.max_age) {
            return None;
        }
        let lifetime = u64::from(self.lifetime);
        if age < lifetime {
            return (age + u64::from(directives.min_fresh) <= lifetime).then_some(Answer::Fresh);
        }
        if self.never_stale || directives.min_fresh > 0 {
            return None;
        }
        self.usable_stale(directives, age - lifetime)
    }

    /// Returns how the response may be served stale, where nothing forbids it.
    fn usable_stale(&self, directives: &RequestDirectives, staleness: u64) -> Option<Answer> {
        // A client that bounds the age takes no stale response (RFC 9111 s5.2.1.1).
        let wanted = directives.max_stale.is_some() || !directives.bounds_age();
        if wanted && self.stale_while_revalidate > 0 && staleness <= u64::from(self.stale_while_revalidate) {
            return Some(Answer::StaleWhileRevalidate);
        }
        directives.max_stale.filter(|&most| staleness <= u64::from(most)).map(|_| Answer::Stale)
    }

    /// Returns whether the response may be served in place of an error: the origin cannot be reached, or answers 500,
    /// 502, 503 or 504 (RFC 5861 s4, RFC 9111 s4.2.4).
    #[must_use]
    pub fn may_serve_after_error(&self, directives: &RequestDirectives, now: Seconds) -> bool {
        if self.always_validate || (directives.no_cache && directives.stale_if_error == 0) {
            return false;
        }
        if self.time_to_live(now) > 0 {
            return true;
        }
        let staleness = self.age(now) - u64::from(self.lifetime);
        let most = self.stale_if_error.max(directives.stale_if_error);
        !self.never_stale && most > 0 && staleness <= u64::from(most)
    }
}
