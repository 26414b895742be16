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
        self.add_wait(vcpu, record, None, &Outcome::default(), cycles);
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
        self.add_wait(vcpu, record, Some(object), outcome, cycles);
    }

    /// Adds cycles that were waited for a reference, or for an instruction, which was counted before.
    fn add_wait(&mut self, vcpu: usize, record: Record, object: Option<ObjectId>, outcome: &Outcome, cycles: u32) {
        let count = Count { times: 0, stall_cycles: cycles.into() };
        match self.running.owner(vcpu) {
            Owner::Command => {
                if record.is_kernel() {
                    self.callers.waited(vcpu, cycles);
                }
                let cpu = &self.cpus[vcpu];
                let (task, context, outcome) = (cpu.task, cpu.context, *outcome);
                self.add(&Miss { vcpu, task, context, object, again: true, record, outcome }, count);
            }
            Owner::Others => {
                let insn = row(&mut self.insns[Owner::Others as usize], record);
                let task = &mut self.tasks.rows[self.cpus[vcpu].task as usize];
                for row in [&mut insn.misses, &mut task.misses[usize::from(record.is_kernel())]] {
                    self.ledger.add_all(row, record, outcome, count);
                }
            }
            apart => self.ledger.add_all(&mut self.apart[apart as usize], record, outcome, count),
        }
    }

    pub(super) fn count_outcome_of_others(&mut self, vcpu: usize, record: Record, outcome: &Outcome) {
        let insn = row(&mut self.insns[Owner::Others as usize], record);
        let task = &mut self.tasks.rows[self.cpus[vcpu].task as usize];
        for row in [&mut insn.misses, &mut task.misses[usize::from(record.is_kernel())]] {
            self.ledger.add(row, record, outcome);
        }
    }
}
