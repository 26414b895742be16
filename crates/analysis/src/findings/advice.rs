//! Waits that no remedy takes away, and what their author can do.

use super::calls;
use crate::Traced;
use crate::page_faults::PageFaults;
use nearmiss_record::finding::{Base, Finding};
use nearmiss_record::model::{
    Columns, InstructionRow, LineSharing, MissClass, MissRatioCurve, ModelRecord, ObjectKind, SharedLineRow, Tenant,
};
use nearmiss_record::symbols::KERNEL_MODULE;
use nearmiss_record::units::Bytes;
use nearmiss_record::waits::{Reason, Waits};
use nearmiss_record::words::{grouped, percent};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// More processes than a program and its wrapper leave pages to one another as they end.
const MOST_PROCESSES: usize = 2;
/// Memory that comes back this often is worth keeping.
const TIMES: u64 = 2;
/// Shares of the cycles from which faults and waits are worth a paragraph.
const LEAST_FAULTS: f64 = 0.05;
const LEAST_WAIT: f64 = 0.1;
const LEAST_PASSED: f64 = 0.05;
/// Functions that a paragraph names.
const MOST_PLACES: usize = 3;
/// Share of such waits from which a function is named.
const LEAST_PLACE: f64 = 0.1;

/// Returns one paragraph for each kind of wait that stands out, beside the `findings`.
pub(crate) fn advice(traced: &Traced, findings: &[Finding]) -> Vec<String> {
    let model = &traced.model;
    let waiting = Waiting { rows: &model.instructions, cycles: model.totals.cycles };
    let paragraphs = [
        fresh_memory(model),
        waiting.chained(),
        waiting.columns(),
        beyond_reach(model),
        traced
            .modelled_order()
            .and_then(|model| passed(&model.shared_lines, model.totals.cycles, |object| is_found(findings, object))),
        calls::frequent(traced),
    ];
    paragraphs.into_iter().flatten().collect()
}

/// Whether a finding on lines that pass between CPUs names the object: its remedy comes first.
fn is_found(findings: &[Finding], object: &str) -> bool {
    let mut contended =
        findings.iter().filter(|found| matches!(found.prediction.of, Base::Cycles { at_most: true, .. }));
    let name = format!("`{object}`");
    contended
        .any(|found| found.symptom.contains(&name) || found.evidence.lines.iter().any(|line| line.text.contains(&name)))
}

/// The object whose bytes tasks on several CPUs share at the highest price, without those that are found already.
/// `lines` and `cycles` are of the modelled order.
fn passed(lines: &[SharedLineRow], cycles: u64, is_found: impl Fn(&str) -> bool) -> Option<String> {
    let mut by_object: BTreeMap<&str, (u64, &SharedLineRow)> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.sharing() == LineSharing::True) {
        let is_the_programs = |tenant: &&Tenant| tenant.kind.is_some_and(ObjectKind::is_the_programs);
        let Some(object) = line.tenants.iter().find(is_the_programs) else { continue };
        if is_found(&object.object) {
            continue;
        }
        let (waits, _) = by_object.entry(&object.object).or_insert((0, line));
        *waits += line.stall_cycles;
    }
    let (object, (waits, line)) = by_object.into_iter().max_by_key(|(_, (waits, _))| *waits)?;
    let waited = waits as f64 / cycles.max(1) as f64;
    let missed: Vec<String> = line.functions.iter().take(MOST_PLACES).map(|name| format!("`{name}`")).collect();
    (waited >= LEAST_PASSED).then(|| {
        format!(
            "{} of the modelled cycles wait for lines of `{object}` to pass between CPUs that use the same bytes (true \
             sharing, modelled order; missed in {}). Another place in memory changes nothing. Pass data on less often: \
             several items at once, a copy of what the other side wrote that is read anew only where it runs out, or \
             counts of each thread's own that are added up at the end",
            percent(waited),
            missed.join(", ")
        )
    })
}

/// Pages that the kernel clears for the command over and over, because it gives memory back and takes it again.
fn fresh_memory(model: &ModelRecord) -> Option<String> {
    let PageFaults { cleared, different, cycles, .. } = PageFaults::of(model);
    let faults = cycles as f64 / model.totals.cycles.max(1) as f64;
    let processes: BTreeSet<u32> = model.tasks.iter().filter(|task| task.of_command).map(|task| task.pid).collect();
    if processes.len() > MOST_PROCESSES { None } else { kept(cleared, different, faults) }
}

