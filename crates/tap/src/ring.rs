//! The shared memory between the plugin and us: we write its head, the plugin fills chunks, we give them back.
//!
//! Layout: `native/include/nearmiss_tap.h`. Nothing is ever lost: a full ring makes the guest wait.

use super::timing::{Lengths, Seen};
use super::window::Window;
use memmap2::{MmapOptions, MmapRaw};
use nearmiss_record::abi::{self, ChunkHeader, ControlPage};
use nearmiss_record::reference::Record;
use nearmiss_record::run::Associativity;
use nearmiss_record::side::{Insn, PlacedContext, SideTables};
use nearmiss_record::symbols::CLEARING;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const PAGE: u64 = 4096;
const CHUNK_BYTES: u32 = 64 << 10;
const CHUNK_COUNT: u32 = 64;
const INSN_CAPACITY: u32 = 4 << 20;
const CTX_CAPACITY: u32 = 8 << 20;
/// Pages of a CPU's perf ring that the control page can list.
const PERF_PAGES: usize = 512;

/// How the plugin is to record.
#[derive(Clone, Debug, Default)]
pub struct RingConfig {
    /// vCPUs of the guest.
    pub cpus: u32,
    /// Bytes of guest memory by node.
    pub node_bytes: Vec<u64>,
    /// User mode only.
    pub only_user: bool,
    /// References that need not be sent.
    pub filter: nearmiss_record::run::Filter,
    /// Which part of the run.
    pub window: Window,
    /// Functions that give out memory will be given, see [`Ring::allocates_at`].
    pub managed_heaps: bool,
}

/// Facts about the guest's kernel that the plugin needs before the window opens. Addresses are guest-physical.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginFacts {
    /// Offsets of pid, tgid, comm and mm in `task_struct`.
    pub task_offsets: [u32; 4],
    /// Virtual address of physical 0 in the direct map.
    pub direct_map_base: u64,
    /// Start of each CPU's area, by CPU.
    pub per_cpu_bases: Vec<u64>,
    /// Address of each CPU's current task.
    pub current_task: Vec<u64>,
    /// Entry point of the timer interrupt.
    pub timer_entry: u64,
    /// Entry points of the other interrupts.
    pub irq_text: (u64, u64),
    /// Entries of the functions that clear a page; 0: none.
    pub clearing: [u64; CLEARING.len()],
    /// Each CPU's perf ring: its `data_head`, and its data pages.
    pub perf_rings: Vec<(u64, Vec<u64>)>,
}

/// Next item of the ring.
pub enum Next<'a> {
    /// A chunk; give it back with [`Ring::release`].
    Chunk(&'a ChunkHeader, &'a [Record]),
    /// Nothing yet.
    Nothing,
}

/// The shared memory, mapped.
pub struct Ring {
    file: OwnedFd,
    map: MmapRaw,
    head: ControlPage,
    consumed: u64,
}

/// How often, and how far apart, an empty ring is looked at before the guest is to wake the consumer.
const NAPS: u32 = 20;
const NAP: Duration = Duration::from_micros(150);

