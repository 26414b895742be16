//! Tasks: their CPU time, waits, switches, migrations, and why they were off the CPU.

use super::layout::{
    OffKey, OffStat, REASON_BLOCK_IO, REASON_KERNEL_LOCK, REASON_KERNEL_THREAD, REASON_PAGE_FAULT, REASON_PREEMPTED,
    REASON_SYSCALL, TaskStat, name, task,
};
use super::{BpfError, calls, refused};
use aya::Ebpf;
use aya::maps::HashMap;
use nearmiss_record::observed::Task;
use std::collections::HashMap as StdMap;

pub fn rows(ebpf: &Ebpf) -> Result<Vec<Task>, BpfError> {
    let map = ebpf.map("tasks").ok_or(BpfError::NotBuilt)?;
    let tasks: HashMap<_, u32, TaskStat> = HashMap::try_from(map).map_err(|e| refused("tasks", &e))?;
    let map = ebpf.map("off_stats").ok_or(BpfError::NotBuilt)?;
    let off: HashMap<_, OffKey, OffStat> = HashMap::try_from(map).map_err(|e| refused("off_stats", &e))?;
    let mut reasons: StdMap<u32, Vec<(String, u64, u64)>> = StdMap::new();
    for (key, stat) in off.iter().flatten() {
        reasons.entry(key.tid).or_default().push((reason(key.reason), stat.ns, stat.count));
    }
    let mut rows: Vec<Task> = tasks
        .iter()
        .flatten()
        .map(|(tid, stat)| row(&stat, reasons.remove(&tid).unwrap_or_default()))
        .filter(|task| task.cpu_ns > 0 || task.runs > 0 || !task.off.is_empty())
        .collect();
    rows.sort_by(|a, b| b.cpu_ns.cmp(&a.cpu_ns).then(a.thread.cmp(&b.thread)));
    Ok(rows)
}

fn row(stat: &TaskStat, mut off: Vec<(String, u64, u64)>) -> Task {
    off.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    let since = |field: usize| {
        let at = |of: &[u64; 8]| of.get(field).copied().unwrap_or(0);
        at(&stat.last).saturating_sub(at(&stat.base))
    };
    Task {
        process: stat.tgid as i32,
        thread: stat.tid as i32,
        name: name(&stat.comm),
        cpu_ns: since(task::CPU_NS),
        user_ns: since(task::USER_NS),
        system_ns: since(task::SYSTEM_NS),
        wait_ns: since(task::WAIT_NS),
        runs: since(task::RUNS),
        voluntary: since(task::VOLUNTARY),
        involuntary: since(task::INVOLUNTARY),
        migrations: since(task::MIGRATIONS),
        off,
    }
}

fn reason(code: u32) -> String {
    match code {
        REASON_PREEMPTED => "preempted".to_owned(),
        REASON_BLOCK_IO => "block I/O".to_owned(),
        REASON_KERNEL_LOCK => "kernel lock".to_owned(),
        REASON_PAGE_FAULT => "page fault".to_owned(),
        REASON_KERNEL_THREAD => "kernel thread".to_owned(),
        call => calls::name(call.saturating_sub(REASON_SYSCALL)),
    }
}
