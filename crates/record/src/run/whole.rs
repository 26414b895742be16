//! Files are written whole under a temporary name, then renamed.

use super::RunError;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Returns the name of a file until it is whole: `model.part-4711` of `model.json`, the number being the process.
pub(crate) fn temporary(path: &Path) -> PathBuf {
    path.with_extension(format!("{UNFINISHED}{}", std::process::id()))
}

/// Text before the process in the name of a file that is not whole.
pub(super) const UNFINISHED: &str = "part-";

/// Files that [`write_whole`] is about to write, and directories of [`Scratch`].
pub(super) fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes what [`write_whole`] and [`Scratch`] have begun and not ended: for who ends this process at once.
///
/// [`Scratch`]: super::Scratch
pub fn remove_unfinished() {
    for path in unfinished().iter() {
        // An error can no longer be reported.
        let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    }
}

/// Writes a file under a temporary name, then renames it. A link is followed; anything but a regular file, such as a
/// pipe or a device, is written to and stays in place.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if fs::metadata(path).is_ok_and(|about| !about.is_file() && !about.is_dir()) {
        let write = || fs::File::options().write(true).open(path)?.write_all(bytes);
        return write().map_err(|source| RunError::Io { path: path.to_owned(), source });
    }
    let temporary = temporary(path);
    let write = || {
        unfinished().push(temporary.clone());
        let mut file = fs::File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        fs::rename(&temporary, path)
    };
    let written = write();
    unfinished().retain(|other| *other != temporary);
    written.map_err(|source| {
        // Best effort: the error that matters is the one reported.
        let _ = fs::remove_file(&temporary);
        RunError::Io { path: path.to_owned(), source }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn links_are_followed_and_pipes_stay_pipes() -> Result<(), Box<dyn std::error::Error>> {
        let place = tempfile::tempdir()?;
        let (file, link, pipe) = (place.path().join("file"), place.path().join("link"), place.path().join("pipe"));
        fs::write(&file, "before")?;
        std::os::unix::fs::symlink(&file, &link)?;
        write_whole(&link, b"after")?;
        assert!(fs::symlink_metadata(&link)?.is_symlink());
        assert_eq!(fs::read(&file)?, b"after");

        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU)?;
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::File::open(pipe).and_then(|mut pipe| pipe.read_to_end(&mut Vec::new()))
        });
        write_whole(&pipe, b"through")?;
        assert_eq!(reader.join().map_err(|_| "the reader panicked")??, 7);
        assert!(!fs::metadata(&pipe)?.is_file());
        assert_eq!(fs::read_dir(place.path())?.count(), 3, "nothing is left beside them");
        Ok(())
    }
}
