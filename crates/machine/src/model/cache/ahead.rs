//! Fetches the data of a near access into this machine's own caches.

use super::Cache;
use crate::model::cache::frame::Frame;
use crate::model::fast::prefetch::prefetch;

impl Cache {
    /// Fetches the data that a lookup of the line in `set` will read.
    #[inline]
    pub fn prefetch(&self, set: usize, line: u32) {
        prefetch(&self.history, line as usize);
        prefetch(&self.states, set);
        self.order.prefetch(set, self.ways);
    }

    /// Fetches the data that another CPU's miss on the line will read.
    #[inline]
    pub fn prefetch_line(&self, line: u32) {
        prefetch(&self.history, line as usize);
    }

    /// Fetches the data that a hit will change beyond that.
    #[inline]
    pub fn prefetch_hit(&self, frame: usize) {
        prefetch(&self.flags, frame);
    }

    /// Fetches the data that a fill of the set will read, as far as it is known before. Returns address and page of the
    /// line that will have to go.
    #[inline]
    pub fn prefetch_fill(&self, set: usize) -> Option<(u64, u32)> {
        prefetch(&self.sets, set);
        let state = self.states[set];
        if state.used as usize != self.ways {
            return None;
        }
        let base = set * self.ways;
        let way = self.order.next(state.order, base, self.ways)?;
        let Frame { address, line, page, displaced, .. } = self.frames[base + way];
        prefetch(&self.history, line as usize);
        prefetch(&self.history, displaced as usize);
        Some((address, page))
    }
}
