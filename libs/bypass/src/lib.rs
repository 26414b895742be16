//! Copies and fills that go past the CPU's caches, for what will not be read again soon.
//!
//! An ordinary copy brings every line that it writes into the caches, and there the line takes the place of one that may
//! be needed again. A log record, a page that waits for the disk or a frame for another device is not read again before
//! it is pushed out itself. Such a copy may go past the caches:
//!
//! ```
//! let record = [7u8; 4096];
//! let mut page = vec![0u8; 4096];
//! nearmiss_bypass::copy(&mut page, &record);
//! assert_eq!(page, record);
//! nearmiss_bypass::fill(&mut page, 0);
//! assert!(page.iter().all(|byte| *byte == 0));
//! ```
//!
//! Do not use them where the target is read soon: the reader then fetches each line from memory. Nor where the target
//! and what else is used fit the caches together, nor for less than some lines (512 bytes). The reads still come
//! through the caches. On CPUs without such stores (any but x86-64), these are ordinary copies. The same in C and C++
//! is `nearmiss-bypass.h`; `nearmiss rehearse bypass` predicts what a copy would gain or lose.

#![no_std]

/// Bytes of a line.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;

/// Copies `from` to `to`; whole lines of `to` go past the caches.
///
/// # Panics
/// As `copy_from_slice`: if the lengths differ.
pub fn copy(to: &mut [u8], from: &[u8]) {
    assert_eq!(to.len(), from.len(), "source and target of a copy have one length");
    let (before, lines) = whole_lines(to);
    to[..before].copy_from_slice(&from[..before]);
    stream(&mut to[before..before + lines], &from[before..before + lines]);
    to[before + lines..].copy_from_slice(&from[before + lines..]);
    order();
}

/// Fills `to`; its whole lines go past the caches.
pub fn fill(to: &mut [u8], byte: u8) {
    let (before, lines) = whole_lines(to);
    to[..before].fill(byte);
    #[cfg(target_arch = "x86_64")]
    let source = [byte; LINE];
    #[cfg(target_arch = "x86_64")]
    to[before..before + lines].chunks_exact_mut(LINE).for_each(|line| stream(line, &source));
    to[before + lines..].fill(byte);
    order();
}

/// Bytes before the first whole line, and bytes of all whole lines.
fn whole_lines(to: &[u8]) -> (usize, usize) {
    #[cfg(target_arch = "x86_64")]
    {
        let before = to.as_ptr().addr().wrapping_neg() % LINE;
        match to.len().checked_sub(before) {
            Some(rest) => (before, rest - rest % LINE),
            None => (to.len(), 0),
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    (to.len(), 0)
}

/// Whole lines, at a line's begin, past the caches.
#[cfg(target_arch = "x86_64")]
fn stream(to: &mut [u8], from: &[u8]) {
    use core::arch::x86_64::{__m128i, _MM_HINT_NTA, _mm_loadu_si128, _mm_prefetch, _mm_stream_si128};
    const PARTS: usize = LINE / size_of::<__m128i>();
    for (target, source) in to.chunks_exact_mut(LINE).zip(from.chunks_exact(LINE)) {
        let (target, source) = (target.as_mut_ptr().cast::<__m128i>(), source.as_ptr().cast::<__m128i>());
        // SAFETY: both have LINE bytes and do not overlap, since one of them is borrowed mutably; the target begins at
        // a multiple of LINE (`whole_lines`), as the stores require; a prefetch touches nothing, wherever it points.
        unsafe {
            let parts: [__m128i; PARTS] = core::array::from_fn(|part| _mm_loadu_si128(source.add(part)));
            _mm_prefetch::<_MM_HINT_NTA>(source.wrapping_add(16 * PARTS).cast());
            for (part, value) in parts.into_iter().enumerate() {
                _mm_stream_si128(target.add(part), value);
            }
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn stream(to: &mut [u8], from: &[u8]) {
    to.copy_from_slice(from);
}

/// Orders the data written before later stores, as for every other store.
fn order() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a fence touches no memory.
    unsafe {
        core::arch::x86_64::_mm_sfence();
    }
}
