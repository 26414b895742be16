//! Cells on the nodes of a cluster: an array of tasks under Slurm, of several cells each, for a task alone costs seconds.
//!
//! Every task runs `nearmiss lab cells` on the lab's directory, which all nodes must see. The tasks leave artifacts; the
//! lab waits for these, and journals them in the order in which they come.

use crate::case::Cell;
use crate::changed::{self, Changed};
use crate::executor::{CellSink, Executor};
use crate::queue::{is_queued, output_of};
use crate::site::Site;
use crate::{Ended, Ending, Error, Guest};
use nearmiss_record::run::write_whole;
use nearmiss_workload::Workload;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often the lab looks for artifacts.
const LOOK: Duration = Duration::from_millis(100);
/// Interval of the lab's queries for the job: each costs the controller a connection.
const QUERY_INTERVAL: Duration = Duration::from_secs(1);
/// Directory of the tasks' files in the lab's directory: lists of cells, and the tasks' output.
const TASKS: &str = "slurm";

/// Submits cells to Slurm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slurm {
    /// Cells of a task.
    pub cells_a_task: usize,
    /// Further words for `sbatch`, such as a partition.
    pub options: Vec<String>,
}

impl Slurm {
    /// Errors: Slurm is not installed, or does not answer.
    pub fn answers(&self) -> Result<(), Error> {
        let answer = output_of(Workload::new(["sinfo", "--noheader", "--format=%P"]));
        answer.map(drop).map_err(|why| Error::CannotHere(format!("--on slurm: {why}")))
    }

    fn submit(&self, site: &Site<'_>, name: &str, tasks: usize, directory: &Path) -> Result<(), Error> {
        let script = directory.join("task.sh");
        let quoted = |path: &Path| format!("'{}'", path.display().to_string().replace('\'', r"'\''"));
        let text = format!(
            "#!/bin/sh\nexec {} lab cells {} --job {name} --of {}/cells-\"$SLURM_ARRAY_TASK_ID\"\n",
            quoted(site.nearmiss()),
            quoted(site.lab()),
            quoted(directory)
        );
        write_whole(&script, text.as_bytes())?;
        let words = [
            "sbatch".to_owned(),
            "--parsable".to_owned(),
            format!("--job-name={name}"),
            format!("--array=0-{}", tasks - 1),
            // Two cells on one node at a time would measure each other.
            "--exclusive".to_owned(),
            format!("--chdir={}", site.start().display()),
            format!("--output={}/output-%a", directory.display()),
        ];
        let words = words.into_iter().chain(self.options.clone()).chain([script.display().to_string()]);
        output_of(Workload::new(words)).map(drop).map_err(|why| Error::CannotHere(format!("--on slurm: {why}")))
    }
}

impl Executor for Slurm {
    /// The node has it or has not: its own `lab cells` records that for the cell.
    fn has_guest(&self, _: &Guest) -> Result<(), Error> {
        Ok(())
    }

    fn is_elsewhere(&self) -> bool {
        true
    }

    fn run(&mut self, site: &Site<'_>, cells: &[Cell], sink: &mut CellSink<'_>) -> Result<(), Error> {
        let name = format!("nearmiss-{:016x}", random()?);
        let directory = site.lab().join(TASKS);
        fs::create_dir_all(&directory).map_err(Error::io(&directory))?;
        let tasks: Vec<&[Cell]> = cells.chunks(self.cells_a_task.max(1)).collect();
        for (number, task) in tasks.iter().enumerate() {
            let names: String = task.iter().map(|cell| site.name(*cell) + "\n").collect();
            write_whole(&directory.join(format!("cells-{number}")), names.as_bytes())?;
        }
        cells.iter().try_for_each(|cell| site.forget(*cell))?;
        Changed::job(&name).write_down(site.lab())?;
        self.submit(site, &name, tasks.len(), &directory)?;
        let mut waiting = Waiting { site, left: cells.to_vec(), since: Instant::now() };
        waiting.until_the_job_is_gone(&name, sink)?;
        waiting.give_up_the_rest(&directory, self.cells_a_task.max(1), cells, sink)?;
        changed::taken_back(site.lab())
    }
}

/// The cells of a job that are still to come.
struct Waiting<'a> {
    site: &'a Site<'a>,
    left: Vec<Cell>,
    since: Instant,
}

impl Waiting<'_> {
    fn until_the_job_is_gone(&mut self, name: &str, sink: &mut CellSink<'_>) -> Result<(), Error> {
        let mut queried = Instant::now();
        while !self.left.is_empty() {
            self.take_what_came(sink)?;
            if queried.elapsed() > QUERY_INTERVAL {
                if !is_queued(name)? {
                    // Cells may have come between the look and the answer.
                    return self.take_what_came(sink);
                }
                queried = Instant::now();
            }
            std::thread::sleep(LOOK);
        }
        // The last task ends a moment after its last cell.
        while is_queued(name)? {
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    fn take_what_came(&mut self, sink: &mut CellSink<'_>) -> Result<(), Error> {
        let came: Vec<(Cell, Ended)> =
            self.left.iter().filter_map(|cell| Some((*cell, self.site.kept(*cell)?))).collect();
        self.left.retain(|cell| !came.iter().any(|(other, _)| other == cell));
        came.into_iter().try_for_each(|(_, ended)| sink(ended))
    }

    fn give_up_the_rest(
        &mut self,
        directory: &Path,
        cells_a_task: usize,
        all: &[Cell],
        sink: &mut CellSink<'_>,
    ) -> Result<(), Error> {
        for cell in std::mem::take(&mut self.left) {
            let place = all.iter().position(|other| *other == cell).unwrap_or_default();
            let output = directory.join(format!("output-{}", place / cells_a_task));
            let why = format!("its task ended without it; {} has the task's output", output.display());
            sink(self.site.lost(cell, Ending::Failed, why, self.since.elapsed())?)?;
        }
        Ok(())
    }
}

/// A name for a job that nobody else has.
fn random() -> Result<u64, Error> {
    let source = PathBuf::from("/dev/urandom");
    let mut bytes = [0; 8];
    let read = File::open(&source).and_then(|mut file| file.read_exact(&mut bytes));
    read.map(|()| u64::from_ne_bytes(bytes)).map_err(Error::io(source))
}
