//! Traces made record by record: a process that maps, allocates, touches and frees memory.
#![allow(clippy::unwrap_used)]

use nearmiss_analysis::{Case, Traced};
use nearmiss_machine::describe::{cut, preset};
use nearmiss_record::abi::ChunkHeader;
use nearmiss_record::machine::{Core, Machine, SecondTlb, Tlb};
use nearmiss_record::policy::Order;
use nearmiss_record::reference::{ControlKind, FLAG_KERNEL, HeapOp, Kind, Record};
use nearmiss_record::run::{Filter, MANIFEST, RunDir, SYMBOLS, TRACE};
use nearmiss_record::side::{Context, Insn, SideTables};
use nearmiss_record::symbols::{Function, PAGE_FAULT, SCHEMA, Symbols};
use nearmiss_record::trace::{self, TraceHeader, TraceWriter};
use nearmiss_record::units::InsnId;
use std::path::Path;

pub const BASE: u64 = 0x7f00_0000_0000;
const DIRECT_MAP: u64 = 0xffff_8880_0000_0000;
const PROCESS: u64 = 100;
pub const PAGE: u64 = 4096;
pub const LARGE: u64 = 2 << 20;
/// Small pages in a large one.
pub const SMALL: u64 = 512;
const LOADS: u32 = 1;
const CLEARS: u32 = 2;
/// Calling context of a page fault that gives a page.
const FAULTS: u64 = 2;

/// A core that hides little, and translation of 16 pages behind 64.
pub fn machine() -> Machine {
    let mut machine = cut(&preset("zen4-genoa").unwrap().machine().unwrap(), 1);
    let second =
        Some(SecondTlb { entries: 64, ways: 16, walk_cycles: 60, large_walk_cycles: 50, ..SecondTlb::default() });
    machine.tlb = Some(Tlb { entries: 16, miss_cycles: 7, large_entries: 16, second, ..Tlb::default() });
    machine.core = Some(Core {
        window_instructions: 16,
        fill_buffers: 4,
        store_buffer: 20,
        width: 4,
        forwarding_cycles: 5,
        mispredict_cycles: 15,
        fetch_ahead_instructions: 0,
        crowded_store_cycles: 0,
        crowded_addition_cycles: 0,
        crowded_beside_cycles: None,
        crowded_half_lines: None,
        second_level: None,
        contended_store_cycles: [0, 0],
        fill_cycles: 0.0,
        contended: None,
        atomics_ahead: false,
        reread_cycles: None,
    });
    machine
}

/// Records of a process on one CPU.
#[derive(Default)]
pub struct Script(Vec<Record>);

impl Script {
    /// The process runs, and is the command.
    pub fn begin() -> Self {
        let mut script = Script::default();
        script.control(Record::control(ControlKind::Switch, 0x1000, 0, PROCESS | PROCESS << 32), 6);
        script.control(Record::control(ControlKind::Mark, 1, 0, 0), 4);
        script
    }

    fn control(&mut self, record: Record, records: usize) {
        self.0.push(record);
        self.0.resize(self.0.len() + records - 1, Record::default());
    }

    /// The process maps so many bytes from this address on: a `PERF_RECORD_MMAP2` of `perf_event_open(2)`.
    pub fn maps(mut self, start: u64, bytes: u64, path: &str) -> Self {
        let mut body: Vec<u8> = [PROCESS as u32; 2].into_iter().flat_map(u32::to_le_bytes).collect();
        body.extend([start, bytes, 0, 0, 0, 0].into_iter().flat_map(u64::to_le_bytes));
        body.extend([3u32, 2].into_iter().flat_map(u32::to_le_bytes));
        body.extend(path.as_bytes());
        body.resize(body.len().next_multiple_of(8) + 8, 0);
        let mut event: Vec<u8> = 10u32.to_le_bytes().into_iter().chain(2u16.to_le_bytes()).collect();
        event.extend((8 + body.len() as u16).to_le_bytes());
        event.extend(body);
        self.0.push(Record::control(ControlKind::Maps, 0, 0, event.len() as u64));
        event.resize(event.len().next_multiple_of(16), 0);
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
        self.0.extend(event.chunks(16).map(|pair| Record { a: word(&pair[..8]), b: word(&pair[8..]) }));
        self
    }

    /// A load from each page, each from another line of its page; `frame`: where a page lies.
    pub fn reads(mut self, pages: std::ops::Range<u64>, frame: fn(u64) -> u64) -> Self {
        let load = |page: u64| {
            let vaddr = BASE + page * PAGE + page % 64 * 64;
            Record::reference(Kind::Load, vaddr, 8, 0, InsnId(LOADS), frame(page), 4)
        };
        self.0.extend(pages.map(load));
        self
    }

