//! The short way of a record: whole references that no policy changes, each in one first-level line.

use super::engine::{Access, Engine};
use super::replay::Replay;
use crate::observer::Observer;
use nearmiss_record::reference::{FLAG_CONT, Kind, Record};

impl<E: Engine, O: Observer> Replay<E, O> {
    /// The short way of [`Replay::step`]: meets the plain references there are from `at` on, `most` at most; returns
    /// where the next record begins.
    pub(super) fn plain(&mut self, cpu: usize, records: &[Record], begin: usize, most: usize) -> usize {
        let end = records.len().min(begin.saturating_add(most));
        let mut at = begin;
        while let Some((next, missed)) = self.plain_hits(cpu, &records[..end], at) {
            at = next;
            let Some(kind) = missed else { break };
            self.look_ahead(cpu, records, at);
            let record = records[at];
            let state = &mut self.cpus[cpu];
            let new = state.instructions.record(record.instructions());
            state.tally.instructions += new;
            state.tally.loads += u64::from(kind == Kind::Load);
            state.tally.stores += u64::from(kind == Kind::Store);
            state.tally.line_accesses += u64::from(kind != Kind::Fetch);
            if new > 0 {
                self.observer.instructions(cpu as u32, new);
            }
            let access = Access {
                cpu,
                kind,
                address: self.address(cpu, record),
                vaddr: record.vaddr(),
                size: record.size(),
                insn: record.insn().0,
                missed_before: 0,
                now: self.now(cpu),
                record,
            };
            self.meet(&access, false);
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

    /// Meets those that hit the first level and change nothing elsewhere. Returns where the first other one stands and,
    /// if it is plain too, its kind; nothing at the end.
    #[inline]
    fn plain_hits(&mut self, cpu: usize, records: &[Record], begin: usize) -> Option<(usize, Option<Kind>)> {
        let Replay { engine, observer, cpus, .. } = self;
        let state = &mut cpus[cpu];
        let mut at = begin;
        let (mut loads, mut stores, mut instructions) = (0, 0, 0);
        let mut missed = None;
        while let Some(&record) = records.get(at) {
            let Some(kind @ (Kind::Load | Kind::Store | Kind::Fetch)) = record.kind() else { break };
            if self.only_user && record.is_kernel() || record.flags() & FLAG_CONT != 0 {
                break;
            }
            let address = if self.virtual_tags { state.virtual_address(record) } else { record.paddr() };
            if !engine.hit(cpu, kind, address, record.vaddr()) {
                missed = Some(kind);
                break;
            }
            let new = state.instructions.record(record.instructions());
            instructions += new;
            loads += u64::from(kind == Kind::Load);
            stores += u64::from(kind == Kind::Store);
            if new > 0 {
                observer.instructions(cpu as u32, new);
            }
            observer.hit(cpu as u32, record);
            at += 1;
        }
        if at > begin {
            state.missed = 0;
            state.tally.instructions += instructions;
            state.tally.loads += loads;
            state.tally.stores += stores;
            state.tally.line_accesses += loads + stores;
        }
        (at > begin || missed.is_some()).then_some((at, missed))
    }
}
