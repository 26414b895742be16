//! Rehearsals as text: a table a subject, a row a value of the parameter.

use crate::cell;
use nearmiss_record::rehearsal::{Rehearsal, Rehearsals};

/// All tables.
pub fn render(rehearsals: &Rehearsals) -> String {
    let mut out = String::new();
    if let Some(caution) = &rehearsals.caution {
        out.push_str(&format!("caution: {caution}\n\n"));
    }
    if let Some(nothing) = &rehearsals.nothing {
        out.push_str(&format!("nothing to rehearse: {nothing}\n"));
    }
    for (number, rehearsal) in rehearsals.tables.iter().enumerate() {
        if number > 0 {
            out.push('\n');
        }
        one(&mut out, rehearsal, &rehearsals.machine);
    }
    if !rehearsals.notes.is_empty() {
        out.push('\n');
    }
    rehearsals.notes.iter().for_each(|note| out.push_str(&format!("note: {note}\n")));
    out
}

fn one(out: &mut String, rehearsal: &Rehearsal, machine: &str) {
    out.push_str(&format!("{}: {}\n", rehearsal.remedy, rehearsal.subject));
    out.push_str(&format!("predicted on {machine}: {}\n\n", rehearsal.basis));
    out.push_str(&cell::table(&rehearsal.table));
    for table in &rehearsal.more {
        out.push_str(&format!("\n{}\n\n{}", table.title, cell::table(table)));
    }
}
