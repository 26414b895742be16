//! References of one record of 4 KiB on its way from a program's buffer into a file, as Linux 2.6 with ext3 makes them.
//!
//! A stream is at record `n`. With it one page is written, the page of `n` − [`DIRTY`] goes to the device, the one that
//! went [`IN_FLIGHT`] records ago is done, the transaction of `n` − [`COMMITTED`] is committed, and the page of `n` −
//! [`KEPT`] is reclaimed. The next page gets that page's frame and structures: so the kernel's structures are used
//! again and again, and copies of many pages lie between two uses.

use super::function::{Caller, Function};
use super::slice::{RECORD_BYTES, Slice};
use crate::random::Random;
use nearmiss_record::reference::Kind;

/// Pages of a stream that wait to be written back: beyond every cache. Assumed.
pub const DIRTY: u64 = 65_536;
/// Records from the submission of a page to the end of its transfer. Assumed: 2 MiB in the device's queue.
pub const IN_FLIGHT: u64 = 512;
/// Records until a page's transaction commits: beyond every cache. Assumed.
pub const COMMITTED: u64 = 81_920;
/// Pages of a stream in memory, 768 MiB. Assumed.
pub const KEPT: u64 = 196_608;
/// Pages of a request. Assumed: 128 KiB.
const REQUEST_PAGES: u64 = 32;
/// Lines that all CPUs write with each record: locks, lists and counts of zones and inodes. Assumed.
pub const SHARED_LINES: u64 = 4;
/// Lines of the path's own stack, tasks, journal handles and code-like data: they fit the second level. Assumed.
pub const USUAL_LINES: u64 = 768;

/// While caches fill, of so many references to what stays near one is made.
const FAST: u64 = 32;

/// Sizes of Linux 2.6's structures on IA-32.
mod bytes {
    pub const PAGE: u64 = 32;
    pub const BUFFER_HEAD: u64 = 52;
    pub const JOURNAL_HEAD: u64 = 48;
    pub const RADIX_NODE: u64 = 276;
    pub const BIO: u64 = 72;
    pub const BIO_VECTOR: u64 = 16;
    pub const REQUEST: u64 = 200;
    pub const SCATTER: u64 = 16;
}

/// Start addresses: physical, before the machine places pages.
mod place {
    pub const SHARED: u64 = 0x0100_0000;
    pub const USUAL: u64 = 0x0200_0000;
    pub const USER: u64 = 0x0300_0000;
    pub const PIPE: u64 = 0x0400_0000;
    pub const MEM_MAP: u64 = 0x0800_0000;
    pub const BUFFER_HEADS: u64 = 0x4000_0000;
    pub const JOURNAL_HEADS: u64 = 0x6000_0000;
    pub const NODES: u64 = 0x8000_0000;
    pub const BIOS: u64 = 0xa000_0000;
    pub const REQUESTS: u64 = 0xb000_0000;
    pub const OTHER: u64 = 0xc000_0000;
    pub const FRAMES: u64 = 0x1_0000_0000;
    /// From one stream's to the next.
    pub const APART: u64 = 0x0100_0000;
}

/// Work of a stream beside what follows from the kernel's structures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// References a record to what stays near.
    pub usual: u64,
    /// References a record to all other memory.
    pub other: u64,
    /// Lines of that memory, a CPU.
    pub other_lines: u64,
    /// Instructions a record.
    pub instructions: u64,
    /// Stores among both kinds of references, in percent.
    pub store_percent: u64,
}

/// One stream of records, on a CPU of its own.
pub struct Stream {
    number: u64,
    record: u64,
    random: Random,
    work: Work,
    /// Each record first comes out of a pipe, on the same CPU.
    piped: bool,
}

impl Stream {
    /// A stream that has written more than memory holds.
    pub fn new(number: usize, work: Work, piped: bool) -> Self {
        let number = number as u64;
        Stream { number, record: 2 * KEPT, random: Random::new(number + 1), work, piped }
    }

    /// Touches what the next record touches. The copies come anywhere in the record's work, so that those of several
    /// CPUs overlap by chance.
    pub fn step(&mut self, slice: &mut Slice) {
        let before = self.random.below(self.work.usual + 1);
        self.work(0..before, slice);
        if self.piped {
            self.pipe(slice);
        }
        self.write(slice);
        self.complete(slice);
        self.submit(slice);
        self.commit(slice);
        self.reclaim(slice);
        self.work(before..self.work.usual, slice);
        slice.spread(self.work.instructions);
        self.record += 1;
    }

    /// Does a step without most of what stays near anyway: fills caches sooner.
    pub fn step_fast(&mut self, slice: &mut Slice) {
        let work = self.work;
        self.work.usual /= FAST;
        self.step(slice);
        self.work = work;
    }

    /// A structure of a record's page, of a ring of so many.
    fn structure(&self, base: u64, bytes: u64, record: u64, ring: u64) -> u64 {
        base + self.number * place::APART + record % ring * bytes
    }

    fn frame(&self, record: u64) -> u64 {
        self.number * KEPT + record % KEPT
    }

    fn page(&self, record: u64) -> u64 {
        place::MEM_MAP + self.frame(record) * bytes::PAGE
    }

    fn buffer_head(&self, record: u64) -> u64 {
        self.structure(place::BUFFER_HEADS, bytes::BUFFER_HEAD, record, KEPT)
    }

    fn journal_head(&self, record: u64) -> u64 {
        self.structure(place::JOURNAL_HEADS, bytes::JOURNAL_HEAD, record, COMMITTED)
    }

    /// The slot of a page in its leaf of the tree, behind the leaf's own count.
    fn slot(&self, record: u64) -> u64 {
        self.structure(place::NODES, bytes::RADIX_NODE, record / 64, KEPT / 64) + 8 + record % 64 * 4
    }

