//! Runs that were cut off: how they are recognised, their error, and the files that the next run removes.
//!
//! A run's recorder holds a lock on its directory, which ends with the process however that ends.

use super::whole::UNFINISHED;
use super::{MANIFEST, MODEL, REPORT, RunError, SYMBOLS, TRACE, VERDICT};
use crate::{observed, words};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Files that a run may have before its manifest.
const BEFORE_THE_MANIFEST: [&str; 6] = [MODEL, SYMBOLS, TRACE, observed::FILE, VERDICT, REPORT];

/// Locks the directory of a run to be recorded. `None`: the next run found it empty and took it away.
/// A file system without locks gives none; its runs are never swept.
pub(super) fn hold(directory: &Path) -> io::Result<Option<Option<File>>> {
    let lock = File::open(directory)?;
    let locked = lock.lock().is_ok();
    Ok((lock.metadata()?.nlink() > 0).then_some(locked.then_some(lock)))
}

/// Whether a process is recording this run now.
pub(super) fn is_recorded_now(directory: &Path) -> bool {
    let locked = |lock: File| matches!(lock.try_lock_shared(), Err(fs::TryLockError::WouldBlock));
    File::open(directory).is_ok_and(locked)
}

/// Returns the error of a directory without a manifest, or without the files that its manifest is about.
pub(super) fn why_no_run(directory: &Path) -> RunError {
    let path = directory.to_owned();
    let files = files(directory);
    let whole: Vec<String> = BEFORE_THE_MANIFEST
        .iter()
        .filter(|name| files.iter().any(|file| file.file_name() == Some(OsStr::new(name))))
        .map(|name| (*name).to_owned())
        .collect();
    let ours = is_named_by_time(directory) || directory.join(TRACE).is_file();
    if !ours && files.iter().all(|file| recorder(file).is_none()) {
        return if path.is_file() { RunError::File(path) } else { RunError::NoRun(path) };
    }
    if is_recorded_now(directory) {
        return RunError::Unfinished(path);
    }
    let left = match whole.len() {
        0 => "nothing of it can be read".to_owned(),
        1 => format!("only {} is whole", whole.concat()),
        _ => format!("only {} are whole", words::listed(&whole, "and")),
    };
    let missing = if directory.join(MANIFEST).is_file() { "model" } else { "manifest" };
    RunError::CutOff { path, when: last_written(directory, &files), missing, left }
}

/// Returns the error of a directory without a run: of its newest run that was cut off, if there is one.
pub(super) fn why_no_runs(parent: &Path) -> RunError {
    let cut_off = runs(parent).into_iter().filter(|run| fs::metadata(run).is_ok());
    let newest = cut_off.max_by_key(|run| last_written(run, &files(run)));
    newest.map_or_else(|| RunError::NoRun(parent.to_owned()), |run| why_no_run(&run))
}

/// Removes the files that killed processes left in the runs below `parent`: files that are not whole, and empty
/// directories. Anything that cannot be removed stays.
pub(super) fn sweep(parent: &Path) {
    for run in runs(parent) {
        let Ok(lock) = File::open(&run) else { continue };
        if lock.try_lock().is_err() {
            continue;
        }
        for file in files(&run) {
            if recorder(&file).is_some_and(|process| !Path::new("/proc").join(process).exists()) {
                let _ = fs::remove_file(file);
            }
        }
        // Refused unless it is empty.
        let _ = fs::remove_dir(&run);
    }
}

fn runs(parent: &Path) -> Vec<PathBuf> {
    let mut inside = entries(parent);
    inside.retain(|path| is_named_by_time(path) && path.symlink_metadata().is_ok_and(|about| about.is_dir()));
    inside
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut inside = entries(directory);
    inside.retain(|path| path.is_file());
    inside
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).map(|all| all.flatten().map(|entry| entry.path()).collect()).unwrap_or_default()
}

/// The process that was to make this file whole, if it is not.
fn recorder(file: &Path) -> Option<&str> {
    let process = file.extension()?.to_str()?.strip_prefix(UNFINISHED)?;
    (!process.is_empty() && process.bytes().all(|b| b.is_ascii_digit())).then_some(process)
}

/// `20261122-143000-sort`: every run is called by its time, and hardly anything else is.
fn is_named_by_time(directory: &Path) -> bool {
    let whole = fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
    let name = whole.file_name().unwrap_or_default().as_encoded_bytes();
    let like = |(byte, pattern): (&u8, &u8)| if *pattern == b'0' { byte.is_ascii_digit() } else { byte == pattern };
    const PATTERN: &[u8] = b"00000000-000000-";
    name.len() > PATTERN.len() && name.iter().zip(PATTERN).all(like)
}