/// `faults`: share of the command's cycles in page faults.
fn kept(cleared: u64, different: u64, faults: f64) -> Option<String> {
    let again = faults * (1.0 - different as f64 / cleared.max(1) as f64);
    let comes_back = cleared >= different.saturating_mul(TIMES);
    (comes_back && again >= LEAST_FAULTS).then(|| {
        format!(
            "The kernel cleared {} pages for the command, {} of them for the first time: memory is given back and taken \
             again. That takes {} of the cycles in page faults. Keep it in the program, or let its allocator keep it",
            grouped(cleared),
            grouped(different),
            percent(again)
        )
    })
}

/// Instructions of a run, beside the cycles of all of it.
struct Waiting<'a> {
    rows: &'a [InstructionRow],
    cycles: u64,
}

impl Waiting<'_> {
    /// Loads that wait for one another, as along a list or down a tree.
    fn chained(&self) -> Option<String> {
        let (places, waited) = self.places(|row| row.chained_cycles)?;
        Some(format!(
            "{} of the modelled cycles wait for loads in {places}, each at an address that the load before returned, as along a \
             list, a tree or a chain of a hash table: no two of these misses overlap. Keep the elements in an array in the \
             order of the walk, follow several chains side by side, keep more of the key in the link, or prefetch the next \
             element",
            percent(waited)
        ))
    }

    /// A loop over columns inside one over rows, where memory lies by rows.
    fn columns(&self) -> Option<String> {
        let waits = |row: &InstructionRow| row.columns.map_or(0, |columns| columns.stall_cycles);
        let (places, waited) = self.places(waits)?;
        let Columns { stride_bytes, step_bytes, .. } = self.rows.iter().max_by_key(|row| waits(row))?.columns?;
        Some(format!(
            "{} of the modelled cycles wait for data in {places}: the inner loop steps by {} and the outer loop by {}, so \
             that each line is fetched again for its next part. Swap the two loops, or work in tiles of a few lines in \
             both directions, before anything else: in other sets or in large pages the lines are still fetched again",
            percent(waited),
            Bytes(stride_bytes),
            Bytes(step_bytes)
        ))
    }

    /// The functions of user code that wait most, of which `waits` returns the cycles, and the share of all that do.
    fn places(&self, waits: impl Fn(&InstructionRow) -> u64) -> Option<(String, f64)> {
        let mut by_function: BTreeMap<&str, (u64, &InstructionRow)> = BTreeMap::new();
        for row in self.rows.iter().filter(|row| row.module != KERNEL_MODULE && waits(row) > 0) {
            let (sum, most) = by_function.entry(&row.function).or_insert((0, row));
            *sum += waits(row);
            *most = if waits(row) > waits(most) { row } else { most };
        }
        let mut most: Vec<_> = by_function.into_values().collect();
        most.sort_by_key(|(cycles, _)| Reverse(*cycles));
        let all: u64 = most.iter().map(|(cycles, _)| cycles).sum();
        let waited = all as f64 / self.cycles.max(1) as f64;
        let named = most.iter().take(MOST_PLACES).filter(|(cycles, _)| *cycles as f64 >= LEAST_PLACE * all as f64);
        let named: Vec<String> = named.map(|(_, row)| place(row)).collect();
        (waited >= LEAST_WAIT).then(|| (named.join(", "), waited))
    }
}

/// Returns the function and its line, as in `` `walk` (list.c:12) ``.
fn place(row: &InstructionRow) -> String {
    let file = row.file.rsplit('/').next().unwrap_or_default();
    if row.line == 0 { format!("`{}`", row.function) } else { format!("`{}` ({file}:{})", row.function, row.line) }
}

/// One object that is larger than the cache in which its parts are looked for again, beyond the first level.
fn beyond_reach(model: &ModelRecord) -> Option<String> {
    let waits = Waits::new(model);
    let share = |cycles: u64| cycles as f64 / model.totals.cycles.max(1) as f64;
    let rows = model.objects.iter().filter_map(|row| {
        let index = waits.heaviest_level(&row.tally, MissClass::Capacity);
        let cache = model.machine.data_cache(index + 1).filter(|_| index > 0)?;
        let bytes = Bytes(row.size_bytes?);
        let waited = share(waits.of(&row.tally)[Reason::Capacity as usize]);
        (bytes > model.machine.kept_of(cache) && waited >= LEAST_WAIT).then_some((row, bytes, cache, waited))
    });
    let (row, bytes, cache, waited) = rows.max_by(|a, b| a.3.total_cmp(&b.3))?;
    let kept = model.machine.kept_of(cache);
    let fits = row.curve.as_ref().and_then(|curve| fitting(curve, kept)).unwrap_or_default();
    Some(format!(
        "`{}` has {bytes}, and L{} keeps {kept} of it: {} of the cycles wait for parts of it that were pushed out.{fits} \
         No placement makes it fit. Work through it in blocks that fit, make its elements smaller, or prefetch its next \
         parts",
        row.name,
        cache.level,
        percent(waited)
    ))
}

