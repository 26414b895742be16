//! Stored bodies. Short ones lie in memory and are copied into the socket with their head; longer ones lie in a file
//! that is memory, too, from which `sendfile` hands pages to the socket without a copy.

use bytes::Bytes;
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create, sendfile};
use rustix::io::{Errno, pwrite};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// From this length on a body lies in the file.
const IN_FILE_FROM: usize = 16 << 10;
/// The largest page that the kernel may use. No page has parts of two bodies, so that giving one body's pages back never
/// touches bytes of another one, or bytes that a socket still sends.
const PAGE: u64 = 2 << 20;

/// The file, which has no name.
#[derive(Debug)]
pub struct Arena {
    file: OwnedFd,
    /// Place of the next body. Places are never used again: a file has room for 2^63 bytes, and those that were freed
    /// take no memory.
    next: AtomicU64,
}

impl Arena {
    /// An empty one.
    pub fn new() -> std::io::Result<Arc<Self>> {
        let file = memfd_create("nearmiss-bodies", MemfdFlags::CLOEXEC)?;
        Ok(Arc::new(Arena { file, next: AtomicU64::new(0) }))
    }

    /// Takes the place of so many bytes, whole pages.
    fn place(self: &Arc<Self>, length: usize) -> Extent {
        let pages = (length as u64).next_multiple_of(PAGE);
        Extent { offset: self.next.fetch_add(pages, Ordering::Relaxed), length, arena: Arc::clone(self) }
    }
}

/// A part of the file that one body has.
#[derive(Debug)]
pub struct Extent {
    arena: Arc<Arena>,
    offset: u64,
    length: usize,
}

impl Extent {
    fn fill(&self, pieces: &[Bytes]) -> Result<(), Errno> {
        let mut at = self.offset;
        for piece in pieces {
            let mut rest = &piece[..];
            while !rest.is_empty() {
                let written = pwrite(&self.arena.file, rest, at)?;
                at += written as u64;
                rest = &rest[written..];
            }
        }
        Ok(())
    }
}

impl Drop for Extent {
    /// Gives the pages back. Sockets that still send some of them keep those: they are never written again.
    fn drop(&mut self) {
        let pages = (self.length as u64).next_multiple_of(PAGE);
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // The pages then stay until the process ends, which is all that can be done.
        let _stays = fallocate(&self.arena.file, flags, self.offset, pages).is_err();
    }
}

/// A stored body.
#[derive(Clone, Debug)]
pub enum Body {
    /// In memory.
    Memory(Bytes),
    /// In the file.
    File(Arc<Extent>),
}

impl Body {
    /// Puts a body together. The body lies in memory if the file has no room.
    pub fn new(arena: &Arc<Arena>, pieces: &[Bytes]) -> Self {
        let length = pieces.iter().map(Bytes::len).sum();
        if length >= IN_FILE_FROM {
            let extent = arena.place(length);
            if extent.fill(pieces).is_ok() {
                return Body::File(Arc::new(extent));
            }
        }
        Body::Memory(Bytes::from(pieces.concat().into_boxed_slice()))
    }

    /// Returns the bytes of the body.
    pub fn len(&self) -> usize {
        match self {
            Body::Memory(bytes) => bytes.len(),
            Body::File(extent) => extent.length,
        }
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The part from `at` to `end`, where it lies in memory.
    pub fn in_memory(&self, at: usize, end: usize) -> &[u8] {
        match self {
            Body::Memory(bytes) => &bytes[at..end],
            Body::File(_) => &[],
        }
    }

    /// Returns whether it lies in the file.
    pub fn is_file(&self) -> bool {
        matches!(self, Body::File(_))
    }

    /// Hands a part of the file to a socket. Returns how much it took.
    pub fn send_file(&self, socket: &OwnedFd, at: usize, end: usize) -> Result<usize, Errno> {
        let Body::File(extent) = self else { return Ok(0) };
        let mut offset = extent.offset + at as u64;
        match sendfile(socket, &extent.arena.file, Some(&mut offset), end - at)? {
            0 => Err(Errno::IO),
            taken => Ok(taken),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    #[test]
    fn long_bodies_come_back_from_the_file() {
        let arena = Arena::new().unwrap();
        let pieces: Vec<_> = (0..5u8).map(|byte| Bytes::from(vec![byte; 5000])).collect();
        let bodies = [Body::new(&arena, &pieces), Body::new(&arena, &pieces[1..])];
        assert!(bodies.iter().all(Body::is_file) && !Body::new(&arena, &pieces[..1]).is_file());
        let (out, mut into) = UnixStream::pair().unwrap();
        let out = OwnedFd::from(out);
        assert_eq!(bodies[1].send_file(&out, 4990, 5010), Ok(20));
        let mut read = [0; 20];
        into.read_exact(&mut read).unwrap();
        assert_eq!((&read[..10], &read[10..]), (&[1; 10][..], &[2; 10][..]));
        let used = || rustix::fs::fstat(&arena.file).unwrap().st_blocks * 512;
        let before = used();
        drop(bodies);
        assert!(before >= 45_000 && used() < before / 4, "{before} {}", used());
    }
}