fn last_written(directory: &Path, files: &[PathBuf]) -> SystemTime {
    let time = |path: &Path| fs::metadata(path).and_then(|about| about.modified()).ok();
    files.iter().filter_map(|file| time(file)).max().or_else(|| time(directory)).unwrap_or(SystemTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::super::RunDir;
    use super::*;
    use std::time::Duration;

    const RUN: &str = "20261123-130000-sort";
    /// No process has this number: it is above the kernel's limit.
    const DEAD: &str = "trace.part-4194999";

    fn message(error: RunError, parent: &Path) -> String {
        error.to_string().replace(&parent.display().to_string(), "RUNS")
    }

    #[test]
    fn a_run_without_manifest_names_when_it_was_cut_off_and_what_is_whole() -> io::Result<()> {
        let parent = tempfile::tempdir()?;
        let run = parent.path().join(RUN);
        fs::create_dir(&run)?;
        for name in [DEAD, TRACE, MODEL] {
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
            File::create(run.join(name))?.set_modified(at)?;
        }
        let cut_off = "RUNS/20261123-130000-sort: this run was cut off at 2027-01-15T08:00:00Z: its manifest is missing, \
                       and only model.json and trace.nmt are whole; record it again";
        assert_eq!(message(RunDir::open(&run).unwrap_err(), parent.path()), cut_off);
        assert_eq!(message(RunDir::newest(parent.path()).unwrap_err(), parent.path()), cut_off);
        fs::remove_file(run.join(TRACE))?;
        fs::remove_file(run.join(MODEL))?;
        assert!(RunDir::open(&run).unwrap_err().to_string().contains("and nothing of it can be read; record it again"));
        assert!(matches!(RunDir::open(parent.path()), Err(RunError::NoRun(_))), "no run, and none was begun");
        Ok(())
    }

    #[test]
    fn a_run_with_a_trace_but_no_model_is_the_newest_where_none_is_whole() -> io::Result<()> {
        let parent = tempfile::tempdir()?;
        let [whole, older, run] =
            ["20261123-120000-sort", "20261123-125959-sort", RUN].map(|name| parent.path().join(name));
        for (directory, seconds) in [(&whole, 1), (&older, 2), (&run, 3)] {
            fs::create_dir(directory)?;
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000 + seconds);
            File::create(directory.join(MANIFEST))?.set_modified(at)?;
        }
        let newest = |parent: &Path| RunDir::newest(parent).map(|run| run.path().to_owned());
        let error = message(newest(parent.path()).unwrap_err(), parent.path());
        assert!(error.ends_with("its model is missing, and nothing of it can be read; record it again"), "{error}");
        File::create(older.join(TRACE))?;
        File::create(run.join(TRACE))?;
        assert_eq!(newest(parent.path()).ok(), Some(run));
        assert!(RunDir::newest_with(parent.path(), &[observed::FILE]).is_err(), "no trace is required");
        File::create(whole.join(MODEL))?;
        assert_eq!(newest(parent.path()).ok(), Some(whole));
        Ok(())
    }

    #[test]
    fn the_next_run_takes_away_what_dead_processes_left() -> Result<(), Box<dyn std::error::Error>> {
        let parent = tempfile::tempdir()?;
        let [kept, emptied, alive, foreign] =
            [RUN, "20261123-130001-cc", "20261123-130002-ld", "photos"].map(|name| parent.path().join(name));
        for directory in [&kept, &emptied, &alive, &foreign] {
            fs::create_dir(directory)?;
            File::create(directory.join(DEAD))?;
        }
        File::create(kept.join("command.out"))?;
        let mine = format!("model.part-{}", std::process::id());
        File::create(alive.join(&mine))?;

        let next = RunDir::create(parent.path(), "20261123-130003-sort")?;
        assert!(kept.join("command.out").is_file() && !kept.join(DEAD).exists());
        assert!(!emptied.exists(), "nothing was left in it");
        assert!(alive.join(mine).is_file() && !alive.join(DEAD).exists());
        assert!(foreign.join(DEAD).is_file(), "no run of ours");
        assert!(next.path().is_dir());
        Ok(())
    }

    #[test]
    fn a_run_under_way_is_left_alone_and_named_as_one() -> Result<(), Box<dyn std::error::Error>> {
        let parent = tempfile::tempdir()?;
        let run = RunDir::create(parent.path(), RUN)?;
        fs::write(run.file(DEAD), "written in another PID namespace")?;
        RunDir::create(parent.path(), "20261123-130003-sort")?.discard();
        assert!(run.file(DEAD).is_file());
        assert!(matches!(RunDir::open(run.path()), Err(RunError::Unfinished(_))));
        Ok(())
    }
}
