//! General causes: data too far away, too much of it, or never seen before.

use super::{Candidate, Cause, top_function, top_object, weigh, where_phrase};
use crate::levels::{Level, level, misses};
use crate::load::Report;
use crate::number::spoken_percent;
use nearmiss_record::model::{MissClass, MissRatioCurve, Tally};
use nearmiss_record::units::Bytes;

/// The level where misses of a class weigh most, with how many there are, if they are a third of that level's misses.
pub(super) fn heaviest_class(report: &Report, class: MissClass) -> Option<(f64, &Level, u64)> {
    let totals = &report.model.totals;
    let of_level = |l: &Level| level(totals, l.index).class(class);
    let large =
        report.levels.iter().filter(|l| of_level(l) > 0 && of_level(l).saturating_mul(3) >= misses(totals, l.index));
    large.map(|l| (weigh(of_level(l), l.penalty_cycles), l, of_level(l))).max_by(|a, b| a.0.total_cmp(&b.0))
}

pub(super) fn remote(report: &Report) -> Option<Candidate> {
    let bus = &report.model.totals.bus;
    if bus.read_remote == 0 || bus.read_remote.saturating_mul(4) < bus.reads() {
        return None;
    }
    let latency = &report.model.machine.latency;
    let penalty = u64::from(latency.memory_remote_cycles.saturating_sub(latency.memory_local_cycles));
    let remote = |t: &Tally| t.bus.read_remote;
    let place = where_phrase(top_function(&report.model, remote), top_object(&report.model, remote), bus.read_remote);
    let text = format!(
        "{} of the memory reads go to another node{place}, at {} instead of {} cycles: keeping pages beside their CPU would help.",
        spoken_percent(bus.read_remote, bus.reads()),
        latency.memory_remote_cycles,
        latency.memory_local_cycles,
    );
    Some(Candidate { cause: Cause::RemoteMemory, text, weight: weigh(bus.read_remote, penalty) })
}

pub(super) fn capacity(report: &Report) -> Option<Candidate> {
    let (weight, at, count) = heaviest_class(report, MissClass::Capacity)?;
    let figure = |t: &Tally| level(t, at.index).class(MissClass::Capacity);
    let place = where_phrase(top_function(&report.model, figure), top_object(&report.model, figure), count);
    let fits = match at.size {
        Some(size) => format!("what is used again does not fit the {size} of {}", at.name),
        None => format!("what is used again does not fit {}", at.name),
    };
    let larger = at.size.zip(report.model.curve.as_ref()).and_then(|(size, curve)| halving_size(curve, size));
    let larger = larger.map_or(String::new(), |size| format!("; half of them would hit with {size}"));
    let share = spoken_percent(count, misses(&report.model.totals, at.index));
    let text = format!("{share} of {} misses are capacity misses{place}: {fits}{larger}.", at.name);
    Some(Candidate { cause: Cause::Capacity, text, weight: weight / 2.0 })
}

/// The least capacity on the curve with at most half of the misses that `size` has.
fn halving_size(curve: &MissRatioCurve, size: Bytes) -> Option<Bytes> {
    let now = curve.points.iter().rev().find(|(bytes, _)| *bytes <= size.0)?.1;
    curve
        .points
        .iter()
        .find(|(bytes, count)| *bytes > size.0 && count.saturating_mul(2) <= now)
        .map(|(bytes, _)| Bytes(*bytes))
}

pub(super) fn first_touch(report: &Report) -> Option<Candidate> {
    let (weight, at, count) = heaviest_class(report, MissClass::Compulsory)?;
    let figure = |t: &Tally| level(t, at.index).class(MissClass::Compulsory);
    let place = where_phrase(top_function(&report.model, figure), top_object(&report.model, figure), count);
    let share = spoken_percent(count, misses(&report.model.totals, at.index));
    let text = format!(
        "{share} of {} misses are compulsory, first touches{place}: no cache of any size would hold them.",
        at.name
    );
    Some(Candidate { cause: Cause::FirstTouch, text, weight: weight / 2.0 })
}
