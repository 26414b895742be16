//! Destination of a verb: looked at before a command runs, since what takes long is not to be lost at its end.

use nearmiss_record::run::{RunDir, RunError};
use std::io;
use std::path::{Path, PathBuf};

/// `--json FILE` of the wrappers: a file that can be written. The error's text gives the way out.
pub fn json_file(name: &str) -> Result<PathBuf, String> {
    if name == "-" {
        return Err("standard output is the command's: name a file".to_owned());
    }
    let path = PathBuf::from(name);
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if path.is_dir() || !directory.is_dir() {
        return Err("no such place for a file: name one in a directory that exists".to_owned());
    }
    let cannot = |error| format!("cannot be written ({}): name another file", nearmiss_record::words::io_error(&error));
    if path.metadata().is_ok_and(|about| !about.is_file()) {
        // A pipe or a device is written to as it is.
        return rustix::fs::access(&path, rustix::fs::Access::WRITE_OK).map(|()| path).map_err(|e| cannot(e.into()));
    }
    // A link is followed, and what it leads to is replaced.
    let target = path.canonicalize().ok();
    takes_files(target.as_deref().and_then(Path::parent).unwrap_or(directory)).map_err(cannot)?;
    Ok(path)
}

/// Whether runs can be kept below a directory, which may not be there yet.
pub fn runs_can_be_kept(parent: &Path) -> Result<(), RunError> {
    let absolute = std::path::absolute(parent).unwrap_or_else(|_| parent.to_owned());
    let there = absolute.ancestors().find(|place| place.exists()).unwrap_or(Path::new("/"));
    takes_files(there).map_err(|source| RunError::Io { path: parent.to_owned(), source })
}

/// Whether records can be added to a run.
pub fn run_can_be_written(run: &RunDir) -> Result<(), RunError> {
    takes_files(run.path()).map_err(|source| RunError::Io { path: run.path().to_owned(), source })
}

/// Tries it: rights alone reveal neither root nor a read-only mount.
fn takes_files(directory: &Path) -> io::Result<()> {
    tempfile::tempfile_in(directory).map(drop)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_written_is_taken_and_nothing_is_left_of_the_look() {
        let place = tempfile::tempdir().unwrap();
        let name = |name: &str| place.path().join(name).display().to_string();
        std::fs::write(name("file"), "mine").unwrap();
        std::os::unix::fs::symlink("/proc/version", name("link")).unwrap();
        assert_eq!(json_file(&name("new")), Ok(name("new").into()));
        assert_eq!(json_file(&name("file")), Ok(name("file").into()));
        assert_eq!(json_file("/dev/null"), Ok("/dev/null".into()));
        for no_place in [name(""), name("file/below"), name("missing/new")] {
            assert!(json_file(&no_place).unwrap_err().starts_with("no such place"), "{no_place}");
        }
        for read_only in ["/proc/new".to_owned(), name("link")] {
            assert!(json_file(&read_only).unwrap_err().starts_with("cannot be written"), "{read_only}");
        }
        assert!(runs_can_be_kept(&place.path().join("a/b")).is_ok() && runs_can_be_kept(Path::new("a")).is_ok());
        assert!(
            runs_can_be_kept(&place.path().join("file/b")).is_err() && runs_can_be_kept(Path::new("/proc/a")).is_err()
        );
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 2);
        assert_eq!(std::fs::read_to_string(name("file")).unwrap(), "mine");
    }
}
