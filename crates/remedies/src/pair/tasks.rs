//! Which tasks of a run are compared, and how much of each.

use nearmiss_analysis::Traced;
use nearmiss_machine::model::TaskWindows;
use nearmiss_record::model::TaskRow;

/// Most tasks: their pairs grow by the square.
pub const MOST_TASKS: usize = 16;
/// A task that executed less than this part of the largest one's instructions is left out, as it matters to nobody.
const LEAST_PART: u64 = 8;
/// References of a task that are replayed, about, if there are few tasks.
const MOST_REFERENCES: u64 = 700_000;
/// References of both tasks of all pairs together, about, on one page placement: what two CPUs replay in some ten seconds
/// on all five.
const MOST_OF_ALL: u64 = 40_000_000;
/// Instructions of a window, unless others are requested.
pub const USUAL_WINDOW: u64 = 50_000;

/// A task that is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Thread id in the guest.
    pub tid: u32,
    /// Name and thread id.
    pub name: String,
    /// How many tasks of the command began before it, by their thread ids.
    pub order: usize,
    /// Instructions of user mode.
    instructions: u64,
    /// Loads and stores of user mode that the trace has.
    references: u64,
}

impl Task {
    fn of((order, row): (usize, &TaskRow)) -> Self {
        Task {
            tid: row.tid,
            order,
            name: format!("{} {}", if row.comm.is_empty() { "thread" } else { &row.comm }, row.tid),
            instructions: row.user.instructions,
            references: row.user.loads + row.user.stores,
        }
    }
}

/// The tasks that are compared, each by as many windows from late in its life: what it sets up is set up by then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Tasks in the order of their thread ids, in which they began.
    pub tasks: Vec<Task>,
    /// Tasks of the command that are left out.
    pub left_out: usize,
    /// Instructions of a window.
    pub window: u64,
    /// Windows of each task.
    pub windows: u64,
}

impl Sample {
    /// Samples a run; none where fewer than two tasks matter.
    pub fn of(case: &Traced, window: u64) -> Option<Self> {
        let mut rows: Vec<&TaskRow> = case.model.tasks.iter().filter(|row| row.of_command && row.tid != 0).collect();
        rows.sort_by_key(|row| row.tid);
        let of_command: Vec<Task> = rows.into_iter().enumerate().map(Task::of).collect();
        let most = of_command.iter().map(|task| task.instructions).max()?;
        let matters = |task: &&Task| task.instructions > 0 && task.instructions >= most / LEAST_PART;
        let mut tasks: Vec<Task> = of_command.iter().filter(matters).cloned().collect();
        tasks.sort_by_key(|task| (std::cmp::Reverse(task.instructions), task.tid));
        tasks.truncate(MOST_TASKS);
        tasks.sort_by_key(|task| task.tid);
        let least = tasks.iter().map(|task| task.instructions).min()?;
        let pairs = tasks.len() as u64 * (tasks.len() as u64 - 1) / 2;
        let most = MOST_REFERENCES.min(MOST_OF_ALL / (2 * pairs).max(1));
        let dense = |task: &Task| most.saturating_mul(task.instructions) / task.references.max(1);
        let enough = tasks.iter().map(dense).min()?;
        let windows = (least.min(enough) / window.max(1)).max(1);
        let left_out = of_command.len() - tasks.len();
        (tasks.len() > 1).then_some(Sample { tasks, left_out, window, windows })
    }

    /// Returns which windows of each task are replayed: late ones, but not the very last, as a count of windows by the
    /// model's instructions is a little off.
    pub fn wanted(&self) -> Vec<TaskWindows> {
        let from = |task: &Task| (task.instructions / self.window.max(1)).saturating_sub(self.windows) / 8 * 7;
        self.tasks
            .iter()
            .map(|task| TaskWindows { pid: task.tid, windows: from(task)..from(task) + self.windows })
            .collect()
    }
}
