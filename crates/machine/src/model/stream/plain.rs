//! The short way of a record: whole references that no policy changes but by moving them, each in one first-level line.

use crate::model::engine::{Access, Engine};
use crate::model::stream::replay::Replay;
use crate::observer::{Effective, Observer, Outcome};
use nearmiss_record::reference::{FLAG_CONT, FLAG_KERNEL, Kind, Record};

impl<E: Engine, O: Observer> Replay<E, O> {
    /// The short way of [`Replay::step`]: handles the plain references there are from `at` on, `most` at most; returns
    /// where the next record begins.
    pub(in crate::model) fn plain(&mut self, cpu: usize, records: &[Record], begin: usize, most: usize) -> usize {
        let end = records.len().min(begin.saturating_add(most));
        let not_plain = FLAG_CONT | if self.only_user { FLAG_KERNEL } else { 0 };
        let moves = self.rules.shifts();
        let mut at = begin;
        while at < end {
            let record = records[at];
            let Some(kind) = record.plain_kind() else { break };
            if record.flags() & not_plain != 0 {
                break;
            }
            self.earlier.note(record.paddr(), record.insn().0);
            let (address, vaddr) = self.moved(cpu, record);
            if moves && self.is_cut(kind, address, record.size()) {
                break;
            }
            let state = &mut self.cpus[cpu];
            if let Some(codes) = &mut self.codes {
                state.reaches_code(codes, record);
            }
            let new = state.instructions.record(record.instructions());
            state.executes(new);
            state.plain[kind as usize & 7] += 1;
            let waits = state.waits_if_hit(kind, vaddr, (record.vaddr(), record.paddr()));
            let hit = self.engine.hit(cpu, kind, address, vaddr) && !waits;
            if new > 0 {
                self.observer.instructions(cpu as u32, new);
            }
            if hit {
                state.missed = 0;
                let (node, size) = (state.node, record.size());
                self.observer.hit(&Effective { cpu: cpu as u32, node, kind, address, vaddr, size, record });
            } else {
                self.plain_miss(cpu, kind, (address, vaddr), records, at);
            }
            at += 1;
        }
        if at > begin {
            self.records += (at - begin) as u64;
            let state = &mut self.cpus[cpu];
            state.in_kernel = records[at - 1].is_kernel();
            state.halted = false;
        }
        at
    }

    /// Returns the address that identifies the record's line, and the virtual one, after the policy has moved a whole record.
    #[inline(always)]
    pub(in crate::model) fn moved(&self, cpu: usize, record: Record) -> (u64, u64) {
        let (address, vaddr) = (self.address(cpu, record), record.vaddr());
        let shift = if self.rules.shifts() { self.rules.shift(vaddr) } else { 0 };
        (address.wrapping_add(shift), vaddr.wrapping_add(shift))
    }

    #[inline(always)]
    fn plain_miss(&mut self, cpu: usize, kind: Kind, (address, vaddr): (u64, u64), records: &[Record], at: usize) {
        let record = records[at];
        if let Some(quiet) = self.engine.miss_quietly(kind, address, record) {
            self.cpus[cpu].count_quiet(kind, quiet);
            return;
        }
        self.look_ahead(cpu, records, at);
        let (was_there, stayed) = self.earlier.was_there(address, record.insn().0);
        let access = Access {
            cpu,
            kind,
            address,
            vaddr,
            size: record.size(),
            site: self.site(cpu, record),
            missed_before: 0,
            was_there,
            stayed,
            now: self.now(cpu),
            record,
        };
        let mut outcome = Outcome::default();
        let missed = self.engine.miss(&access, &mut outcome);
        self.count(&access, false, missed, &mut outcome);
    }
}
