//! The tables by task and by CPU.

use super::Attribution;
use super::balance::{fit, split};
use super::charged::{Charged, Charges, Cycles};
use super::ledger::References;
use super::names::UNATTRIBUTED;
use super::tasks::add_usage;
use nearmiss_record::model::{Tally, TaskRow};
use nearmiss_record::reference::Usage;
use std::collections::BTreeMap;

/// Row of interrupts other than the timer's on idle CPUs.
const IDLE_INTERRUPTS: &str = "[interrupts on idle CPUs]";

/// Rows by thread: the command's, then the others', with the unattributed one last in each; and by CPU, of the command.
pub(super) fn tasks_and_cpus(
    attribution: &Attribution,
    charged: &Charged,
    [totals, others]: [&Tally; 2],
    cycles: &Cycles,
) -> (Vec<TaskRow>, Vec<Tally>) {
    let (own, foreign): (Vec<_>, Vec<_>) = rows(attribution).into_iter().partition(|(row, _)| row.of_command);
    let mut rows = fitted(own, &charged.command, totals, cycles, true);
    rows.extend(fitted(foreign, &charged.others, others, cycles, false));

    let mut cpus = cpus(attribution, totals);
    cycles.spread(cpus.iter_mut(), totals);
    (rows, cpus)
}

/// Rows that sum to `totals`, most stall cycles first.
fn fitted(
    rows: Vec<(TaskRow, Usage)>,
    part: &Charges,
    totals: &Tally,
    cycles: &Cycles,
    of_command: bool,
) -> Vec<TaskRow> {
    let (mut rows, mut usages): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
    for kernel in [0, 1] {
        fit_usages(&mut usages, part, kernel);
    }
    for (row, usage) in rows.iter_mut().zip(&usages) {
        add(&mut row.user, usage.user_instructions, usage.user_loads, usage.user_stores);
        add(&mut row.kernel, usage.kernel_instructions, usage.kernel_loads, usage.kernel_stores);
    }
    rows.sort_by(|a, b| {
        let stalls = |row: &TaskRow| row.user.stall_cycles + row.kernel.stall_cycles;
        let instructions = |row: &TaskRow| row.user.instructions + row.kernel.instructions;
        (stalls(b), instructions(b), a.tid).cmp(&(stalls(a), instructions(a), b.tid))
    });
    rows.push(TaskRow { of_command, ..rest(&rows, totals, part) });
    cycles.spread(rows.iter_mut().flat_map(|row| [&mut row.user, &mut row.kernel]), totals);
    rows
}

/// Returns one row a thread, without the dropped references; and the dropped ones.
fn rows(attribution: &Attribution) -> Vec<(TaskRow, Usage)> {
    let levels = attribution.options.levels;
    let mut by_thread: BTreeMap<(bool, u32, u32), (TaskRow, Usage)> = BTreeMap::new();
    let tasks = &attribution.tasks;
    for task in &tasks.rows {
        let known = task.same_as.map_or(task, |other| &tasks.rows[other as usize]);
        let Some(identity) = known.identity else { continue };
        let (comm, tid) = if identity.tid == 0 { (IDLE_INTERRUPTS, 0) } else { (known.comm.as_str(), identity.tid) };
        let (row, usage) = by_thread.entry((task.of_command, identity.pid, tid)).or_insert_with(|| {
            let row = TaskRow {
                tid,
                pid: identity.pid,
                comm: comm.to_owned(),
                of_command: task.of_command,
                user: attribution.ledger.tally(Default::default(), &References::default(), levels),
                kernel: attribution.ledger.tally(Default::default(), &References::default(), levels),
            };
            (row, Usage::default())
        });
        row.user += &attribution.ledger.tally(task.misses[0], &task.references[0], levels);
        row.kernel += &attribution.ledger.tally(task.misses[1], &task.references[1], levels);
        if identity.tid != 0 {
            add_usage(usage, &task.usage);
        }
    }
    let seen = |(row, usage): &(TaskRow, Usage)| {
        row.user.line_accesses + row.kernel.line_accesses > 0
            || row.user.levels.iter().chain(&row.kernel.levels).any(|l| l.misses() > 0)
            || *usage != Usage::default()
    };
    by_thread.into_values().filter(seen).collect()
}

