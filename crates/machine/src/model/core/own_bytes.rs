//! Bytes of a line that a core has stored to a moment ago.
//!
//! A load of nothing but such bytes takes its value from the store buffer or from a store under way, and needs no line.

/// Bytes stored in the core's present window of instructions and in the one before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OwnBytes {
    window: u64,
    bytes: [u64; 2],
}

impl OwnBytes {
    /// Stores to these bytes in the window of that number.
    pub fn store(&mut self, window: u64, bytes: u64) {
        self.bytes = self.at(window);
        self.window = window;
        self.bytes[0] |= bytes;
    }

    /// Whether the core has stored to all of these bytes lately.
    pub fn cover(&self, window: u64, bytes: u64) -> bool {
        let [present, before] = self.at(window);
        bytes & !(present | before) == 0
    }

    fn at(&self, window: u64) -> [u64; 2] {
        match window.wrapping_sub(self.window) {
            0 => self.bytes,
            1 => [0, self.bytes[0]],
            _ => [0; 2],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::OwnBytes;

    #[test]
    fn bytes_are_covered_for_two_windows() {
        let mut own = OwnBytes::default();
        assert!(!own.cover(0, 1));
        own.store(3, 0xff);
        own.store(3, 0xff00);
        assert!(own.cover(3, 0xffff) && own.cover(4, 0xff00) && !own.cover(5, 1), "one window ago at most");
        assert!(!own.cover(3, 0x1_00ff), "one of them was not stored to");
        own.store(4, 0xff_0000);
        assert!(own.cover(4, 0xff_ffff) && own.cover(5, 0xff_0000) && !own.cover(5, 0xff));
    }
}
