//! Unpacks what the command wrote, as it comes from the guest: into a directory, or the names of code alone.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use nearmiss_symbols::JitNames;

use super::archive::Checked;
use super::error::{GuestError, Tried};

/// Names of the code that processes of the guest made at run time, by process.
pub type CodeNames = BTreeMap<u32, JitNames>;

/// Directory of the files with such names, in an archive.
const NAMES: &str = "tmp";
/// Bytes of an archive of such files alone; the agent leaves out what is more.
const MOST_NAMES: u64 = 64 << 20;

/// Receives an archive in parts. The guest is not trusted: nothing is written outside the directory,
/// no owner is taken over, nor a set-user-id bit.
pub(super) struct Unpacker {
    /// Destination of all files; without one, names are read and nothing is written.
    directory: Option<PathBuf>,
    /// Bytes of the archive, beyond which it is not the command's.
    most: u64,
    parts: Option<SyncSender<Vec<u8>>>,
    /// From the first part on.
    thread: Option<JoinHandle<std::io::Result<CodeNames>>>,
}

/// The directory must be new or empty, so that nothing of the user's is overwritten.
pub(super) fn prepare(directory: &Path) -> Result<PathBuf, GuestError> {
    std::fs::create_dir_all(directory).tried(format!("--keep {}", directory.display()))?;
    let mut entries = std::fs::read_dir(directory).tried(format!("--keep {}", directory.display()))?;
    if entries.next().is_some() {
        return Err(GuestError::Config(format!(
            "--keep {}: the directory is not empty: name a new one",
            directory.display()
        )));
    }
    directory.canonicalize().tried(format!("--keep {}", directory.display()))
}

impl Unpacker {
    /// `memory`: bytes that the guest has, and its files with it.
    pub(super) fn new(directory: Option<PathBuf>, memory: u64) -> Self {
        let most = if directory.is_some() { memory } else { MOST_NAMES };
        Self { directory, most, parts: None, thread: None }
    }

    /// Takes the next part; an empty one is the end.
    pub(super) fn push(&mut self, part: Vec<u8>) {
        if self.thread.is_none() {
            // A few parts wait while the disk is slow; then the guest does.
            let (parts, receiver) = sync_channel(16);
            let (directory, most) = (self.directory.clone(), self.most);
            self.parts = Some(parts);
            self.thread = Some(thread::spawn(move || unpack(receiver, directory.as_deref(), most)));
        }
        let ended = part.is_empty();
        if let Some(parts) = &self.parts
            && (ended || parts.send(part).is_err())
        {
            self.parts = None;
        }
    }

    /// Waits until all is written and read. Errors, in a sentence: something went wrong.
    pub(super) fn finish(&mut self) -> Result<CodeNames, String> {
        self.parts = None;
        let Some(thread) = self.thread.take() else { return Ok(CodeNames::new()) };
        let what =
            if self.directory.is_some() { "what the command wrote" } else { "the names of code made at run time" };
        let why = match thread.join() {
            Ok(Ok(names)) => return Ok(names),
            Ok(Err(error)) => match std::error::Error::source(&error) {
                Some(cause) => format!("{error}: {cause}"),
                None => error.to_string(),
            },
            Err(_) => "the unpacker failed".into(),
        };
        Err(format!("{what} could not be kept whole: {why}"))
    }
}

fn unpack(receiver: Receiver<Vec<u8>>, directory: Option<&Path>, most: u64) -> std::io::Result<CodeNames> {
    let mut archive = tar::Archive::new(Checked::new(Parts { receiver, current: Vec::new(), read: 0 }, most));
    archive.set_preserve_permissions(false);
    archive.set_preserve_ownerships(false);
    archive.set_overwrite(false);
    let Some(directory) = directory else { return names_in_archive(&mut archive) };
    archive.unpack(directory)?;
    Ok(names_in_directory(&directory.join(NAMES)))
}

fn names_in_archive(archive: &mut tar::Archive<impl Read>) -> std::io::Result<CodeNames> {
    let mut names = CodeNames::new();
    for entry in archive.entries()? {
        let entry = entry?;
        let path = entry.path()?;
        let process = path.strip_prefix(NAMES).ok().and_then(Path::to_str).and_then(JitNames::process);
        if let Some(process) = process.filter(|_| entry.header().entry_type().is_file()) {
            names.insert(process, JitNames::parse(entry)?);
        }
    }
    Ok(names)
}

