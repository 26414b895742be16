//! Sentence on the cycles when nothing stands out.

use super::ranked::{Ranked, named, on_behalf};
use super::{LEAST_SHARE, quoted};
use crate::levels::misses;
use crate::load::Report;
use crate::number::spoken_percent;
use nearmiss_record::model::{FunctionRow, SharedLineRow, Tenant};
use nearmiss_record::policy::Order;
use nearmiss_record::waits::Reason;
use std::collections::BTreeSet;

/// The sentence.
pub(super) fn text(report: &Report, ranked: &Ranked<'_>) -> String {
    if report.levels.iter().all(|l| misses(&report.model.totals, l.index) == 0) {
        return format!("No cache stands out: there was not a single miss{}.", busiest(report));
    }
    format!("No cache stands out: {}{}{}.", waiting(report, ranked), busiest(report), passed_on(report))
}

/// Lines that several CPUs use wait little in the recorded order, where each guest CPU keeps them for a whole slice.
fn passed_on(report: &Report) -> String {
    let model = &report.model;
    let of_several = |row: &&SharedLineRow| {
        let users: BTreeSet<u32> = row.tenants.iter().flat_map(Tenant::users).collect();
        // A task that moves takes its lines along: that is no line of several.
        users.len() > 1 && row.references > 0 && row.tenants.iter().any(|tenant| !tenant.writers.is_empty())
    };
    let lines: Vec<&SharedLineRow> = model.shared_lines.iter().filter(of_several).collect();
    let used: u64 = lines.iter().fold(0, |sum, row| sum.saturating_add(row.references));
    let all = model.totals.loads.saturating_add(model.totals.stores);
    let most = lines.iter().max_by_key(|row| row.references);
    let Some(most) = most.filter(|_| model.order == Order::Recorded && used as f64 >= LEAST_SHARE * all as f64) else {
        return String::new();
    };
    format!(
        "; {} of the references are to lines that CPUs pass on, most to {}: `nearmiss diagnose` shows what that costs",
        spoken_percent(used, all),
        quoted(&most.object)
    )
}

/// `88% of the command's cycles wait, most for first touches in `f``.
fn waiting(report: &Report, ranked: &Ranked<'_>) -> String {
    let totals = &report.model.totals;
    let share = spoken_percent(totals.stall_cycles, totals.cycles);
    let most = Reason::ALL.into_iter().max_by_key(|reason| ranked.cycles(*reason)).unwrap_or(Reason::Other);
    let cycles = ranked.cycles(most);
    if (totals.stall_cycles as f64) < LEAST_SHARE * totals.cycles as f64 {
        let share = spoken_percent(totals.waits(), totals.cycles);
        return format!("only {share} of the command's cycles wait for caches or memory");
    }
    if cycles.saturating_mul(2) < totals.stall_cycles {
        return format!("{share} of the command's cycles wait, for many small reasons");
    }
    let why = if most == Reason::FirstTouch { ", as any cache would" } else { "" };
    let what = match most {
        Reason::FirstTouch | Reason::Other | Reason::Misprediction => most.words(""),
        _ => "misses of many functions".to_owned(),
    };
    format!("{share} of the command's cycles wait, most for {what}{}{why}", ranked.place(most))
}

/// `; most of the cycles are those of `main` (71%)`.
fn busiest(report: &Report) -> String {
    let model = &report.model;
    let rows: Vec<(&FunctionRow, u64)> = model.functions.iter().map(|row| (row, row.tally.cycles)).collect();
    let Some((row, cycles)) = named(&rows, |cycles| *cycles) else { return String::new() };
    format!("; {} has the most cycles, {}", on_behalf(model, row), spoken_percent(cycles, model.totals.cycles))
}
