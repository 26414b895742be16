//! Follows every process's memory through the run and returns the owner of an address.

use super::blocks::BlockCache;
use super::kernel::Kernel;
use super::objects::{Key, ObjectId, Objects};
use super::spaces::{Block, Content, Found, Region, Spaces};
use nearmiss_record::maps::{Event, Mapping};
use nearmiss_record::reference::HeapOp;
use nearmiss_record::symbols::{DataSymbols, KERNEL_MODULE, KernelLayout, ModuleData, Segment, Symbols};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The variables that a run's symbols name.
#[derive(Clone, Debug, Default)]
pub struct RecordedData {
    modules: FxHashMap<String, Arc<ModuleData>>,
    layout: KernelLayout,
}

impl RecordedData {
    /// Takes them out of `symbols`.
    pub fn new(symbols: &Symbols) -> Self {
        let module = |data: &ModuleData| (data.module.clone(), Arc::new(data.clone()));
        RecordedData { modules: symbols.data.iter().map(module).collect(), layout: symbols.kernel_layout.clone() }
    }
}

impl DataSymbols for RecordedData {
    fn module(&mut self, path: &str) -> Option<Arc<ModuleData>> {
        self.modules.get(path).cloned()
    }
    fn kernel(&mut self) -> Option<Arc<ModuleData>> {
        self.module(KERNEL_MODULE)
    }
    fn layout(&mut self) -> KernelLayout {
        self.layout.clone()
    }
}

/// Call of the allocator.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeapCall {
    pub op: HeapOp,
    pub address: u64,
    pub bytes: u64,
    /// For realloc: the address before.
    pub old: u64,
    /// Requested alignment; 0: the allocator's own.
    pub alignment: u64,
}

/// First address that is not user space's.
pub(super) const USER_END: u64 = 1 << 47;

/// See the module's text.
pub(super) struct Tracker {
    pub objects: Objects,
    spaces: Spaces,
    /// From the first look on.
    kernel: Option<Kernel>,
    symbols: Box<dyn DataSymbols>,
    blocks: BlockCache,
    /// Variables already interned, by module address and index.
    variables: FxHashMap<(usize, u32), ObjectId>,
}

impl Tracker {
    pub fn new(symbols: Box<dyn DataSymbols>, max_objects: usize) -> Self {
        Tracker {
            objects: Objects::new(max_objects),
            spaces: Spaces::default(),
            kernel: None,
            symbols,
            blocks: BlockCache::default(),
            variables: FxHashMap::default(),
        }
    }

    /// A process's memory changed, in these calling contexts: of the CPU, and of its user mode.
    pub fn event(&mut self, event: &Event, contexts: (u32, u32)) {
        self.blocks.forget_all();
        match event {
            Event::Map { pid, mapping } => self.map(*pid, mapping, contexts),
            Event::Name { pid, exec: true, .. } => self.spaces.exec(*pid),
            Event::Fork { pid, parent, .. } => self.spaces.fork(*pid, *parent),
            Event::Exit { pid, tid } => self.spaces.exit(*pid, *tid),
            Event::Name { .. } | Event::Lost(_) => {}
        }
    }

    fn map(&mut self, pid: u32, mapping: &Mapping, (context, user): (u32, u32)) {
        let (start, end) = (mapping.start, mapping.end.min(USER_END));
        if start >= end {
            return;
        }
        let content = if mapping.is_file() {
            let rest = self.objects.intern(Key::File { path: mapping.path.clone() });
            let data = self.symbols.module(&mapping.path);
            match data.and_then(|data| Some((self.bias_below(pid, mapping, &data).or(bias(&data, mapping))?, data))) {
                Some((bias, data)) => Content::Module { data, bias, rest },
                None => Content::Object(rest),
            }
        } else if let Some(content) = self.zeros_of_a_module(pid, start) {
            content
        } else {
            Content::Object(match mapping.path.as_str() {
                "[heap]" => self.objects.intern(Key::Break),
                "[stack]" => self.objects.intern(Key::FirstStack),
                // Memory that processes share without a file is mapped as a deleted one of `/dev/zero`.
                "//anon" | "" | "/dev/zero (deleted)" => self.objects.intern(Key::Anonymous { context, user }),
                path => self.objects.intern(Key::File { path: path.to_owned() }),
            })
        };
        if let Content::Object(id) = content {
            self.objects.appeared(id, start, end - start);
        }
        self.spaces.space(pid).map(Region { start, end, content });
    }

