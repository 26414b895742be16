//! Waits that belong to no new reference: behind branches that were predicted wrongly, and of tasks that are not the
//! command's.

use super::ledger::Count;
use super::objects::ObjectId;
use super::repeats::Miss;
use super::{Attribution, index, row};
use crate::observer::{Effective, Mispredicted, Outcome};
use crate::owner::Owner;
use nearmiss_record::reference::{FLAG_KERNEL, Kind, Record};

impl Attribution {
    /// Adds the wait for the way of a branch.
    pub(super) fn add_redirection(&mut self, branch: &Mispredicted, cycles: u32) {
        let vcpu = index(branch.cpu, self.cpus.len());
        let flags = if branch.kernel { FLAG_KERNEL } else { 0 };
        let record = Record::reference(Kind::Fetch, 0, 1, flags, branch.insn, 0, 0);
        if self.running.owner(vcpu) == Owner::Command {
            self.parts.add_mispredicted(cycles.into());
        }
        let count = Count { mispredicted_cycles: cycles.into(), ..late(cycles) };
        self.add_wait(vcpu, record, None, &Outcome::default(), count);
    }

    /// Adds a wait for a reference that was counted before.
    pub(super) fn add_wait_for(&mut self, reference: &Effective, outcome: &Outcome, cycles: u32) {
        let vcpu = index(reference.cpu, self.cpus.len());
        let record = reference.record;
        if self.running.owner(vcpu) == Owner::Command {
            self.parts.add_stall(&Outcome { stall_cycles: cycles, ..*outcome });
        }
        let (object, _) = self.tracker.find(self.cpus[vcpu].pid, record.vaddr(), record.physical_page());
        let object = self.tracker.objects.piece(object, record.vaddr());
        self.add_wait(vcpu, record, Some(object), outcome, late(cycles));
    }

    /// Adds cycles that were waited for a reference, or for an instruction, which was counted before.
    fn add_wait(&mut self, vcpu: usize, record: Record, object: Option<ObjectId>, outcome: &Outcome, count: Count) {
        match self.running.owner(vcpu) {
            Owner::Command => {
                if record.is_kernel() {
                    self.callers.waited(vcpu, count.stall_cycles);
                }
                let cpu = &self.cpus[vcpu];
                let (task, context, outcome) = (cpu.task, cpu.context, *outcome);
                self.add(&Miss { vcpu, task, context, object, again: true, record, outcome }, count);
            }
            Owner::Others => self.count_of_others(vcpu, record, outcome, count),
            apart => self.ledger.add_all(&mut self.apart[apart as usize], record, outcome, count),
        }
    }

    pub(super) fn count_of_others(&mut self, vcpu: usize, record: Record, outcome: &Outcome, count: Count) {
        let insn = row(&mut self.insns[Owner::Others as usize], record);
        let task = &mut self.tasks.rows[self.cpus[vcpu].task as usize];
        for row in [&mut insn.misses, &mut task.misses[usize::from(record.is_kernel())]] {
            self.ledger.add_all(row, record, outcome, count);
        }
    }
}

/// A wait for what was counted before.
fn late(cycles: u32) -> Count {
    Count { times: 0, stall_cycles: cycles.into(), mispredicted_cycles: 0 }
}
