//! Changes of a lab outside its directory, written down before they are made: a later `resume` takes them back, even
//! after the guardian was killed too or the machine was started again.

use crate::{Error, queue};
use nearmiss_record::run::write_whole;
use nearmiss_workload::Setting;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const FILE: &str = "changed.json";
/// How long the guardian of a killed lab may take.
const GUARDIAN: Duration = Duration::from_secs(1);

/// Changes to be taken back.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Changed {
    /// Settings of the kernel: the file, and what it held before.
    settings: Vec<(PathBuf, String)>,
    /// The name of a job in the queue of a cluster.
    job: Option<String>,
    /// Whether the job is being taken out of the queue.
    cancelled: bool,
}

impl Changed {
    pub(crate) fn settings(settings: &[Setting]) -> Self {
        let before = settings.iter().map(|of| (of.file.clone(), of.before.clone()));
        Changed { settings: before.collect(), ..Changed::default() }
    }

    pub(crate) fn job(name: &str) -> Self {
        Changed { job: Some(name.to_owned()), ..Changed::default() }
    }

    /// Writes it into the lab's directory; it is on the disk when this returns.
    pub(crate) fn write_down(&self, lab: &Path) -> Result<(), Error> {
        let file = lab.join(FILE);
        let bytes = serde_json::to_vec(self).map_err(|e| Error::io(&file)(e.into()))?;
        Ok(write_whole(&file, &bytes)?)
    }
}

/// All is as it was: nothing is written down any more.
pub(crate) fn taken_back(lab: &Path) -> Result<(), Error> {
    let file = lab.join(FILE);
    fs::remove_file(&file).map_err(Error::io(&file))
}

/// Takes back what a killed lab left changed.
pub(crate) fn take_back(lab: &Path) -> Result<(), Error> {
    let Some(mut changed) = read(lab)? else { return Ok(()) };
    if let Some(job) = changed.job.clone() {
        // The mark for its tasks comes first: what they run is killed before they are.
        changed.cancelled = true;
        changed.write_down(lab)?;
        queue::cancel(&job)?;
    }
    restore(&changed.settings)?;
    taken_back(lab)
}

fn read(lab: &Path) -> Result<Option<Changed>, Error> {
    let file = lab.join(FILE);
    match fs::read(&file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(&file)(error)),
        Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|e| Error::io(&file)(e.into())),
    }
}

/// Whether the lab still waits for a job of its own.
pub(crate) fn waits_for(lab: &Path, job: &str) -> bool {
    let read = read(lab).ok().flatten();
    read.is_some_and(|changed| changed.job.as_deref() == Some(job) && !changed.cancelled)
}

/// The guardian is at it too, and must not do it later, in the middle of a cell.
fn restore(settings: &[(PathBuf, String)]) -> Result<(), Error> {
    let begun = Instant::now();
    let is_back = |(file, before): &(PathBuf, String)| {
        fs::read_to_string(file).is_ok_and(|now| now.trim_end() == before.trim_end())
    };
    while !settings.iter().all(is_back) && begun.elapsed() < GUARDIAN {
        std::thread::sleep(Duration::from_millis(10));
    }
    for (file, before) in settings.iter().filter(|setting| !is_back(setting)) {
        fs::write(file, before).map_err(Error::io(file))?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_change_that_was_written_down_is_taken_back_once() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("online");
        fs::write(&file, "0").unwrap();
        let setting = Setting { file: file.clone(), before: "1\n".to_owned(), wanted: "0".to_owned() };
        Changed::settings(&[setting]).write_down(directory.path()).unwrap();
        take_back(directory.path()).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "1\n");
        fs::write(&file, "0").unwrap();
        take_back(directory.path()).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "0");
        fs::write(directory.path().join(FILE), "{\"other\": 1}").unwrap();
        assert!(take_back(directory.path()).is_err());
    }
}
