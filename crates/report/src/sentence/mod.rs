//! The one sentence that matters: the heaviest thing that a person could act on, or where the cycles go.
//!
//! Each kind of cause offers a candidate with the cycles of the command that wait for it ([`nearmiss_record::waits`]).
//! The heaviest wins: general causes count half, since a special one explains more, and so do the kernel's waits, since
//! the program's own are nearer to its author. First touches are no candidate: any cache has them.

mod calm;
mod coherence;
mod conflict;
mod copy;
mod ranked;
mod reach;

pub(crate) use conflict::hot;

use crate::levels::{Level, misses};
use crate::load::Report;
use crate::name::{file_name, fitted};
use crate::number::spoken_percent;
use nearmiss_record::model::{FunctionRow, ModelRecord, ObjectRow, Tally};
use nearmiss_record::units::Bytes;
use nearmiss_record::waits::Reason;
use ranked::Ranked;
use schemars::JsonSchema;
use serde::Serialize;

/// Columns that a name may take in a sentence.
const NAME_WIDTH: usize = 48;
/// A wait below this share of the command's cycles is not worth a sentence.
const LEAST_SHARE: f64 = 0.05;

/// Subject of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Objects that fall on the same few sets.
    SetConflict,
    /// Conflict misses all over the cache.
    Conflict,
    /// Different bytes of one line, written by several CPUs.
    FalseSharing,
    /// Common bytes of one line, written by several CPUs.
    TrueSharing,
    /// A function with far more misses than references.
    Copy,
    /// Memory of other nodes.
    RemoteMemory,
    /// More data in use than the cache holds.
    Capacity,
    /// Nothing stands out.
    None,
}

/// The sentence that matters.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Sentence {
    /// Subject of the sentence.
    pub cause: Cause,
    /// The sentence, with its numbers; *modelled*.
    pub text: String,
}

struct Candidate {
    cause: Cause,
    /// The wait, its reason, and what would help: the rest of `N% of the command's cycles wait for`.
    text: String,
    /// Cycles waited that something could save.
    cycles: u64,
    /// Cycles by which candidates are compared.
    worth: f64,
}

impl Candidate {
    fn waiting(cause: Cause, reason: Reason, ranked: &Ranked<'_>, text: String) -> Self {
        Candidate { cause, text, cycles: ranked.cycles(reason), worth: ranked.worth(reason) }
    }

    /// Halves the worth: a special cause explains more than a general one of the same weight.
    fn general(self) -> Self {
        Candidate { worth: self.worth / 2.0, ..self }
    }
}

/// The sentence for a run.
pub fn sentence(report: &Report) -> Sentence {
    let totals = &report.model.totals;
    let ranked = Ranked::new(report);
    let candidates = [
        conflict::candidate(report, &ranked),
        coherence::candidate(report, &ranked),
        copy::candidate(report),
        reach::remote(report, &ranked),
        reach::capacity(report, &ranked),
    ];
    let heavy = |c: &Candidate| c.cycles > 0 && c.cycles as f64 >= LEAST_SHARE * totals.cycles as f64;
    let heaviest = candidates.into_iter().flatten().filter(heavy).max_by(|a, b| a.worth.total_cmp(&b.worth));
    match heaviest {
        Some(Candidate { cause, text, cycles, .. }) => {
            let share = spoken_percent(cycles, totals.cycles);
            Sentence { cause, text: format!("{share} of the command's cycles wait for {text}.") }
        }
        None => Sentence { cause: Cause::None, text: calm::text(report, &ranked) },
    }
}

/// The outermost level in which anything missed.
fn outermost(report: &Report) -> Option<&Level> {
    report.levels.iter().rev().find(|l| misses(&report.model.totals, l.index) > 0)
}

/// A name in backticks, which it cannot hold itself: they separate names from words.
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
