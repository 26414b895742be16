//! Conflict misses: on a few sets, or all over.

use super::{Candidate, Cause, function_phrase, object_phrase, top_function, top_object, weigh, where_phrase};
use crate::levels::{Level, level};
use crate::load::Report;
use crate::number::{counted, grouped, spoken_percent};
use nearmiss_record::machine::Index;
use nearmiss_record::model::{MissClass, ObjectRow, SetMap, Tally};

/// Share of the conflict misses that the hot sets hold together.
const HOT_SHARE: f64 = 0.9;
/// At most this part of the sets may be called few.
const FEW: usize = 8;

/// How concentrated a set map is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hot {
    /// Fewest sets that hold nine tenths of the values.
    pub sets: usize,
    /// What they hold.
    pub held: u64,
}

/// The fewest sets that hold nine tenths of `values`, if there is anything.
pub(crate) fn hot(values: &[u64]) -> Option<Hot> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    let total = sorted.iter().fold(0u64, |a, b| a.saturating_add(*b));
    let mut held = 0u64;
    for (i, value) in sorted.iter().enumerate() {
        held = held.saturating_add(*value);
        if total > 0 && held as f64 >= HOT_SHARE * total as f64 {
            return Some(Hot { sets: i + 1, held });
        }
    }
    None
}

fn level_of<'a>(report: &'a Report, map: &SetMap) -> Option<&'a Level> {
    let digit = map.cache.chars().find(char::is_ascii_digit)?.to_digit(10)? as usize;
    report.levels.get(digit.checked_sub(1)?)
}

/// Conflict misses that a few sets hold.
pub(super) fn candidate(report: &Report) -> Option<Candidate> {
    let heaviest = report.model.sets.iter().filter_map(|map| {
        let level = level_of(report, map)?;
        let hot = hot(&map.conflict_misses)?;
        (hot.sets.saturating_mul(FEW) <= map.misses.len())
            .then(|| (weigh(hot.held, level.penalty_cycles), map, level, hot))
    });
    let (weight, map, at, hot) = heaviest.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let all = map.misses.iter().fold(0u64, |a, b| a.saturating_add(*b));
    let conflicts = |t: &Tally| level(t, at.index).class(MissClass::Conflict);
    let whole = conflicts(&report.model.totals);
    let object = top_object(&report.model, conflicts).filter(|(_, n)| n.saturating_mul(2) >= whole);
    let function = top_function(&report.model, conflicts).filter(|(_, n)| n.saturating_mul(2) >= whole);
    let caused = match (function, object) {
        (Some((f, _)), Some((o, _))) => {
            format!(", caused by {} {} {}", function_phrase(f), verb(o, at), object_phrase(o))
        }
        (Some((f, _)), None) => format!(", most of them in {}", function_phrase(f)),
        (None, Some((o, _))) => format!(", most of them on {}", object_phrase(o)),
        (None, None) => String::new(),
    };
    let text = format!(
        "{} of {} data misses are conflict misses in {} of {}{caused}: {}.",
        spoken_percent(hot.held, all),
        map.cache,
        grouped(hot.sets as u64),
        counted(map.misses.len() as u64, "set"),
        hint(at, object.map(|(o, _)| o)),
    );
    Some(Candidate { cause: Cause::SetConflict, text, weight })
}

fn verb(object: &ObjectRow, at: &Level) -> &'static str {
    let tally = level(&object.tally, at.index);
    let class = MissClass::Conflict as usize;
    if tally.store_misses[class] > tally.load_misses[class] { "writing" } else { "reading" }
}

fn hint(at: &Level, object: Option<&ObjectRow>) -> &'static str {
    if at.index_by == Index::Hashed {
        "its sets are hashed, so coloring would not help"
    } else if object.is_some_and(|o| o.count <= 1) {
        "coloring or padding its parts would spread them"
    } else {
        "coloring would spread them"
    }
}

/// Conflict misses without such sets.
pub(super) fn everywhere(report: &Report) -> Option<Candidate> {
    let (weight, at, count) = super::reach::heaviest_class(report, MissClass::Conflict)?;
    let conflicts = |t: &Tally| level(t, at.index).class(MissClass::Conflict);
    let place = where_phrase(top_function(&report.model, conflicts), top_object(&report.model, conflicts), count);
    let share = spoken_percent(count, level(&report.model.totals, at.index).misses());
    let text = format!(
        "{share} of {} misses are conflict misses{place}, spread over many sets: more ways would hold them.",
        at.name
    );
    Some(Candidate { cause: Cause::Conflict, text, weight: weight / 2.0 })
}
