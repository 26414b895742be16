//! Which objects are in each other's way: from crowded misses to subjects.

use super::aliasing;
use super::apply::LEAST_BLOCK_BYTES;
use super::finding::Colors;
use super::program;
use super::subject::{Class, Subject, is_of_pieces};
use nearmiss_analysis::{Case, CaseError, Suspicion, Suspicions, Traced};
use nearmiss_machine::attribution::{Crowd, Party};
use nearmiss_record::finding::LEAST_GAIN;
use nearmiss_record::model::ObjectKind;
use std::collections::BTreeMap;

/// Objects with less than this share of a level's crowded misses are bystanders.
const LEAST_SHARE: f64 = 0.05;

/// Share of the command's cycles: what waits less than that for its crowded misses gains too little to be a finding.
const LEAST_WAITS: f64 = LEAST_GAIN / 4.0;

/// Subjects by class, and by name where each object is a finding of its own.
type Subjects = BTreeMap<(Class, String), Subject>;

/// Everything in a run that colors may help with, and what looks like it.
pub fn detect(case: &Case) -> Result<Suspicions, CaseError> {
    let case = case.traced()?;
    let reads_environment = program::reads_environment(&case.manifest);
    let mut subjects = Subjects::new();
    for crowd in &case.crowds {
        let Some(class) = class(crowd) else { continue };
        let name = if class.of_many() { String::new() } else { crowd.name.clone() };
        let subject = subjects.entry((class, name)).or_insert_with(|| Subject::new(class, reads_environment));
        subject.crowds.push(crowd.clone());
    }
    let mut crowded: BTreeMap<usize, u64> = BTreeMap::new();
    for crowd in &case.crowds {
        *crowded.entry(crowd.level).or_default() += crowd.misses;
    }
    // Objects that merely stand by, such as the table of pointers to the others, are pushed out with them.
    subjects.retain(|_, subject| {
        let share = |level: usize| {
            let own: u64 = subject.crowds.iter().filter(|c| c.level == level).map(|c| c.misses).sum();
            own as f64 / crowded.get(&level).copied().unwrap_or(0).max(1) as f64
        };
        subject.crowds.iter().any(|c| share(c.level) >= LEAST_SHARE)
    });
    let least = LEAST_WAITS * case.model.totals.cycles as f64;
    subjects.retain(|_, subject| crowded_waits(subject) as f64 >= least);
    let mut aliased = aliased(case, reads_environment);
    aliased.retain(|_, subject| aliasing::wait_cycles(case, &subject.aliased) as f64 >= least);
    // Objects with both get one color each, for either wait: the heavier reason stands for both.
    for (key, subject) in aliased {
        let waits = aliasing::wait_cycles(case, &subject.aliased);
        if subjects.get(&key).is_none_or(|crowded| crowded_waits(crowded) < waits) {
            subjects.insert(key, subject);
        }
    }
    let suspicion = |subject| Box::new(Colors::new(case, subject)) as Box<dyn Suspicion>;
    Ok(subjects.into_values().map(suspicion).collect())
}

fn crowded_waits(subject: &Subject) -> u64 {
    subject.by_name().iter().map(|crowd| crowd.stall_cycles).sum()
}

/// Objects with loads that wait for stores to the same offset of another page.
fn aliased(case: &Traced, reads_environment: bool) -> Subjects {
    let all: u64 = case.aliases.iter().map(|alias| alias.loads).sum();
    let mut subjects = Subjects::new();
    for alias in case.aliases.iter().filter(|alias| alias.loads as f64 >= LEAST_SHARE * all as f64) {
        let sides = [&alias.loaded, &alias.stored];
        // Moving one side will do, where either can be moved from outside.
        let classes = sides.map(alias_class);
        let Some(class) = classes.into_iter().flatten().min() else { continue };
        let name = if class.of_many() { String::new() } else { alias.stored.name.clone() };
        let subject = subjects.entry((class, name)).or_insert_with(|| Subject::new(class, reads_environment));
        let moved = sides.into_iter().zip(classes).filter(|(_, of)| *of == Some(class));
        subject.aliased_extents.extend(moved.flat_map(|(side, _)| side.extents.iter().copied()));
        subject.aliased.push(alias.clone());
    }
    subjects
}

/// `None` for memory that no program decides on.
fn alias_class(side: &Party) -> Option<Class> {
    Some(match side.kind {
        ObjectKind::Stack if side.extents.len() > 1 => Class::Stacks,
        // No preloaded library colors what a language's runtime gives out.
        ObjectKind::Stack | ObjectKind::Global | ObjectKind::Managed => Class::Parts,
        ObjectKind::Heap if side.requested_alignment >= 64 => Class::AlignedBlocks,
        ObjectKind::Heap if side.extents.iter().any(|(start, end)| end - start < LEAST_BLOCK_BYTES) => {
            Class::SmallBlocks
        }
        ObjectKind::Heap => Class::Blocks,
        ObjectKind::Anonymous | ObjectKind::File => Class::Mappings,
        _ => return None,
    })
}

/// `None` for memory that no program decides on.
fn class(crowd: &Crowd) -> Option<Class> {
    let pieces = is_of_pieces(crowd);
    Some(match crowd.kind {
        ObjectKind::Stack if crowd.extents.len() > 1 && !pieces => Class::Stacks,
        ObjectKind::Global if !pieces => Class::Variables,
        ObjectKind::Stack | ObjectKind::Global | ObjectKind::Managed => Class::Parts,
        ObjectKind::Heap if pieces => Class::Parts,
        ObjectKind::Heap if crowd.requested_alignment >= 64 => Class::AlignedBlocks,
        ObjectKind::Heap if crowd.extents.iter().all(|(start, end, _)| end - start < LEAST_BLOCK_BYTES) => {
            Class::SmallBlocks
        }
        ObjectKind::Heap => Class::Blocks,
        // Mappings that touch become one: where most pieces were mapped one by one, they are mappings.
        ObjectKind::Anonymous | ObjectKind::File if pieces && crowd.made * 2 <= crowd.pieces => Class::Slots,
        ObjectKind::Anonymous | ObjectKind::File => Class::Mappings,
        _ => return None,
    })
}
