//! Lines that CPUs take from each other.

use super::{Candidate, Cause, quoted, top_function, weigh, where_phrase};
use crate::levels::{level, misses};
use crate::load::Report;
use crate::number::{counted, spoken_percent};
use nearmiss_record::model::{LineSharing, MissClass, SharedLineRow, Tally};
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
    // Lines, not misses: who missed first says nothing of who uses which bytes.
    let rows = || report.model.shared_lines.iter().filter(|row| row.tenants.is_empty() || row.stall_cycles > 0);
    let on_lines = |sharing| {
        let alike = rows().filter(|row| row.sharing() == sharing);
        alike.fold(0u64, |sum, row| sum.saturating_add(row.misses()))
    };
    let by_lines = [LineSharing::False, LineSharing::True].map(on_lines);
    let (is_false, part) = match by_lines {
        [0, 0] => {
            let by_class = [MissClass::FalseSharing, MissClass::TrueSharing].map(|c| level(totals, at.index).class(c));
            (by_class[0] > by_class[1], by_class[0].max(by_class[1]))
        }
        [apart, together] => (apart > together, apart.max(together).min(count)),
    };
    let sharing = if is_false { LineSharing::False } else { LineSharing::True };
    let cause = if is_false { Cause::FalseSharing } else { Cause::TrueSharing };
    let of_line = |row: &SharedLineRow| if row.sharing() == sharing { row.misses() } else { 0 };
    let line = rows().max_by_key(|row| of_line(row)).filter(|row| of_line(row).saturating_mul(2) >= part);
    let lines = rows().filter(|row| of_line(row) > 0).count() as u64;
    let on = match line {
        Some(row) => format!(" on the line of {}", quoted(&row.object)),
        None if lines == 0 => String::new(),
        None => format!(" on {}", counted(lines, "line")),
    };
    let shared_here = |t: &Tally| shared(t, at.index);
    let place = where_phrase(top_function(&report.model, shared_here), None, part);
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
