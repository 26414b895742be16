//! A cache's history of a line that it ever saw: one word a line, in blocks of a page.

use crate::model::cache::shadow::{TIME_BITS, Time};

/// Relation of a line to a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Standing {
    /// Not seen yet.
    Never = 0,
    /// In frame `value`.
    Present = 1,
    /// Evicted, without blame.
    Evicted = 2,
    /// Evicted by the line that still is in frame `value`.
    EvictedBy = 3,
    /// Evicted by a line that instruction `value` brought in and that was never reused.
    Polluted = 4,
    /// Taken by another CPU.
    Taken = 5,
    /// Invalidated because an inclusive outer cache evicted it.
    Victim = 6,
    /// Handed on to a nearer cache by an exclusive one.
    Away = 7,
}

/// Standing, its value, and the time of the line's last request in the cache's shadow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct History(u64);

const VALUE_SHIFT: u32 = 3;
/// Numbers of frames and ids of instructions have 28 bits.
const VALUE_MASK: u64 = (1 << 28) - 1;
/// Standing and value have what times leave of a word.
const TIME_SHIFT: u32 = 64 - TIME_BITS;

impl History {
    #[inline]
    pub fn standing(self) -> Standing {
        match self.0 & 7 {
            0 => Standing::Never,
            1 => Standing::Present,
            2 => Standing::Evicted,
            3 => Standing::EvictedBy,
            4 => Standing::Polluted,
            5 => Standing::Taken,
            6 => Standing::Victim,
            _ => Standing::Away,
        }
    }

    /// Whether it stands so, with this value.
    #[inline]
    pub fn is(self, standing: Standing, value: u32) -> bool {
        self.0 & ((1 << TIME_SHIFT) - 1) == u64::from(value) << VALUE_SHIFT | standing as u64
    }

    /// Returns a frame or an instruction, depending on the standing.
    #[inline]
    pub fn value(self) -> u32 {
        (self.0 >> VALUE_SHIFT & VALUE_MASK) as u32
    }

    /// Returns the time of the last request in the shadow.
    #[inline]
    pub fn time(self) -> Time {
        self.0 >> TIME_SHIFT
    }

    #[inline]
    pub fn stands(&mut self, standing: Standing, value: u32) {
        self.0 = self.0 >> TIME_SHIFT << TIME_SHIFT | u64::from(value) << VALUE_SHIFT | standing as u64;
    }

    #[inline]
    pub fn set_time(&mut self, time: Time) {
        self.0 = self.0 & ((1 << TIME_SHIFT) - 1) | time << TIME_SHIFT;
    }
}
