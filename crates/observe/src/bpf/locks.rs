//! Lock waits by lock and calling point.

use super::futex::FutexSites;
use super::layout::{
    LOCK_FUTEX, LOCK_FUTEX_PI, LOCK_FUTEXV, LOG2_SLOTS, LockEvent, LockKey, LockPending, TaskStat, WaitStat, state,
    trimmed,
};
use super::places::Places;
use super::window::Window;
use super::{BpfError, refused};
use crate::perf::{AddressSpaces, Symbolizer};
use aya::Ebpf;
use aya::maps::{HashMap, PerCpuHashMap, StackTraceMap};
use nearmiss_record::observed::{Frame, Lock};
use std::collections::HashMap as StdMap;

/// Sources of the names of locks.
pub struct Namers<'a> {
    pub symbolizer: &'a mut Symbolizer,
    pub sites: &'a mut FutexSites,
    /// The sampler's record of the processes' mappings, if it runs.
    pub spaces: Option<&'a AddressSpaces>,
}

/// Waits under way at the end of the window, cut there.
pub fn open(ebpf: &Ebpf, living: &[TaskStat], window: Window) -> Result<Vec<LockEvent>, BpfError> {
    if window.end_ns == 0 {
        return Ok(Vec::new());
    }
    let event = |key: LockKey, since_ns: u64, tid: u32, tgid: u32| LockEvent {
        end_ns: window.end_ns,
        wait_ns: window.rest(since_ns),
        address: key.address,
        flags: key.flags,
        stack: key.stack,
        tid,
        tgid,
        cpu: 0,
        padding: 0,
    };
    let sleeping = living.iter().filter(|task| task.state == state::WAITING && task.futex != 0);
    let mut events: Vec<LockEvent> = sleeping
        .map(|task| {
            let key = LockKey { address: task.futex, flags: task.futex_kind, stack: -1, tgid: task.tgid, padding: 0 };
            event(key, task.since_ns, task.tid, task.tgid)
        })
        .collect();
    let map = ebpf.map("lock_waits").ok_or(BpfError::NotBuilt)?;
    let waits: HashMap<_, u64, LockPending> = HashMap::try_from(map).map_err(|e| refused("lock_waits", &e))?;
    for (slot, wait) in waits.iter().flatten() {
        // A spinning CPU has the highest bit; a task has its number.
        let tid = if slot >> 63 == 0 { slot as u32 } else { 0 };
        let tgid = living.iter().find(|task| task.tid == tid).map_or(0, |task| task.tgid);
        let key = LockKey { address: wait.address, flags: wait.flags, stack: wait.stack, tgid: 0, padding: 0 };
        events.push(event(key, wait.begin_ns, tid, tgid));
    }
    events.sort_by_key(|e| (e.tid, e.address));
    Ok(events)
}

/// The waits of a lock, of which `open` are under way.
fn totals(ebpf: &Ebpf, open: &[LockEvent]) -> Result<StdMap<LockKey, Lock>, BpfError> {
    let map = ebpf.map("lock_stats").ok_or(BpfError::NotBuilt)?;
    let stats: PerCpuHashMap<_, LockKey, WaitStat> =
        PerCpuHashMap::try_from(map).map_err(|e| refused("lock_stats", &e))?;
    let mut all: StdMap<LockKey, Vec<WaitStat>> =
        stats.iter().flatten().map(|(key, cells)| (key, cells.to_vec())).collect();
    for event in open {
        let tgid = if event.flags >= LOCK_FUTEX { event.tgid } else { 0 };
        let key = LockKey { address: event.address, flags: event.flags, stack: event.stack, tgid, padding: 0 };
        all.entry(key).or_default().push(one_wait(event.wait_ns));
    }
    Ok(all.into_iter().map(|(key, cells)| (key, sum(&key, cells.iter()))).collect())
}

fn one_wait(ns: u64) -> WaitStat {
    let mut log2_ns = [0; LOG2_SLOTS];
    if let Some(slot) = log2_ns.get_mut((ns.max(1).ilog2() as usize).min(LOG2_SLOTS - 1)) {
        *slot = 1;
    }
    WaitStat { count: 1, total_ns: ns, max_ns: ns, inverse_min_ns: !ns, log2_ns }
}

/// Locks with their waits, longest total first.
pub fn rows(ebpf: &Ebpf, open: &[LockEvent], names: &mut Namers<'_>) -> Result<Vec<Lock>, BpfError> {
    let map = ebpf.map("lock_stacks").ok_or(BpfError::NotBuilt)?;
    let stacks = StackTraceMap::try_from(map).map_err(|e| refused("lock_stacks", &e))?;
    let places = Places::read(ebpf);
    let map = ebpf.map("acquisitions").ok_or(BpfError::NotBuilt)?;
    let taken: HashMap<_, LockKey, u64> = HashMap::try_from(map).map_err(|e| refused("acquisitions", &e))?;
    let mut rows = Vec::new();
    for (key, mut row) in totals(ebpf, open)? {
        if key.flags >= LOCK_FUTEX {
            row.process = Some(key.tgid as i32);
            // A lock that was never counted as taken is no mutex of libc.
            row.acquisitions = taken.get(&key, 0).unwrap_or(0);
            names.sites.describe(&mut row, names.symbolizer, names.spaces);
            row.contended = key.flags & LOCK_FUTEX_PI != 0 || matches!(row.name.as_str(), "mutex" | "rwlock");
        } else {
            row.contended = true;
            let place = || places.name(key.address).map(str::to_owned);
            row.name = names.symbolizer.kernel_variable(key.address).or_else(place).unwrap_or_default();
            row.stack = kernel_stack(&stacks, key.stack, names.symbolizer);
        }
        rows.push(row);
    }
    longest_first(&mut rows);
    Ok(rows)
}

