//! Lines that CPUs take from each other.

use super::ranked::Ranked;
use super::{Candidate, Cause, quoted};
use crate::levels::level;
use crate::load::Report;
use crate::number::counted;
use nearmiss_record::model::{MissClass, SharedLineRow, Tally};
use nearmiss_record::policy::Order;
use nearmiss_record::waits::Reason;

pub(super) fn candidate(report: &Report, ranked: &Ranked<'_>) -> Option<Candidate> {
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
    let reason = if is_false { Reason::FalseSharing } else { Reason::TrueSharing };
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
        Some(row) => ranked.function_on(reason, format!(" on the line of {}", quoted(&row.object))),
        None if lines == 0 => ranked.place(reason),
        None => ranked.function_on(reason, format!(" on {}", counted(lines, "line"))),
    };
    let (name, hint) = if is_false {
        ("false sharing", "CPUs write different bytes of it; apart, each would keep its own line")
    } else {
        ("true sharing", "CPUs hand the same bytes to each other; fewer hand-overs would help, not another place")
    };
    let order = match report.model.order {
        Order::Recorded => "recorded order: a lower bound",
        Order::Modelled => "modelled order",
    };
    let text = format!("{name}{on}: {hint} ({order})");
    Some(Candidate::waiting(cause, reason, ranked, text))
}