    /// Returns the address of a page's bio; the bio's vector lies behind.
    fn bio(&self, record: u64) -> u64 {
        self.structure(place::BIOS, bytes::BIO + bytes::BIO_VECTOR, record, IN_FLIGHT)
    }

    fn request(&self, record: u64) -> u64 {
        let bytes = bytes::REQUEST + REQUEST_PAGES * bytes::SCATTER;
        self.structure(place::REQUESTS, bytes, record / REQUEST_PAGES, IN_FLIGHT / REQUEST_PAGES)
    }

    fn user(&self) -> u64 {
        place::USER + self.number * 2 * RECORD_BYTES
    }

    /// Some of a record's references to what stays near, with as large a part of the locks and of all other memory.
    fn work(&mut self, part: std::ops::Range<u64>, slice: &mut Slice) {
        let Work { usual, other, .. } = self.work;
        for at in part {
            let line = self.random.below(USUAL_LINES);
            let address = place::USUAL + self.number * place::APART / 16 + line * 64;
            let kind = self.kind();
            slice.touch(Function::Usual, kind, address, 4);
            // As many of these as the record has, evenly among those.
            let due = |of: u64| (at + 1) * of / usual - at * of / usual;
            (0..due(other)).for_each(|_| self.touch_other(slice));
            for lock in at * SHARED_LINES / usual..(at + 1) * SHARED_LINES / usual {
                let function = if lock % 2 == 0 { Function::Lock } else { Function::LockIrq };
                slice.touch(function, Kind::Atomic, place::SHARED + lock * 64, 4);
            }
        }
    }

    fn touch_other(&mut self, slice: &mut Slice) {
        let line = self.random.below(self.work.other_lines);
        let address = place::OTHER + self.number * place::APART + line * 64;
        let kind = self.kind();
        slice.touch(Function::Other, kind, address, 4);
    }

    fn kind(&mut self) -> Kind {
        if self.random.below(100) < self.work.store_percent { Kind::Store } else { Kind::Load }
    }

    /// A record comes out of a pipe: in by one copy, out by another at once. The pipe's page is the one just freed.
    fn pipe(&self, slice: &mut Slice) {
        let page = place::PIPE + self.number * RECORD_BYTES;
        let writer = self.user() + RECORD_BYTES;
        slice.copy(Function::Copy, Caller::PipeWrite, writer, page);
        slice.copy(Function::CopyOut, Caller::PipeWrite, page, self.user());
    }

    /// `write(2)`: a page is allocated, put into the tree, given a buffer head, filled and entered in the journal.
    fn write(&self, slice: &mut Slice) {
        let n = self.record;
        slice.touch(Function::Allocate, Kind::Store, self.page(n), 32);
        slice.touch(Function::Tree, Kind::Store, self.slot(n), 4);
        slice.touch(Function::BufferHead, Kind::Store, self.buffer_head(n), bytes::BUFFER_HEAD);
        slice.copy(Function::Copy, Caller::FileWrite, self.user(), place::FRAMES + self.frame(n) * RECORD_BYTES);
        slice.touch(Function::JournalHead, Kind::Store, self.journal_head(n), bytes::JOURNAL_HEAD);
        slice.touch(Function::JournalHead, Kind::Store, self.journal_head(n - 1), bytes::JOURNAL_HEAD);
    }

    fn submit(&self, slice: &mut Slice) {
        let n = self.record - DIRTY;
        slice.touch(Function::Submit, Kind::Load, self.slot(n), 4);
        slice.touch(Function::Submit, Kind::Store, self.page(n), 32);
        slice.touch(Function::Submit, Kind::Store, self.buffer_head(n), bytes::BUFFER_HEAD);
        slice.touch(Function::Submit, Kind::Store, self.bio(n), bytes::BIO + bytes::BIO_VECTOR);
        slice.touch(Function::Submit, Kind::Store, self.request(n), 64);
        let piece = self.request(n) + bytes::REQUEST + n % REQUEST_PAGES * bytes::SCATTER;
        slice.touch(Function::MapPieces, Kind::Load, self.bio(n) + bytes::BIO, bytes::BIO_VECTOR);
        slice.touch(Function::MapPieces, Kind::Store, piece, bytes::SCATTER);
    }

    fn complete(&self, slice: &mut Slice) {
        let n = self.record - DIRTY - IN_FLIGHT;
        slice.touch(Function::EndRequest, Kind::Load, self.request(n), 64);
        slice.touch(Function::EndRequest, Kind::Store, self.bio(n), bytes::BIO + bytes::BIO_VECTOR);
        slice.touch(Function::EndPage, Kind::Store, self.buffer_head(n), bytes::BUFFER_HEAD);
        slice.touch(Function::EndPage, Kind::Store, self.page(n), 32);
    }

    fn commit(&self, slice: &mut Slice) {
        let n = self.record + 1 - COMMITTED;
        slice.touch(Function::Commit, Kind::Store, self.journal_head(n), bytes::JOURNAL_HEAD);
        slice.touch(Function::Commit, Kind::Store, self.buffer_head(n), bytes::BUFFER_HEAD);
    }

    /// Reclaims the page that gives its place to the next record's.
    fn reclaim(&self, slice: &mut Slice) {
        let n = self.record + 1 - KEPT;
        slice.touch(Function::Reclaim, Kind::Store, self.page(n), 32);
        slice.touch(Function::Reclaim, Kind::Store, self.slot(n), 4);
        slice.touch(Function::Reclaim, Kind::Store, self.buffer_head(n), bytes::BUFFER_HEAD);
    }
}