impl Ring {
    /// Makes the shared memory and writes its head. Errors: no memory file can be made or mapped.
    pub fn create(config: &RingConfig) -> io::Result<Self> {
        let chunks_offset = PAGE;
        let insns_offset = chunks_offset + u64::from(CHUNK_BYTES) * u64::from(CHUNK_COUNT);
        let ctxs_offset = insns_offset + u64::from(INSN_CAPACITY) * size_of::<Insn>() as u64;
        let pages_offset = ctxs_offset + u64::from(CTX_CAPACITY) * size_of::<PlacedContext>() as u64;
        let bytes = pages_offset + (config.cpus as u64) * (PERF_PAGES as u64) * 8;
        let file = rustix::fs::memfd_create("nearmiss-ring", rustix::fs::MemfdFlags::CLOEXEC)?;
        rustix::fs::ftruncate(&file, bytes)?;
        let map = MmapOptions::new().len(bytes as usize).map_raw(&file)?;
        let mut head = ControlPage {
            magic: abi::MAGIC,
            version: abi::VERSION,
            vcpus: config.cpus,
            chunk_bytes: CHUNK_BYTES,
            chunk_count: CHUNK_COUNT,
            insn_capacity: INSN_CAPACITY,
            ctx_capacity: CTX_CAPACITY,
            chunks_offset,
            insns_offset,
            ctxs_offset,
            filter_line_log2: config.filter.line_log2,
            filter_index_low: config.filter.index_low,
            filter_index_bits: config.filter.index_bits,
            only_user: config.only_user.into(),
            clear_on_slice: config.filter.clear_on_slice.into(),
            call_contexts: config.filter.contexts.into(),
            fetches: config.filter.fetches.into(),
            ordered_stores: config.filter.ordered_stores.into(),
            by_task: config.filter.by_task.into(),
            every_access: config.filter.every_access.into(),
            managed_heaps: config.managed_heaps.into(),
            branches: config.filter.branches.into(),
            nodes: config.node_bytes.len() as u32,
            ..bytemuck::Zeroable::zeroed()
        };
        let first = config.filter.first_level.unwrap_or_default();
        let words = |of: Option<Associativity>| of.map_or((0, 0), |of| (of.ways, of.tree.into()));
        (head.first_level_data_ways, head.first_level_data_tree) = words(first.data);
        (head.first_level_fetch_ways, head.first_level_fetch_tree) = words(first.fetch);
        head.first_level_misses_only = first.misses_only.into();
        (head.from_kind, head.from_value, head.until_mark, head.for_instructions) = config.window.words();
        head.node_bytes[..config.node_bytes.len()].copy_from_slice(&config.node_bytes);
        for (cpu, offset) in head.perf_pages_offset.iter_mut().take(config.cpus as usize).enumerate() {
            *offset = pages_offset + (cpu * PERF_PAGES * 8) as u64;
        }
        let ring = Ring { file, map, head, consumed: 0 };
        ring.write_head(&head);
        Ok(ring)
    }

