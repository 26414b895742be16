//! The command's first-level misses of address translation by instruction: what a remedy that moves lines within their pages leaves
//! as it is, and what a prediction of one function's time must count.

use crate::replay::{self, CaseError};
use crate::traced::Traced;
use nearmiss_machine::owner::{Owner, Running};
use nearmiss_record::machine::Tlb;
use nearmiss_record::reference::{Control, Kind, Record};

/// Fully associative and LRU, one a CPU; emptied by nothing, since entries carry their address space.
struct Translations {
    entries: usize,
    /// Held pages by CPU, latest last.
    held: Vec<Vec<u64>>,
    running: Running,
    /// Misses of the command by instruction.
    misses: Vec<u64>,
}

impl Translations {
    /// A record of data.
    fn reference(&mut self, vcpu: usize, record: Record) {
        // The physical page stands for the virtual one: it separates address spaces.
        let page = record.physical_page();
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
                self.count(vcpu, record);
            }
        }
    }

    fn count(&mut self, vcpu: usize, record: Record) {
        if self.running.owner(vcpu) != Owner::Command {
            return;
        }
        let insn = record.insn().0 as usize;
        if insn >= self.misses.len() {
            self.misses.resize(insn + 1, 0);
        }
        self.misses[insn] += 1;
    }

    /// A sound chunk.
    fn chunk(&mut self, vcpu: u32, records: &[Record], only_user: bool) {
        let mut at = 0;
        while let Some(&record) = records.get(at) {
            at += 1;
            match record.kind() {
                Some(Kind::Control) => {
                    let payload = records.get(at..at + record.payload_records().unwrap_or(0)).unwrap_or(&[]);
                    if let Ok(control) = Control::decode(record, payload) {
                        self.running.control(vcpu, &control);
                    }
                    at += payload.len();
                }
                Some(kind) if kind != Kind::Fetch && !(only_user && record.is_kernel()) => {
                    self.reference(vcpu as usize, record);
                }
                _ => {}
            }
        }
    }
}

/// Misses by instruction, in the recorded order. References that the trace's filter dropped repeat a line, hence a page
/// that is held.
pub fn translation_misses(case: &Traced, tlb: Tlb) -> Result<Vec<u64>, CaseError> {
    let running = Running::new(case.machine().topology.cpus() as usize);
    let mut translations =
        Translations { entries: tlb.entries.max(1) as usize, held: Vec::new(), running, misses: Vec::new() };
    let only_user = case.manifest.only_user;
    replay::read(&case.run, |head, records| translations.chunk(head.vcpu, records, only_user))?;
    Ok(translations.misses)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearmiss_record::reference::ControlKind;
    use nearmiss_record::units::InsnId;

    fn load(page: u64, insn: u32) -> Record {
        Record::reference(Kind::Load, page << 12, 8, 0, InsnId(insn), page, 1)
    }

    #[test]
    fn misses_are_the_commands_and_pages_stay_while_they_fit() {
        let mut translations =
            Translations { entries: 2, held: Vec::new(), running: Running::new(1), misses: Vec::new() };
        let mut records = vec![Record::control(ControlKind::Switch, 0x7000, 0, 7 << 32 | 7)];
        records.resize(6, Record::default());
        records.push(load(9, 1));
        records.push(Record::control(ControlKind::Mark, 1, 0, 0));
        records.resize(11, Record::default());
        // Page 9 was used before the command; 3 pages in turn do not fit into two entries, 2 do.
        records.extend([9, 1, 9, 1, 2, 9, 1].map(|page| load(page, 2)));
        records.push(Record::reference(Kind::Fetch, 5 << 12, 4, 0, InsnId(3), 5, 1));
        translations.chunk(0, &records, false);
        assert_eq!(translations.misses, [0, 0, 4]);
    }
}
