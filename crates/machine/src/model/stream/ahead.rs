//! Fetches data ahead of the records that need it; no count depends on it.

use crate::model::engine::Engine;
use crate::model::stream::replay::Replay;
use crate::observer::Observer;
use nearmiss_record::reference::{Kind, Record};

/// Records from a miss to the one with its line fetched ahead.
const SOON: usize = 8;
/// Records from a miss to the one with its victims fetched ahead.
const NEXT: usize = 3;

impl<E: Engine, O: Observer> Replay<E, O> {
    /// Prepares the references after a miss: they often miss, too.
    #[inline(always)]
    pub(in crate::model) fn look_ahead(&mut self, cpu: usize, records: &[Record], at: usize) {
        if !self.engine.is_far() {
            return;
        }
        if let Some((kind, address, vaddr)) = self.reference(cpu, records, at + SOON) {
            self.engine.prepare(cpu, kind, address, vaddr);
        }
        if self.cpus[cpu].deep
            && let Some((kind, address, vaddr)) = self.reference(cpu, records, at + NEXT)
        {
            self.engine.prepare_fills(cpu, kind, address, vaddr);
        }
    }

    #[inline(always)]
    fn reference(&self, cpu: usize, records: &[Record], at: usize) -> Option<(Kind, u64, u64)> {
        let record = *records.get(at)?;
        let (address, vaddr) = self.moved(cpu, record);
        Some((record.plain_kind()?, address, vaddr))
    }
}
