//! Split of the cycles of the guest's CPUs: the command's, other tasks', nobody's, the timer's.

use crate::name::fitted;
use crate::number::{shares_tenths, tenths};
use crate::sums::sum;
use nearmiss_record::model::{ModelRecord, Tally, TaskRow};

/// Other tasks that are named.
const NAMED: usize = 3;

/// The command's tasks, or the others.
pub fn tasks(model: &ModelRecord, of_command: bool) -> Vec<TaskRow> {
    model.tasks.iter().filter(|task| task.of_command == of_command).cloned().collect()
}

/// Tally of the command in kernel mode.
pub fn in_kernel(model: &ModelRecord) -> Tally {
    sum(model.tasks.iter().filter(|task| task.of_command).map(|task| &task.kernel))
}

/// Tally of the command in user mode.
pub fn in_user(model: &ModelRecord) -> Tally {
    sum(model.tasks.iter().filter(|task| task.of_command).map(|task| &task.user))
}

/// One phrase a part of the cycles of all CPUs, with its share of them; `None` where the command has them all.
pub fn sentence(model: &ModelRecord) -> Option<String> {
    let (kernel, user) = (in_kernel(model).cycles, in_user(model).cycles);
    let others = heaviest(model);
    let named: u64 = others.iter().map(|(_, cycles)| *cycles).sum();
    let rest = model.others.cycles.saturating_sub(named);
    let parts: Vec<u64> = [user, kernel, model.idle.cycles, model.ticks.cycles, rest]
        .into_iter()
        .chain(others.iter().map(|(_, cycles)| *cycles))
        .collect();
    if parts[2..].iter().all(|cycles| *cycles == 0) {
        return None;
    }
    let tenth = shares_tenths(&parts);
    let share = |of: &[usize]| {
        let (cycles, tenth) = of.iter().fold((0, 0), |sum, at| (sum.0 + parts[*at], sum.1 + tenth[*at]));
        tenths(cycles, tenth)
    };
    let other_parts: Vec<usize> = (4..parts.len()).collect();
    let mut names: Vec<String> =
        others.iter().enumerate().map(|(at, (name, _))| format!("{name} {}", share(&[5 + at]))).collect();
    if rest > 0 && !names.is_empty() {
        names.push(format!("the rest {}", share(&[4])));
    }
    let names = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
    Some(format!(
        "the command {} (user {}, kernel {}), other tasks {}{names}, idle {}, timer ticks {}",
        share(&[0, 1]),
        share(&[0]),
        share(&[1]),
        share(&other_parts),
        share(&[2]),
        share(&[3]),
    ))
}

/// Names of other tasks with most cycles, threads of one name together.
fn heaviest(model: &ModelRecord) -> Vec<(String, u64)> {
    let mut names: Vec<(String, u64)> = Vec::new();
    for task in model.tasks.iter().filter(|task| !task.of_command) {
        let cycles = task.user.cycles.saturating_add(task.kernel.cycles);
        match names.iter_mut().find(|(name, _)| *name == task.comm) {
            Some((_, sum)) => *sum = sum.saturating_add(cycles),
            None => names.push((task.comm.clone(), cycles)),
        }
    }
    names.retain(|(_, cycles)| *cycles > 0);
    names.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    names.truncate(NAMED);
    names.into_iter().map(|(name, cycles)| (fitted(&name, 30), cycles)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(comm: &str, of_command: bool, user: u64, kernel: u64) -> TaskRow {
        let cycles = |cycles| Tally { cycles, ..Tally::default() };
        let (comm, user, kernel) = (comm.to_owned(), cycles(user), cycles(kernel));
        TaskRow { tid: 1, pid: 1, comm, of_command, user, kernel }
    }

    fn model(tasks: Vec<TaskRow>, idle: u64, ticks: u64) -> ModelRecord {
        let json = include_str!("../fixtures/healthy/model.json");
        let model: ModelRecord = serde_json::from_str(json).unwrap();
        let cycles = |cycles| Tally { cycles, ..Tally::default() };
        let whole = |of_command: bool| {
            let rows = tasks.iter().filter(|t| t.of_command == of_command);
            sum(rows.flat_map(|t| [&t.user, &t.kernel]))
        };
        let (totals, others) = (whole(true), whole(false));
        ModelRecord { totals, others, idle: cycles(idle), ticks: cycles(ticks), tasks, ..model }
    }

    #[test]
    fn the_cycles_of_the_cpus_are_the_commands_and_others() {
        let tasks = vec![
            task("gcc", true, 300, 100),
            task("cc1", true, 0, 100),
            task("kworker/0:1", false, 0, 20),
            task("khugepaged", false, 0, 300),
            task("init", false, 5, 5),
            task("kworker/0:1", false, 0, 20),
            task("rcu_sched", false, 0, 10),
        ];
        let model = model(tasks, 100, 40);
        assert_eq!(
            sentence(&model).unwrap(),
            "the command 50.0% (user 30.0%, kernel 20.0%), other tasks 36.0% (khugepaged 30.0%, kworker/0:1 4.0%, \
             init 1.0%, the rest 1.0%), idle 10.0%, timer ticks 4.0%"
        );
        assert_eq!((in_kernel(&model).cycles, in_user(&model).cycles), (200, 300));
    }

    #[test]
    fn nothing_is_printed_where_the_command_has_all() {
        assert_eq!(sentence(&model(vec![task("gcc", true, 300, 100)], 0, 0)), None);
    }
}
