//! Unpacks what the command wrote, as it comes from the guest.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use super::archive::Checked;
use super::error::{GuestError, Tried};

/// Receives an archive in parts. The guest is not trusted: nothing is written outside the directory,
/// no owner is taken over, nor a set-user-id bit.
pub(super) struct Unpacker {
    parts: Option<SyncSender<Vec<u8>>>,
    thread: Option<JoinHandle<std::io::Result<()>>>,
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
    /// `most`: bytes of the archive, beyond which it is not the command's.
    pub(super) fn start(directory: PathBuf, most: u64) -> Self {
        // A few parts wait while the disk is slow; then the guest does.
        let (parts, receiver) = sync_channel(16);
        let thread = thread::spawn(move || {
            let mut archive = tar::Archive::new(Checked::new(Parts { receiver, current: Vec::new(), read: 0 }, most));
            archive.set_preserve_permissions(false);
            archive.set_preserve_ownerships(false);
            archive.set_overwrite(false);
            archive.unpack(directory)
        });
        Self { parts: Some(parts), thread: Some(thread) }
    }

    /// Takes the next part; an empty one is the end.
    pub(super) fn push(&mut self, part: Vec<u8>) {
        let ended = part.is_empty();
        if let Some(parts) = &self.parts
            && (ended || parts.send(part).is_err())
        {
            self.parts = None;
        }
    }

    /// Waits until all is written; what went wrong, if something did.
    pub(super) fn finish(&mut self) -> Option<String> {
        self.parts = None;
        match self.thread.take()?.join() {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(match std::error::Error::source(&error) {
                Some(cause) => format!("{error}: {cause}"),
                None => error.to_string(),
            }),
            Err(_) => Some("the unpacker failed".into()),
        }
    }
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
        let mut unpacker = Unpacker::start(prepare(directory).unwrap(), 1 << 20);
        for part in parts {
            unpacker.push(part);
        }
        unpacker.push(vec![0; 1024]);
        unpacker.push(Vec::new());
        unpacker.finish()
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