    /// `mapping` could map any of the segments that share a page of the file: it maps the one that fits the bias of the
    /// same module's mapping right below.
    fn bias_below(&self, pid: u32, mapping: &Mapping, data: &ModuleData) -> Option<u64> {
        let Content::Module { data: below, bias, .. } = &self.spaces.get(pid)?.region_below(mapping.start)?.content
        else {
            return None;
        };
        let linked = mapping.start.wrapping_sub(*bias);
        let maps = |s: &&Segment| {
            let begin = s.vaddr & !0xfff;
            let inside = linked.wrapping_sub(begin);
            linked >= begin
                && linked - begin < (s.vaddr & 0xfff) + s.memory_bytes
                && (s.file_offset & !0xfff).wrapping_add(inside) == mapping.file_offset
        };
        (below.module == data.module && data.segments.iter().any(|s| maps(&s))).then_some(*bias)
    }

    /// Returns the contents of a file's zero-initialised variables: anonymous memory mapped right behind the file's.
    fn zeros_of_a_module(&self, pid: u32, start: u64) -> Option<Content> {
        let below = self.spaces.get(pid)?.region_below(start)?;
        let Content::Module { data, bias, .. } = &below.content else { return None };
        let linked = start.wrapping_sub(*bias);
        let holds = |s: &&Segment| s.vaddr < linked && linked - s.vaddr < s.memory_bytes;
        data.segments.iter().any(|s| holds(&s)).then(|| below.content.clone())
    }

    /// The allocator of process `pid` did something.
    pub fn heap(&mut self, pid: u32, context: u32, call: HeapCall) {
        let HeapCall { op, address, bytes, old, .. } = call;
        match op {
            HeapOp::Trim => {}
            HeapOp::Free => self.free(pid, address),
            HeapOp::Stack => {
                let object = self.objects.intern(Key::ThreadStack { context });
                self.objects.appeared(object, address, bytes);
                let end = address.saturating_add(bytes).min(USER_END);
                self.spaces.space(pid).map(Region { start: address, end, content: Content::Object(object) });
            }
            HeapOp::Alloc | HeapOp::Realloc => {
                if op == HeapOp::Realloc && old != 0 {
                    self.free(pid, old);
                }
                self.allocate(pid, Key::Heap { context }, call);
            }
            // Nothing reports what the runtime takes back: an object lives until another one has its place.
            HeapOp::Managed => {
                for (start, block) in self.spaces.space(pid).clear(address, bytes) {
                    self.blocks.forget(pid, start, block.bytes);
                }
                self.allocate(pid, Key::Managed { context }, call);
            }
        }
    }

    fn allocate(&mut self, pid: u32, key: Key, HeapCall { address, bytes, alignment, .. }: HeapCall) {
        if address == 0 || address >= USER_END {
            return;
        }
        let object = self.objects.intern(key);
        self.objects.appeared(object, address, bytes);
        self.objects.aligned(object, alignment);
        self.spaces.space(pid).allocate(address, Block { bytes, object });
        self.blocks.forget(pid, address, bytes);
    }

    fn free(&mut self, pid: u32, address: u64) {
        if let Some(block) = self.spaces.space(pid).free(address) {
            self.blocks.forget(pid, address, block.bytes);
        }
    }

    /// From where to where the object that holds a user address reaches: the address alone where none is known.
    pub fn extent(&self, pid: u32, address: u64) -> (u64, u64) {
        match self.spaces.get(pid).map_or(Found::Nothing, |space| space.find(address)) {
            Found::Block(start, block) => (start, start + block.bytes),
            Found::Region(Region { content: Content::Object(_), start, end }) => (*start, *end),
            Found::Region(Region { content: Content::Module { data, bias, .. }, start, end }) => {
                match data.object_at(address.wrapping_sub(*bias)).map(|index| &data.objects[index]) {
                    Some(o) => (o.vaddr.wrapping_add(*bias), o.vaddr.wrapping_add(*bias).saturating_add(o.bytes)),
                    None => (*start, *end),
                }
            }
            Found::FirstStack | Found::Nothing => (address, address + 1),
        }
    }

