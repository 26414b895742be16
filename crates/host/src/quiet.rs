//! Whether this machine did anything else while something was measured on it.

use rustix::time::{ClockId, clock_gettime};
use std::time::Instant;

/// Ticks a second of /proc/stat, on every Linux of today.
const TICKS: f64 = 100.0;
/// What others may use of one CPU.
const LITTLE: f64 = 0.15;

/// Runs `measure`, and tells whether others left the CPUs alone meanwhile.
pub fn watched<T>(measure: impl FnOnce() -> T) -> (T, bool) {
    let (started, before) = (Instant::now(), others());
    let measured = measure();
    let elapsed = started.elapsed().as_secs_f64();
    let quiet = match (before, others()) {
        (Some(before), Some(after)) => after - before < LITTLE * elapsed.max(0.1),
        _ => true,
    };
    (measured, quiet)
}

/// Ticks that the hypervisor kept CPUs of this machine for others, since it started.
pub fn stolen() -> Option<u64> {
    const STEAL: usize = 7;
    ticks()?.get(STEAL).map(|ticks| *ticks as u64)
}

/// What /proc/stat says of all CPUs.
fn ticks() -> Option<Vec<f64>> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    Some(stat.lines().next()?.split_whitespace().skip(1).map_while(|t| t.parse().ok()).collect())
}

/// Seconds that all CPUs worked for others than this process since the machine started.
fn others() -> Option<f64> {
    let ticks = ticks()?;
    // user nice system idle iowait irq softirq steal guest guest_nice: guests are counted as users too.
    let busy: f64 = ticks.iter().take(8).enumerate().filter(|(at, _)| !(3..=4).contains(at)).map(|(_, t)| t).sum();
    let own = clock_gettime(ClockId::ProcessCPUTime);
    Some(busy / TICKS - own.tv_sec as f64 - own.tv_nsec as f64 * 1e-9)
}
