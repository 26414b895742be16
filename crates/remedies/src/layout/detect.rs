//! Structures that the command waits for.

use super::finding::{Layout, NotSeen};
use super::pieces::Element;
use nearmiss_analysis::{Case, CaseError, Suspicion, Suspicions, Traced, has_symbol_table, replay, structures};
use nearmiss_machine::attribution::{ElementSizes, FieldUses, UsedElements};
use nearmiss_machine::describe::can_place_fields;
use nearmiss_record::finding::LEAST_GAIN;
use nearmiss_record::model::{MissClass, ModelRecord, ObjectKind, Tally};
use nearmiss_record::run::Coverage;
use std::path::Path;

/// Share of the cycles from which one object is worth a recording of every access.
const WORTH_A_RECORDING: f64 = 0.08;
/// Elements of so few bytes have fields only if they are declared, or a block each.
const MOST_UNDECLARED: u64 = 32;
/// All elements of a structure, at most: a replay keeps the places of their pages.
const MOST_BYTES: u64 = 4 << 30;
/// Structures that are looked at.
const MOST: usize = 2;

/// Elements that the command waits for. A trace that dropped accesses shows no fields; then the objects that could matter
/// are one suspicion, unless the program was stripped: it was made elsewhere, and its structures are not its user's to
/// change.
pub fn detect(case: &Case) -> Result<Suspicions, CaseError> {
    let case = case.traced()?;
    let waits = heaviest(&case.model);
    if can_place_fields(case.filter).is_err() {
        let worth = worth_a_recording(waits, case.manifest.covered.as_ref());
        let worth = worth.filter(|_| program(case).is_some_and(|path| has_symbol_table(Path::new(path))));
        return Ok(worth.map(|waits| Box::new(NotSeen::new(waits)) as Box<dyn Suspicion>).into_iter().collect());
    }
    let cycles = case.model.totals.cycles.max(1) as f64;
    let matters = |used: &UsedElements| {
        let bytes = used.count().saturating_mul(used.bytes);
        used.stall_cycles() as f64 >= LEAST_GAIN * cycles && bytes <= MOST_BYTES
    };
    let suspected = elements(case)?.into_iter().filter(matters).take(MOST).filter_map(|used| {
        let module = used.module.as_deref().or_else(|| program(case));
        let known = module.map_or(Vec::new(), |module| structures(Path::new(module), used.bytes));
        let element = Element::new(&used, &known);
        let is_sure = element.structure.is_some() || is_like_a_structure(&used);
        Layout::new(case, used, element).filter(|_| is_sure)
    });
    Ok(suspected.map(|layout| Box::new(layout) as Box<dyn Suspicion>).collect())
}

/// Share of the cycles for which every access is worth recording, given that of the object that waits most; none: not worth
/// it. A command that ended while most of it was not recorded showed its start, which need not be like the rest.
fn worth_a_recording(waits: f64, covered: Option<&Coverage>) -> Option<f64> {
    let ended = covered.filter(|covered| !covered.ended);
    let is_a_start = ended.and_then(Coverage::share_by_guest).is_some_and(|share| share < Coverage::LITTLE);
    match is_a_start {
        true => Some(waits.max(LEAST_GAIN)),
        false => (waits >= WORTH_A_RECORDING).then_some(waits),
    }
}

/// Path of the program that was recorded.
fn program(case: &Traced) -> Option<&str> {
    let name = Path::new(case.manifest.command.first()?).file_name()?;
    let mut modules = case.symbols.modules.iter().map(String::as_str);
    modules.find(|module| Path::new(module).file_name() == Some(name))
}

/// Whether elements without a declaration have fields: an array of bytes or words has none, the parts of an allocator's
/// blocks look like small elements, and a mapping may have anything in it.
fn is_like_a_structure(used: &UsedElements) -> bool {
    used.kind != ObjectKind::Anonymous
        && used.is_agreed
        && used.fields.len() > 1
        && (used.is_block || used.bytes > MOST_UNDECLARED)
}

/// Share of the cycles that the command waits for the block or variable it waits for most, because the first cache is
/// too small for it: another order of fields does nothing for first touches, for lines that crowd on few sets, and for
/// lines that other CPUs take.
fn heaviest(model: &ModelRecord) -> f64 {
    use ObjectKind::{Global, Heap, Managed};
    let rows = model.objects.iter().filter(|row| matches!(row.kind, Heap | Managed | Global));
    let most = rows.map(|row| waits_for_room(&row.tally)).fold(0.0, f64::max);
    most / model.totals.cycles.max(1) as f64
}

fn waits_for_room(tally: &Tally) -> f64 {
    let Some(first) = tally.levels.first() else { return 0.0 };
    let [compulsory, capacity] = [MissClass::Compulsory, MissClass::Capacity].map(|class| first.class(class));
    let again = first.misses().saturating_sub(compulsory).max(1);
    tally.stall_cycles.saturating_sub(tally.first_touch_cycles) as f64 * capacity as f64 / again as f64
}

/// Elements and their fields: two replays, of the run as it was.
fn elements(case: &Traced) -> Result<Vec<UsedElements>, CaseError> {
    let sizes = case.listen(ElementSizes::new(case.machine(), &case.symbols))?.sizes();
    if sizes.is_empty() {
        return Ok(Vec::new());
    }
    let uses = case.listen(FieldUses::new(case.machine(), &case.symbols, sizes))?;
    Ok(uses.elements(&replay::side(&case.run)?, &case.symbols))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_recorded_again_though_nothing_waits_there() {
        let of = |recorded_guest_ns, ended| {
            let covered = Coverage {
                recorded_ns: 1,
                reached_ns: 2,
                recorded_guest_ns,
                reached_guest_ns: 100,
                ended,
                ..Coverage::default()
            };
            worth_a_recording(0.03, Some(&covered))
        };
        assert_eq!([of(11, false), of(60, false), of(11, true)], [Some(0.03), None, None]);
        assert_eq!([worth_a_recording(0.03, None), worth_a_recording(0.09, None)], [None, Some(0.09)]);
    }
}
