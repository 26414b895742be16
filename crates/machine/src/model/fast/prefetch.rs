//! Fetching ahead into this machine's caches: the model waits for its own memory more than for anything else.

/// Prefetches the line of `slice[at]`; out of range: nothing.
#[inline]
pub(crate) fn prefetch<T>(slice: &[T], at: usize) {
    let Some(item) = slice.get(at) else { return };
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing into the program and cannot fault; SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(item).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = item;
}
