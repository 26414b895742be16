//! The journal: a line of JSON for each cell that has ended, in the order in which they ended.

use crate::{Ended, Error};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A process that was just forked holds the lock of a killed lab until it has closed what it inherited.
const HANDED_ON: Duration = Duration::from_secs(1);

/// An open journal. Its owner has the lab to itself.
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
}

/// The cells of a journal's text, and how many bytes of it are whole lines: a kill may have cut the last one.
fn parse(path: &Path, text: &[u8]) -> Result<(Vec<Ended>, usize), Error> {
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let lines = text[..whole].split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty());
    let read = |(line, text): (usize, &[u8])| {
        serde_json::from_slice(text).map_err(|source| Error::Journal { file: path.to_owned(), line: line + 1, source })
    };
    Ok((lines.map(read).collect::<Result<_, _>>()?, whole))
}

/// The cells of a journal that somebody else may be writing.
pub(crate) fn read(path: &Path) -> Result<Vec<Ended>, Error> {
    Ok(parse(path, &fs::read(path).map_err(Error::io(path))?)?.0)
}

/// Locks a journal; false: another process has the lock. The kernel gives the lock back however its owner ends.
fn lock(file: &File, path: &Path) -> Result<bool, Error> {
    match rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(Error::io(path)(error.into())),
    }
}

/// Returns whether some process has the journal's lock.
pub(crate) fn is_held(path: &Path) -> bool {
    File::open(path).map_err(Error::io(path)).and_then(|file| lock(&file, path)).is_ok_and(|locked| !locked)
}

impl Journal {
    /// Opens a journal for writing, and gives the cells that it has. Errors: another process has it.
    pub(crate) fn open(path: &Path) -> Result<(Self, Vec<Ended>), Error> {
        let file = File::options().read(true).append(true).open(path).map_err(Error::io(path))?;
        let begun = Instant::now();
        while !lock(&file, path)? {
            if begun.elapsed() > HANDED_ON {
                return Err(Error::Busy(path.parent().unwrap_or(path).to_owned()));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let text = fs::read(path).map_err(Error::io(path))?;
        let (cells, whole) = parse(path, &text)?;
        if whole < text.len() {
            file.set_len(whole as u64).map_err(Error::io(path))?;
        }
        Ok((Journal { path: path.to_owned(), file }, cells))
    }

    /// Writes a line; it is on the disk when this returns.
    pub(crate) fn append(&mut self, ended: &Ended) -> Result<(), Error> {
        let mut line = serde_json::to_vec(ended).map_err(|e| Error::io(&self.path)(e.into()))?;
        line.push(b'\n');
        let written = self.file.write_all(&line).and_then(|()| self.file.sync_data());
        written.map_err(Error::io(&self.path))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::Ending;

    fn ended(cell: &str) -> Ended {
        Ended {
            cell: cell.to_owned(),
            case: "a".to_owned(),
            workload: "a".to_owned(),
            levels: [].into(),
            repetition: 1,
            how: Ending::Done,
            exit: Some(0),
            signal: None,
            why: None,
            took_s: 0.5,
            figures: [("wall_s".to_owned(), 0.1)].into(),
            words: [].into(),
        }
    }

    #[test]
    fn a_line_that_a_kill_cut_is_taken_away_and_a_damaged_one_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal.jsonl");
        fs::write(&path, "").unwrap();
        let (mut journal, none) = Journal::open(&path).unwrap();
        assert_eq!(none, []);
        assert!(is_held(&path) && matches!(Journal::open(&path), Err(Error::Busy(_))));
        journal.append(&ended("a,r1")).unwrap();
        drop(journal);
        assert!(!is_held(&path));
        let whole = fs::read(&path).unwrap();
        fs::write(&path, [&whole[..], &whole[..20]].concat()).unwrap();
        assert_eq!(read(&path).unwrap(), [ended("a,r1")]);
        let (mut journal, cells) = Journal::open(&path).unwrap();
        assert_eq!((cells, fs::read(&path).unwrap()), (vec![ended("a,r1")], whole.clone()));
        journal.append(&ended("a,r2")).unwrap();
        assert_eq!(read(&path).unwrap(), [ended("a,r1"), ended("a,r2")]);
        let damaged = [&whole[..], b"\n{}\n", &whole[..]].concat();
        fs::write(&path, &damaged).unwrap();
        assert!(matches!(read(&path), Err(Error::Journal { line: 3, .. })));
        drop(journal);
        assert!(matches!(Journal::open(&path), Err(Error::Journal { line: 3, .. })));
        assert_eq!(fs::read(&path).unwrap(), damaged);
    }
}
