//! Jobs in the queue of Slurm: its commands, what they print, and how a job gets out of the queue.

use crate::Error;
use nearmiss_workload::{Stdio, Workload};
use std::fs::File;
use std::io::{Read, Seek};
use std::time::{Duration, Instant};

/// Interval of looks at a queue that is about to be empty.
const LOOK: Duration = Duration::from_millis(100);
/// Most time that a query may take.
const ANSWER: Duration = Duration::from_secs(60);

/// Whether a job of this name is in the queue.
pub(crate) fn is_queued(name: &str) -> Result<bool, Error> {
    let words = ["squeue", "--noheader", "--format=%i", &format!("--name={name}")];
    let answer = output_of(Workload::new(words)).map_err(|why| Error::CannotHere(format!("--on slurm: {why}")))?;
    Ok(!answer.trim().is_empty())
}

/// Takes a job out of the queue, and waits until its tasks have ended.
pub(crate) fn cancel(name: &str) -> Result<(), Error> {
    let words = ["scancel", &format!("--name={name}")];
    let not_cancelled =
        |why| Error::CannotHere(format!("the lab's job {name} is under way and cannot be taken back: {why}"));
    output_of(Workload::new(words)).map_err(not_cancelled)?;
    let begun = Instant::now();
    while is_queued(name)? {
        if begun.elapsed() > ANSWER {
            return Err(Error::CannotHere(format!(
                "the lab's job {name} does not end; `scancel --name={name}` ends it"
            )));
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// Runs a command of Slurm and takes its output. Errors: it is not there, failed, or took too long.
pub(crate) fn output_of(command: Workload) -> Result<String, String> {
    let program = command.argv().first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    let (output, errors) = (Output::new()?, Output::new()?);
    let command = command.stdin(Stdio::Null).stdout(output.file()?).stderr(errors.file()?);
    let running = command.launch_suspended().and_then(|suspended| suspended.resume()).map_err(|e| e.to_string())?;
    match running.wait_for(ANSWER).map_err(|e| e.to_string())? {
        Ok(finished) if finished.status.success() => output.text(),
        Ok(finished) => Err(format!("`{program}` {}: {}", finished.status.in_words(), errors.text()?.trim())),
        Err(running) => {
            drop(running);
            Err(format!("`{program}` does not answer: is slurmctld up?"))
        }
    }
}

/// A file without a name, for a command's output.
struct Output(File);

impl Output {
    fn new() -> Result<Self, String> {
        let made = rustix::fs::memfd_create("nearmiss-slurm", rustix::fs::MemfdFlags::CLOEXEC);
        made.map(|file| Output(file.into())).map_err(|error| error.to_string())
    }

    fn file(&self) -> Result<File, String> {
        self.0.try_clone().map_err(|error| error.to_string())
    }

    fn text(&self) -> Result<String, String> {
        let mut file = &self.0;
        let mut text = Vec::new();
        let read = file.rewind().and_then(|()| file.read_to_end(&mut text));
        read.map(|_| String::from_utf8_lossy(&text).into_owned()).map_err(|error| error.to_string())
    }
}