    /// The object at `address`, in physical page number `page`, for a task of process `pid`; and where it begins.
    pub fn find(&mut self, pid: u32, address: u64, page: u64) -> (ObjectId, u64) {
        if address >= USER_END {
            let symbols = &mut self.symbols;
            // Looked up late: while a guest boots, its layout is not known.
            let new = || Kernel::new(symbols.layout(), symbols.kernel().unwrap_or_default());
            return self.kernel.get_or_insert_with(new).find(&mut self.objects, address, page);
        }
        if let Some((start, block)) = self.blocks.get(pid, address) {
            return (block.object, start);
        }
        let Some(space) = self.spaces.get(pid) else { return (Objects::UNKNOWN, address) };
        match space.find(address) {
            Found::Block(start, block) => {
                self.blocks.put(pid, address, start, block);
                (block.object, start)
            }
            Found::FirstStack => (self.objects.intern(Key::FirstStack), address & !0xfff),
            Found::Nothing => (Objects::UNKNOWN, address),
            Found::Region(Region { content: Content::Object(id), start, .. }) => (*id, *start),
            Found::Region(Region { content: Content::Module { data, bias, rest }, start, .. }) => {
                let Some(index) = data.object_at(address.wrapping_sub(*bias)) else { return (*rest, *start) };
                let (variable, begin) = (&data.objects[index], data.objects[index].vaddr.wrapping_add(*bias));
                let slot = (Arc::as_ptr(data) as usize, index as u32);
                let id = *self.variables.entry(slot).or_insert_with(|| {
                    let key = Key::Global { module: data.module.clone(), index: index as u32 };
                    let id = self.objects.intern(key);
                    self.objects.appeared(id, begin, variable.bytes);
                    id
                });
                (id, begin)
            }
        }
    }
}

