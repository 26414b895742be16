//! Lines that CPUs take from each other.

use super::ranked::Ranked;
use super::{Candidate, Cause, quoted};
use crate::levels::level;
use crate::load::Report;
use crate::number::counted;
use crate::order;
use nearmiss_record::model::{LineSharing, MissClass, SharedLineRow, Tally};
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
    // Lines, not misses: who missed first does not show who uses which bytes.
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
    let reasons = [Reason::FalseSharing, Reason::TrueSharing];
    let reason = if ranked.cycles(reasons[0]) > ranked.cycles(reasons[1]) { reasons[0] } else { reasons[1] };
    let cause = if is_false { Cause::FalseSharing } else { Cause::TrueSharing };
    let of_line = |row: &SharedLineRow| if row.sharing() == sharing { row.misses() } else { 0 };
    let line = rows().max_by_key(|row| of_line(row)).filter(|row| of_line(row).saturating_mul(2) >= part);
    let lines = rows().filter(|row| of_line(row) > 0).count() as u64;
    let on = match line {
        Some(row) => ranked.function_on(reason, format!(" on the line of {}", quoted(&row.object))),
        None if lines == 0 => ranked.place(reason),
        None => ranked.function_on(reason, format!(" on {}", counted(lines, "line"))),
    };
    // An order may hide the deciding writes of others.
    let (name, hint) = match (is_false, report.model.order) {
        (true, _) => ("false sharing", "CPUs write different bytes of it; apart, each would keep its own line"),
        (false, Order::Recorded) => {
            ("true sharing", "CPUs hand the same bytes to each other; `nearmiss diagnose` shows what else would help")
        }
        (false, Order::Modelled) => {
            ("true sharing", "CPUs hand the same bytes to each other; fewer hand-overs would help, not another place")
        }
    };
    let order = order::of_sharing(report.model.order);
    let text = format!("{name}{on}: {hint} ({order})");
    let cycles = reasons.map(|reason| ranked.cycles(reason)).iter().sum();
    let worth = reasons.map(|reason| ranked.worth(reason)).iter().sum();
    Some(Candidate { cause, text, cycles, worth })
}
