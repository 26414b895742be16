//! Cache line of this host, for libraries that are preloaded here.

/// Bytes of a line of the first level; 64 where the host names none.
pub(crate) fn host_line_bytes() -> u32 {
    // SAFETY: sysconf has no memory effects.
    let bytes = unsafe { libc::sysconf(libc::_SC_LEVEL1_DCACHE_LINESIZE) };
    u32::try_from(bytes).ok().filter(|b| b.is_power_of_two() && (16..=1024).contains(b)).unwrap_or(64)
}