/// Returns the loader's addition to the addresses of `data` when it made `mapping`.
fn bias(data: &ModuleData, mapping: &Mapping) -> Option<u64> {
    let page = |offset: u64| offset & !0xfff;
    // Two segments may share a page of the file; the one that begins there is the one mapped from there.
    let begins = data.segments.iter().find(|s| page(s.file_offset) == mapping.file_offset);
    let segment = begins.or_else(|| {
        let end = |s: &Segment| s.file_offset.saturating_add(s.file_bytes.max(1));
        data.segments.iter().find(|s| (page(s.file_offset)..end(s)).contains(&mapping.file_offset))
    })?;
    let linked = segment.vaddr.wrapping_sub(segment.file_offset).wrapping_add(mapping.file_offset);
    Some(mapping.start.wrapping_sub(linked))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearmiss_record::symbols::DataObject;

    struct OneModule;

    impl DataSymbols for OneModule {
        fn module(&mut self, path: &str) -> Option<Arc<ModuleData>> {
            let object = |name: &str, vaddr, bytes| DataObject { name: name.into(), vaddr, bytes };
            (path == "/bin/prog").then(|| {
                Arc::new(ModuleData {
                    module: path.into(),
                    build_id: None,
                    segments: vec![
                        Segment { file_offset: 0, vaddr: 0, file_bytes: 0x1500, memory_bytes: 0x1500 },
                        Segment { file_offset: 0x1d00, vaddr: 0x3d00, file_bytes: 0x300, memory_bytes: 0x5300 },
                    ],
                    objects: vec![object("table", 0x3e00, 0x40), object("zeros", 0x5000, 0x3000)],
                })
            })
        }
        fn kernel(&mut self) -> Option<Arc<ModuleData>> {
            None
        }
        fn layout(&mut self) -> KernelLayout {
            KernelLayout::default()
        }
    }

    fn tracker() -> Tracker {
        let mut tracker = Tracker::new(Box::new(OneModule), 1000);
        let mut map = |start: u64, bytes: u64, file_offset, path: &str| {
            let mapping = Mapping { start, end: start + bytes, file_offset, executable: false, path: path.into() };
            tracker.event(&Event::Map { pid: 5, mapping }, (9, 2));
        };
        map(0x5000_0000, 0x2000, 0, "/bin/prog");
        map(0x5000_3000, 0x1000, 0x1000, "/bin/prog");
        map(0x5000_4000, 0x5000, 0, "//anon");
        map(0x7000_0000, 0x4000, 0, "//anon");
        map(0x6000_0000, 0x9000, 0, "[heap]");
        tracker
    }

    #[test]
    fn a_page_of_the_file_that_two_segments_share_is_the_segment_that_fits_below() {
        struct Shared;
        impl DataSymbols for Shared {
            fn module(&mut self, path: &str) -> Option<Arc<ModuleData>> {
                let segment =
                    |file_offset, vaddr, bytes| Segment { file_offset, vaddr, file_bytes: bytes, memory_bytes: bytes };
                Some(Arc::new(ModuleData {
                    module: path.into(),
                    build_id: None,
                    segments: vec![
                        segment(0, 0, 0x900),
                        segment(0x2000, 0x2000, 0x300),
                        segment(0x2dd0, 0x3dd0, 0x530),
                    ],
                    objects: vec![DataObject { name: "counters".into(), vaddr: 0x4200, bytes: 0x100 }],
                }))
            }
            fn kernel(&mut self) -> Option<Arc<ModuleData>> {
                None
            }
            fn layout(&mut self) -> KernelLayout {
                KernelLayout::default()
            }
        }
        let mut tracker = Tracker::new(Box::new(Shared), 1000);
        for (at, bytes, file_offset) in [(0, 0x1000, 0), (0x2000, 0x1000, 0x2000), (0x3000, 0x2000, 0x2000)] {
            let (start, path) = (0x5000_0000 + at, "/bin/prog".into());
            let mapping = Mapping { start, end: start + bytes, file_offset, executable: false, path };
            tracker.event(&Event::Map { pid: 5, mapping }, (9, 2));
        }
        let (key, start) = key(&mut tracker, 0x5000_4210);
        assert_eq!((key, start), (Key::Global { module: "/bin/prog".into(), index: 0 }, 0x5000_4200));
    }

    fn heap(tracker: &mut Tracker, op: HeapOp, address: u64, bytes: u64, old: u64, context: u32) {
        tracker.heap(5, context, HeapCall { op, address, bytes, old, alignment: 0 });
    }

    fn key(tracker: &mut Tracker, address: u64) -> (Key, u64) {
        let (id, start) = tracker.find(5, address, 0);
        (tracker.objects.rows[id.0 as usize].key.clone(), start)
    }

    #[test]
    fn variables_are_found_in_the_file_and_behind_it() {
        let mut tracker = tracker();
        let variable = |index| Key::Global { module: "/bin/prog".into(), index };
        assert_eq!(key(&mut tracker, 0x5000_3e3f), (variable(0), 0x5000_3e00));
        assert_eq!(key(&mut tracker, 0x5000_3e40).0, Key::File { path: "/bin/prog".into() });
        assert_eq!(key(&mut tracker, 0x5000_7fff), (variable(1), 0x5000_5000));
        assert_eq!(key(&mut tracker, 0x7000_0010).0, Key::Anonymous { context: 9, user: 2 });
    }

    #[test]
    fn memory_that_processes_share_without_a_file_is_its_callers() {
        let mut tracker = tracker();
        let (start, path) = (0x7100_0000, "/dev/zero (deleted)".to_owned());
        let mapping = Mapping { start, end: start + 0x1000, file_offset: 0, executable: false, path };
        tracker.event(&Event::Map { pid: 5, mapping }, (7, 2));
        assert_eq!(key(&mut tracker, 0x7100_0040).0, Key::Anonymous { context: 7, user: 2 });
    }

    #[test]
    fn blocks_live_from_malloc_to_free() {
        let mut tracker = tracker();
        heap(&mut tracker, HeapOp::Alloc, 0x6000_0100, 0x40, 0, 3);
        heap(&mut tracker, HeapOp::Alloc, 0x6000_0200, 0x40, 0, 3);
        assert_eq!(key(&mut tracker, 0x6000_013f), (Key::Heap { context: 3 }, 0x6000_0100));
        assert_eq!(key(&mut tracker, 0x6000_0140).0, Key::Break);
        heap(&mut tracker, HeapOp::Realloc, 0x6000_0300, 0x80, 0x6000_0100, 4);
        assert_eq!(key(&mut tracker, 0x6000_013f).0, Key::Break);
        assert_eq!(key(&mut tracker, 0x6000_037f).0, Key::Heap { context: 4 });
        heap(&mut tracker, HeapOp::Free, 0x6000_0300, 0, 0, 4);
        assert_eq!(key(&mut tracker, 0x6000_037f).0, Key::Break);
        let block = tracker.find(5, 0x6000_0210, 0).0;
        let row = &tracker.objects.rows[block.0 as usize];
        assert_eq!((row.count, row.bytes, row.sizes_differ, row.addresses), (2, 0x40, false, 0x6000_0300));
        heap(&mut tracker, HeapOp::Stack, 0x7000_1000, 0x1000, 0, 8);
        assert_eq!(key(&mut tracker, 0x7000_1ff8).0, Key::ThreadStack { context: 8 });
        assert_eq!(key(&mut tracker, 0x7000_2000).0, Key::Anonymous { context: 9, user: 2 });
    }

    #[test]
    fn managed_objects_live_until_others_have_their_places() {
        let mut tracker = tracker();
        let managed = |context| Key::Managed { context };
        heap(&mut tracker, HeapOp::Managed, 0x7000_0100, 0x100, 0, 3);
        heap(&mut tracker, HeapOp::Managed, 0x7000_0200, 0x40, 0, 4);
        assert_eq!(key(&mut tracker, 0x7000_01c0), (managed(3), 0x7000_0100));
        heap(&mut tracker, HeapOp::Managed, 0x7000_0180, 0x100, 0, 5);
        assert_eq!(key(&mut tracker, 0x7000_0200), (managed(5), 0x7000_0180));
        // The rest of an object that lost a part is nobody's.
        assert_eq!(key(&mut tracker, 0x7000_0100).0, Key::Anonymous { context: 9, user: 2 });
        assert_eq!(key(&mut tracker, 0x7000_0280).0, Key::Anonymous { context: 9, user: 2 });
    }

    /// Looks up every address after every step, so that a stale entry shows.
    #[test]
    fn lookups_follow_every_allocation() {
        let (mut tracker, mut live) = (tracker(), std::collections::BTreeMap::new());
        let mut random = 1u64;
        for step in 0..400u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (address, bytes) = (0x6000_0000 + (random >> 40) % 64 * 48, 16 + (random >> 50) % 32);
            if live.remove(&address).is_some() {
                heap(&mut tracker, HeapOp::Free, address, 0, 0, 0);
            } else {
                heap(&mut tracker, HeapOp::Alloc, address, bytes, 0, step as u32 + 1);
                live.insert(address, (bytes, step as u32 + 1));
            }
            for at in (0x6000_0000..0x6000_0000 + 64 * 48).step_by(8) {
                let block = live.range(..=at).next_back().filter(|(start, (bytes, _))| at - **start < *bytes);
                let expected = block.map_or(Key::Break, |(_, (_, context))| Key::Heap { context: *context });
                assert_eq!(key(&mut tracker, at).0, expected, "step {step}, {at:#x}");
            }
        }
    }

    #[test]
    fn an_executed_program_forgets_the_old_one() {
        let mut tracker = tracker();
        tracker.event(&Event::Name { pid: 5, tid: 5, exec: true, name: "x".into() }, (0, 0));
        assert_eq!(key(&mut tracker, 0x7000_0010).0, Key::Unknown);
        assert_eq!(key(&mut tracker, 0x7ffe_0000_0000).0, Key::FirstStack);
    }
}
