//! Tasks: where their time went, and the kernel's accounts of them.

use super::layout::{
    OffStat, REASON_BLOCK_IO, REASON_KERNEL_LOCK, REASON_KERNEL_THREAD, REASON_OTHER, REASON_PAGE_FAULT,
    REASON_SYSCALL, TaskStat, name, state, task,
};
use super::window::Window;
use super::{BpfError, calls, refused};
use aya::Ebpf;
use aya::maps::HashMap;
use nearmiss_record::observed::Task;

/// Most tasks kept that have ended; what comes later is counted as lost.
pub const MOST_ENDED: usize = 32_768;

/// The tasks that live, with the state under way cut at the end of the window.
pub fn living(ebpf: &Ebpf, window: Window) -> Result<Vec<TaskStat>, BpfError> {
    let map = ebpf.map("tasks").ok_or(BpfError::NotBuilt)?;
    let tasks: HashMap<_, u64, TaskStat> = HashMap::try_from(map).map_err(|e| refused("tasks", &e))?;
    Ok(tasks.iter().flatten().map(|(_, stat)| cut(stat, window)).collect())
}

/// Adds what the state under way has lasted.
fn cut(mut stat: TaskStat, window: Window) -> TaskStat {
    let ns = window.rest(stat.since_ns);
    match stat.state {
        state::ON_CPU => stat.on_cpu_ns += ns,
        state::PREEMPTED => stat.preempted_ns += ns,
        state::WOKEN => stat.woken_ns += ns,
        state::WAITING => add_wait(&mut stat.off, stat.reason, ns),
        _ => {}
    }
    stat
}

/// Adds a wait as the programs do: the last place takes all reasons that found none.
fn add_wait(off: &mut [OffStat], reason: u32, ns: u64) {
    let last = off.len().saturating_sub(1);
    let place = off.iter().position(|o| o.count == 0 || o.reason == reason).unwrap_or(last);
    if let Some(found) = off.get_mut(place) {
        if found.count == 0 {
            found.reason = if place == last { REASON_OTHER } else { reason };
        }
        found.count += 1;
        found.ns += ns;
    }
}

/// Rows of all tasks that did anything. `switches`: they were followed from state to state; else only the kernel's
/// accounts are known.
pub fn rows<'a>(stats: impl Iterator<Item = &'a TaskStat>, window: Window, switches: bool) -> Vec<Task> {
    let mut rows: Vec<Task> = stats
        .map(|stat| row(stat, window, switches))
        .filter(|task| task.cpu_ns > 0 || task.runs > 0 || !task.off.is_empty())
        .collect();
    rows.sort_by(|a, b| b.cpu_ns.cmp(&a.cpu_ns).then(a.thread.cmp(&b.thread)));
    rows
}

fn row(stat: &TaskStat, window: Window, switches: bool) -> Task {
    let since = |field: usize| {
        let at = |of: &[u64; 8]| of.get(field).copied().unwrap_or(0);
        at(&stat.last).saturating_sub(at(&stat.base))
    };
    let by_account = Task {
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
        ..Task::default()
    };
    if !switches {
        return by_account;
    }
    let end = if stat.ended_ns > 0 { stat.ended_ns } else { window.end_ns };
    let mut off: Vec<(String, u64, u64)> =
        stat.off.iter().filter(|o| o.ns > 0).map(|o| (reason(o.reason), o.ns, u64::from(o.count))).collect();
    off.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    Task {
        life_ns: window.within(stat.born_ns, end),
        cpu_ns: stat.on_cpu_ns,
        stolen_ns: stat.stolen_ns,
        wait_ns: stat.preempted_ns + stat.woken_ns,
        preempted_ns: stat.preempted_ns,
        off,
        ..by_account
    }
}

fn reason(code: u32) -> String {
    match code {
        REASON_BLOCK_IO => "block I/O".to_owned(),
        REASON_KERNEL_LOCK => "kernel lock".to_owned(),
        REASON_PAGE_FAULT => "page fault".to_owned(),
        REASON_KERNEL_THREAD => "kernel thread".to_owned(),
        REASON_OTHER => "other calls".to_owned(),
        call => calls::name(call.saturating_sub(REASON_SYSCALL)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::OFF_REASONS;
    use super::*;

    const NO_WAITS: [OffStat; OFF_REASONS] = [OffStat { reason: 0, count: 0, ns: 0 }; OFF_REASONS];

    fn stat() -> TaskStat {
        TaskStat {
            tid: 7,
            tgid: 7,
            comm: *b"worker\0\0\0\0\0\0\0\0\0\0",
            born_ns: 0,
            ended_ns: 0,
            since_ns: 0,
            runtime_ns: 0,
            futex: 0,
            futex_kind: 0,
            state: 0,
            reason: 0,
            padding: 0,
            on_cpu_ns: 0,
            preempted_ns: 0,
            woken_ns: 0,
            stolen_ns: 0,
            base: [0; 8],
            last: [0; 8],
            off: NO_WAITS,
        }
    }

    #[test]
    fn times_under_way_are_cut_at_both_ends() {
        let window = Window { begin_ns: 1_000, end_ns: 3_000 };
        let sleeper = TaskStat { state: state::WAITING, reason: REASON_SYSCALL + 202, since_ns: 10, ..stat() };
        let runner = TaskStat { state: state::ON_CPU, since_ns: 2_500, woken_ns: 1_500, ..stat() };
        let rows = rows([cut(sleeper, window), cut(runner, window)].iter(), window, true);
        assert_eq!((rows[0].cpu_ns, rows[0].wait_ns, rows[0].life_ns), (500, 1_500, 2_000));
        assert_eq!((rows[1].off.clone(), rows[1].life_ns), (vec![("futex".to_owned(), 2_000, 1)], 2_000));
    }

    #[test]
    fn a_life_ends_where_the_task_ends() {
        let window = Window { begin_ns: 1_000, end_ns: 3_000 };
        let short = TaskStat { born_ns: 1_200, ended_ns: 1_900, on_cpu_ns: 700, state: state::ON_CPU, ..stat() };
        let row = rows([short].iter(), window, true).remove(0);
        assert_eq!((row.life_ns, row.cpu_ns), (700, 700));
    }

    #[test]
    fn reasons_without_a_place_share_the_last() {
        let mut off = NO_WAITS;
        for call in 0..20 {
            add_wait(&mut off, REASON_SYSCALL + call, 10);
        }
        add_wait(&mut off, REASON_SYSCALL + 3, 5);
        assert_eq!((off[3].ns, off[3].count), (15, 2));
        let last = off[OFF_REASONS - 1];
        assert_eq!((last.reason, last.ns, last.count), (REASON_OTHER, 90, 9));
    }
}
