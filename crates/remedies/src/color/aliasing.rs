//! Texts on loads that wait for stores to the same offset of another page.

use super::objects::Objects;
use super::subject::{Class, Subject};
use nearmiss_analysis::Traced;
use nearmiss_machine::attribution::Alias;
use nearmiss_record::words::grouped;

/// How exact the count is.
pub const EXACTNESS: &str = "aliased loads are a lower bound: repeats that the trace's filter dropped were not seen";

/// Cycles that loads wait in all.
pub fn wait_cycles(case: &Traced, aliases: &[Alias]) -> u64 {
    let each = case.machine().store_aliasing.map_or(0.0, |aliasing| aliasing.wait_cycles);
    let loads: u64 = aliases.iter().map(|alias| alias.loads).sum();
    (loads as f64 * each * case.machine().shown_share()).round() as u64
}

fn loads(subject: &Subject) -> u64 {
    subject.aliased.iter().map(|alias| alias.loads).sum()
}

/// Both sides, most loads first.
pub fn objects(subject: &Subject) -> Vec<Objects> {
    let mut list: Vec<Objects> = Vec::new();
    for (alias, side) in subject.aliased.iter().flat_map(|alias| [(alias, &alias.loaded), (alias, &alias.stored)]) {
        if list.iter().all(|known| known.name != side.name) {
            list.push(object(subject, &side.name, &side.allocated_at, alias.loads));
        }
    }
    list
}

fn object(subject: &Subject, name: &str, allocated_at: &[String], share_of: u64) -> Objects {
    let sides = subject.aliased.iter().flat_map(|alias| [&alias.loaded, &alias.stored]);
    let mut extents: Vec<(u64, u64)> =
        sides.filter(|side| side.name == name).flat_map(|side| side.extents.iter().copied()).collect();
    extents.sort_unstable();
    extents.dedup();
    let mut sizes = extents.iter().map(|(start, end)| end - start);
    let first = sizes.next();
    Objects {
        name: name.to_owned(),
        allocated_at: allocated_at.to_vec(),
        count: extents.len() as u64,
        size_bytes: first.filter(|first| sizes.all(|bytes| bytes == *first)),
        miss_share: share_of as f64 / loads(subject).max(1) as f64,
    }
}

/// Describes the symptom; `functions` are those that wait, most loads first.
pub fn symptom(subject: &Subject, functions: &[(String, u64)]) -> String {
    let by = functions.first().map_or(String::new(), |(function, _)| format!(" in `{function}`"));
    let Some(most) = subject.aliased.first() else { return String::new() };
    format!(
        "{} loads{by} wait for a store to the same offset of another page, most of them loads of `{}` behind stores to `{}`",
        grouped(loads(subject)),
        most.loaded.name,
        most.stored.name
    )
}

/// Describes the cause.
pub fn cause(subject: &Subject) -> String {
    let why = match subject.class {
        Class::Blocks => "The blocks begin at nearly the same offset of their pages",
        Class::Stacks => "Stacks are mapped alike, so frames of equal depth lie at the same offset of their pages",
        _ => "They lie at nearly the same offset of their pages",
    };
    format!(
        "{why}, and are read and written in step; the core compares a load with the stores before it by the offset within \
         the page first (4 KiB aliasing)."
    )
}
