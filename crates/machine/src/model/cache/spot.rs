//! The place of a page in a cache's histories of lines.

/// Place of a page in a cache's history.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spot {
    /// History of its first line, + 1; 0: the cache never saw the page.
    first: u32,
    /// The page's part of its lines' sets.
    pub base: u32,
}

impl Spot {
    pub fn new(first_line: u32, base: u32) -> Self {
        Spot { first: first_line + 1, base }
    }

    /// Returns itself, if the cache ever saw the page.
    #[inline]
    pub fn if_seen(self) -> Option<Self> {
        (self.first != 0).then_some(self)
    }

    #[inline]
    pub fn first_line(self) -> u32 {
        self.first.wrapping_sub(1)
    }
}
