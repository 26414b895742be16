//! A lab's directory: `spec.toml` and `lab.json` as begun, `journal.jsonl`, `cells/`, and `tmp/` while it runs.

use crate::case::Cell;
use crate::case::{MatrixCase, cases};
use crate::executor::Executor;
use crate::journal::{self, Journal};
use crate::rounds::{self, EndedCells, round};
use crate::site::{RECORD, Site};
use crate::{Changes, Ended, Ending, Error, Slurm, Spec, changed, file_system, host, left};
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

/// Prefix before the process in the name of a lab that is not whole yet.
const UNFINISHED: &str = "part-";

/// Parameters that a lab was begun with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of nearmiss that began the lab.
    pub nearmiss: String,
    /// Time at which the lab was begun, in UTC.
    pub started: String,
    /// The kernel of the machine.
    pub kernel: String,
    /// The name of the specification's file.
    pub file: PathBuf,
    /// Directory in which the lab's commands start.
    pub directory: PathBuf,
    /// Changes by the command line.
    pub changes: Changes,
    /// The cluster that runs the cells; none: this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<Slurm>,
}

/// A lab: what is to be run, and what has ended.
pub struct Lab {
    path: PathBuf,
    /// Parameters that the lab was begun with.
    pub about: About,
    /// The specification with its changes.
    pub spec: Spec,
    /// All combinations.
    pub cases: Vec<MatrixCase>,
    ended: EndedCells,
    journal: Option<Journal>,
}

/// Progress of a running lab.
pub struct Event<'a> {
    /// The cell that has ended just now; none: the lab begins or goes on.
    pub ended: Option<&'a Ended>,
    /// Cells that have ended, and all cells that are known to come.
    pub cells: (usize, usize),
    /// The time that cells took since the lab began or went on.
    pub spent: Duration,
    /// Time for the rest, if it takes as long as what has ended; none: nothing has ended yet.
    pub left: Option<Duration>,
}

impl Lab {
    /// The name of the lab that a specification describes. Errors: it makes no sense, or cannot run here.
    pub fn check(text: &str, about: &About, nearmiss: &Path, executor: &dyn Executor) -> Result<String, Error> {
        let spec = Spec::parse(&about.file, text, &about.changes)?;
        let cases = cases(&spec);
        let planned = host::PlannedLab { spec: &spec, cases: &cases, nearmiss, start: &about.directory };
        planned.can_run(executor, about.changes.hotplug)?;
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

    /// Reads a lab that is to be shown.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let mut lab = Self::begun(path)?;
        let cells = journal::read(&path.join(JOURNAL))?;
        lab.ended = cells.into_iter().map(|ended| (ended.cell.clone(), ended)).collect();
        Ok(lab)
    }

