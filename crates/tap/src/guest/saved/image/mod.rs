//! A saved guest as one file: a header, the emulator's state, and the blocks of its memory that are not zero.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, CWD, SeekFrom, linkat, seek};
use serde::{Deserialize, Serialize};

use super::super::memory_file::inherited_path;

const MAGIC: [u8; 8] = *b"NMGUEST1";
/// Memory is looked through, stored and filled by blocks of this size.
const BLOCK: u64 = 64 << 10;
/// A header is a few KiB: some bytes for each stretch of memory.
const LONGEST_HEADER: u32 = 16 << 20;
const LONGEST_STATE: u64 = 64 << 20;
/// One file.
pub(super) const MOST_OF_ONE: u64 = 300 << 20;
/// All files; the one that was used longest ago goes first.
pub(super) const MOST_OF_ALL: u64 = 1 << 30;

/// Time after which a guest that could not be saved is tried again.
const TRIED_AGAIN: Duration = Duration::from_secs(3600);

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    key: String,
    /// From the emulator's start to the agent's word that it is booted.
    boot_ns: u64,
    /// Why this guest cannot be saved; there is nothing behind the header then.
    unfit: Option<String>,
    state_bytes: u64,
    state_sum: u32,
    /// Node, offset in it, bytes.
    stretches: Vec<(usize, u64, u64)>,
    memory_sum: u32,
}

/// A saved guest, opened.
pub(in super::super) struct Image {
    path: PathBuf,
    file: File,
    header: Header,
    /// The emulator's state.
    pub(super) state: Vec<u8>,
    /// Offset of the memory.
    memory_at: u64,
    /// A note for the user.
    pub(in super::super) note: Option<String>,
}

/// Content of the cache for a key.
pub(super) enum Kept {
    /// A guest to restore.
    Image(Box<Image>),
    /// One that cannot be saved.
    Unfit,
    Nothing,
    /// A file that is not as it was written.
    Damaged,
}

/// Looks for a key's guest.
pub(super) fn open(path: &Path, key: &str) -> Kept {
    let Ok(file) = File::open(path) else { return Kept::Nothing };
    let Some(image) = read(path, file) else { return Kept::Damaged };
    match image.header.key == key {
        true if image.header.unfit.is_some() => match image.age() < TRIED_AGAIN {
            true => Kept::Unfit,
            false => Kept::Nothing,
        },
        true => Kept::Image(Box::new(image)),
        false => Kept::Nothing,
    }
}

fn read(path: &Path, mut file: File) -> Option<Image> {
    let mut head = [0; 16];
    file.read_exact(&mut head).ok()?;
    let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let (length, sum) = (number(8), number(12));
    if head[..8] != MAGIC || length > LONGEST_HEADER {
        return None;
    }
    let mut text = vec![0; length as usize];
    file.read_exact(&mut text).ok()?;
    let header: Header = (crc32fast::hash(&text) == sum).then(|| serde_json::from_slice(&text).ok())??;
    let mut state = vec![0; header.state_bytes.min(LONGEST_STATE) as usize];
    file.read_exact(&mut state).ok()?;
    let memory_at = 16 + u64::from(length) + header.state_bytes;
    let memory_bytes: u64 = header.stretches.iter().map(|(_, _, bytes)| bytes).sum();
    let whole = file.metadata().ok()?.len() == memory_at + memory_bytes;
    let sound = whole && crc32fast::hash(&state) == header.state_sum;
    sound.then(|| Image { path: path.to_owned(), file, header, state, memory_at, note: None })
}

impl Image {
    /// Since it was used last.
    fn age(&self) -> Duration {
        let used = self.file.metadata().and_then(|about| about.modified());
        used.ok().and_then(|time| time.elapsed().ok()).unwrap_or_default()
    }

    /// Returns how long the boot took that this saves.
    pub(in super::super) fn boot(&self) -> Duration {
        Duration::from_nanos(self.header.boot_ns)
    }

    /// Fills a guest's memory, which is all zero, by node. Errors: the file is damaged, or cannot be read.
    pub(super) fn fill(&self, memory: &[(u64, OwnedFd)]) -> Result<(), String> {
        let nodes: Vec<File> =
            memory.iter().map(|(_, file)| duplicate(file)).collect::<io::Result<_>>().map_err(text)?;
        let mut block = vec![0; 4 * BLOCK as usize];
        let (mut at, mut sum) = (self.memory_at, crc32fast::Hasher::new());
        for &(node, offset, bytes) in &self.header.stretches {
            let mut done = 0;
            while done < bytes {
                let part = &mut block[..(bytes - done).min(4 * BLOCK) as usize];
                self.file.read_exact_at(part, at).map_err(text)?;
                sum.update(part);
                nodes.get(node).ok_or("a node too many")?.write_all_at(part, offset + done).map_err(text)?;
                at += part.len() as u64;
                done += part.len() as u64;
            }
        }
        // When it was used last, for whoever has to make room.
        let _ = self.file.set_modified(SystemTime::now());
        if sum.finalize() == self.header.memory_sum { Ok(()) } else { Err("its checksum is wrong".into()) }
    }

