//! The command's first-level misses of address translation by instruction: what a remedy that moves lines within their pages leaves
//! as it is, and what a prediction of one function's time must count.

use crate::replay::{CaseError, replay};
use crate::traced::Traced;
use nearmiss_machine::observer::{Effective, Observer, Outcome};
use nearmiss_machine::whose::{Running, Whose};
use nearmiss_record::machine::Tlb;
use nearmiss_record::policy::Policy;
use nearmiss_record::reference::{Control, Kind};

/// Fully associative and LRU, one a CPU; emptied by nothing, since entries carry their address space.
struct Translations {
    entries: usize,
    /// By CPU: pages, latest last.
    held: Vec<Vec<u64>>,
    running: Running,
    /// Of the command.
    misses: Vec<u64>,
}

impl Translations {
    fn meet(&mut self, met: &Effective) {
        if met.kind == Kind::Fetch {
            return;
        }
        // The physical page stands for the virtual one: it tells address spaces apart.
        let page = met.record.physical_page();
        let vcpu = met.cpu as usize;
        if vcpu >= self.held.len() {
            self.held.resize(vcpu + 1, Vec::new());
        }
        let held = &mut self.held[vcpu];
        if held.last() == Some(&page) {
            return;
        }
        match held.iter().rposition(|other| *other == page) {
            Some(at) => held[at..].rotate_left(1),
            None => {
                if held.len() == self.entries {
                    held.remove(0);
                }
                held.push(page);
                if self.running.whose(vcpu) != Whose::Command {
                    return;
                }
                let insn = met.record.insn().0 as usize;
                if insn >= self.misses.len() {
                    self.misses.resize(insn + 1, 0);
                }
                self.misses[insn] += 1;
            }
        }
    }
}

impl Observer for Translations {
    fn control(&mut self, vcpu: u32, control: &Control<'_>) {
        self.running.control(vcpu, control);
    }

    fn instructions(&mut self, _: u32, _: u64) {}

    fn hit(&mut self, met: &Effective) {
        self.meet(met);
    }

    fn miss(&mut self, met: &Effective, _: &Outcome) {
        self.meet(met);
    }
}

/// Misses by instruction. What the trace's filter dropped repeats a line, hence a page that is held.
pub fn translation_misses(case: &Traced, tlb: Tlb) -> Result<Vec<u64>, CaseError> {
    let running = Running::new(case.machine().topology.cpus() as usize);
    let observer = Translations { entries: tlb.entries.max(1) as usize, held: Vec::new(), running, misses: Vec::new() };
    let replayed = replay(&case.run, case.machine(), &Policy::default(), case.model.order, observer)?;
    Ok(replayed.observer.misses)
}
