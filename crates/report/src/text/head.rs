//! Head of the text: what ran, the sentence that matters, where the cycles went.

use super::Page;
use crate::cycles::spent;
use crate::levels::{Level, references};
use crate::name::{cell, plain, right, wrapped};
use crate::number::{counted, duration, percent_of, scaled, shares_tenths, tenths};
use crate::order;
use crate::sentence::sentence;
use crate::wall::before_the_window;
use nearmiss_record::model::ShareRange;
use nearmiss_record::policy::{AddressPolicy, HomePolicy, PlacePolicy, Policy, StorePolicy};
use std::collections::BTreeMap;

/// Explains the ranges of the shares, where parts of a run were recorded.
const OF_WHOLE_RUN: &str = " (last: of the whole run, 95% confidence)";

impl Page<'_> {
    pub(super) fn head(&mut self) {
        let (manifest, model) = (&self.report.manifest, &self.report.model);
        let bold = anstyle::Style::new().bold();
        let command = self.named(&manifest.command.join(" "), self.options.width - 10);
        self.out.push_str(&format!("nearmiss  {bold}{command}{bold:#}\n\n"));
        for line in wrapped(&format!("Modelled: {}", plain(&sentence(self.report).text)), self.options.width - 2) {
            self.out.push_str(&format!("  {bold}{line}{bold:#}\n"));
        }
        self.line("");
        let caches = self.caches().join(", ");
        let order = order::with_bound(model.order, "sharing is");
        self.labelled(
            "Machine",
            &format!(
                "{}: {caches}; {}; order {order}{}",
                plain(&model.machine.name),
                counted(u64::from(manifest.cpus), "CPU"),
                policy(&model.policy)
            ),
        );
        if let Some(caution) = model.machine.caution() {
            self.labelled("Caution", &plain(caution));
        }
        let end: String = crate::end::clauses(manifest).iter().map(|clause| format!("; {clause}")).collect();
        self.labelled(
            "Measured",
            &format!(
                "{} in the guest under the tap ({}){end}; {}",
                duration(manifest.window_ns),
                clock(&manifest.clock),
                before_the_window(manifest)
            ),
        );
        let totals = &model.totals;
        let only_user = if model.only_user { ", user mode only" } else { "" };
        self.labelled(
            "Modelled",
            &format!(
                "{} instructions, {} loads, {} stores, {} cycles{only_user}",
                scaled(totals.instructions),
                scaled(totals.loads),
                scaled(totals.stores),
                scaled(totals.cycles)
            ),
        );
        if let Some(split) = crate::split::sentence(model) {
            self.labelled("All CPUs", &format!("by modelled cycles: {split}"));
        }
    }

    fn caches(&self) -> Vec<String> {
        let cache = |level: &Level| {
            let why = why_of_size(&self.report.model.machine.sources, &level.name);
            let why = why.map_or(String::new(), |why| format!(" ({})", plain(why)));
            Some(format!("{} {} {}-way{why}", level.name, level.size?, level.ways?))
        };
        self.report.levels.iter().filter_map(cache).collect()
    }

    pub(super) fn cycles(&mut self) {
        let rows = spent(&self.report.model, &self.report.levels);
        let parts: Vec<u64> = rows.iter().map(|r| r.cycles).collect();
        let shares = shares_tenths(&parts);
        let ranged = rows.iter().any(|row| row.range.is_some());
        self.title(&format!("Where the modelled cycles went{}", if ranged { OF_WHOLE_RUN } else { "" }));
        const LABEL: usize = 30;
        let range_width = if ranged { 16 } else { 0 };
        let bar_width = self.options.width - LABEL - 2 - 8 - 10 - range_width;
        for (row, share) in rows.iter().zip(shares) {
            let length = (bar_width as f64 * f64::from(share) / 1000.0).round() as usize;
            let bar = cell(&"█".repeat(length), bar_width);
            self.line(&format!(
                "  {}{}{}{}  {bar}",
                cell(&row.on, LABEL - 2),
                right(&scaled(row.cycles), 10),
                right(&tenths(row.cycles, share), 8),
                right(&row.range.map_or(String::new(), ShareRange::words), range_width)
            ));
        }
    }

    pub(super) fn notes(&mut self) {
        let model = &self.report.model;
        let sums = crate::sums::discrepancies(model);
        let notes: Vec<String> =
            sums.iter().chain(&self.report.manifest.notes).chain(&model.notes).map(|n| plain(n)).collect();
        // Sums that do not add up are always shown; of the other notes the first, the rest are a flag away.
        let shown = sums.len().max(1).min(notes.len());
        for (i, note) in notes.iter().take(shown).enumerate() {
            let more = notes.len() - shown;
            let more = if i + 1 == shown && more > 0 {
                format!(" (and {} with --html)", counted(more as u64, "note"))
            } else {
                String::new()
            };
            self.labelled("Note", &format!("{note}{more}"));
        }
    }

    pub(super) fn misses_per_kilo(&self, misses: u64) -> String {
        let instructions = self.report.model.totals.instructions;
        if instructions > 0 {
            format!("{:.2}", misses as f64 * 1000.0 / instructions as f64)
        } else {
            // Without instruction counts (only data was recorded), by references.
            percent_of(misses, references(&self.report.model.totals))
        }
    }
}

