//! Lines that CPUs take from each other.

use super::{Candidate, Cause, quoted, top_function, weigh, where_phrase};
use crate::levels::{level, misses};
use crate::load::Report;
use crate::number::{counted, spoken_percent};
use nearmiss_record::model::{MissClass, SharedLineRow, Tally};
use nearmiss_record::policy::Order;

pub(super) fn candidate(report: &Report) -> Option<Candidate> {
    let totals = &report.model.totals;
    let shared = |t: &Tally, i: usize| {
        let tally = level(t, i);
        tally.class(MissClass::TrueSharing).saturating_add(tally.class(MissClass::FalseSharing))
    };
    // The same loss shows at every private level: the outermost of them stands for it.
    let at = report.levels.iter().max_by_key(|l| (shared(totals, l.index), l.index))?;
    let count = shared(totals, at.index);
    if count == 0 {
        return None;
    }
    let class = |class| level(totals, at.index).class(class);
    let is_false = class(MissClass::FalseSharing) > class(MissClass::TrueSharing);
    let cause = if is_false { Cause::FalseSharing } else { Cause::TrueSharing };
    let part = if is_false { class(MissClass::FalseSharing) } else { class(MissClass::TrueSharing) };
    let of_line = |row: &SharedLineRow| if is_false { row.false_sharing } else { row.true_sharing };
    let line = report
        .model
        .shared_lines
        .iter()
        .max_by_key(|row| of_line(row))
        .filter(|row| of_line(row).saturating_mul(2) >= part);
    let lines = report.model.shared_lines.iter().filter(|row| of_line(row) > 0).count() as u64;
    let on = match line {
        Some(row) => format!(" on the line of {}", quoted(&row.object)),
        None if lines == 0 => String::new(),
        None => format!(" on {}", counted(lines, "line")),
    };
    let misses_of_class =
        |t: &Tally| level(t, at.index).class(if is_false { MissClass::FalseSharing } else { MissClass::TrueSharing });
    let place = where_phrase(top_function(&report.model, misses_of_class), None, part);
    let (name, hint) = if is_false {
        ("false sharing", "CPUs write different bytes of it; apart, each would keep its own line")
    } else {
        ("true sharing", "CPUs hand the same bytes to each other; fewer hand-overs would help, not another place")
    };
    let order = match report.model.order {
        Order::Recorded => "recorded order: a lower bound",
        Order::Modelled => "modelled order",
    };
    let share = spoken_percent(part, misses(totals, at.index));
    let text = format!("{share} of {} misses are {name}{on}{place}: {hint} ({order}).", at.name);
    let latency = &report.model.machine.latency;
    let here = latency.level_cycles.get(at.index).copied().unwrap_or(0);
    let penalty = u64::from(latency.core_modified_cycles.saturating_sub(here)).max(at.penalty_cycles);
    Some(Candidate { cause, text, weight: weigh(part, penalty) })
}
