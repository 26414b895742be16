//! Lock waits by lock and calling point.

use super::futex::FutexSites;
use super::layout::{LOCK_FUTEX, LOCK_FUTEX_PI, LOCK_FUTEXV, LOG2_SLOTS, LockKey, WaitStat, trimmed};
use super::places::Places;
use super::{BpfError, refused};
use crate::perf::Symbolizer;
use aya::Ebpf;
use aya::maps::{HashMap, PerCpuHashMap, StackTraceMap};
use nearmiss_record::observed::{Frame, Lock};

pub fn rows(ebpf: &Ebpf, symbolizer: &mut Symbolizer, sites: &mut FutexSites) -> Result<Vec<Lock>, BpfError> {
    let map = ebpf.map("lock_stats").ok_or(BpfError::NotBuilt)?;
    let stats: PerCpuHashMap<_, LockKey, WaitStat> =
        PerCpuHashMap::try_from(map).map_err(|e| refused("lock_stats", &e))?;
    let map = ebpf.map("lock_stacks").ok_or(BpfError::NotBuilt)?;
    let stacks = StackTraceMap::try_from(map).map_err(|e| refused("lock_stacks", &e))?;
    let places = Places::read(ebpf);
    let map = ebpf.map("acquisitions").ok_or(BpfError::NotBuilt)?;
    let taken: HashMap<_, LockKey, u64> = HashMap::try_from(map).map_err(|e| refused("acquisitions", &e))?;
    let mut rows = Vec::new();
    for (key, cells) in stats.iter().flatten() {
        let mut row = sum(&key, cells.iter());
        if key.flags >= LOCK_FUTEX {
            row.process = Some(key.tgid as i32);
            // A lock that was never counted as taken is no mutex of libc.
            row.acquisitions = taken.get(&key, 0).unwrap_or(0);
            sites.describe(&mut row, symbolizer);
            row.contended = key.flags & LOCK_FUTEX_PI != 0 || matches!(row.name.as_str(), "mutex" | "rwlock");
        } else {
            row.contended = true;
            let place = || places.name(key.address).map(str::to_owned);
            row.name = symbolizer.kernel_variable(key.address).or_else(place).unwrap_or_default();
            row.stack = kernel_stack(&stacks, key.stack, symbolizer);
        }
        rows.push(row);
    }
    rows.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then(a.address.cmp(&b.address)));
    Ok(rows)
}

fn sum<'a>(key: &LockKey, cells: impl Iterator<Item = &'a WaitStat>) -> Lock {
    let mut row = Lock { address: key.address, kind: kind(key.flags), min_ns: u64::MAX, ..Lock::default() };
    let mut slots = [0u32; LOG2_SLOTS];
    for cell in cells.filter(|c| c.count > 0) {
        row.count += cell.count;
        row.total_ns += cell.total_ns;
        row.max_ns = row.max_ns.max(cell.max_ns);
        row.min_ns = row.min_ns.min(!cell.inverse_min_ns);
        for (sum, n) in slots.iter_mut().zip(cell.log2_ns) {
            *sum += n;
        }
    }
    row.log2_ns = trimmed(&slots);
    row
}

/// The kernel's flags in the words of `perf lock contention`.
pub fn kind(flags: u32) -> String {
    const SPIN: u32 = 1;
    const READ: u32 = 2;
    const WRITE: u32 = 4;
    const RT: u32 = 8;
    const PERCPU: u32 = 16;
    const MUTEX: u32 = 32;
    let side = match flags & (READ | WRITE) {
        READ => ":R",
        WRITE => ":W",
        _ => "",
    };
    let base = match flags {
        f if f & LOCK_FUTEX_PI != 0 => "futex (priority inheriting)",
        f if f & LOCK_FUTEXV != 0 => "futex (vector)",
        f if f & LOCK_FUTEX != 0 => "futex",
        f if f & MUTEX != 0 => "mutex",
        f if f & PERCPU != 0 => "percpu-rwsem",
        f if f & RT != 0 => "rtmutex",
        f if f & SPIN != 0 && f & (READ | WRITE) != 0 => "rwlock",
        f if f & SPIN != 0 => "spinlock",
        f if f & (READ | WRITE) != 0 => "rwsem",
        _ => "mutex",
    };
    format!("{base}{side}")
}

fn kernel_stack(stacks: &StackTraceMap<&aya::maps::MapData>, id: i32, symbolizer: &mut Symbolizer) -> Vec<Frame> {
    let Ok(id) = u32::try_from(id) else { return Vec::new() };
    let Ok(trace) = stacks.get(&id, 0) else { return Vec::new() };
    let frames: Vec<Frame> = trace.frames().iter().flat_map(|f| symbolizer.in_kernel(f.ip.saturating_sub(1))).collect();
    let caller = frames.iter().position(|f| !inside_lock(&f.function)).unwrap_or(0);
    frames.into_iter().skip(caller).collect()
}

/// Functions of the locks themselves, and of the tracing: the calling point is what called them.
fn inside_lock(function: &str) -> bool {
    const PARTS: [&str; 22] = [
        "bpf_",
        "__bpf_",
        "__traceiter",
        "_raw_spin",
        "_raw_read",
        "_raw_write",
        "native_queued",
        "queued_",
        "__pv_queued",
        "pv_queued",
        "__mutex",
        "mutex_lock",
        "down_read",
        "down_write",
        "__down",
        "rwsem_down",
        "rt_mutex",
        "__rt_mutex",
        "ww_mutex",
        "percpu_down",
        "__percpu",
        "trace_contention",
    ];
    PARTS.iter().any(|part| function.starts_with(part)) || function.contains("_slowpath")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_perfs_words() {
        assert_eq!(kind(1), "spinlock");
        assert_eq!(kind(1 | 4), "rwlock:W");
        assert_eq!(kind(2), "rwsem:R");
        assert_eq!(kind(32 | 1), "mutex");
        assert_eq!(kind(0), "mutex");
        assert_eq!(kind(0x100), "futex");
    }
}