/// Takes the ticks' work from the reports, and turns stores of atomics into loads, so that they sum to at most the
/// instructions' counts.
fn fit_usages(usages: &mut [Usage], part: &Charges, kernel: usize) {
    type Field = fn(&mut Usage) -> &mut u64;
    let (instructions, loads, stores): (Field, Field, Field) = if kernel == 1 {
        (|u| &mut u.kernel_instructions, |u| &mut u.kernel_loads, |u| &mut u.kernel_stores)
    } else {
        (|u| &mut u.user_instructions, |u| &mut u.user_loads, |u| &mut u.user_stores)
    };
    let collect = |usages: &mut [Usage], field: Field| usages.iter_mut().map(|u| *field(u)).collect::<Vec<_>>();
    let put = |usages: &mut [Usage], field: Field, values: &[u64]| {
        usages.iter_mut().zip(values).for_each(|(u, v)| *field(u) = *v);
    };
    let dropped = &part.dropped[kernel];
    let mut values = collect(usages, instructions);
    fit(&mut values, part.instructions_by_mode[kernel]);
    put(usages, instructions, &values);

    let reported = collect(usages, stores);
    let mut plain = reported.clone();
    fit(&mut plain, dropped.stores);
    put(usages, stores, &plain);
    let mut atomics: Vec<u64> = reported.iter().zip(&plain).map(|(all, plain)| all - plain).collect();
    fit(&mut atomics, part.dropped_atomics[kernel]);
    let mut values: Vec<u64> = collect(usages, loads).iter().zip(&atomics).map(|(a, b)| a + b).collect();
    fit(&mut values, dropped.loads);
    put(usages, loads, &values);
}

fn add(tally: &mut Tally, instructions: u64, loads: u64, stores: u64) {
    tally.instructions += instructions;
    tally.loads += loads;
    tally.stores += stores;
    tally.line_accesses += loads + stores;
}

/// Row of the unattributed rest: mostly tasks without a last report.
fn rest(rows: &[TaskRow], totals: &Tally, part: &Charges) -> TaskRow {
    let (mut user, mut kernel) = (Tally::default(), Tally::default());
    for row in rows {
        user += &row.user;
        kernel += &row.kernel;
    }
    let mut known = user.clone();
    known += &kernel;
    let mut rest = totals.without(&known, &mut false);
    let mut rest_user = Tally { levels: vec![Default::default(); rest.levels.len()], ..Tally::default() };
    // Unreported misses have no mode; instructions have.
    rest_user.instructions = part.instructions_by_mode[0].saturating_sub(user.instructions).min(rest.instructions);
    rest.instructions -= rest_user.instructions;
    TaskRow { tid: 0, pid: 0, comm: UNATTRIBUTED.to_owned(), of_command: false, user: rest_user, kernel: rest }
}

/// Returns the tallies by CPU: misses as reported, the rest in proportion to the reports of the CPUs' tasks.
fn cpus(attribution: &Attribution, totals: &Tally) -> Vec<Tally> {
    let levels = attribution.options.levels;
    let usages = attribution.cpus.iter().map(|cpu| &cpu.usage);
    let mut rows: Vec<Tally> =
        attribution.cpus.iter().map(|cpu| attribution.ledger.tally(cpu.misses, &cpu.references[0], levels)).collect();
    for (row, usage) in rows.iter_mut().zip(usages) {
        let (loads, stores) = (usage.user_loads + usage.kernel_loads, usage.user_stores + usage.kernel_stores);
        add(row, usage.user_instructions + usage.kernel_instructions, loads, stores);
    }
    let fields: [fn(&mut Tally) -> &mut u64; 5] =
        [|t| &mut t.instructions, |t| &mut t.loads, |t| &mut t.stores, |t| &mut t.line_accesses, |t| &mut t.nt_stores];
    for field in fields {
        let mut values: Vec<u64> = rows.iter_mut().map(|row| *field(row)).collect();
        let target = *field(&mut totals.clone());
        let missing = fit(&mut values, target);
        share(&mut values, missing);
        rows.iter_mut().zip(values).for_each(|(row, value)| *field(row) = value);
    }
    rows
}

/// Adds `amount` to `values` in proportion to them.
fn share(values: &mut [u64], amount: u64) {
    let sum: u128 = values.iter().map(|v| u128::from(*v)).sum();
    let mut left = amount;
    if sum > 0 {
        for value in values.iter_mut() {
            let [_, part] = split(amount, [(sum - u128::from(*value)).min(u128::from(u64::MAX)) as u64, *value]);
            let part = part.min(left);
            *value += part;
            left -= part;
        }
    }
    if let Some(first) = values.first_mut() {
        *first += left;
    }
}
