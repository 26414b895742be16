//! A lab's directory: `spec.toml` and `lab.json` as begun, `journal.jsonl`, `cells/`, and `tmp/` while it runs.

use crate::case::{Case, cases};
use crate::journal::{self, Journal};
use crate::rounds::{EndedCells, round};
use crate::run_cell::{self, RECORD, Site};
use crate::{Changes, Ended, Error, How, Spec, file_system, host, left};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The schema of `lab.json` and of what `lab show --json` prints.
pub const SCHEMA: &str = "nearmiss/lab/1";
const ABOUT: &str = "lab.json";
const SPEC: &str = "spec.toml";
const JOURNAL: &str = "journal.jsonl";
const CELLS: &str = "cells";
const TEMPORARY: &str = "tmp";

/// What comes before the process in the name of a lab that is not whole yet.
const UNFINISHED: &str = "part-";

/// What a lab was begun with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// [`SCHEMA`].
    pub schema: String,
    /// The version that began it.
    pub nearmiss: String,
    /// When, in UTC.
    pub started: String,
    /// The kernel of the machine.
    pub kernel: String,
    /// The name of the specification's file.
    pub file: PathBuf,
    /// Where its commands start.
    pub directory: PathBuf,
    /// What the command line changed.
    pub changes: Changes,
}

/// A lab: what is to be run, and what has ended.
pub struct Lab {
    path: PathBuf,
    /// What it was begun with.
    pub about: About,
    /// The specification with its changes.
    pub spec: Spec,
    /// All combinations.
    pub cases: Vec<Case>,
    ended: EndedCells,
    journal: Option<Journal>,
}

/// What happens while a lab runs.
pub struct Event<'a> {
    /// The cell that has ended just now; none: the lab begins or goes on.
    pub ended: Option<&'a Ended>,
    /// Cells that have ended, and all cells that are known to come.
    pub cells: (usize, usize),
    /// The time that cells took since the lab began or went on.
    pub spent: Duration,
    /// What the rest takes, if it takes as long as what has ended; none: nothing has ended yet.
    pub left: Option<Duration>,
}

impl Lab {
    /// The name of the lab that a specification describes. Errors: it makes no sense, or cannot run here.
    pub fn check(text: &str, about: &About, nearmiss: &Path) -> Result<String, Error> {
        let spec = Spec::parse(&about.file, text, &about.changes)?;
        host::can_run(&spec, &cases(&spec), nearmiss, &about.directory)?;
        Ok(spec.name)
    }

    /// Makes a lab in a directory that is not there yet. A kill leaves it whole or not at all.
    pub fn create(path: &Path, text: &str, about: &About) -> Result<Self, Error> {
        let spec = Spec::parse(&about.file, text, &about.changes)?;
        let temporary = path.with_extension(format!("{UNFINISHED}{}", std::process::id()));
        path.parent().into_iter().for_each(take_away_unfinished);
        let make = || {
            fs::create_dir_all(temporary.join(CELLS))?;
            fs::write(temporary.join(SPEC), text)?;
            fs::write(temporary.join(JOURNAL), "")?;
            fs::write(temporary.join(ABOUT), serde_json::to_vec_pretty(about)?)?;
            fs::rename(&temporary, path)
        };
        if let Err(source) = make() {
            // Best effort: the error that matters is the one reported.
            let _ = fs::remove_dir_all(&temporary);
            return Err(Error::io(path)(source));
        }
        let (journal, _) = Journal::open(&path.join(JOURNAL))?;
        let (about, cases) = (about.clone(), cases(&spec));
        Ok(Lab { path: path.to_owned(), about, spec, cases, ended: EndedCells::new(), journal: Some(journal) })
    }

