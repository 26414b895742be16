//! Time of each task, on the CPU and off it.

use super::row::{Sound, rows};
use crate::observed::Task;

rows! {
    /// The time of one task in one state.
    TaskTime in "sched.parquet" as "nearmiss/sched/1" {
        /// Process.
        process: u32,
        /// Thread.
        thread: u32,
        /// Name of the thread.
        name: String,
        /// `on CPU`, `waiting for a CPU`, or `off: ` and the reason.
        what: String,
        /// Time in this state.
        ns: u64,
        /// Times that the task was in this state.
        times: u64,
        /// Moves of the task to another CPU: the same in each of its rows.
        migrations: u64,
    }
}

impl Sound for TaskTime {}

impl TaskTime {
    /// The rows of a task.
    pub fn rows(task: &Task) -> impl Iterator<Item = TaskTime> {
        let off = task.off.iter().map(|(reason, ns, times)| (format!("off: {reason}"), *ns, *times));
        let on = [("on CPU", task.cpu_ns), ("waiting for a CPU", task.wait_ns)];
        let all = on.into_iter().map(|(what, ns)| (what.to_owned(), ns, task.runs)).chain(off);
        all.map(|(what, ns, times)| TaskTime {
            process: task.process.max(0).cast_unsigned(),
            thread: task.thread.max(0).cast_unsigned(),
            name: task.name.clone(),
            what,
            ns,
            times,
            migrations: task.migrations,
        })
    }
}
