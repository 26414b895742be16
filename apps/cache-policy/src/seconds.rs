//! Time in whole seconds, as HTTP counts it.

/// Seconds since the epoch for an instant, or seconds alone for a span.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seconds(pub u64);

impl Seconds {
    /// The seconds from `earlier` to `self`; 0 where `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Seconds) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