/// Reads the names among files that were kept. A link leads out of them.
fn names_in_directory(place: &Path) -> CodeNames {
    let Some(entries) = place.symlink_metadata().ok().filter(|of| of.is_dir()).and_then(|_| place.read_dir().ok())
    else {
        return CodeNames::new();
    };
    let named = |entry: std::fs::DirEntry| Some((JitNames::process(entry.file_name().to_str()?)?, entry.path()));
    entries.flatten().filter_map(named).filter_map(|(pid, path)| Some((pid, JitNames::read(&path)?))).collect()
}

struct Parts {
    receiver: Receiver<Vec<u8>>,
    current: Vec<u8>,
    read: usize,
}

impl Read for Parts {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.read == self.current.len() {
            match self.receiver.recv() {
                Ok(part) => (self.current, self.read) = (part, 0),
                Err(_) => return Ok(0),
            }
        }
        let length = buffer.len().min(self.current.len() - self.read);
        buffer[..length].copy_from_slice(&self.current[self.read..self.read + length]);
        self.read += length;
        Ok(length)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn archive_with(path: &str, link: Option<&str>) -> Vec<u8> {
        let mut header = tar::Header::new_gnu();
        header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_mode(0o4755);
        header.set_size(if link.is_some() { 0 } else { 4 });
        if let Some(link) = link {
            header.set_entry_type(tar::EntryType::Symlink);
            header.set_link_name_literal(link).unwrap();
        }
        header.set_cksum();
        let mut bytes = header.as_bytes().to_vec();
        if link.is_none() {
            bytes.extend(b"text");
            bytes.resize(1024, 0);
        }
        bytes
    }

    fn unpack(parts: Vec<Vec<u8>>, directory: &Path) -> Option<String> {
        received(Some(prepare(directory).unwrap()), parts).err()
    }

    fn received(directory: Option<PathBuf>, parts: Vec<Vec<u8>>) -> Result<CodeNames, String> {
        let mut unpacker = Unpacker::new(directory, 1 << 20);
        for part in parts {
            unpacker.push(part);
        }
        unpacker.push(vec![0; 1024]);
        unpacker.push(Vec::new());
        unpacker.finish()
    }

    /// An archive with a file of one line.
    fn names_of(path: &str) -> Vec<u8> {
        let mut archive = archive_with(path, None);
        let line = b"1000 10 a\n";
        archive[512..512 + line.len()].copy_from_slice(line);
        let mut header = tar::Header::new_gnu();
        header.as_mut_bytes().copy_from_slice(&archive[..512]);
        header.set_size(line.len() as u64);
        header.set_cksum();
        archive[..512].copy_from_slice(header.as_bytes());
        archive
    }

    #[test]
    fn names_of_code_are_read_without_a_file_and_from_kept_ones() {
        let archive = || vec![names_of("tmp/perf-7.map"), names_of("tmp/perf-x.map"), names_of("perf-8.map")];
        let home = tempfile::tempdir().unwrap();
        let keep = prepare(&home.path().join("keep")).unwrap();
        for names in [received(None, archive()), received(Some(keep), archive())] {
            let names = names.unwrap();
            assert_eq!(names.keys().collect::<Vec<_>>(), [&7]);
            assert_eq!(names[&7].at(0x1005).unwrap().name, "a");
        }
        assert_eq!(received(None, Vec::new()), Ok(CodeNames::new()));
    }

    #[test]
    fn nothing_is_written_outside() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let keep = home.path().join("keep");
        let outside = home.path().join("outside");
        std::fs::create_dir(&outside).unwrap();
        let link = archive_with("way-out", Some(outside.to_str().unwrap()));
        unpack(
            vec![
                archive_with("a/b", None),
                archive_with("../escaped", None),
                link,
                archive_with("way-out/escaped", None),
            ],
            &keep,
        );
        assert_eq!(std::fs::read(keep.join("a/b")).unwrap(), b"text");
        assert_eq!(std::fs::metadata(keep.join("a/b")).unwrap().permissions().mode() & 0o7777, 0o755);
        assert!(!home.path().join("escaped").exists());
        assert!(!outside.join("escaped").exists());
    }

    #[test]
    fn a_directory_in_use_is_refused() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("mine"), "").unwrap();
        assert!(prepare(home.path()).unwrap_err().to_string().contains("not empty"));
    }
}
