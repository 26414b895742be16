//! The one sentence that matters: the heaviest thing that a person could act on, or that there is none.
//!
//! Each kind of cause offers a candidate with the modelled cycles its misses weigh (misses × what a miss costs over a
//! hit at that level, overlap aside). The heaviest wins; general causes count half, since a special one says more.

mod coherence;
mod conflict;
mod copy;
mod reach;

pub(crate) use conflict::hot;

use crate::levels::{Level, misses};
use crate::load::Report;
use crate::name::{file_name, fitted};
use crate::number::{percentage, spoken_percent};
use nearmiss_record::model::{FunctionRow, ModelRecord, ObjectKind, ObjectRow, Tally};
use nearmiss_record::units::Bytes;
use serde::Serialize;

/// Columns that a name may take in a sentence.
const NAME_WIDTH: usize = 48;
/// Waiting below this share of the cycles is nothing to act on.
const LEAST_STALL_PERCENT: f64 = 5.0;
/// A candidate below this share of the weight of all misses is not worth a sentence.
const LEAST_WEIGHT_SHARE: f64 = 0.15;

/// What a sentence is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Objects that fall on the same few sets.
    SetConflict,
    /// Conflict misses all over the cache.
    Conflict,
    /// Different bytes of one line, written by several CPUs.
    FalseSharing,
    /// The same bytes, written by several CPUs.
    TrueSharing,
    /// A function with far more misses than references.
    Copy,
    /// Memory of other nodes.
    RemoteMemory,
    /// More data in use than the cache holds.
    Capacity,
    /// Data touched for the first time.
    FirstTouch,
    /// Nothing stands out.
    None,
}

/// The sentence that matters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sentence {
    /// What it is about.
    pub cause: Cause,
    /// The sentence, with its numbers; *modelled*.
    pub text: String,
}

struct Candidate {
    cause: Cause,
    text: String,
    weight: f64,
}

/// The sentence for a run.
pub fn sentence(report: &Report) -> Sentence {
    let model = &report.model;
    let totals = &model.totals;
    let waiting = spoken_percent(totals.stall_cycles, totals.cycles);
    let none = |text: String| Sentence { cause: Cause::None, text };
    if report.levels.iter().all(|l| misses(totals, l.index) == 0) {
        return none("No cache stands out: there was not a single miss.".to_owned());
    }
    if totals.stall_cycles > 0 && percentage(totals.stall_cycles, totals.cycles) < LEAST_STALL_PERCENT {
        return none(format!("No cache stands out: only {waiting} of the modelled cycles wait for caches or memory."));
    }
    let whole: f64 = report.levels.iter().map(|l| weigh(misses(totals, l.index), l.penalty_cycles)).sum();
    let candidates =
        [conflict::candidate(report), coherence::candidate(report), copy::candidate(report)].into_iter().chain([
            reach::remote(report),
            reach::capacity(report),
            reach::first_touch(report),
            conflict::everywhere(report),
        ]);
    candidates
        .flatten()
        .filter(|c| c.weight >= LEAST_WEIGHT_SHARE * whole)
        .max_by(|a, b| a.weight.total_cmp(&b.weight))
        .map(|c| Sentence { cause: c.cause, text: c.text })
        .unwrap_or_else(|| {
            none(format!("No cache stands out: {waiting} of the modelled cycles wait, for many small reasons."))
        })
}

fn weigh(misses: u64, penalty_cycles: u64) -> f64 {
    misses as f64 * penalty_cycles as f64
}

/// The outermost level in which anything missed.
fn outermost(report: &Report) -> Option<&Level> {
    report.levels.iter().rev().find(|l| misses(&report.model.totals, l.index) > 0)
}

/// A name in backticks, which it cannot hold itself: they tell names from words.
fn quoted(name: &str) -> String {
    format!("`{}`", fitted(name, NAME_WIDTH).replace('`', "'"))
}

/// `schedule` · the kernel's `schedule`.
fn function_phrase(row: &FunctionRow) -> String {
    if row.kernel { format!("the kernel's {}", quoted(&row.name)) } else { quoted(&row.name) }
}

/// The named function with the most of something, and how much.
fn top_function(model: &ModelRecord, figure: impl Fn(&Tally) -> u64) -> Option<(&FunctionRow, u64)> {
    let named = model.functions.iter().filter(|r| !r.name.starts_with('['));
    named.map(|r| (r, figure(&r.tally))).filter(|(_, n)| *n > 0).max_by_key(|(_, n)| *n)
}

/// The known object with the most of something, and how much.
fn top_object(model: &ModelRecord, figure: impl Fn(&Tally) -> u64) -> Option<(&ObjectRow, u64)> {
    let known = model.objects.iter().filter(|r| r.kind != ObjectKind::Unattributed);
    known.map(|r| (r, figure(&r.tally))).filter(|(_, n)| *n > 0).max_by_key(|(_, n)| *n)
}

/// `1,024 objects `task` of 8 KiB alignment`.
fn object_phrase(row: &ObjectRow) -> String {
    let name = if row.name.starts_with('/') { file_name(&row.name) } else { &row.name };
    let mut text = match row.count {
        0 | 1 => quoted(name),
        n => format!("{} objects {}", crate::number::grouped(n), quoted(name)),
    };
    if let Some(alignment) = row.alignment_bytes.filter(|a| *a >= 4096 && row.count > 1) {
        text += &format!(" of {} alignment", Bytes(alignment));
    }
    text
}

/// ` in F` and ` on O` where they are known to be most of `whole`.
fn where_phrase(function: Option<(&FunctionRow, u64)>, object: Option<(&ObjectRow, u64)>, whole: u64) -> String {
    let most = |n: u64| n.saturating_mul(2) >= whole;
    let function = function.filter(|(_, n)| most(*n)).map(|(row, _)| format!(" in {}", function_phrase(row)));
    let object = object.filter(|(_, n)| most(*n)).map(|(row, _)| format!(" on {}", object_phrase(row)));
    function.unwrap_or_default() + &object.unwrap_or_default()
}