    /// Opens a lab that is to go on: takes away what was left unfinished. Errors: another process works on the lab.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let mut lab = Self::begun(path)?;
        let (mut journal, cells) = Journal::open(&path.join(JOURNAL))?;
        changed::take_back(path)?;
        clear(&path.join(TEMPORARY))?;
        let mut journaled: EndedCells = cells.into_iter().map(|ended| (ended.cell.clone(), ended)).collect();
        for record in lab.kept()? {
            // A kill between the rename and the journal's line.
            if journaled.get(&record.cell) != Some(&record) {
                journal.append(&record)?;
                journaled.insert(record.cell.clone(), record);
            }
        }
        // A cell that has lost its artifacts runs again.
        journaled.retain(|cell, _| path.join(CELLS).join(cell).is_dir());
        (lab.ended, lab.journal) = (journaled, Some(journal));
        Ok(lab)
    }

    fn begun(path: &Path) -> Result<Self, Error> {
        let read = |name: &str| fs::read_to_string(path.join(name)).map_err(Error::io(path.join(name)));
        if !Self::is_at(path) {
            return Err(Error::NoLab(path.to_owned()));
        }
        let damaged = |source| Error::About { file: path.join(ABOUT), source };
        let about: About = serde_json::from_str(&read(ABOUT)?).map_err(damaged)?;
        if about.schema != SCHEMA {
            let (found, path) = (about.schema, path.join(ABOUT));
            return Err(Error::Record(nearmiss_record::run::RunError::Schema { path, found, expected: SCHEMA }));
        }
        let spec = Spec::parse(&path.join(SPEC), &read(SPEC)?, &about.changes)?;
        let cases = cases(&spec);
        Ok(Lab { path: path.to_owned(), about, spec, cases, ended: EndedCells::new(), journal: None })
    }

    /// Whether a lab is there.
    pub fn is_at(path: &Path) -> bool {
        path.join(ABOUT).is_file()
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

    /// Returns the lab's directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The cells that have ended, by identifier.
    pub fn ended(&self) -> &EndedCells {
        &self.ended
    }

    /// Cells that have not ended, as far as they are known to come.
    pub fn left(&self) -> usize {
        rounds::left(&self.spec, &self.cases, &self.ended, 1).len()
    }

    /// Whether a process works on the lab now.
    pub fn is_busy(&self) -> bool {
        journal::is_held(&self.path.join(JOURNAL))
    }

    /// Makes the cells run once more that failed, ran out of time or lack a figure.
    pub fn retry(&mut self) {
        self.ended.retain(|_, ended| ended.how == Ending::Done);
    }

    /// Whether a process works on the lab now, and waits for the cells of this job.
    pub fn waits_for(path: &Path, job: &str) -> bool {
        journal::is_held(&path.join(JOURNAL)) && changed::waits_for(path, job)
    }

    /// Runs the cells that have not ended yet, and reports each.
    pub fn run(
        &mut self,
        nearmiss: &Path,
        executor: &mut dyn Executor,
        on_progress: &mut dyn FnMut(&Event<'_>),
    ) -> Result<(), Error> {
        let hotplug = self.about.changes.hotplug;
        let planned = host::PlannedLab { spec: &self.spec, cases: &self.cases, nearmiss, start: &self.about.directory };
        planned.can_run(executor, hotplug)?;
        if !executor.is_elsewhere() {
            self.keep_mounts_private()?;
        }
        let places = Places::of(&self.path)?;
        fs::create_dir_all(&places.temporary).map_err(Error::io(&places.temporary))?;
        let Lab { about, spec, cases, ended, journal, .. } = self;
        let site = places.site(spec, cases, nearmiss, about, &|| true);
        let mut so_far = SoFar { spec, cases, ended, round: 1, begun: Instant::now(), took_s: 0.0 };
        on_progress(&so_far.event(None));
        while let Some(cells) = round(spec, cases, so_far.ended, so_far.round) {
            let left = so_far.left_of(cells, &site);
            let mut on_ended = |ended: Ended| {
                if let Some(journal) = journal.as_mut() {
                    journal.append(&ended)?;
                }
                so_far.add(&ended);
                on_progress(&so_far.event(Some(&ended)));
                Ok(())
            };
            if !left.is_empty() {
                executor.run(&site, &left, &mut on_ended)?;
            }
            so_far.round += 1;
        }
        fs::remove_dir(&places.temporary).map_err(Error::io(&places.temporary))
    }

    /// Runs cells of a lab on which another process works, and leaves their artifacts for it, as long as they are wanted.
    pub fn run_cells(
        path: &Path,
        names: &[String],
        nearmiss: &Path,
        executor: &mut dyn Executor,
        wanted: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        let lab = Self::begun(path)?;
        lab.keep_mounts_private()?;
        let places = Places::of(path)?;
        let site = places.site(&lab.spec, &lab.cases, nearmiss, &lab.about, wanted);
        for name in names {
            let cell = lab.cell(name)?;
            if !wanted() {
                return Ok(());
            }
            match executor.run(&site, &[cell], &mut |_| Ok(())) {
                Err(Error::NotWanted) => return Ok(()),
                ran => ran?,
            }
        }
        Ok(())
    }

    fn cell(&self, name: &str) -> Result<Cell, Error> {
        let split = name.rsplit_once(",r").and_then(|(case, number)| Some((case, number.parse().ok()?)));
        let found = split.and_then(|(case, repetition)| {
            let case = self.cases.iter().position(|other| other.name == case)?;
            Some(Cell { case, repetition })
        });
        found.ok_or_else(|| Error::Request(format!("cell {name}: the lab {} has no such cell", self.path.display())))
    }

    fn keep_mounts_private(&self) -> Result<(), Error> {
        match self.cases.iter().any(|case| case.file_system(&self.spec).is_some()) {
            true => file_system::keep_mounts_private(),
            false => Ok(()),
        }
    }
}

/// The lab's directories, absolute: commands start elsewhere.
struct Places {
    lab: PathBuf,
    temporary: PathBuf,
    kept_at: PathBuf,
}

impl Places {
    fn of(lab: &Path) -> Result<Self, Error> {
        let lab = fs::canonicalize(lab).map_err(Error::io(lab))?;
        Ok(Places { temporary: lab.join(TEMPORARY), kept_at: lab.join(CELLS), lab })
    }

    fn site<'a>(
        &'a self,
        spec: &'a Spec,
        cases: &'a [MatrixCase],
        nearmiss: &'a Path,
        about: &'a About,
        wanted: &'a dyn Fn() -> bool,
    ) -> Site<'a> {
        let Places { lab, temporary, kept_at } = self;
        let (start, hotplug) = (about.directory.as_path(), about.changes.hotplug);
        Site { spec, cases, nearmiss, start, lab, temporary, kept_at, hotplug, wanted }
    }
}

/// How far the lab is.
struct SoFar<'a> {
    spec: &'a Spec,
    cases: &'a [MatrixCase],
    ended: &'a mut EndedCells,
    round: u32,
    begun: Instant,
    /// Time of the cells that ended since.
    took_s: f64,
}

impl SoFar<'_> {
    fn left_of(&self, cells: Vec<(usize, u32)>, site: &Site<'_>) -> Vec<Cell> {
        let cells = cells.into_iter().map(|(case, repetition)| Cell { case, repetition });
        cells.filter(|cell| !self.ended.contains_key(&site.name(*cell))).collect()
    }

    fn add(&mut self, ended: &Ended) {
        self.took_s += ended.took_s;
        self.ended.insert(ended.cell.clone(), ended.clone());
    }

    fn event<'a>(&self, ended: Option<&'a Ended>) -> Event<'a> {
        let rest = rounds::left(self.spec, self.cases, self.ended, self.round);
        let expected = |(case, _): &(usize, u32)| {
            let case = &self.cases[*case];
            left::expected_s(case, &case.workload(self.spec).name, self.ended)
        };
        let left = rest.iter().map(expected).sum::<Option<f64>>();
        let spent = self.begun.elapsed();
        let left = left.map(|seconds| seconds * left::pace(spent, self.took_s));
        Event {
            ended,
            cells: (self.ended.len(), self.ended.len() + rest.len()),
            spent,
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
            // A directory that cannot be removed is in nobody's way.
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