    /// The memory file, to hand to QEMU.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn write_head(&self, head: &ControlPage) {
        // Only the part that is ours: everything before `published`.
        let ours = std::mem::offset_of!(ControlPage, published);
        // SAFETY: the mapping is at least a page, and until `facts_ready` is set below no other code reads these bytes.
        unsafe { std::ptr::copy_nonoverlapping(bytemuck::bytes_of(head).as_ptr(), self.map.as_mut_ptr(), ours) };
    }

    /// Gives the plugin the facts that it needs about the kernel. Before the window opens.
    pub fn set_facts(&mut self, facts: &PluginFacts) {
        let head = &mut self.head;
        [head.task_pid_offset, head.task_tgid_offset, head.task_comm_offset, head.task_mm_offset] = facts.task_offsets;
        head.direct_map_base = facts.direct_map_base;
        head.timer_entry_vaddr = facts.timer_entry;
        (head.irq_text_start, head.irq_text_end) = facts.irq_text;
        head.clearing = facts.clearing;
        for (slot, address) in head.current_task_paddr.iter_mut().zip(&facts.current_task) {
            *slot = *address;
        }
        for (cpu, (data_head, pages)) in facts.perf_rings.iter().enumerate().take(head.vcpus as usize) {
            let pages = &pages[..pages.len().min(PERF_PAGES)];
            head.perf_head_paddr[cpu] = *data_head;
            head.perf_ring_bytes = pages.len() as u64 * PAGE;
            let at = head.perf_pages_offset[cpu] as usize;
            // SAFETY: the list lies inside the mapping (see `create`) and the plugin reads it after `facts_ready`.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    pages.as_ptr().cast::<u8>(),
                    self.map.as_mut_ptr().add(at),
                    pages.len() * 8,
                );
            }
        }
        head.facts_ready = 0;
        let head = self.head;
        self.write_head(&head);
        self.head.facts_ready = 1;
        let ready = self.word(std::mem::offset_of!(ControlPage, facts_ready));
        ready.store(1, Ordering::Release);
        // SAFETY: the word lives in the mapping; waking touches nothing else.
        unsafe { libc::syscall(libc::SYS_futex, ready.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
        self.await_attention();
    }

    /// Until the plugin sees triggers: one that was executed before would be missed.
    fn await_attention(&self) {
        const LONGEST: Duration = Duration::from_secs(10);
        let begun = Instant::now();
        while self.state() == abi::State::Booting && begun.elapsed() < LONGEST {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: inside the first page, aligned to 4 by the layout, alive as long as the mapping.
        unsafe { AtomicU32::from_ptr(self.map.as_mut_ptr().add(offset).cast()) }
    }

    fn long(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: inside the first page, aligned to 8 by the layout, alive as long as the mapping.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().add(offset).cast()) }
    }

    /// The next chunk, waiting at most `patience` for one. Errors: the plugin sent what its contract does not have.
    pub fn next(&mut self, patience: Duration) -> Result<Next<'_>, String> {
        let published = self.long(std::mem::offset_of!(ControlPage, published));
        if published.load(Ordering::Acquire) == self.consumed {
            self.sleep(patience);
            if published.load(Ordering::Acquire) == self.consumed {
                return Ok(Next::Nothing);
            }
        }
        let slot = self.consumed % u64::from(CHUNK_COUNT);
        let at = (self.head.chunks_offset + slot * u64::from(CHUNK_BYTES)) as usize;
        // SAFETY: the slot lies inside the mapping; the plugin wrote it before `published` and leaves it alone until
        // `consumed` passes it; the header is plain data and aligned to 64 bytes.
        let header = unsafe { &*self.map.as_ptr().add(at).cast::<ChunkHeader>() };
        let count = header.records as usize;
        if count > (CHUNK_BYTES as usize - size_of::<ChunkHeader>()) / size_of::<Record>() {
            return Err(format!("the tap sent a chunk of {count} records, which none can hold"));
        }
        // SAFETY: as above, and `count` was checked against the chunk's size.
        let records = unsafe {
            std::slice::from_raw_parts(self.map.as_ptr().add(at + size_of::<ChunkHeader>()).cast::<Record>(), count)
        };
        Ok(Next::Chunk(header, records))
    }

    fn sleep(&self, patience: Duration) {
        // A chunk takes the guest a fraction of a millisecond, and a wake costs it a tenth of that: look now and then
        // for a while before requesting a wake.
        let published = self.long(std::mem::offset_of!(ControlPage, published));
        for _ in 0..NAPS {
            if published.load(Ordering::Acquire) != self.consumed {
                return;
            }
            std::thread::sleep(NAP);
        }
        self.word(std::mem::offset_of!(ControlPage, consumer_waits)).store(1, Ordering::SeqCst);
        if published.load(Ordering::SeqCst) == self.consumed {
            let timeout = libc::timespec { tv_sec: patience.as_secs() as _, tv_nsec: patience.subsec_nanos().into() };
            // SAFETY: the word lives in the mapping; a futex call only reads it.
            unsafe {
                libc::syscall(libc::SYS_futex, published.as_ptr(), libc::FUTEX_WAIT, self.consumed as u32, &timeout);
            }
        }
        self.word(std::mem::offset_of!(ControlPage, consumer_waits)).store(0, Ordering::SeqCst);
    }

    /// Gives the chunk that [`Ring::next`] returned back to the plugin.
    pub fn release(&mut self) {
        self.consumed += 1;
        let consumed = self.long(std::mem::offset_of!(ControlPage, consumed));
        consumed.store(self.consumed, Ordering::SeqCst);
        if self.word(std::mem::offset_of!(ControlPage, plugin_waits)).swap(0, Ordering::SeqCst) != 0 {
            // SAFETY: the word lives in the mapping; waking touches nothing else.
            unsafe { libc::syscall(libc::SYS_futex, consumed.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
        }
    }

    /// Requests the plugin to close the window at its next chance.
    pub fn stop(&self) {
        self.word(std::mem::offset_of!(ControlPage, stop)).store(1, Ordering::Release);
    }

    /// Pauses the recording inside the window, or goes on with it, at the plugin's next chance.
    pub fn pause(&self, pause: bool) {
        self.word(std::mem::offset_of!(ControlPage, pause)).store(pause.into(), Ordering::Release);
    }

    /// Returns whether the recording is paused.
    pub fn is_paused(&self) -> bool {
        self.word(std::mem::offset_of!(ControlPage, paused)).load(Ordering::Acquire) != 0
    }

    /// Lengths of the next part and of the next pause, for a plugin that times itself.
    pub(crate) fn set_lengths(&self, lengths: Lengths) {
        let Lengths { part_ns, pause_ns } = lengths;
        self.long(std::mem::offset_of!(ControlPage, part_ns)).store(part_ns, Ordering::Relaxed);
        self.long(std::mem::offset_of!(ControlPage, pause_ns)).store(pause_ns, Ordering::Relaxed);
    }

    /// Has calls followed in the next pause, or not.
    pub(crate) fn follow(&self, follow: bool) {
        self.word(std::mem::offset_of!(ControlPage, follow)).store(follow.into(), Ordering::Release);
    }

    /// The plugin's state, when so many records were taken.
    pub(crate) fn seen(&self, records: u64) -> Seen {
        let changes = self.word(std::mem::offset_of!(ControlPage, changes)).load(Ordering::Acquire);
        let changed_ns = self.long(std::mem::offset_of!(ControlPage, changed_ns)).load(Ordering::Acquire);
        let long = |at| self.long(at).load(Ordering::Relaxed);
        let both = |at| [long(at), long(at + size_of::<u64>())];
        let now_ns = long(std::mem::offset_of!(ControlPage, now_ns));
        let passed_ns = both(std::mem::offset_of!(ControlPage, passed_ns));
        let cleared = both(std::mem::offset_of!(ControlPage, cleared));
        Seen { records, is_paused: self.is_paused(), changes, changed_ns, now_ns, passed_ns, cleared }
    }

    /// Requests the plugin to open the window at its next chance.
    pub fn start(&self) {
        self.word(std::mem::offset_of!(ControlPage, start)).store(1, Ordering::Release);
    }

    /// Gives the plugin the address of the function that opens the window, and the first bytes of its code.
    pub fn opens_at(&self, address: u64, code: [u8; 8]) {
        self.long(std::mem::offset_of!(ControlPage, from_code)).store(u64::from_le_bytes(code), Ordering::Release);
        self.long(std::mem::offset_of!(ControlPage, from_value)).store(address, Ordering::Release);
    }

    /// Gives the plugin one more function that gives out memory, the `number`th: its address, and the first bytes of its
    /// code. Beyond [`abi::ALLOCATORS`] there is no room.
    pub fn allocates_at(&self, number: usize, address: u64, code: [u8; 8]) {
        if number < abi::ALLOCATORS {
            let at = std::mem::offset_of!(ControlPage, allocators) + number * size_of::<[u64; 2]>();
            self.long(at + size_of::<u64>()).store(u64::from_le_bytes(code), Ordering::Release);
            self.long(at).store(address, Ordering::Release);
        }
    }

    /// Returns whether the window ever opened.
    pub fn opened(&self) -> bool {
        self.word(std::mem::offset_of!(ControlPage, opened)).load(Ordering::Acquire) != 0
    }

    /// The processes that executed the triggers BEGIN and END; 0 where none did.
    pub fn moved_by(&self) -> (u32, u32) {
        let word = |offset| self.word(offset).load(Ordering::Acquire);
        (word(std::mem::offset_of!(ControlPage, opened_by)), word(std::mem::offset_of!(ControlPage, closed_by)))
    }

    /// Returns the plugin's state.
    pub fn state(&self) -> abi::State {
        match self.word(std::mem::offset_of!(ControlPage, state)).load(Ordering::Acquire) {
            0 => abi::State::Booting,
            1 => abi::State::Recording,
            2 => abi::State::Closed,
            4 => abi::State::Attentive,
            _ => abi::State::Failed,
        }
    }

    /// Returns why the plugin gave up, if it did.
    pub fn error(&self) -> String {
        let page = self.page();
        let end = page.error.iter().position(|b| *b == 0).unwrap_or(page.error.len());
        String::from_utf8_lossy(&page.error[..end]).into_owned()
    }

    fn page(&self) -> ControlPage {
        // SAFETY: the first page holds a ControlPage, plain data; a torn counter of a running plugin does no harm.
        unsafe { std::ptr::read_volatile(self.map.as_ptr().cast()) }
    }

    /// The tables beside the stream, complete once the window is closed; and by context, the address that its call
    /// stored the return address at, the first time.
    pub fn side_tables(&self) -> (SideTables, Vec<u64>) {
        let page = self.page();
        let (insns, contexts) = (page.insns.min(INSN_CAPACITY), page.ctxs.min(CTX_CAPACITY));
        // SAFETY: both tables lie inside the mapping, are plain data, and their lengths were bounded by their capacity.
        let (insns, contexts) = unsafe {
            let base = self.map.as_ptr();
            (
                std::slice::from_raw_parts(base.add(self.head.insns_offset as usize).cast::<Insn>(), insns as usize),
                std::slice::from_raw_parts(
                    base.add(self.head.ctxs_offset as usize).cast::<PlacedContext>(),
                    contexts as usize,
                ),
            )
        };
        let side = SideTables {
            insns: insns.to_vec(),
            contexts: contexts.iter().map(|placed| placed.context).collect(),
            prefetches: page.prefetches,
            io_accesses: page.io_accesses,
            lost_before_share: page.lost_before_share,
            skipped: page.skipped,
        };
        (side, contexts.iter().map(|placed| placed.slot).collect())
    }
}
