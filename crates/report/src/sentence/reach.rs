//! General causes: data too far away, or too much of it.

use super::ranked::Ranked;
use super::{Candidate, Cause};
use crate::levels::{Level, level};
use crate::load::Report;
use nearmiss_record::machine::{Cache, CacheKind};
use nearmiss_record::model::MissClass;
use nearmiss_record::waits::{Reason, Waits};

/// The level at which misses of a class cost the command most.
pub(super) fn heaviest(report: &Report, class: MissClass) -> Option<&Level> {
    let totals = &report.model.totals;
    let at = report.levels.get(Waits::new(&report.model).heaviest_level(totals, class))?;
    (level(totals, at.index).class(class) > 0).then_some(at)
}

pub(super) fn remote(report: &Report, ranked: &Ranked<'_>) -> Option<Candidate> {
    let latency = &report.model.machine.latency;
    let text = format!(
        "the memory of another node{}, at {} instead of {} cycles: keeping pages beside their CPU would help",
        ranked.place(Reason::RemoteMemory),
        latency.memory_remote_cycles,
        latency.memory_local_cycles,
    );
    Some(Candidate::waiting(Cause::RemoteMemory, Reason::RemoteMemory, ranked, text))
}

pub(super) fn capacity(report: &Report, ranked: &Ranked<'_>) -> Option<Candidate> {
    let at = heaviest(report, MissClass::Capacity)?;
    let of_code = of_instructions(report, at);
    let (name, size) = match of_code {
        Some(cache) => (format!("{}i", at.name), Some(cache.size)),
        None => (at.name.clone(), at.size),
    };
    let shared =
        report.model.machine.data_cache(at.index + 1).filter(|cache| of_code.is_none() && cache.others_lines > 0);
    let kept = shared.map(|cache| report.model.machine.kept_of(cache));
    let fits = match kept.or(size) {
        Some(kept) if shared.is_some() => {
            format!("what is used again waits too long: others leave {kept} of {name} to a chase")
        }
        Some(size) => format!("what is used again does not fit the {size} of {name}"),
        None => format!("what is used again does not fit {name}"),
    };
    // The curve is of data.
    let curve = report.model.curve.as_ref().filter(|_| of_code.is_none() && shared.is_none());
    let larger = size.zip(curve).and_then(|(size, curve)| curve.least_dividing(size, 2));
    let larger = larger.map_or(String::new(), |size| format!("; half of them would hit with {size}"));
    let place = ranked.place(Reason::Capacity);
    let text = format!("capacity misses of {name}{place}: {fits}{larger}");
    Some(Candidate::waiting(Cause::Capacity, Reason::Capacity, ranked, text).general())
}

/// The level's cache of instructions, if most of its capacity misses are there.
fn of_instructions<'a>(report: &'a Report, at: &Level) -> Option<&'a Cache> {
    let tally = level(&report.model.totals, at.index);
    let fetches = tally.fetch_misses[MissClass::Capacity as usize];
    let mut caches = report.model.machine.caches.iter();
    let cache =
        caches.find(|cache| usize::from(cache.level) == at.index + 1 && cache.kind == CacheKind::Instruction)?;
    (fetches.saturating_mul(2) > tally.class(MissClass::Capacity)).then_some(cache)
}