/// A sentence on the caches that would keep an object of which one keeps `kept`.
fn fitting(curve: &MissRatioCurve, kept: Bytes) -> Option<String> {
    let half = curve.least_dividing(kept, 2)?;
    let would_hit = match curve.least_dividing(kept, 10) {
        Some(most) if most == half => format!("Nine in ten of its misses would hit in {most}"),
        Some(most) => format!("Half of its misses would hit in {half}, nine in ten in {most}"),
        None => format!("Half of its misses would hit in {half}"),
    };
    Some(format!(" {would_hit} (estimated from one line in 64)."))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_comes_back_is_worth_keeping_and_other_memory_is_not() {
        let text = kept(10_000, 500, 0.4).unwrap();
        assert!(text.contains("cleared 10,000 pages") && text.contains("500 of them for the first time"), "{text}");
        assert!(text.contains("38% of the cycles in page faults"), "{text}");
        assert_eq!(kept(900, 500, 0.4), None, "most pages are cleared once");
        assert_eq!(kept(10_000, 500, 0.02), None, "faults cost nothing to speak of");
    }

    #[test]
    fn an_object_that_threads_pass_on_is_named_with_its_price() {
        let tenant = |kind| Tenant { object: "queue".to_owned(), kind: Some(kind), ..Tenant::default() };
        let line = |kind, stall_cycles| SharedLineRow {
            true_sharing: 9,
            stall_cycles,
            functions: vec!["push".to_owned(), "pop".to_owned()],
            tenants: vec![tenant(kind)],
            ..SharedLineRow::default()
        };
        let lines = [line(ObjectKind::Global, 50), line(ObjectKind::Global, 40), line(ObjectKind::Slab, 300)];
        let text = passed(&lines, 1000, |_| false).unwrap();
        assert!(text.starts_with("9.0% of the modelled cycles wait for lines of `queue` to pass"), "{text}");
        assert!(text.contains("missed in `push`, `pop`"), "{text}");
        assert_eq!(passed(&lines, 10_000, |_| false), None);
        assert_eq!(passed(&lines, 1000, |object| object == "queue"), None, "a finding names it");
    }

    fn waiting(function: &str, chained_cycles: u64, columns: Option<Columns>) -> InstructionRow {
        InstructionRow {
            function: function.to_owned(),
            module: "/bin/program".to_owned(),
            address: Some(0x1180),
            file: "/src/walks.c".to_owned(),
            line: 12,
            tally: Default::default(),
            chained_cycles,
            columns,
        }
    }

    #[test]
    fn loads_that_wait_for_one_another_are_named_where_they_cost_a_tenth() {
        let rows = [waiting("walk", 400, None), waiting("find", 150, None), waiting("sum", 0, None)];
        let text = Waiting { rows: &rows, cycles: 1000 }.chained().unwrap();
        let start =
            "55% of the modelled cycles wait for loads in `walk` (walks.c:12), `find` (walks.c:12), each at an address";
        assert!(text.starts_with(start), "{text}");
        assert_eq!(Waiting { rows: &rows, cycles: 6000 }.chained(), None);
    }

    #[test]
    fn the_caches_that_would_keep_an_object_are_named() {
        const MIB: u64 = 1 << 20;
        let curve = |points: [u64; 3]| {
            let sizes = [4 * MIB, 16 * MIB, 32 * MIB];
            MissRatioCurve { exact: false, references: 900, points: sizes.into_iter().zip(points).collect() }
        };
        let text = |points| fitting(&curve(points), Bytes(7 * MIB)).unwrap_or_default();
        let sample = "(estimated from one line in 64).";
        assert_eq!(
            text([800, 400, 80]),
            format!(" Half of its misses would hit in 16 MiB, nine in ten in 32 MiB {sample}")
        );
        assert_eq!(text([800, 60, 50]), format!(" Nine in ten of its misses would hit in 16 MiB {sample}"));
        assert_eq!(text([800, 500, 300]), format!(" Half of its misses would hit in 32 MiB {sample}"));
        assert_eq!(text([800, 700, 600]), "");
    }

    #[test]
    fn columns_are_named_with_both_steps() {
        let walked = Columns { misses: 9, stall_cycles: 300, stride_bytes: 4096, step_bytes: 8 };
        let rows = [waiting("add", 0, Some(walked))];
        let text = Waiting { rows: &rows, cycles: 1000 }.columns().unwrap();
        let steps = "`add` (walks.c:12): the inner loop steps by 4 KiB and the outer loop by 8 B";
        assert!(text.contains(steps), "{text}");
        assert_eq!(Waiting { rows: &rows, cycles: 4000 }.columns(), None);
    }
}
