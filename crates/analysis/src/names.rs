//! Names of a kept run's instructions.

use nearmiss_record::run::{self, RunDir, RunError};
use nearmiss_record::symbols::Symbols;

/// Returns the names of a run's instructions. A run cut off before they were written has none, and a note records that.
pub fn names(run: &RunDir) -> Result<(Symbols, Option<String>), RunError> {
    const NAMELESS: &str = "the run was cut off before its names were written: functions and variables have none";
    if run.file(run::SYMBOLS).is_file() {
        return Ok((run.read_json(run::SYMBOLS)?, None));
    }
    Ok((Symbols::default(), Some(NAMELESS.to_owned())))
}
