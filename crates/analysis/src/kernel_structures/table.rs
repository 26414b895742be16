//! From counts to the record.

use super::uses::{Count, Uses, VisitCounts};
use nearmiss_record::kernel_structures::{
    FunctionUse, KernelFieldUse, KernelStructures, LINE_BYTES, LineSet, LineUse, SCHEMA, StructureUse, Visits,
};
use nearmiss_record::symbols::{KernelStructure, Symbols};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Functions of a field, at most.
const MOST_FUNCTIONS: usize = 8;
/// Sets of lines of one structure's visits, at most.
const MOST_SETS: usize = 1024;

/// Counts by function of one field.
type ByFunction = BTreeMap<u32, Count>;

/// The record of all structures with references.
pub(super) fn table(uses: &Uses<'_>, symbols: &Symbols, kernel: String, during: &[String]) -> KernelStructures {
    let mut fields: Vec<BTreeMap<Option<usize>, ByFunction>> = vec![BTreeMap::new(); symbols.kernel_structures.len()];
    for ((structure, field, function), count) in &uses.counts {
        fields[*structure].entry(*field).or_default().insert(*function, *count);
    }
    let numbered = symbols.kernel_structures.iter().enumerate().zip(&fields);
    let mut structures: Vec<StructureUse> = numbered
        .filter(|(_, fields)| !fields.is_empty())
        .map(|((at, structure), fields)| Row { uses, symbols, at, structure }.structure(fields, during))
        .collect();
    structures.sort_by_key(|one| Reverse(one.reads + one.writes));
    KernelStructures { schema: SCHEMA.to_owned(), kernel, during: during.to_vec(), structures }
}

struct Row<'a> {
    uses: &'a Uses<'a>,
    symbols: &'a Symbols,
    /// Index of the structure.
    at: usize,
    structure: &'a KernelStructure,
}

impl Row<'_> {
    fn structure(&self, fields: &BTreeMap<Option<usize>, ByFunction>, during: &[String]) -> StructureUse {
        let (objects, begins_lines) = self.uses.places.found[self.at];
        let by_line = self.by_line(fields);
        let names: Vec<Option<&String>> =
            if during.is_empty() { vec![None] } else { during.iter().map(Some).collect() };
        let visits = names
            .iter()
            .enumerate()
            .filter_map(|(function, name)| Some(visits(self.uses.visits.get(&(self.at, function))?, name.cloned())));
        StructureUse {
            structure: self.structure.name.clone(),
            caches: self.structure.caches.clone(),
            bytes: self.structure.bytes,
            lines: self.structure.bytes.div_ceil(LINE_BYTES),
            begins_lines,
            objects,
            reads: by_line.iter().map(|line| line.reads).sum(),
            writes: by_line.iter().map(|line| line.writes).sum(),
            visits: visits.collect(),
            by_line,
        }
    }

    fn by_line(&self, fields: &BTreeMap<Option<usize>, ByFunction>) -> Vec<LineUse> {
        let counts = self.uses.by_line.iter().filter(|((structure, _), _)| *structure == self.at);
        let lines: BTreeMap<u32, Count> = counts.map(|((_, line), count)| (*line, *count)).collect();
        let visits = self.uses.visits.iter().filter(|((structure, _), _)| *structure == self.at);
        let visits: Vec<&VisitCounts> = visits.map(|(_, visits)| visits).collect();
        let row = |(line, count): (u32, Count)| LineUse {
            line,
            reads: count.reads,
            writes: count.writes,
            visits: visits.iter().filter_map(|visits| visits.by_line.get(line as usize)).sum(),
            fields: self.fields_on(line, fields),
        };
        lines.into_iter().map(row).collect()
    }

    fn fields_on(&self, line: u32, fields: &BTreeMap<Option<usize>, ByFunction>) -> Vec<KernelFieldUse> {
        let used = fields.iter().filter_map(|(field, by_function)| {
            let declared = &self.structure.fields[(*field)?];
            (declared.from / LINE_BYTES == line)
                .then(|| self.field(&declared.name, declared.from, declared.bytes, by_function))
        });
        let mut used: Vec<KernelFieldUse> = used.collect();
        used.sort_by_key(|field| (Reverse(field.reads + field.writes), field.from));
        used
    }

    fn field(&self, name: &str, from: u32, bytes: u32, by_function: &ByFunction) -> KernelFieldUse {
        let row = |(function, count): (&u32, &Count)| FunctionUse {
            function: self.symbols.functions.get(*function as usize).map_or_else(String::new, |one| one.name.clone()),
            reads: count.reads,
            writes: count.writes,
        };
        let mut functions: Vec<FunctionUse> = by_function.iter().map(row).collect();
        functions.sort_by(|a, b| (b.reads + b.writes).cmp(&(a.reads + a.writes)).then(a.function.cmp(&b.function)));
        functions.truncate(MOST_FUNCTIONS);
        KernelFieldUse {
            name: name.to_owned(),
            from,
            bytes,
            reads: by_function.values().map(|count| count.reads).sum(),
            writes: by_function.values().map(|count| count.writes).sum(),
            functions,
        }
    }
}

fn visits(counts: &VisitCounts, during: Option<String>) -> Visits {
    let count: u64 = counts.by_size.iter().sum();
    let sizes = || (0u32..).zip(&counts.by_size).filter(|(_, visits)| **visits > 0);
    let mut before = 0;
    // The lower one of two in the middle.
    let median = sizes().find(|(_, visits)| {
        before += **visits;
        2 * before >= count
    });
    let mut sets: Vec<LineSet> =
        counts.sets.iter().map(|(lines, visits)| LineSet { lines: lines.clone(), visits: *visits }).collect();
    sets.sort_by(|a, b| b.visits.cmp(&a.visits).then_with(|| a.lines.cmp(&b.lines)));
    sets.truncate(MOST_SETS);
    Visits {
        during,
        count,
        median_lines: median.map_or(0, |(lines, _)| lines),
        fewest_lines: sizes().next().map_or(0, |(lines, _)| lines),
        most_lines: sizes().last().map_or(0, |(lines, _)| lines),
        sets,
    }
}
