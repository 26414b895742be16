//! Conflict misses: on a few sets, or all over.

use super::ranked::Ranked;
use super::{Candidate, Cause, function_phrase, object_phrase};
use crate::levels::{Level, level};
use crate::load::Report;
use crate::number::{counted, grouped};
use nearmiss_record::machine::Index;
use nearmiss_record::model::{MissClass, ObjectRow, SetMap};
use nearmiss_record::waits::Reason;

/// Share of the conflict misses that the hot sets hold together.
const HOT_SHARE: f64 = 0.9;
/// Largest part of the sets that may be called few, as a divisor.
const FEW: usize = 8;

/// How concentrated a set map is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hot {
    /// Fewest sets that hold nine tenths of the values.
    pub sets: usize,
    /// Sum of the values that they hold.
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

/// Conflict misses, in few sets or all over.
pub(super) fn candidate(report: &Report, ranked: &Ranked<'_>) -> Option<Candidate> {
    let at = super::reach::heaviest(report, MissClass::Conflict)?;
    // Few sets of another level have few of the cycles.
    let maps = report.model.sets.iter().filter(|map| level_of(report, map).is_some_and(|of| of.index == at.index));
    let few = maps.filter_map(|map| {
        let hot = hot(&map.conflict_misses)?;
        (hot.sets.saturating_mul(FEW) <= map.misses.len()).then_some((map, hot))
    });
    match few.max_by_key(|(_, hot)| hot.held) {
        Some((map, hot)) => Some(in_few_sets(ranked, map, at, hot)),
        None => Some(everywhere(ranked, at)),
    }
}

fn in_few_sets(ranked: &Ranked<'_>, map: &SetMap, at: &Level, hot: Hot) -> Candidate {
    let whole = ranked.cycles(Reason::Conflict);
    let object = ranked.object(Reason::Conflict);
    let function = ranked.function(Reason::Conflict).filter(|(_, n)| n.saturating_mul(2) >= whole);
    let caused = match (function, object) {
        (Some((f, _)), Some(o)) => format!(", caused by {} {} {}", function_phrase(f), verb(o, at), object_phrase(o)),
        (Some((f, _)), None) => format!(", most of them in {}", function_phrase(f)),
        (None, Some(o)) => format!(", most of them on {}", object_phrase(o)),
        (None, None) => String::new(),
    };
    let sets = counted(map.misses.len() as u64, "set");
    let text = format!(
        "conflict misses in {} of the {sets} of {}{caused}: {}",
        grouped(hot.sets as u64),
        map.cache,
        hint(at, object)
    );
    Candidate::waiting(Cause::SetConflict, Reason::Conflict, ranked, text)
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
fn everywhere(ranked: &Ranked<'_>, at: &Level) -> Candidate {
    let text = format!(
        "conflict misses of {}{}: lines in use share sets; `nearmiss diagnose` shows whether to move them apart",
        at.name,
        ranked.place(Reason::Conflict)
    );
    Candidate::waiting(Cause::Conflict, Reason::Conflict, ranked, text).general()
}
