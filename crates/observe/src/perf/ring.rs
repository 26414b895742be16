//! A perf ring buffer: the kernel writes records, the observer reads and frees them.

use super::PerfError;
use perf_event_open_sys::bindings as sys;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

/// Data pages of a ring: the most that is requested, and what `kernel.perf_event_mlock_kb` grants anybody (with the
/// header page).
const RING_PAGES: [usize; 2] = [512, 128];

pub struct Ring {
    base: NonNull<u8>,
    page: usize,
    size: usize,
    record: Vec<u8>,
}

// SAFETY: the mapping belongs to this value alone.
unsafe impl Send for Ring {}

impl Ring {
    /// The largest ring that may be had.
    pub fn map(fd: BorrowedFd<'_>) -> Result<Self, PerfError> {
        let page = page_size();
        let mut source = io::Error::other("no size tried");
        for size in RING_PAGES.map(|pages| pages * page) {
            // SAFETY: a new shared mapping of a perf event, at an address of the kernel's choice.
            let base = unsafe {
                libc::mmap(
                    ptr::null_mut(),
                    page + size,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_SHARED,
                    fd.as_raw_fd(),
                    0,
                )
            };
            source = io::Error::last_os_error();
            if base != libc::MAP_FAILED
                && let Some(base) = NonNull::new(base.cast())
            {
                return Ok(Ring { base, page, size, record: Vec::new() });
            }
        }
        Err(PerfError::System { step: "map a sample buffer (kernel.perf_event_mlock_kb may be too small)", source })
    }

    /// Bytes held in the kernel.
    pub fn bytes(&self) -> usize {
        self.page + self.size
    }

    fn counter(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the header page is mapped and the head and tail words are aligned; the kernel accesses them
        // atomically too.
        unsafe { &*self.base.as_ptr().add(offset).cast::<AtomicU64>() }
    }

    /// Hands every complete record to `each`: type, misc flags, body.
    pub fn drain(&mut self, mut each: impl FnMut(u32, u16, &[u8])) {
        let head_at = std::mem::offset_of!(sys::perf_event_mmap_page, data_head);
        let tail_at = std::mem::offset_of!(sys::perf_event_mmap_page, data_tail);
        let head = self.counter(head_at).load(Ordering::Acquire);
        let mut tail = self.counter(tail_at).load(Ordering::Relaxed);
        let mut record = std::mem::take(&mut self.record);
        while head - tail >= 8 {
            let mut header = [0u8; 8];
            self.copy(tail, &mut header);
            let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
            let misc = u16::from_ne_bytes([header[4], header[5]]);
            let length = usize::from(u16::from_ne_bytes([header[6], header[7]]));
            if length < 8 || head - tail < length as u64 {
                break;
            }
            record.resize(length - 8, 0);
            self.copy(tail + 8, &mut record);
            each(kind, misc, &record);
            tail += length as u64;
        }
        self.record = record;
        self.counter(tail_at).store(tail, Ordering::Release);
    }

    fn copy(&self, from: u64, into: &mut [u8]) {
        let start = (from % self.size as u64) as usize;
        let first = into.len().min(self.size - start);
        // SAFETY: both parts lie within the data pages, which the kernel does not write again before the tail
        // moves past them.
        unsafe {
            let data = self.base.as_ptr().add(self.page);
            ptr::copy_nonoverlapping(data.add(start), into.as_mut_ptr(), first);
            ptr::copy_nonoverlapping(data, into.as_mut_ptr().add(first), into.len() - first);
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping that `map` made, used by nobody else.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.page + self.size) };
    }
}

fn page_size() -> usize {
    // SAFETY: reads a constant of the system.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}
