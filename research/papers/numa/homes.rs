//! A recorded server once more, with its pages on other nodes: what its tasks' time and bus reads come to.

use super::chassis::CPUS;
use crate::PaperError;
use nearmiss_machine::model::{Model, ModelOptions};
use nearmiss_machine::observer::{Effective, Observer, Outcome};
use nearmiss_record::machine::{Machine, Placement};
use nearmiss_record::model::BusTally;
use nearmiss_record::policy::{Home, HomePolicy, Order, Policy};
use nearmiss_record::reference::{Control, ControlKind, Kind, PAGE_BITS, PAGE_LOW, Record, Usage};
use nearmiss_record::run::{self, RunDir};
use nearmiss_record::trace::{TraceHeader, TraceReader, each_block};
use std::collections::HashMap;

/// Nodes of the server; those behind them are the load's.
const NODES: u64 = 2;

/// Homes of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Homes {
    /// All on the one node that there is.
    OneNode,
    /// Page by page on the server's nodes in turn, the kernel's too: blind.
    Blind,
    /// On the nodes that the kernel chose.
    Kernel,
    /// On the node of the CPU that touched them first in the window.
    FirstTouch,
}

impl Homes {
    /// All, in the order of the tables.
    pub const ALL: [Homes; 4] = [Homes::OneNode, Homes::Blind, Homes::Kernel, Homes::FirstTouch];

    fn machine(self, recorded: &Machine) -> Machine {
        let mut machine = recorded.clone();
        if self == Homes::OneNode {
            machine.memory.nodes = 1;
        }
        machine
    }

    fn policy(self) -> Policy {
        let home = match self {
            Homes::FirstTouch => HomePolicy::everywhere(Home::FirstTouch),
            _ => HomePolicy::Recorded,
        };
        Policy { home, ..Policy::default() }
    }

    /// Blind homes are set by pages: the policy's own interleaving would give the load's nodes pages too.
    fn header(self, recorded: &TraceHeader) -> TraceHeader {
        let mut header = recorded.clone();
        if self == Homes::Blind {
            header.node_bytes.iter_mut().for_each(|bytes| *bytes *= 2);
        }
        header
    }
}

/// One to one: pages in turn on two nodes of so many pages.
fn in_turn(page: u64, pages_a_node: u64) -> u64 {
    page % NODES * pages_a_node + page / NODES
}

/// The records with other pages, payload as it is.
fn moved(records: &[Record], pages_a_node: u64, line_log2: u32) -> Vec<Record> {
    let mut moved = Vec::with_capacity(records.len());
    let mut payload = 0;
    for &record in records {
        if payload > 0 {
            payload -= 1;
            moved.push(record);
        } else if record.kind() == Some(Kind::Control) {
            payload = record.payload_records().unwrap_or(0);
            moved.push(moved_control(record, pages_a_node, line_log2));
        } else {
            let mask = ((1 << PAGE_BITS) - 1) << PAGE_LOW;
            let page = in_turn(record.physical_page(), pages_a_node) << PAGE_LOW & mask;
            moved.push(Record { b: record.b & !mask | page, ..record });
        }
    }
    moved
}

/// A line that passes between CPUs is identified by its address.
fn moved_control(record: Record, pages_a_node: u64, line_log2: u32) -> Record {
    if record.control_kind() != Some(ControlKind::Share) {
        return record;
    }
    let lines = 12 - line_log2;
    let line = record.argument();
    let page = in_turn(line >> lines, pages_a_node);
    Record::control(ControlKind::Share, page << lines | line & ((1 << lines) - 1), record.flags(), record.b)
}

/// Work of the server's tasks, user mode and kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Served {
    /// Cycles.
    pub cycles: [f64; 2],
    /// Transactions.
    pub bus: [BusTally; 2],
}

impl Served {
    /// All cycles.
    pub fn total(&self) -> f64 {
        self.cycles.iter().sum()
    }

    /// A count of user mode and kernel.
    pub fn count(&self, of: fn(&BusTally) -> u64) -> u64 {
        self.bus.iter().map(of).sum()
    }
}

/// Records events of the tasks of a name on the server's CPUs.
struct TaskRecorder<'a> {
    name: &'a str,
    /// Whether one of them runs, by CPU.
    runs: Vec<bool>,
    /// Whether it is one of them, by task.
    is_of: HashMap<u64, bool>,
    instructions: [u64; 2],
    stalls: [u64; 2],
    bus: [BusTally; 2],
}

impl<'a> TaskRecorder<'a> {
    fn new(name: &'a str) -> Self {
        TaskRecorder {
            name,
            runs: vec![false; CPUS],
            is_of: HashMap::new(),
            instructions: [0; 2],
            stalls: [0; 2],
            bus: [BusTally::default(); 2],
        }
    }

