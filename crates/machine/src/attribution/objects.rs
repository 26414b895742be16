//! Data objects: the kind and owner of the memory at an address.

use super::ledger::{Count, Ledger, References, Row};
use crate::observer::Outcome;
use nearmiss_record::reference::{Kind, Record};
use rustc_hash::FxHashMap;

/// Index into [`Objects`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ObjectId(pub u32);

/// Key of a row of the object table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// Nothing is known of the address.
    Unknown,
    /// Heap blocks allocated in this calling context.
    Heap { context: u32 },
    /// Objects that a language's runtime gave out in this calling context.
    Managed { context: u32 },
    /// The program break's memory outside live blocks.
    Break,
    /// Anonymous mappings reported in this calling context; if that is the kernel's own, made in the user's.
    Anonymous { context: u32, user: u32 },
    /// A mapped file, or memory with a name of its own such as `[vdso]`.
    File { path: String },
    /// A variable of a file or, with [`nearmiss_record::symbols::KERNEL_MODULE`], of the kernel.
    Global { module: String, index: u32 },
    /// First threads' stacks.
    FirstStack,
    /// A piece of first threads' stacks, by its address.
    StackPiece { address: u64 },
    /// Stacks of threads created in this calling context.
    ThreadStack { context: u32 },
    /// A page reached through the kernel's direct map.
    KernelPage { page: u64 },
    /// 16 KiB of the kernel's vmalloc area: a kernel stack's size and alignment.
    KernelArea { area: u64 },
    /// A part of the kernel's address space that serves one purpose.
    KernelPart { name: &'static str },
}

/// Most instructions kept of a [`Key::KernelArea`] or a [`Key::StackPiece`].
const MAX_INSNS: usize = 8;
/// Bytes of a piece of a stack.
pub(super) const STACK_PIECE: u64 = 64;
/// Most pieces of stacks that are kept apart.
const MAX_STACK_PIECES: usize = 1 << 16;

/// One row while the run goes on.
#[derive(Clone, Debug)]
pub(super) struct Object {
    pub key: Key,
    /// Data references that missed the first level.
    pub references: References,
    pub misses: Row,
    pub count: u64,
    /// Bytes of the first; with `sizes_differ`, not of all.
    pub bytes: u64,
    pub sizes_differ: bool,
    /// Bitwise or of all start addresses: the lowest bit set is the alignment common to all.
    pub addresses: u64,
    /// Largest alignment requested; 0: the allocator's own.
    pub requested_alignment: u64,
    /// A few instructions that stored to a [`Key::KernelArea`], since calls store to stacks, or that used a
    /// [`Key::StackPiece`].
    pub insns: Vec<u32>,
}

/// All objects of a run.
#[derive(Debug)]
pub(super) struct Objects {
    pub rows: Vec<Object>,
    by_key: FxHashMap<Key, ObjectId>,
    limit: usize,
    stack_pieces: usize,
    /// Kernel memory beyond the limit was counted as unknown.
    pub full: bool,
}

impl Objects {
    /// `limit`: most rows; beyond it, memory of the kernel is counted as unknown.
    pub fn new(limit: usize) -> Self {
        let mut objects =
            Objects { rows: Vec::new(), by_key: FxHashMap::default(), limit, stack_pieces: 0, full: false };
        objects.intern(Key::Unknown);
        objects
    }

    pub const UNKNOWN: ObjectId = ObjectId(0);

    pub fn intern(&mut self, key: Key) -> ObjectId {
        if let Some(id) = self.by_key.get(&key) {
            return *id;
        }
        if self.rows.len() >= self.limit {
            self.full = true;
            return Self::UNKNOWN;
        }
        let id = ObjectId(self.rows.len() as u32);
        self.by_key.insert(key.clone(), id);
        self.rows.push(Object {
            key,
            references: References::default(),
            misses: Row::default(),
            count: 0,
            bytes: 0,
            sizes_differ: false,
            addresses: 0,
            requested_alignment: 0,
            insns: Vec::new(),
        });
        id
    }

    /// The piece of a first thread's stack that holds an address; any other object itself, and a stack with too many
    /// pieces.
    pub fn piece(&mut self, object: ObjectId, address: u64) -> ObjectId {
        if self.rows[object.0 as usize].key != Key::FirstStack {
            return object;
        }
        let key = Key::StackPiece { address: address & !(STACK_PIECE - 1) };
        if let Some(id) = self.by_key.get(&key) {
            return *id;
        }
        if self.stack_pieces == MAX_STACK_PIECES {
            return object;
        }
        self.stack_pieces += 1;
        self.intern(key)
    }

    /// So many data references to this object missed the first level or caused traffic.
    #[inline]
    pub fn count(&mut self, id: ObjectId, record: Record, times: u64) {
        self.rows[id.0 as usize].references.count_all(record, times);
    }

    /// The note on objects beyond the limit.
    pub fn limit_note(&self) -> Option<String> {
        self.full.then(|| format!("more than {} objects: later ones are counted as unattributed", self.limit))
    }

    /// One more object of this row came to be.
    pub fn appeared(&mut self, id: ObjectId, address: u64, bytes: u64) {
        let row = &mut self.rows[id.0 as usize];
        if row.count == 0 {
            row.bytes = bytes;
        }
        row.count += 1;
        row.sizes_differ |= row.bytes != bytes;
        row.addresses |= address;
    }

    /// Notes a requested alignment of an object of this row.
    pub fn aligned(&mut self, id: ObjectId, alignment: u64) {
        let row = &mut self.rows[id.0 as usize];
        row.requested_alignment = row.requested_alignment.max(alignment);
    }

    /// Adds the outcomes of `count` records like this one at this object.
    pub fn add_outcomes(&mut self, id: ObjectId, ledger: &mut Ledger, record: Record, outcome: &Outcome, count: Count) {
        let row = &mut self.rows[id.0 as usize];
        let is_kept = match row.key {
            Key::KernelArea { .. } => record.kind() == Some(Kind::Store),
            Key::StackPiece { .. } => true,
            _ => false,
        };
        if is_kept && row.insns.len() < MAX_INSNS && !row.insns.contains(&record.insn().0) {
            row.insns.push(record.insn().0);
        }
        ledger.add_all(&mut row.misses, record, outcome, count);
    }
}
