//! Loads of the command that wait for a store to the same offset of another page, by the objects of both.

use super::objects::ObjectId;
use super::tracker::Tracker;
use crate::aliasing::StoreBuffer;
use crate::observer::Effective;
use nearmiss_record::machine::StoreAliasing;
use nearmiss_record::reference::{Kind, Record};
use rustc_hash::FxHashMap;

/// Objects kept of one row.
const MAX_EXTENTS: usize = 1 << 14;

/// Loads of one object behind stores to another, or to the same.
#[derive(Debug, Default)]
pub(super) struct AliasRow {
    /// Extents of the loads, and of the stores; by process and first address: end.
    pub extents: [FxHashMap<(u32, u64), u64>; 2],
    pub insns: FxHashMap<u32, u64>,
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct Aliases {
    /// Store buffers by CPU.
    buffers: Vec<StoreBuffer>,
    /// Rows by the object of the load, then of the store.
    pub rows: FxHashMap<(ObjectId, ObjectId), AliasRow>,
}

impl Aliases {
    pub fn new(aliasing: StoreAliasing, cpus: usize) -> Self {
        Aliases { buffers: vec![StoreBuffer::new(aliasing); cpus], rows: FxHashMap::default() }
    }

    /// A data reference of user mode.
    #[inline]
    pub fn reference(&mut self, vcpu: usize, pid: u32, reference: &Effective, tracker: &mut Tracker) {
        let buffer = &mut self.buffers[vcpu];
        match reference.kind {
            Kind::Load => {
                if let Some(store) = buffer.waited_for(reference.vaddr, reference.record.size().into()) {
                    self.waits(pid, reference.record, store, tracker);
                }
            }
            Kind::Store => buffer.store(reference.vaddr, reference.record),
            _ => {}
        }
    }

    #[cold]
    fn waits(&mut self, pid: u32, load: Record, store: Record, tracker: &mut Tracker) {
        let mut object = |record: Record| tracker.find(pid, record.vaddr(), record.physical_page()).0;
        let row = self.rows.entry((object(load), object(store))).or_default();
        *row.insns.entry(load.insn().0).or_default() += 1;
        for (record, extents) in [load, store].into_iter().zip(&mut row.extents) {
            let (start, end) = tracker.extent(pid, record.vaddr());
            if extents.len() < MAX_EXTENTS || extents.contains_key(&(pid, start)) {
                let last = extents.entry((pid, start)).or_default();
                *last = (*last).max(end);
            }
        }
    }
}
