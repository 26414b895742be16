//! The log of a run, read back: every lock wait and poll by itself, in the order in which they ended.

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

/// A lock wait or poll that was logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// Its end, in nanoseconds from the start of the observation.
    pub end_ns: u64,
    /// How long it was.
    pub length_ns: u64,
    /// Thread.
    pub thread: u64,
    /// CPU it ended on.
    pub cpu: u64,
    /// The lock, or the call and what it returned.
    pub what: String,
}

/// The log of a run's directory, oldest first; `None` where none was kept.
///
/// Errors: a file that is no table, with its path.
pub fn read_log(directory: &Path) -> Result<Option<Vec<Logged>>, super::ObserveError> {
    let mut log = Vec::new();
    let mut kept = false;
    for (name, entry) in [("locks-log.parquet", lock as fn(&Cells) -> Logged), ("polls-log.parquet", poll)] {
        let path = directory.join(name);
        if path.is_file() {
            kept = true;
            let failed = |why: String| super::ObserveError::Table { path: path.clone(), why };
            for row in rows(&path).map_err(failed)? {
                log.push(entry(&cells(&row)));
            }
        }
    }
    log.sort_by_key(|l: &Logged| l.end_ns);
    Ok(kept.then_some(log))
}

fn rows(path: &Path) -> Result<Vec<Row>, String> {
    let file = File::open(path).map_err(|e| e.to_string())?;
    let reader = SerializedFileReader::new(file).map_err(|e| e.to_string())?;
    let rows = reader.get_row_iter(None).map_err(|e| e.to_string())?;
    rows.collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())
}

type Cells<'a> = HashMap<&'a str, &'a Field>;

fn cells(row: &Row) -> Cells<'_> {
    row.get_column_iter().map(|(name, field)| (name.as_str(), field)).collect()
}

fn number(cells: &Cells<'_>, name: &str) -> u64 {
    match cells.get(name) {
        Some(Field::Long(n)) => u64::try_from(*n).unwrap_or(0),
        _ => 0,
    }
}

fn text<'a>(cells: &Cells<'a>, name: &str) -> &'a str {
    match cells.get(name) {
        Some(Field::Str(text)) => text,
        _ => "",
    }
}

fn lock(cells: &Cells<'_>) -> Logged {
    let name = match text(cells, "name") {
        "" => text(cells, "address"),
        name => name,
    };
    Logged {
        end_ns: number(cells, "end_ns"),
        length_ns: number(cells, "wait_ns"),
        thread: number(cells, "thread"),
        cpu: number(cells, "cpu"),
        what: format!("{} {name}", text(cells, "kind")),
    }
}

fn poll(cells: &Cells<'_>) -> Logged {
    let (enter, exit) = (number(cells, "enter_ns"), number(cells, "exit_ns"));
    let returned = match number(cells, "failed") {
        0 => format!("{} events", number(cells, "events")),
        _ => "failed".to_owned(),
    };
    Logged {
        end_ns: exit,
        length_ns: exit.saturating_sub(enter),
        thread: number(cells, "thread"),
        cpu: number(cells, "cpu"),
        what: format!("{}: {} asked, {returned}", text(cells, "call"), number(cells, "asked")),
    }
}
