//! The one clock of an observation.

/// `CLOCK_MONOTONIC`, in nanoseconds: what BPF programs and sample records carry too.
pub fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}
