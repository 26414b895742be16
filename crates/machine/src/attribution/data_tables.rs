//! The table by data: objects.

use super::Attribution;
use super::charged::Cycles;
use super::distances;
use super::names::{Names, UNATTRIBUTED};
use super::objects::{Key, Object, ObjectId};
use super::pages::PageSet;
use super::stack_variables::{self, StackVariables};
use nearmiss_record::model::{LevelTally, ObjectKind, ObjectRow, Tally};
use nearmiss_record::side::INSN_CALL;
use nearmiss_record::symbols::{KERNEL_MODULE, ModuleData, PageUse, StackVariable, Symbols};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Name of the memory that the kernel zeroes, copies and reads for processes.
const USER_PAGES: &str = "user pages, by the kernel";

/// Name of the first threads' stacks, apart from variables there.
const FIRST_STACK: &str = "stack of the first thread";

/// Title of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Title {
    pub kind: ObjectKind,
    pub name: String,
    pub allocated_at: Vec<String>,
}

pub(super) struct Namer<'a> {
    names: &'a Names<'a>,
    modules: FxHashMap<&'a str, &'a ModuleData>,
    user_pages: &'a PageSet,
    /// 16 KiB areas that calls stored to.
    stacks: FxHashSet<u64>,
    variables: StackVariables<'a>,
}

impl<'a> Namer<'a> {
    /// `user_pages`: those that user mode missed on.
    pub fn new(objects: &[Object], user_pages: &'a PageSet, names: &'a Names<'a>) -> Self {
        let symbols: &'a Symbols = names.symbols;
        let is_call = |id: &u32| names.insns.get(*id as usize).is_some_and(|i| i.flags & INSN_CALL != 0);
        let stack = |object: &Object| match object.key {
            Key::KernelArea { area } => object.insns.iter().any(is_call).then_some(area),
            _ => None,
        };
        Namer {
            names,
            user_pages,
            modules: symbols.data.iter().map(|m| (m.module.as_str(), m)).collect(),
            stacks: objects.iter().filter_map(stack).collect(),
            variables: StackVariables::new(objects, names),
        }
    }

    pub fn title(&self, key: &Key) -> Title {
        let title = |kind, name: String| Title { kind, name, allocated_at: Vec::new() };
        match key {
            Key::Unknown => title(ObjectKind::Unattributed, UNATTRIBUTED.to_owned()),
            Key::Heap { context } => self.allocated(ObjectKind::Heap, *context, "heap block"),
            Key::Managed { context } => self.allocated(ObjectKind::Managed, *context, "managed object"),
            Key::Break => title(ObjectKind::Heap, "heap outside known blocks".into()),
            Key::Anonymous { context, user } => {
                let in_kernel = self.names.allocation_calls(*context).is_empty();
                let context = if in_kernel { *user } else { *context };
                self.allocated(ObjectKind::Anonymous, context, "anonymous mapping")
            }
            Key::File { path } => title(ObjectKind::File, path.clone()),
            Key::Global { module, index } => self.global(module, *index),
            Key::FirstStack => title(ObjectKind::Stack, FIRST_STACK.into()),
            Key::StackPiece { address } => Self::on_first_stack(self.variables.of_piece(*address)),
            Key::ThreadStack { context } => self.allocated(ObjectKind::Stack, *context, "thread stack"),
            Key::KernelPage { page } => match self.names.symbols.kernel_pages.page(*page) {
                Some(PageUse::Slab { cache, .. }) => title(ObjectKind::Slab, cache.clone()),
                Some(PageUse::PageCache) => title(ObjectKind::PageCache, "page cache".into()),
                Some(PageUse::PageTable) => title(ObjectKind::PageTable, "page tables".into()),
                Some(PageUse::KernelStack) => title(ObjectKind::KernelStack, "kernel stacks".into()),
                // Freed by the window's end, most likely, but seen in use.
                Some(PageUse::User) => title(ObjectKind::KernelOther, USER_PAGES.into()),
                Some(PageUse::Other) | None if self.user_pages.contains(*page) => {
                    title(ObjectKind::KernelOther, USER_PAGES.into())
                }
                Some(PageUse::Other) | None => title(ObjectKind::KernelOther, "kernel pages".into()),
            },
            Key::KernelArea { area } if self.stacks.contains(area) => {
                title(ObjectKind::KernelStack, "kernel stacks".into())
            }
            Key::KernelArea { .. } => title(ObjectKind::KernelOther, "vmalloc".into()),
            Key::KernelPart { name } => title(ObjectKind::KernelData, (*name).to_owned()),
        }
    }

    /// Title of a variable on a first thread's stack, or of the rest of that stack.
    pub fn on_first_stack(variable: Option<&StackVariable>) -> Title {
        let name = variable.map_or_else(|| FIRST_STACK.to_owned(), stack_variables::name);
        Title { kind: ObjectKind::Stack, name, allocated_at: Vec::new() }
    }

