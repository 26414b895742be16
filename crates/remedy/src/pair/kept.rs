//! The pair table of a run as its rehearsal kept it, for those who place tasks by it.

use super::tables::{PAIRS, TASKS};
use crate::replay::CaseError;
use nearmiss_pairing::{PairTable, Series};
use nearmiss_record::figures::{Cell, Table};
use nearmiss_record::rehearsal::Rehearsals;
use nearmiss_record::run::{REHEARSALS, RunDir};

/// What a rehearsal says of the tasks of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    /// Names in the order in which the tasks began: command name and thread id, as in `server 151`.
    pub tasks: Vec<String>,
    /// Cycles of each alone.
    pub alone: Vec<f64>,
    /// Each beside each other one, of alone.
    pub table: PairTable,
}

impl Kept {
    /// Of a run that `nearmiss rehearse pair` has rehearsed. Errors: the run has no rehearsal, or one of another remedy.
    pub fn read(run: &RunDir) -> Result<Self, CaseError> {
        let missing = |what: &str| {
            let again = "rehearse it first: nearmiss rehearse pair";
            CaseError::Unfit(format!("{}: {what}; {again} {}", run.path().display(), run.path().display()))
        };
        if !run.file(REHEARSALS).is_file() {
            return Err(missing("this run was not rehearsed"));
        }
        let rehearsals: Rehearsals = run.read_json(REHEARSALS)?;
        let of_pair = rehearsals.tables.iter().find(|rehearsal| rehearsal.remedy == super::NAME);
        let table = |title: &str| of_pair?.more.iter().find(|table| table.title == title);
        let (tasks, pairs) = (table(TASKS), table(PAIRS));
        let found = tasks.zip(pairs).and_then(|(tasks, pairs)| kept(tasks, pairs, of_pair?.placements.len() as u32));
        found.ok_or_else(|| missing("its rehearsal has no table of pairs"))
    }
}

fn kept(tasks: &Table, pairs: &Table, samples: u32) -> Option<Kept> {
    let task = |row: &Vec<Cell>| match row.as_slice() {
        [Cell::Text(name), Cell::Cycles(alone), ..] => Some((name.clone(), *alone as f64)),
        _ => None,
    };
    let (names, alone): (Vec<String>, Vec<f64>) =
        tasks.rows.iter().map(task).collect::<Option<Vec<_>>>()?.into_iter().unzip();
    let mut table = PairTable::new(names.len());
    for row in &pairs.rows {
        let [Cell::Text(one), Cell::Text(other), mean, error, other_mean, other_error, ..] = row.as_slice() else {
            return None;
        };
        let number = |name: &String| names.iter().position(|known| known == name);
        let (one, other) = (number(one)?, number(other)?);
        table.set(one, other, series(samples, mean, error)?);
        table.set(other, one, series(samples, other_mean, other_error)?);
    }
    Some(Kept { tasks: names, alone, table })
}

fn series(samples: u32, mean: &Cell, error: &Cell) -> Option<Series> {
    match (mean, error) {
        (Cell::Share(mean), Cell::Share(error)) => Some(Series::of(samples, *mean, error * error)),
        (Cell::Share(mean), Cell::Unknown) => Some(Series::of(1, *mean, 0.0)),
        _ => None,
    }
}
