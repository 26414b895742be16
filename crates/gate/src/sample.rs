//! The figures of one recording.

use crate::events::{calls, figures};
use crate::figure::{level_name, of_mode};
use crate::parts::{is_the_kernels, parts};
use nearmiss_record::baseline::BaselinePart;
use nearmiss_record::entered::entries;
use nearmiss_record::model::{FunctionRow, MissClass, ModelRecord, Tally, TaskRow};
use nearmiss_record::side::SideTables;
use nearmiss_record::symbols::Symbols;
use std::collections::BTreeMap;

/// Records of one recording.
pub struct Recording<'a> {
    /// The model's counts.
    pub model: &'a ModelRecord,
    /// Counts by instruction.
    pub side: &'a SideTables,
    /// Names of the instructions.
    pub symbols: &'a Symbols,
    /// Times that a task of the command made way for another task.
    pub switches: u64,
}

/// Figures and parts of one recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Figures by name.
    pub figures: BTreeMap<String, u64>,
    /// Parts that the figures are sums of.
    pub parts: Vec<BaselinePart>,
    /// Threads of the command's process with the most of them.
    pub threads: usize,
}

impl Sample {
    /// The figures of a recording.
    pub fn of(recording: &Recording<'_>) -> Self {
        let Recording { model, side, symbols, switches } = *recording;
        let calls = calls(model, symbols, &entries(side, symbols));
        let mut all = figures(&calls);
        for (mode, tally) in modes(&model.tasks, &model.functions).iter().enumerate() {
            all.extend(of_tally(tally, model.totals.levels.len()).map(|(what, count)| (of_mode(mode, &what), count)));
        }
        all.extend(model.translation.map(|it| ("walks".to_owned(), it.walks + it.large_walks)));
        all.insert("switches".to_owned(), switches);
        Sample { figures: all, parts: parts(model, &calls), threads: threads(&model.tasks) }
    }
}

fn threads(tasks: &[TaskRow]) -> usize {
    let mut threads: BTreeMap<u32, usize> = BTreeMap::new();
    for task in tasks.iter().filter(|task| task.of_command && task.tid != 0) {
        *threads.entry(task.pid).or_default() += 1;
    }
    threads.into_values().max().unwrap_or(0)
}

/// Returns the tallies of the command's tasks in user mode, and in the kernel.
fn modes(tasks: &[TaskRow], functions: &[FunctionRow]) -> [Tally; 2] {
    let mut modes = [Tally::default(), Tally::default()];
    for task in tasks.iter().filter(|task| task.of_command) {
        modes[0] += &task.user;
        modes[1] += &task.kernel;
    }
    for row in functions.iter().filter(|row| is_the_kernels(row) && !row.kernel) {
        modes[0] = modes[0].without(&row.tally, &mut false);
        modes[1] += &row.tally;
    }
    modes
}

fn of_tally(tally: &Tally, levels: usize) -> impl Iterator<Item = (String, u64)> + use<> {
    // A line that another CPU took is missed in every private level: the first one counts each once.
    let shared = |class| tally.levels.first().map_or(0, |level| level.class(class));
    let coherence = shared(MissClass::TrueSharing) + shared(MissClass::FalseSharing);
    let misses: Vec<_> =
        (0..levels).map(|at| (level_name(at), tally.levels.get(at).map_or(0, |level| level.misses()))).collect();
    [
        ("instructions", tally.instructions),
        ("loads", tally.loads),
        ("stores", tally.stores),
        ("coherence", coherence),
        ("cycles", tally.cycles),
    ]
    .map(|(name, count)| (name.to_owned(), count))
    .into_iter()
    .chain(misses)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearmiss_record::model::LevelTally;

    #[test]
    fn the_clock_in_user_mode_is_the_kernels() {
        let tally = |instructions| Tally { instructions, ..Tally::default() };
        let task = |user, kernel| TaskRow {
            tid: 5,
            pid: 5,
            comm: String::new(),
            of_command: true,
            user: tally(user),
            kernel: tally(kernel),
        };
        let row = |name: &str, module: &str, kernel, instructions| FunctionRow {
            name: name.to_owned(),
            module: module.to_owned(),
            kernel,
            tally: tally(instructions),
        };
        let functions = [row("main", "/bin/p", false, 93), row("[vdso]", "[vdso]", false, 7), row("f", "k", true, 40)];
        let modes = modes(&[task(100, 40)], &functions);
        assert_eq!(modes.map(|mode| mode.instructions), [93, 47]);
    }

    #[test]
    fn processes_are_no_threads() {
        let task = |pid, tid, of_command| {
            let (comm, user, kernel) = (String::new(), Tally::default(), Tally::default());
            TaskRow { tid, pid, comm, of_command, user, kernel }
        };
        let tasks = [task(5, 5, true), task(6, 6, true), task(6, 7, true), task(0, 0, true), task(1, 8, false)];
        assert_eq!([threads(&tasks[..1]), threads(&tasks)], [1, 2]);
    }

    #[test]
    fn a_line_from_another_cpu_counts_once() {
        let level =
            LevelTally { load_misses: [1, 2, 3, 0, 5, 6], store_misses: [0, 4, 0, 0, 0, 0], ..LevelTally::default() };
        let tally =
            Tally { instructions: 9, loads: 8, stores: 7, cycles: 6, levels: vec![level; 2], ..Tally::default() };
        let figures: BTreeMap<_, _> = of_tally(&tally, 3).collect();
        let of = |name: &str| figures[name];
        assert_eq!([of("coherence"), of("l1"), of("l2"), of("l3")], [9, 21, 21, 0]);
        assert_eq!([of("instructions"), of("loads"), of("stores"), of("cycles")], [9, 8, 7, 6]);
    }
}