    /// The variable on a first thread's stack that holds the byte at this address.
    pub fn stack_variable(&self, address: u64) -> Option<&'a StackVariable> {
        self.variables.of_byte(address)
    }

    /// The variable on a first thread's stack with nearly all of these misses, given by their addresses.
    pub fn stack_variable_of_most(&self, misses: impl Iterator<Item = (u64, u64)>) -> Option<&'a StackVariable> {
        self.variables.of_most(misses)
    }

    /// The variable that an object is a piece of.
    pub fn variable_of(&self, key: &Key) -> Option<&'a StackVariable> {
        match key {
            Key::StackPiece { address } => self.variables.of_piece(*address),
            _ => None,
        }
    }

    fn allocated(&self, kind: ObjectKind, context: u32, plain: &str) -> Title {
        let calls = self.names.allocation_calls(context);
        let frames = calls.iter().map(|call| self.names.function_name(self.names.function(*call)).to_owned());
        let name = match (calls.last(), kind) {
            (None, _) => plain.to_owned(),
            (Some(call), ObjectKind::Heap | ObjectKind::Managed) => self.names.site(*call),
            (Some(call), _) => format!("{plain} from {}", self.names.site(*call)),
        };
        Title { kind, name, allocated_at: frames.collect() }
    }

    fn global(&self, module: &str, index: u32) -> Title {
        let kind = if module == KERNEL_MODULE { ObjectKind::KernelData } else { ObjectKind::Global };
        let object = self.modules.get(module).and_then(|m| m.objects.get(index as usize));
        let name = object.map_or_else(|| format!("variable of {module}"), |o| o.name.clone());
        Title { kind, name, allocated_at: Vec::new() }
    }

    /// Bytes of one object, where the row's own sizes do not contain it.
    fn bytes(&self, key: &Key) -> Option<u64> {
        match key {
            Key::KernelPage { page } => match self.names.symbols.kernel_pages.page(*page) {
                Some(PageUse::Slab { object_bytes, .. }) if *object_bytes > 0 => Some(u64::from(*object_bytes)),
                _ => None,
            },
            Key::StackPiece { .. } => self.variable_of(key).map(|variable| variable.bytes),
            Key::Global { module, index } => {
                Some(self.modules.get(module.as_str())?.objects.get(*index as usize)?.bytes)
            }
            _ => None,
        }
    }
}

/// Rows under one title.
struct Sum {
    tally: Tally,
    count: u64,
    bytes: Option<u64>,
    sizes_differ: bool,
    addresses: u64,
    /// References of [`distances::Distances::of`].
    distances: Vec<u64>,
}

impl Sum {
    fn add_distances(&mut self, counts: &[u64]) {
        self.distances.resize(self.distances.len().max(counts.len()), 0);
        self.distances.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
}

/// One row an object, most stall cycles first; code's own row and the unattributed one last. References count where
/// they missed the first level or caused traffic; the others are in the unattributed row, as are instructions.
pub(super) fn objects(attribution: &Attribution, names: &Names<'_>, totals: &Tally, cycles: &Cycles) -> Vec<ObjectRow> {
    let levels = attribution.options.levels;
    let empty = || Tally { levels: vec![LevelTally::default(); levels], ..Tally::default() };
    let namer = Namer::new(&attribution.tracker.objects.rows, &attribution.user_pages, names);
    let mut sums: BTreeMap<Title, Sum> = BTreeMap::new();
    for (id, object) in (0..).map(ObjectId).zip(&attribution.tracker.objects.rows) {
        if object.references == Default::default() && object.misses == Default::default() {
            continue;
        }
        let bytes = namer.bytes(&object.key).or((object.count > 0).then_some(object.bytes));
        let sum = sums.entry(namer.title(&object.key)).or_insert_with(|| Sum {
            tally: empty(),
            count: 0,
            bytes,
            sizes_differ: false,
            addresses: 0,
            distances: Vec::new(),
        });
        sum.add_distances(attribution.distances.of(id));
        sum.tally += &attribution.ledger.tally(object.misses, &object.references, levels);
        let variable = namer.variable_of(&object.key);
        // The pieces of a stack are no objects of their own.
        sum.count = if let Key::StackPiece { .. } = object.key { 1 } else { sum.count + object.count.max(1) };
        sum.sizes_differ |= object.sizes_differ || sum.bytes != bytes;
        sum.addresses |= variable.map_or(object.addresses, |variable| variable.start);
    }
    let row = |(title, sum): (Title, Sum)| ObjectRow {
        kind: title.kind,
        name: title.name,
        allocated_at: title.allocated_at,
        count: sum.count,
        size_bytes: sum.bytes.filter(|_| !sum.sizes_differ),
        alignment_bytes: (sum.addresses != 0).then(|| 1 << sum.addresses.trailing_zeros()),
        tally: sum.tally,
        curve: distances::curve(&sum.distances),
    };
    let nameless = |kind, name: &str, tally| ObjectRow {
        kind,
        name: name.to_owned(),
        allocated_at: Vec::new(),
        count: 0,
        size_bytes: None,
        alignment_bytes: None,
        tally,
        curve: None,
    };
    let unknown = Title { kind: ObjectKind::Unattributed, name: UNATTRIBUTED.to_owned(), allocated_at: Vec::new() };
    sums.remove(&unknown);
    let mut rows: Vec<_> = sums.into_iter().map(row).collect();
    let misses = |row: &ObjectRow| row.tally.levels.iter().map(LevelTally::misses).sum::<u64>();
    rows.sort_by_key(|row| std::cmp::Reverse((row.tally.stall_cycles, misses(row))));
    let code = attribution.ledger.tally(attribution.code.misses, &attribution.code.references, levels);
    rows.push(nameless(ObjectKind::Code, "instructions", code));
    let mut known = empty();
    rows.iter().for_each(|row| known += &row.tally);
    // Misses at unknown addresses are those in no other row.
    rows.push(nameless(ObjectKind::Unattributed, UNATTRIBUTED, totals.without(&known, &mut false)));
    cycles.spread(rows.iter_mut().map(|row| &mut row.tally), totals);
    rows
}