    /// The allocator gives out so many pages from this one on.
    pub fn allocates(self, pages: std::ops::Range<u64>) -> Self {
        self.heap(HeapOp::Alloc, BASE + pages.start * PAGE, (pages.end - pages.start) * PAGE)
    }

    /// The allocator gives out a line of each of these pages, the one that is referenced.
    pub fn allocates_lines(self, pages: std::ops::Range<u64>) -> Self {
        pages.fold(self, |script, page| script.heap(HeapOp::Alloc, BASE + page * PAGE + page % 64 * 64, 64))
    }

    /// The allocator takes a block back.
    pub fn frees(self, page: u64) -> Self {
        self.heap(HeapOp::Free, BASE + page * PAGE, 0)
    }

    fn heap(mut self, op: HeapOp, address: u64, bytes: u64) -> Self {
        self.0.push(Record::control(ControlKind::Heap, op as u64, 0, 0));
        self.0.extend([Record { a: address, b: bytes }, Record::default()]);
        self
    }

    /// The kernel clears a page, and the program reads it.
    pub fn first_touches(mut self, pages: std::ops::Range<u64>) -> Self {
        for page in pages {
            let (frame, flags) = (scattered(page), FLAG_KERNEL);
            let at = DIRECT_MAP + frame * PAGE;
            self.0.push(Record::reference(Kind::Store, at, 8, flags, InsnId(CLEARS), frame, 4));
            self = self.reads(page..page + 1, scattered);
        }
        self
    }

    /// First touches in a page fault's calling context.
    pub fn faults(mut self, pages: std::ops::Range<u64>) -> Self {
        for page in pages {
            self.0.push(in_context(FAULTS));
            self = self.first_touches(page..page + 1);
            // Context of the program again: before the load.
            let load = self.0.pop().unwrap();
            self.0.extend([in_context(0), load]);
        }
        self
    }

    /// The instructions: all stores of a page but the first hit, and the filter dropped them.
    fn instructions(&self) -> Vec<Insn> {
        let pages = self.0.iter().filter(|record| **record == in_context(FAULTS)).count() as u64;
        let mut insns = vec![Insn::default(); 5];
        insns[CLEARS as usize].store_hits = pages * (PAGE / 8 - 1);
        insns
    }

    pub fn case(&self, place: &Path) -> Case {
        Case::from(self.traced_on(&machine(), place))
    }

    /// The run, modelled on a machine.
    pub fn traced_on(&self, machine: &Machine, place: &Path) -> Traced {
        let run = RunDir::create(place, "run").unwrap();
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/fixtures/healthy").join(MANIFEST);
        std::fs::copy(fixture, run.file(MANIFEST)).unwrap();
        run.write_json(SYMBOLS, &symbols()).unwrap();
        let filter = Filter { line_log2: 6, fetches: true, heap: true, ..Filter::default() };
        let header = TraceHeader {
            schema: trace::SCHEMA.to_owned(),
            cpus: 1,
            filter,
            node_bytes: vec![1 << 30],
            ..TraceHeader::default()
        };
        let mut writer = TraceWriter::create(&run.file(TRACE), &header).unwrap();
        let head = ChunkHeader { records: self.0.len() as u32, ..ChunkHeader::default() };
        writer.chunk(&head, &self.0).unwrap();
        let contexts = [(0, 0), (0, 3), (1, 4)].map(|(parent, call)| Context { parent, call }).to_vec();
        writer.finish(&SideTables { insns: self.instructions(), contexts, ..SideTables::default() }).unwrap();
        Traced::open(&run, Some(machine), Some(Order::Recorded), &|_, _| ()).unwrap()
    }
}

/// The third instruction clears pages, the others of the kernel lead to it.
fn symbols() -> Symbols {
    let kernel = |name: &str| Function { name: name.into(), kernel: true, ..Function::default() };
    let functions =
        vec![Function::default(), kernel("clear_page_rep"), kernel(PAGE_FAULT), kernel("do_anonymous_page")];
    let insns = vec![(0, 0, 0), (0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0)];
    Symbols { schema: SCHEMA.to_owned(), functions, insns, ..Symbols::default() }
}

/// The calls that lead to the next references.
fn in_context(context: u64) -> Record {
    Record::control(ControlKind::Context, context, 0, 0)
}

/// Frames in which no block of pages lies in order.
pub fn scattered(page: u64) -> u64 {
    page * 3 + 1
}
