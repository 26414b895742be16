//! Directives of a request on the caching of its answer (RFC 9111 s5.2.1, 5.4; RFC 5861 s4).

use crate::RequestHead;
use crate::directives::{Argument, Directive, directives};
use crate::list::members;
use crate::names;
use http::HeaderMap;
use http::header::{CACHE_CONTROL, PRAGMA};

/// A request's directives. The default has none, for a cache with an operator that does not let clients steer it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestDirectives {
    /// The greatest age.
    pub(crate) max_age: u32,
    /// The least time that the response must stay fresh.
    pub(crate) min_fresh: u32,
    /// For how long the response may have been stale; `None` where stale responses are not accepted.
    pub(crate) max_stale: Option<u32>,
    /// For how long the response may have been stale in place of an error.
    pub(crate) stale_if_error: u32,
    pub(crate) no_cache: bool,
    pub(crate) no_store: bool,
    pub(crate) only_if_cached: bool,
}

impl Default for RequestDirectives {
    fn default() -> Self {
        Self {
            max_age: u32::MAX,
            min_fresh: 0,
            max_stale: None,
            stale_if_error: 0,
            no_cache: false,
            no_store: false,
            only_if_cached: false,
        }
    }
}

impl RequestDirectives {
    /// Reads the request's Cache-Control, or Pragma where there is none.
    #[must_use]
    pub fn of(request: &RequestHead<'_>) -> RequestDirectives {
        let mut parsed = RequestDirectives::default();
        if request.headers.contains_key(CACHE_CONTROL) {
            parsed.take_all(request.headers);
        } else if let Some(pragma) = request.headers.get(PRAGMA) {
            parsed.no_cache = members(pragma.as_bytes()).any(|member| member.eq_ignore_ascii_case(b"no-cache"));
        }
        parsed
    }

    /// Returns whether the answer must not be stored (RFC 9111 s5.2.1.5).
    #[must_use]
    pub fn no_store(&self) -> bool {
        self.no_store
    }

    /// Returns whether the client takes only a stored answer (RFC 9111 s5.2.1.7): if nothing is stored, the answer is
    /// 504.
    #[must_use]
    pub fn only_if_cached(&self) -> bool {
        self.only_if_cached
    }

    /// Returns whether the client gives a greatest age.
    pub(crate) fn bounds_age(&self) -> bool {
        self.max_age != u32::MAX
    }

    fn take_all(&mut self, headers: &HeaderMap) {
        let (mut max_age, mut min_fresh, mut stale_if_error) = (None, None, None);
        for directive in directives(headers, &CACHE_CONTROL) {
            let seconds = directive.seconds();
            match directive.name {
                names::MAX_AGE => _ = max_age.get_or_insert(seconds.unwrap_or(0)),
                names::MIN_FRESH => _ = min_fresh.get_or_insert(seconds.unwrap_or(u32::MAX)),
                names::MAX_STALE => self.max_stale = self.max_stale.or_else(|| stale_limit(&directive)),
                names::STALE_IF_ERROR => _ = stale_if_error.get_or_insert(seconds.unwrap_or(0)),
                names::NO_CACHE => self.no_cache = true,
                names::NO_STORE => self.no_store = true,
                names::ONLY_IF_CACHED => self.only_if_cached = true,
                _ => {}
            }
        }
        self.max_age = max_age.unwrap_or(self.max_age);
        self.min_fresh = min_fresh.unwrap_or(0);
        self.stale_if_error = stale_if_error.unwrap_or(0);
    }
}

/// Seconds of max-stale: any staleness without an argument, none with nonsense.
fn stale_limit(directive: &Directive<'_>) -> Option<u32> {
    match directive.argument {
        Argument::None => Some(u32::MAX),
        _ => directive.seconds(),
    }
}
