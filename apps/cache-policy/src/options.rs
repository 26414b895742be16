//! Options of an operator where the RFCs leave a choice.

use crate::Seconds;
use http::HeaderName;

/// The operator's choices. The default obeys the origin alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The part of the time since `Last-Modified` for which a response without explicit freshness is fresh (RFC 9111
    /// s4.2.2). 0 turns heuristics off.
    pub heuristic_fraction: f64,
    /// The longest freshness that the heuristic gives.
    pub heuristic_most: Seconds,
    /// How long a stale response may be served during its revalidation, where the response does not specify it (RFC
    /// 5861 s3).
    pub default_stale_while_revalidate: Seconds,
    /// How long a stale response may be served in place of an error, where the response does not specify it (RFC 5861
    /// s4).
    pub default_stale_if_error: Seconds,
    /// Targeted fields that apply to this cache, the most specific first (RFC 9213 s2.2).
    pub targeted: Vec<HeaderName>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            heuristic_fraction: 0.1,
            heuristic_most: Seconds(24 * 3600),
            default_stale_while_revalidate: Seconds(0),
            default_stale_if_error: Seconds(0),
            targeted: vec![HeaderName::from_static("cdn-cache-control")],
        }
    }
}