    /// Removes it, so that the next run saves another one.
    pub(in super::super) fn remove(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn text(error: io::Error) -> String {
    error.to_string()
}

fn duplicate(file: &OwnedFd) -> io::Result<File> {
    Ok(file.try_clone()?.into())
}

/// A file without a name, which vanishes with this process unless it is kept. Errors: the cache cannot hold it.
pub(super) fn nameless(directory: &Path) -> io::Result<File> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let room = rustix::fs::statvfs(directory)?;
    if room.f_bavail * room.f_frsize < 2 * MOST_OF_ONE {
        return Err(io::ErrorKind::StorageFull.into());
    }
    File::options().read(true).write(true).mode(0o600).custom_flags(libc::O_TMPFILE).open(directory)
}

/// Writes a guest to a nameless file and gives the file its name. Errors: the guest is too large, or the disk is full.
pub(super) fn keep(
    mut file: File,
    path: &Path,
    key: &str,
    boot_ns: u64,
    state: &[u8],
    memory: &[(u64, OwnedFd)],
) -> Result<(), String> {
    let nodes: Vec<File> = memory.iter().map(|(_, file)| duplicate(file)).collect::<io::Result<_>>().map_err(text)?;
    let mut header = header(key, boot_ns);
    header.stretches = stretches(&nodes).map_err(text)?;
    let bytes: u64 = header.stretches.iter().map(|(_, _, bytes)| bytes).sum::<u64>() + state.len() as u64;
    if bytes > MOST_OF_ONE {
        let why = format!("it takes {} MiB, and at most {} are kept", bytes >> 20, MOST_OF_ONE >> 20);
        keep_unfit(file, path, key, &why).map_err(text)?;
        return Err(why);
    }
    (header.state_bytes, header.state_sum) = (state.len() as u64, crc32fast::hash(state));
    header.memory_sum = sum(&nodes, &header.stretches).map_err(text)?;
    let mut write = || -> io::Result<()> {
        write_header(&mut file, &header)?;
        file.write_all(state)?;
        copy(&nodes, &header.stretches, |part| file.write_all(part))?;
        name(&file, path)
    };
    write().map_err(text)
}

/// Keeps in mind that this guest cannot be saved.
pub(super) fn keep_unfit(mut file: File, path: &Path, key: &str, why: &str) -> io::Result<()> {
    let header = Header { unfit: Some(why.to_owned()), ..header(key, 0) };
    write_header(&mut file, &header)?;
    name(&file, path)
}

fn header(key: &str, boot_ns: u64) -> Header {
    Header {
        key: key.to_owned(),
        boot_ns,
        unfit: None,
        state_bytes: 0,
        state_sum: crc32fast::hash(&[]),
        stretches: Vec::new(),
        memory_sum: 0,
    }
}

fn write_header(file: &mut File, header: &Header) -> io::Result<()> {
    let text = serde_json::to_vec(header)?;
    let mut head = MAGIC.to_vec();
    head.extend((text.len() as u32).to_le_bytes());
    head.extend(crc32fast::hash(&text).to_le_bytes());
    head.extend(text);
    file.set_len(0)?;
    file.write_all_at(&head, 0)?;
    rustix::fs::seek(&*file, SeekFrom::Start(head.len() as u64))?;
    Ok(())
}

fn name(file: &File, path: &Path) -> io::Result<()> {
    // One of an earlier key of this name, or a damaged one.
    let _ = fs::remove_file(path);
    linkat(CWD, inherited_path(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?;
    if let Some(directory) = path.parent() {
        make_room(directory, path, MOST_OF_ALL)?;
    }
    Ok(())
}

/// Removes what was used longest ago until all together fits; never `newest`.
fn make_room(directory: &Path, newest: &Path, most: u64) -> io::Result<()> {
    let mut files: Vec<(SystemTime, u64, PathBuf)> = fs::read_dir(directory)?
        .filter_map(|entry| {
            let (path, about) = entry.ok().and_then(|entry| Some((entry.path(), entry.metadata().ok()?)))?;
            about.is_file().then_some((about.modified().ok()?, about.len(), path))
        })
        .collect();
    files.sort();
    let mut total: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
    for (_, bytes, path) in files {
        if total > most && path != newest {
            fs::remove_file(path)?;
            total -= bytes;
        }
    }
    Ok(())
}

/// The stretches of memory that are not zero, block by block.
fn stretches(nodes: &[File]) -> io::Result<Vec<(usize, u64, u64)>> {
    let mut found: Vec<(usize, u64, u64)> = Vec::new();
    let mut block = vec![0; BLOCK as usize];
    for (node, file) in nodes.iter().enumerate() {
        let (end, mut at) = (file.metadata()?.len(), 0);
        // Past the last data there is none.
        while let Ok(data) = seek(file.as_fd(), SeekFrom::Data(at)) {
            let hole = seek(file.as_fd(), SeekFrom::Hole(data))?;
            at = data / BLOCK * BLOCK;
            while at < hole {
                let part = &mut block[..BLOCK.min(end - at) as usize];
                file.read_exact_at(part, at)?;
                if part.iter().any(|byte| *byte != 0) {
                    match found.last_mut() {
                        Some((last, from, bytes)) if *last == node && *from + *bytes == at => {
                            *bytes += part.len() as u64
                        }
                        _ => found.push((node, at, part.len() as u64)),
                    }
                }
                at += BLOCK;
            }
        }
    }
    Ok(found)
}

fn copy(
    nodes: &[File],
    stretches: &[(usize, u64, u64)],
    mut to: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut block = vec![0; 4 * BLOCK as usize];
    for &(node, offset, bytes) in stretches {
        let mut done = 0;
        while done < bytes {
            let part = &mut block[..(bytes - done).min(4 * BLOCK) as usize];
            nodes[node].read_exact_at(part, offset + done)?;
            to(part)?;
            done += part.len() as u64;
        }
    }
    Ok(())
}

fn sum(nodes: &[File], stretches: &[(usize, u64, u64)]) -> io::Result<u32> {
    let mut sum = crc32fast::Hasher::new();
    copy(nodes, stretches, |part| {
        sum.update(part);
        Ok(())
    })?;
    Ok(sum.finalize())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