    /// Reads a lab to show it.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let mut lab = Self::begun(path)?;
        let cells = journal::read(&path.join(JOURNAL))?;
        lab.ended = cells.into_iter().map(|ended| (ended.cell.clone(), ended)).collect();
        Ok(lab)
    }

    /// Opens a lab to go on with it: takes away what was left unfinished. Errors: another process works on it.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let mut lab = Self::begun(path)?;
        let (mut journal, cells) = Journal::open(&path.join(JOURNAL))?;
        clear(&path.join(TEMPORARY))?;
        let mut journaled: EndedCells = cells.into_iter().map(|ended| (ended.cell.clone(), ended)).collect();
        for record in lab.kept()? {
            // A kill between the rename and the journal's line.
            if journaled.get(&record.cell) != Some(&record) {
                journal.append(&record)?;
                journaled.insert(record.cell.clone(), record);
            }
        }
        // What has lost its artifacts runs again.
        journaled.retain(|cell, _| path.join(CELLS).join(cell).is_dir());
        (lab.ended, lab.journal) = (journaled, Some(journal));
        Ok(lab)
    }

    fn begun(path: &Path) -> Result<Self, Error> {
        let read = |name: &str| fs::read_to_string(path.join(name)).map_err(Error::io(path.join(name)));
        if !path.join(ABOUT).is_file() {
            return Err(Error::NoLab(path.to_owned()));
        }
        let about: About = serde_json::from_str(&read(ABOUT)?).map_err(|e| Error::io(path.join(ABOUT))(e.into()))?;
        if about.schema != SCHEMA {
            let (found, path) = (about.schema, path.join(ABOUT));
            return Err(Error::Record(nearmiss_record::run::RunError::Schema { path, found, expected: SCHEMA }));
        }
        let spec = Spec::parse(&path.join(SPEC), &read(SPEC)?, &about.changes)?;
        let cases = cases(&spec);
        Ok(Lab { path: path.to_owned(), about, spec, cases, ended: EndedCells::new(), journal: None })
    }

    /// The newest lab below a directory.
    pub fn newest(parent: &Path) -> Result<PathBuf, Error> {
        let entries = fs::read_dir(parent).into_iter().flatten().flatten();
        let labs = entries.filter_map(|entry| {
            let begun = fs::metadata(entry.path().join(JOURNAL)).and_then(|about| about.modified()).ok()?;
            Some((begun, entry.path()))
        });
        labs.max().map(|(_, path)| path).ok_or_else(|| Error::NoLab(parent.to_owned()))
    }

    /// The records among the artifacts. A directory without a readable one is no cell of ours, and is left alone.
    fn kept(&self) -> Result<Vec<Ended>, Error> {
        let cells = self.path.join(CELLS);
        let entries = fs::read_dir(&cells).map_err(Error::io(&cells))?.flatten();
        let read = |entry: fs::DirEntry| serde_json::from_slice(&fs::read(entry.path().join(RECORD)).ok()?).ok();
        let mut records: Vec<Ended> = entries.filter_map(read).collect();
        records.sort_by(|a, b| a.cell.cmp(&b.cell));
        Ok(records)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The cells that have ended, by identifier.
    pub fn ended(&self) -> &EndedCells {
        &self.ended
    }

    /// What failed or ran out of time is to run once more.
    pub fn retry(&mut self) {
        self.ended.retain(|_, ended| ended.how == How::Done);
    }

    /// Runs what has not ended yet, and tells of each cell.
    pub fn run(&mut self, nearmiss: &Path, heard: &mut dyn FnMut(&Event<'_>)) -> Result<(), Error> {
        host::can_run(&self.spec, &self.cases, nearmiss, &self.about.directory)?;
        if self.cases.iter().any(|case| case.file_system(&self.spec).is_some()) {
            file_system::keep_mounts_private()?;
        }
        let begun = Instant::now();
        let temporary = self.path.join(TEMPORARY);
        fs::create_dir_all(&temporary).map_err(Error::io(&temporary))?;
        let mut number = 1;
        heard(&self.event(None, number, begun));
        while let Some(cells) = round(&self.spec, &self.cases, &self.ended, number) {
            for (case, repetition) in cells {
                let name = self.cases[case].cell(repetition);
                if !self.ended.contains_key(&name) {
                    let ended = self.run_cell(case, repetition, nearmiss)?;
                    self.ended.insert(name, ended.clone());
                    heard(&self.event(Some(&ended), number, begun));
                }
            }
            number += 1;
        }
        fs::remove_dir(&temporary).map_err(Error::io(&temporary))
    }

    fn run_cell(&mut self, case: usize, repetition: u32, nearmiss: &Path) -> Result<Ended, Error> {
        let (temporary, cells) = (self.path.join(TEMPORARY), self.path.join(CELLS));
        let site =
            Site { spec: &self.spec, nearmiss, start: &self.about.directory, temporary: &temporary, cells: &cells };
        let ended = run_cell::run(&site, &self.cases[case], repetition)?;
        if let Some(journal) = &mut self.journal {
            journal.append(&ended)?;
        }
        Ok(ended)
    }

    fn event<'a>(&self, ended: Option<&'a Ended>, number: u32, begun: Instant) -> Event<'a> {
        let mut rest = Vec::new();
        for coming in number..=number.max(self.spec.repetitions) {
            let cells = round(&self.spec, &self.cases, &self.ended, coming).unwrap_or_default();
            rest.extend(cells.into_iter().filter(|(case, n)| !self.ended.contains_key(&self.cases[*case].cell(*n))));
        }
        let expected = |(case, _): &(usize, u32)| {
            let case = &self.cases[*case];
            left::expected_s(case, &case.workload(&self.spec).name, &self.ended)
        };
        let left = rest.iter().map(expected).sum::<Option<f64>>();
        Event {
            ended,
            cells: (self.ended.len(), self.ended.len() + rest.len()),
            spent: begun.elapsed(),
            left: left.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
        }
    }
}

/// Takes away labs that a kill left before they were whole.
fn take_away_unfinished(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let of =
            name.rsplit_once('.').and_then(|(_, extension)| extension.strip_prefix(UNFINISHED)?.parse::<u32>().ok());
        if of.is_some_and(|process| !Path::new("/proc").join(process.to_string()).exists()) {
            // What cannot be taken away is in nobody's way.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Takes away what killed cells left. Their processes are ending, but may still write.
fn clear(temporary: &Path) -> Result<(), Error> {
    for _ in 0..100 {
        match fs::remove_dir_all(temporary) {
            Err(error) if error.kind() == std::io::ErrorKind::DirectoryNotEmpty => {
                std::thread::sleep(Duration::from_millis(50));
            }
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(Error::io(temporary)(error)),
            _ => return Ok(()),
        }
    }
    fs::remove_dir_all(temporary).map_err(Error::io(temporary))
}
