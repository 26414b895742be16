//! The table by instruction: the functions with the most cycles, each with its costliest instructions.

use super::Attribution;
use super::charged::{Charges, Cycles};
use super::code_tables::{CodeTables, of_instruction};
use super::names::Names;
use crate::owner::Owner;
use nearmiss_code::CodeMap;
use nearmiss_record::model::{Columns, FunctionRow, InstructionRow, Tally};
use nearmiss_record::side::INSN_KERNEL;
use nearmiss_record::symbols::ModuleData;
use nearmiss_record::units::InsnId;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Most functions that have rows, of user code and of the kernel; no report can show the kernel's code.
const MAX_FUNCTIONS: [usize; 2] = [40, 10];
/// Most instructions of one function that have a row of their own.
const MAX_INSTRUCTIONS: usize = 48;
/// Part of the stall cycles from which the code around an instruction is looked at: each look takes some 20 µs.
const LEAST_LOOKED_AT: u64 = 200;

/// Tally of one address, over all its translations, and what its waits come from.
#[derive(Default)]
struct AddressTally<'a> {
    line: Option<(&'a str, u32)>,
    tally: Tally,
    chained_cycles: u64,
    columns: Option<Columns>,
}

impl AddressTally<'_> {
    fn add(&mut self, tally: &Tally, chained_cycles: u64, columns: Option<Columns>) {
        self.tally += tally;
        self.chained_cycles += chained_cycles;
        if let Some(columns) = columns {
            *self.columns.get_or_insert_default() += columns;
        }
    }
}

/// Places by address; `None`: all without a known address.
type Places<'a> = BTreeMap<Option<u64>, AddressTally<'a>>;

/// Rows of the functions with the most cycles, a function's behind one another: costliest first, and last all that has
/// no row of its own. Each function's rows add up to its row in `code`.
pub(super) fn instructions(
    attribution: &Attribution,
    names: &Names<'_>,
    command: &Charges,
    codes: Option<&CodeMap>,
    code: &CodeTables,
    cycles: &Cycles,
) -> Vec<InstructionRow> {
    let mut hot: Vec<(&FunctionRow, u32)> = code.functions.iter().zip(code.function_ids.iter().copied()).collect();
    hot.retain(|(row, _)| row.tally.cycles > 0);
    hot.sort_by_key(|(row, _)| Reverse(row.tally.cycles));
    let mut room = MAX_FUNCTIONS;
    hot.retain(|(row, _)| {
        let left = &mut room[usize::from(row.kernel)];
        let has_room = *left > 0;
        *left = left.saturating_sub(1);
        has_room
    });
    let mut places: FxHashMap<u32, Places<'_>> = hot.iter().map(|(_, id)| (*id, Places::new())).collect();
    let files: FxHashMap<&str, &ModuleData> =
        names.symbols.data.iter().map(|data| (data.module.as_str(), data)).collect();
    let least = hot.iter().map(|(row, _)| row.tally.stall_cycles).sum::<u64>() / LEAST_LOOKED_AT;
    for id in 0..command.references.len() {
        let Some(places) = places.get_mut(&names.function(id as u32)) else { continue };
        let Some(tally) = of_instruction(attribution, Owner::Command, command, id) else { continue };
        let address = address(attribution, names, &files, id);
        let line = address.and_then(|_| names.line(id as u32));
        let place = places.entry(address).or_insert_with(|| AddressTally { line, ..AddressTally::default() });
        let looked_at = codes.filter(|_| tally.stall_cycles > least);
        let chained = looked_at.is_some_and(|codes| codes.is_chained(InsnId(id as u32)));
        let chained_cycles = if chained { tally.stall_cycles } else { 0 };
        place.add(&tally, chained_cycles, attribution.columns.of(id as u32));
    }
    let rows = |(row, id)| places.remove(&id).map(|places| of_function(row, places, cycles)).unwrap_or_default();
    hot.into_iter().flat_map(rows).collect()
}

/// Returns the address of an instruction in its file, or in the kernel.
fn address(
    attribution: &Attribution,
    names: &Names<'_>,
    files: &FxHashMap<&str, &ModuleData>,
    id: usize,
) -> Option<u64> {
    let insn = names.insns.get(id)?;
    if insn.flags & INSN_KERNEL != 0 {
        return Some(insn.vaddr);
    }
    let place = attribution.log.place(id as u32, insn).filter(|place| place.is_file)?;
    files.get(place.path)?.linked_address(place.file_offset)
}

fn of_function(function: &FunctionRow, mut places: Places<'_>, cycles: &Cycles) -> Vec<InstructionRow> {
    let row = |(address, place): (Option<u64>, AddressTally<'_>)| InstructionRow {
        function: function.name.clone(),
        module: function.module.clone(),
        address,
        file: place.line.map_or("", |(file, _)| file).to_owned(),
        line: place.line.map_or(0, |(_, line)| line),
        tally: place.tally,
        chained_cycles: place.chained_cycles,
        columns: place.columns,
    };
    let mut rest = places.remove(&None).map(|place| AddressTally { line: None, ..place });
    places.values_mut().for_each(|place| cycles.set([&mut place.tally]));
    let mut known: Vec<_> = places.into_iter().collect();
    known.sort_by_key(|(address, place)| (Reverse(place.tally.cycles), *address));
    for (_, place) in known.drain(MAX_INSTRUCTIONS.min(known.len())..) {
        rest.get_or_insert_default().add(&place.tally, place.chained_cycles, place.columns);
    }
    let mut rows: Vec<_> = known.into_iter().map(row).collect();
    rows.extend(rest.map(|place| row((None, place))));
    // The function's cycles were rounded once, its rows' one by one.
    let sum: u64 = rows.iter().take(rows.len().saturating_sub(1)).map(|row| row.tally.cycles).sum();
    if let Some(last) = rows.last_mut() {
        last.tally.cycles = function.tally.cycles.saturating_sub(sum);
    }
    rows
}
