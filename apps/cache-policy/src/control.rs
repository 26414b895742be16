//! The directives of a response about its caching (RFC 9111 s5.2.2, RFC 5861).

use crate::directives::{Argument, Directive, directives};
use crate::list::members;
use crate::names;
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, DATE, EXPIRES, VARY};
use http::{HeaderMap, HeaderName};

/// A response's directives, of one field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Control {
    /// The directives come from a targeted field, so that Expires does not count (RFC 9213 s2.2).
    pub targeted: bool,
    pub max_age: Option<u32>,
    pub s_maxage: Option<u32>,
    pub stale_while_revalidate: Option<u32>,
    pub stale_if_error: Option<u32>,
    pub no_store: bool,
    pub no_cache: bool,
    pub private: bool,
    pub public: bool,
    pub must_revalidate: bool,
    pub proxy_revalidate: bool,
    pub must_understand: bool,
    /// The fields that a qualified no-cache or private names.
    pub withheld: Vec<HeaderName>,
}

impl Control {
    /// Returns the directives of Cache-Control.
    pub fn of_cache_control(headers: &HeaderMap) -> Self {
        let mut control = Control::default();
        for directive in directives(headers, &CACHE_CONTROL) {
            control.take(&directive);
        }
        control
    }

    /// Returns whether a cache that several clients share may not serve the response once it is stale (RFC 9111
    /// s5.2.2.2, 5.2.2.8, 5.2.2.10).
    pub fn forbids_stale(&self) -> bool {
        self.no_cache || self.must_revalidate || self.proxy_revalidate || self.s_maxage.is_some()
    }

    /// Takes one directive in. A restriction counts with any argument. If a directive with seconds is repeated, the
    /// first one counts, and nonsense in it means stale (RFC 9111 s4.2.1).
    pub fn take(&mut self, directive: &Directive<'_>) {
        let seconds = directive.seconds();
        match directive.name {
            names::MAX_AGE => _ = self.max_age.get_or_insert(seconds.unwrap_or(0)),
            names::S_MAXAGE => _ = self.s_maxage.get_or_insert(seconds.unwrap_or(0)),
            names::STALE_WHILE_REVALIDATE => _ = self.stale_while_revalidate.get_or_insert(seconds.unwrap_or(0)),
            names::STALE_IF_ERROR => _ = self.stale_if_error.get_or_insert(seconds.unwrap_or(0)),
            names::NO_STORE => self.no_store = true,
            names::NO_CACHE => self.no_cache |= !self.withholds(&directive.argument),
            names::PRIVATE => self.private |= !self.withholds(&directive.argument),
            names::PUBLIC => self.public = true,
            names::MUST_REVALIDATE => self.must_revalidate = true,
            names::PROXY_REVALIDATE => self.proxy_revalidate = true,
            names::MUST_UNDERSTAND => self.must_understand = true,
            _ => {}
        }
    }

    /// Notes the fields that a qualified directive names; returns `false` where the argument names none, or one without
    /// which the rest cannot be used, so that the directive applies to the whole response.
    fn withholds(&mut self, argument: &Argument<'_>) -> bool {
        let Argument::Text(list) = argument else { return false };
        let named: Result<Vec<_>, _> = members(list).map(HeaderName::from_bytes).collect();
        let Some(named) = named.ok().filter(|named| !named.is_empty() && !named.iter().any(is_needed)) else {
            return false;
        };
        self.withheld.extend(named);
        true
    }
}

/// Returns whether a stored response without this field would be another one: the field specifies what the bytes are,
/// whom they are for, or how long they are good.
fn is_needed(field: &HeaderName) -> bool {
    const NEEDED: [HeaderName; 7] =
        [CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, DATE, EXPIRES, VARY];
    NEEDED.contains(field) || field.as_str().ends_with("cache-control")
}