/// Returns the reason of the size of a cache that was measured on the machine, such as `others push out what a chase of
/// more than 6 MiB uses`, from the figure's source; none for sizes from elsewhere.
fn why_of_size<'s>(sources: &'s BTreeMap<String, String>, cache: &str) -> Option<&'s str> {
    let how = sources.get(&format!("cache.{cache}"))?.strip_prefix("measured here")?;
    how.split_once(": ")?.1.split(';').next()
}

/// Describes the changes by the policy, if any.
pub(crate) fn policy(policy: &Policy) -> String {
    let mut text = String::new();
    if let AddressPolicy::Color { colors, align, .. } = &policy.address {
        text += &format!("; policy: {colors} colors for objects {} apart", nearmiss_record::units::Bytes(*align));
    }
    if let AddressPolicy::Apart { moved, .. } = &policy.address {
        text += &format!("; policy: {} on lines of their own", counted(moved.len() as u64, "piece"));
    }
    if let AddressPolicy::Copies { ranges, .. } = &policy.address {
        text += &format!("; policy: a copy of {} for each CPU", counted(ranges.len() as u64, "range"));
    }
    if let StorePolicy::NonTemporal { sites } = &policy.store {
        text += &format!("; policy: non-temporal stores at {}", counted(sites.len() as u64, "call site"));
    }
    if let StorePolicy::Plain { sites } = &policy.store {
        text += &format!("; policy: plain stores at {}", counted(sites.len() as u64, "call site"));
    }
    if let PlacePolicy::Tasks { tasks, .. } = &policy.place {
        text += &format!("; policy: {} placed", counted(tasks.len() as u64, "task"));
    }
    if let PlacePolicy::InOrder { tasks } = &policy.place {
        text += &format!("; policy: {} bound, in the recorded order", counted(tasks.len() as u64, "task"));
    }
    if let HomePolicy::Rules(rules) = &policy.home {
        text += &format!("; policy: {} for the homes of pages", counted(rules.len() as u64, "rule"));
    }
    text
}

/// Describes the guest's clock and its effect on timers.
fn clock(name: &str) -> String {
    match name {
        "instructions" => "time by instructions: timers leave programs their time".into(),
        "host" => "time by the host's clock: timers come often".into(),
        other => format!("{} clock", plain(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_that_was_measured_has_its_reason() {
        let taken = "measured here by chases of growing size: others push out what a chase of more than 6 MiB uses; ways as listed";
        let sources =
            [("cache.L2", "sysfs"), ("cache.L3", taken)].map(|(figure, from)| (figure.into(), from.into())).into();
        assert_eq!(why_of_size(&sources, "L3"), Some("others push out what a chase of more than 6 MiB uses"));
        assert_eq!([why_of_size(&sources, "L2"), why_of_size(&sources, "L1d")], [None, None]);
    }
}
