//! Functions looked at closely: source lines and instructions with what was modelled at each.

mod files;
mod text;
mod view;

pub use files::texts;
pub use text::{Options, render};
pub(crate) use view::{Annotated, Figures, File, ShownInstruction};

pub use crate::texts::{Source, Texts};

use crate::function_name;
use crate::load::Report;
use nearmiss_record::model::FunctionRow;
use std::cmp::Reverse;

/// Functions with the most cycles, user code alone unless there is none: of the kernel there is no code to show.
pub fn hottest(report: &Report, count: usize) -> Vec<&FunctionRow> {
    let mut rows: Vec<_> = report.model.functions.iter().filter(|row| has_code(row) && row.tally.cycles > 0).collect();
    rows.sort_by_key(|row| Reverse(row.tally.cycles));
    if rows.iter().any(|row| !row.kernel) {
        rows.retain(|row| !row.kernel);
    }
    rows.truncate(count);
    rows
}

/// Functions of this name; see [`function_name::find`]. Errors: there is none, and what is near it.
pub fn named<'a>(report: &'a Report, name: &str) -> Result<Vec<&'a FunctionRow>, String> {
    let rows = report.model.functions.iter().filter(|row| has_code(row));
    let names = function_name::find(name, rows.clone().map(|row| row.name.as_str()))
        .map_err(|nearest| function_name::unknown(name, &nearest))?;
    let mut found: Vec<_> = rows.filter(|row| names.contains(&row.name.as_str())).collect();
    found.sort_by_key(|row| Reverse(row.tally.cycles));
    Ok(found)
}

fn has_code(row: &FunctionRow) -> bool {
    !row.module.is_empty()
}