fn longest_first(rows: &mut [Lock]) {
    rows.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then(a.address.cmp(&b.address)).then(a.kind.cmp(&b.kind)));
}

/// Callers of a kernel lock that distinguish its rows.
const CALLERS: usize = 3;

/// Merges locks that no reader could distinguish into one row: locks of the kernel with the same name and the same
/// callers, of as many as a report shows, and what threads of one process wait for at one point without contention,
/// such as the ends of other threads. Contended locks of a program, and all without a name, go by the address.
pub fn merged(rows: Vec<Lock>) -> Vec<Lock> {
    let mut merged: Vec<Lock> = Vec::new();
    let mut places: StdMap<_, usize> = StdMap::new();
    for row in rows {
        let callers: Vec<String> = row.stack.iter().take(CALLERS).map(|f| f.function.clone()).collect();
        let by_address = row.name.is_empty() || (row.process.is_some() && (row.contended || !row.variable.is_empty()));
        let address = if by_address { row.address } else { 0 };
        let key = (row.kind.clone(), row.name.clone(), row.process, address, callers);
        let place = *places.entry(key).or_insert(merged.len());
        match merged.get_mut(place) {
            Some(first) => join(first, &row),
            None => merged.push(row),
        }
    }
    longest_first(&mut merged);
    merged
}

fn join(first: &mut Lock, other: &Lock) {
    if first.address != other.address {
        first.alike = first.alike.max(1) + 1;
    }
    for (frame, waits) in &other.call_sites {
        match first.call_sites.iter_mut().find(|(known, _)| known == frame) {
            Some((_, sum)) => *sum += waits,
            None => first.call_sites.push((frame.clone(), *waits)),
        }
    }
    first.count += other.count;
    first.total_ns += other.total_ns;
    first.min_ns = first.min_ns.min(other.min_ns);
    first.max_ns = first.max_ns.max(other.max_ns);
    if first.log2_ns.len() < other.log2_ns.len() {
        first.log2_ns.resize(other.log2_ns.len(), 0);
    }
    for (sum, n) in first.log2_ns.iter_mut().zip(&other.log2_ns) {
        *sum += n;
    }
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
    fn kernel_locks_that_read_alike_are_one_row() {
        let lock = |address, name: &str, callers: &[&str], process| Lock {
            address,
            kind: if process > 0 { "futex" } else { "spinlock" }.to_owned(),
            name: name.to_owned(),
            process: (process > 0).then_some(process),
            stack: callers.iter().map(|f| Frame { function: (*f).to_owned(), ..Frame::default() }).collect(),
            count: 2,
            total_ns: 10 * address,
            min_ns: address,
            max_ns: 9 * address,
            log2_ns: vec![1; address as usize],
            ..Lock::default()
        };
        let deep = |last| ["a", "b", "c", last];
        let rows = merged(vec![
            lock(5, "rq.__lock", &deep("d"), 0),
            lock(4, "rq.__lock", &deep("e"), 0),
            lock(3, "", &deep("d"), 0),
            lock(2, "", &deep("d"), 0),
            lock(1, "mutex", &deep("d"), 7),
            lock(1, "mutex", &deep("d"), 8),
            lock(8, "thread join", &deep("d"), 7),
            lock(9, "thread join", &deep("d"), 7),
            lock(6, "rq.__lock", &["x"], 0),
        ]);
        let summed: Vec<_> = rows.iter().map(|l| (l.address, l.count, l.total_ns)).collect();
        assert_eq!(summed, [(8, 4, 170), (5, 4, 90), (6, 2, 60), (3, 2, 30), (2, 2, 20), (1, 2, 10), (1, 2, 10)]);
        assert_eq!((rows[1].min_ns, rows[1].max_ns, rows[1].log2_ns.clone()), (4, 45, vec![2, 2, 2, 2, 1]));
        assert_eq!((rows[0].alike, rows[1].alike, rows[2].alike), (2, 2, 0));
    }

    #[test]
    fn a_wait_under_way_is_a_wait() {
        let key = LockKey { address: 1, flags: LOCK_FUTEX, stack: -1, tgid: 1, padding: 0 };
        let row = sum(&key, [one_wait(1_000), one_wait(0)].iter());
        assert_eq!((row.count, row.total_ns, row.min_ns, row.max_ns), (2, 1_000, 0, 1_000));
        assert_eq!((row.log2_ns[0], row.log2_ns[9], row.log2_ns.len()), (1, 1, 10));
    }

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
