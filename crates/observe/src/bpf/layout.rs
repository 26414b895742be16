//! Mirrors of `native/bpf/observe.h`, byte for byte.

use std::mem::size_of;

pub const LOG2_SLOTS: usize = 40;
pub const LOCK_FUTEX: u32 = 0x100;
pub const LOCK_FUTEX_PI: u32 = 0x200;
pub const LOCK_FUTEXV: u32 = 0x400;
pub const USER_STACK_BYTES: usize = 2048;
pub const REASON_BLOCK_IO: u32 = 1;
pub const REASON_KERNEL_LOCK: u32 = 2;
pub const REASON_PAGE_FAULT: u32 = 3;
pub const REASON_KERNEL_THREAD: u32 = 4;
pub const REASON_OTHER: u32 = 5;
pub const REASON_SYSCALL: u32 = 16;
pub const OFF_REASONS: usize = 12;
pub const FLOWS: usize = 5;

/// The poll family, in the order of `enum poll_kind`.
pub const POLL_CALLS: [&str; 8] =
    ["poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2", "io_uring_enter"];

macro_rules! mirror {
    ($(#[$doc:meta])* $name:ident, $bytes:expr, { $($field:ident: $type:ty),* $(,)? }) => {
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct $name { $(pub $field: $type),* }
        const _: () = assert!(size_of::<$name>() == $bytes);
        // SAFETY: plain integers and arrays of them, without padding: the size above is the sum of the fields.
        unsafe impl aya::Pod for $name {}
    };
}

mirror!(LockKey, 24, { address: u64, flags: u32, stack: i32, tgid: u32, padding: u32 });
mirror!(WaitStat, 192, { count: u64, total_ns: u64, max_ns: u64, inverse_min_ns: u64, log2_ns: [u32; LOG2_SLOTS] });
mirror!(LockPlace, 8, { owner: u32, offset: u32 });
mirror!(LockEvent, 48, {
    end_ns: u64, wait_ns: u64, address: u64, flags: u32, stack: i32, tid: u32, tgid: u32, cpu: u32, padding: u32,
});
mirror!(FutexStack, 48 + USER_STACK_BYTES, {
    address: u64, ip: u64, sp: u64, bp: u64, tgid: u32, tid: u32, bytes: u32, nth: u32, stack: [u8; USER_STACK_BYTES],
});
mirror!(PollStat, 432, {
    tid: u32, kind: u32, started_ns: u64, enter_ns: u64, enter_runtime_ns: u64, requested: u64, timeout_ns: i64,
    tgid: u32, last_cpu: u32, calls: u64, requested_total: u64, events: u64, with_events: u64, empty: u64, failed: u64,
    zero_timeout: u64, blocked_ns: u64, on_cpu_ns: u64, intervals: u64, interval_ns: u64, cpu_changes: u64,
    first_ns: u64, last_exit_ns: u64,
    log2_interval_ns: [u32; LOG2_SLOTS], log2_events: [u32; 16],
    set: u32, row: u32, again: u64, not_compared: u64, comm: [u8; 16],
});
mirror!(PollEvent, 80, {
    enter_ns: u64, exit_ns: u64, blocked_ns: u64, on_cpu_ns: u64, interval_ns: u64, timeout_ns: i64,
    requested: u32, kind: u32, returned: i32, again: i32, cpu: u32, tid: u32, tgid: u32, padding: u32,
});
mirror!(IoKey, 32, { device: u32, operation: u32, tgid: u32, padding: u32, comm: [u8; 16] });
mirror!(IoStat, 376, {
    count: u64, bytes: u64, errors: u64, queue_ns: u64, device_ns: u64, max_ns: u64, inverse_min_ns: u64,
    log2_queue_ns: [u32; LOG2_SLOTS], log2_device_ns: [u32; LOG2_SLOTS],
});
mirror!(MemoryStat, 64, {
    comm: [u8; 16], pages: u64, allocations: u64, reclaims: u64, reclaim_ns: u64, max_ns: u64, reclaimed: u64,
});
mirror!(QueueCell, 136, {
    lock: u32, padding: u32, in_flight: u64, samples: u64, sum: u64, max: u64, busy_ns: u64, busy_since_ns: u64,
    weighted_ns: u64, changed_ns: u64, log2_length: [u32; 16],
});
mirror!(Control, 24, { begin_ns: u64, end_ns: u64, phase: u32, padding: u32 });
mirror!(LockPending, 24, { begin_ns: u64, address: u64, flags: u32, stack: i32 });
mirror!(OffStat, 16, { reason: u32, count: u32, ns: u64 });
mirror!(TaskStat, 432, {
    tid: u32, tgid: u32, comm: [u8; 16], born_ns: u64, ended_ns: u64, since_ns: u64, runtime_ns: u64, futex: u64,
    futex_kind: u32, state: u32, reason: u32, padding: u32,
    on_cpu_ns: u64, preempted_ns: u64, woken_ns: u64, stolen_ns: u64,
    base: [u64; 8], last: [u64; 8], off: [OffStat; OFF_REASONS],
});
mirror!(FlowCell, 24, { area_ns: i64, open: i64, changed_ns: u64 });
mirror!(Flows, 24 * FLOWS, { of: [FlowCell; FLOWS] });

/// `enum task_state`.
pub mod state {
    pub const ON_CPU: u32 = 1;
    pub const PREEMPTED: u32 = 2;
    pub const WOKEN: u32 = 3;
    pub const WAITING: u32 = 4;
}

/// `enum flow`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Flow {
    OnCpu,
    Preempted,
    Woken,
    Futex,
    KernelLock,
}

/// Places in [`TaskStat::base`] and [`TaskStat::last`].
pub mod task {
    pub const CPU_NS: usize = 0;
    pub const WAIT_NS: usize = 1;
    pub const RUNS: usize = 2;
    pub const VOLUNTARY: usize = 3;
    pub const INVOLUNTARY: usize = 4;
    pub const MIGRATIONS: usize = 5;
    pub const USER_NS: usize = 6;
    pub const SYSTEM_NS: usize = 7;
}

/// `enum counter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Counter {
    PollCalls,
    PollEvents,
    IoDone,
    IoBytes,
    Switches,
    DroppedLocks,
    DroppedPolls,
    DroppedIo,
    DroppedTasks,
    DroppedLog,
    DroppedStacks,
    DroppedMemory,
}

/// How many counters there are.
pub const COUNTERS: usize = Counter::DroppedMemory as usize + 1;

/// Reads a mirror from a ring buffer record.
pub fn read<T: aya::Pod>(bytes: &[u8]) -> Option<T> {
    // SAFETY: at least as many bytes as the type has, and every bit pattern is a value of it.
    (bytes.len() >= size_of::<T>()).then(|| unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) })
}

/// A histogram without its empty tail.
pub fn trimmed(slots: &[u32]) -> Vec<u32> {
    let used = slots.iter().rposition(|n| *n != 0).map_or(0, |last| last + 1);
    slots.iter().take(used).copied().collect()
}

/// A task name as text.
pub fn name(comm: &[u8]) -> String {
    String::from_utf8_lossy(comm.split(|b| *b == 0).next().unwrap_or(&[])).into_owned()
}
