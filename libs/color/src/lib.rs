//! Cache coloring for objects in pieces of memory of a power-of-two size and alignment, such
//! as a task structure at the bottom of its stack.
//!
//! Such objects all begin at the same offset, so their first fields share a few cache sets:
//! walking many of them misses on nearly each. Coloring shifts each object within its own
//! piece by some whole cache lines, and takes their number from the address of the piece:
//!
//! ```text
//! object = base | (base >> k) & mask
//! ```
//!
//! so that the object is found again from any pointer into the piece without a field or a table. A run queue with tasks
//! in pieces of 8 KB, in 32 colors of 64 bytes:
//!
//! ```
//! use nearmiss_color::Coloring;
//!
//! let coloring = Coloring::new(8192, 64, 32).ok_or("not powers of two")?;
//! let piece = 0x7f00_0000_6000;                // the fourth in a row
//! let task = coloring.object(piece);
//! assert_eq!(task, piece + 3 * 64);
//! assert_eq!(coloring.object(piece + 5000), task); // from a stack pointer
//! assert_eq!(coloring.piece(task), piece);         // to free it
//! assert_eq!(coloring.room_bytes(), 8192 - 31 * 64);
//! # Ok::<(), &str>(())
//! ```
//!
//! How many colors: the pieces that a cache can hold at once are its ways × max(1, way / piece)
//! a color. Fewer colors than are needed only spread the misses. The same in C and C++ is
//! `nearmiss-color.h`.

#![no_std]

#[cfg(feature = "std")]
extern crate std;

/// Places of objects in their pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coloring {
    piece_bytes: usize,
    mask: usize,
    shift: u32,
}

impl Coloring {
    /// Pieces of `piece_bytes` in `colors` colors of `line_bytes`. All must be powers of two,
    /// and the colors may take up to half the piece; `None` otherwise.
    pub const fn new(piece_bytes: usize, line_bytes: usize, colors: usize) -> Option<Self> {
        if !piece_bytes.is_power_of_two() {
            return None;
        }
        Self::from_bit(piece_bytes, line_bytes, colors, piece_bytes.ilog2())
    }

    /// As [`Coloring::new`], with the color taken from the address bits from `bit` on, which
    /// must lie above the piece's.
    ///
    /// Neighbours in memory differ in color if that is the piece's own size. Pages that lie in
    /// memory as they do in the address space (huge pages) gain from bits above the cache's
    /// index.
    pub const fn from_bit(piece_bytes: usize, line_bytes: usize, colors: usize, bit: u32) -> Option<Self> {
        let powers = piece_bytes.is_power_of_two() && line_bytes.is_power_of_two() && colors.is_power_of_two();
        if !powers || colors > piece_bytes / line_bytes / 2 || bit < piece_bytes.ilog2() || bit >= usize::BITS {
            return None;
        }
        Some(Coloring { piece_bytes, mask: (colors - 1) * line_bytes, shift: bit - line_bytes.ilog2() })
    }

    /// The beginning of the piece that an address lies in.
    pub const fn piece(&self, inside: usize) -> usize {
        inside & !(self.piece_bytes - 1)
    }

    /// The address of the object of the piece that an address lies in.
    pub const fn object(&self, inside: usize) -> usize {
        let base = self.piece(inside);
        base | ((base >> self.shift) & self.mask)
    }

    /// The object of the piece that a pointer points into, with the pointer's provenance.
    pub fn object_of<T>(&self, inside: *mut u8) -> *mut T {
        inside.map_addr(|address| self.object(address)).cast()
    }

    /// Bytes from the object to the end of its piece that are there in every color.
    pub const fn room_bytes(&self) -> usize {
        self.piece_bytes - self.mask
    }
}

/// Returns how many colors `nearmiss apply color` requests: the environment variable `NEARMISS_COLOR`, rounded down to
/// a power of two; 1 where it is not set, which is no coloring.
#[cfg(feature = "std")]
pub fn requested_colors() -> usize {
    let requested = std::env::var("NEARMISS_COLOR").ok().and_then(|text| text.trim().parse::<usize>().ok());
    requested.filter(|n| (1..=1024).contains(n)).map_or(1, |n| 1 << n.ilog2())
}