    fn served(self, machine: &Machine) -> Served {
        let each = machine.cycles_per_instruction;
        let cycles = |mode: usize| self.instructions[mode] as f64 * each + self.stalls[mode] as f64;
        Served { cycles: [cycles(0), cycles(1)], bus: self.bus }
    }

    fn executed(&mut self, usage: Usage) {
        self.instructions[0] += usage.user_instructions;
        self.instructions[1] += usage.kernel_instructions;
    }
}

impl Observer for TaskRecorder<'_> {
    fn control(&mut self, vcpu: u32, control: &Control<'_>) {
        let Some(runs) = self.runs.get(vcpu as usize).copied() else { return };
        match control {
            Control::Switch { task, outgoing, comm, usage, .. } => {
                if self.is_of.get(outgoing).copied().unwrap_or(runs) {
                    self.executed(*usage);
                }
                let is_of = comm == self.name;
                self.is_of.insert(*task, is_of);
                self.runs[vcpu as usize] = is_of;
            }
            Control::Mark { usage, .. } if runs => self.executed(*usage),
            _ => {}
        }
    }

    fn hit(&mut self, _: &Effective) {}

    fn miss(&mut self, reference: &Effective, outcome: &Outcome) {
        if self.runs.get(reference.cpu as usize) == Some(&true) {
            let mode = usize::from(reference.record.is_kernel());
            self.stalls[mode] += u64::from(outcome.stall_cycles);
            outcome.add_traffic(&mut self.bus[mode]);
        }
    }

    fn instructions(&mut self, _: u32, _: u64) {}
}

/// Replays a recording once on each of so many page placements; of the tasks of this name.
pub fn replay(
    run: &RunDir,
    recorded: &Machine,
    homes: Homes,
    placements: u64,
    name: &str,
) -> Result<Vec<Served>, PaperError> {
    let mut trace = TraceReader::open(&run.file(run::TRACE))?;
    let header = homes.header(trace.header());
    let pages = header.node_bytes.first().copied().unwrap_or_default() >> 12;
    let line_log2 = header.filter.line_log2;
    let options = ModelOptions::of(&header, Order::Recorded).without_reasons();
    let machine = homes.machine(recorded);
    let model = |placement: u64| {
        let mut machine = machine.clone();
        machine.memory.placement = Placement::Random;
        machine.memory.placement_seed = machine.memory.placement_seed.wrapping_add(placement);
        Model::new(&machine, &homes.policy(), &options, TaskRecorder::new(name))
    };
    let mut models = (0..placements).map(model).collect::<Result<Vec<_>, _>>()?;
    // Block by block, so that each model has its own memory at hand for a while.
    each_block(&mut trace, |block| {
        let moved: Option<Vec<Vec<Record>>> = (homes == Homes::Blind)
            .then(|| block.chunks().map(|(_, records)| moved(records, pages, line_log2)).collect());
        for model in &mut models {
            for (at, (head, records)) in block.chunks().enumerate() {
                model.chunk(head, moved.as_ref().map_or(records, |moved| &moved[at]))?;
            }
        }
        Ok::<_, PaperError>(())
    })?;
    models.into_iter().map(|model| Ok(model.finish()?.1.served(&machine))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearmiss_record::units::InsnId;

    #[test]
    fn pages_in_turn_are_one_to_one_and_on_both_nodes_alike() {
        let mut pages: Vec<u64> = (0..3000).map(|page| in_turn(page, 2000)).collect();
        assert_eq!(pages.iter().filter(|page| **page < 2000).count(), 1500);
        pages.sort_unstable();
        pages.dedup();
        assert_eq!(pages.len(), 3000);
    }

    #[test]
    fn references_and_shared_lines_move_alike_and_payload_stays() {
        let reference = Record::reference(Kind::Store, 0x7000_0123, 8, 4, InsnId(9), 5, 7);
        let share = Record::control(ControlKind::Share, 5 << 7 | 3, 2, 0xff);
        let mark = Record::control(ControlKind::Mark, 16, 0, 0);
        let payload = vec![reference; mark.payload_records().unwrap_or(0)];
        let records: Vec<Record> = [reference, share, mark].into_iter().chain(payload.clone()).collect();
        let there = moved(&records, 1000, 5);
        assert_eq!((there[0].physical_page(), there[0].a, there[0].insn()), (1002, reference.a, InsnId(9)));
        assert_eq!(there[0].instructions(), 7);
        assert_eq!((there[1].argument(), there[1].flags(), there[1].b), (1002 << 7 | 3, 2, 0xff));
        assert_eq!(there[2..], records[2..]);
    }
}
