//! Cost of one replay to the command.

use crate::parts::{self, PartCost};
use nearmiss_machine::aliasing::StoreBuffer;
use nearmiss_machine::observer::{Effective, Mispredicted, Observer, Outcome};
use nearmiss_machine::owner::{Owner, Running};
use nearmiss_record::finding::SavingRange;
use nearmiss_record::machine::{Machine, StoreAliasing};
use nearmiss_record::model::BusTally;
use nearmiss_record::reference::{Control, Kind, MARK_PART};
use nearmiss_record::units::InsnId;

/// Cost of one replay to the command, without that of other tasks, idle CPUs and ticks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cost {
    /// Data misses by level, nearest first.
    pub misses: Vec<u64>,
    /// Bus transactions of data references to the watched ranges.
    pub transactions_inside: u64,
    /// All others.
    pub transactions_outside: u64,
    /// Stall cycles, what loads wait for stores of their page offset included.
    pub stall_cycles: u64,
    /// Bus transactions by class.
    pub bus: BusTally,
    /// Stall cycles by instruction.
    pub by_insn: Vec<u64>,
    /// Cost of each recorded part of the run.
    pub by_part: Vec<PartCost>,
}

impl Cost {
    /// Ends of the share of the whole run's cycles that `after` saves of this, where parts of it were recorded.
    pub fn saved_of_whole_run(&self, after: &Cost, computing_cycles: u64) -> Option<SavingRange> {
        parts::interval(&self.by_part, &after.by_part, computing_cycles, &[])
    }
}

/// Counts what [`Cost`] holds.
pub(crate) struct Watcher<'a> {
    ranges: &'a [(u64, u64)],
    running: Running,
    aliasing: Option<StoreAliasing>,
    /// Share of a wait that other work does not hide.
    shown: f64,
    /// Store buffers by CPU.
    stores: Vec<StoreBuffer>,
    /// Loads by instruction that waited for a store to the same offset of another page.
    aliased: Vec<u64>,
    cost: Cost,
}

impl<'a> Watcher<'a> {
    /// `ranges`: ascending, disjoint.
    pub fn new(machine: &Machine, ranges: &'a [(u64, u64)]) -> Self {
        Watcher {
            ranges,
            running: Running::new(machine.topology.cpus() as usize),
            aliasing: machine.store_aliasing,
            shown: machine.shown_share(),
            stores: Vec::new(),
            aliased: Vec::new(),
            cost: Cost { misses: vec![0; machine.levels()], by_part: vec![PartCost::default()], ..Cost::default() },
        }
    }

    fn part(&mut self) -> Option<&mut PartCost> {
        self.cost.by_part.last_mut()
    }

    fn is_commands(&self, reference: &Effective) -> bool {
        self.running.owner(reference.cpu as usize) == Owner::Command
    }

    fn inside(&self, address: u64) -> bool {
        let at = self.ranges.partition_point(|(from, _)| *from <= address);
        at > 0 && address < self.ranges[at - 1].1
    }

    /// Passes a reference of user mode to the store buffer.
    fn buffered(&mut self, reference: &Effective, aliasing: StoreAliasing) {
        let cpu = reference.cpu as usize;
        if reference.record.is_kernel() || !self.is_commands(reference) {
            return;
        }
        if cpu >= self.stores.len() {
            self.stores.resize(cpu + 1, StoreBuffer::new(aliasing));
        }
        match reference.kind {
            Kind::Store => self.stores[cpu].store(reference.vaddr, reference.record),
            Kind::Load if self.stores[cpu].waited_for(reference.vaddr, reference.record.size().into()).is_some() => {
                add(&mut self.aliased, reference.record.insn(), 1);
            }
            _ => {}
        }
    }

    fn waits(&mut self, insn: InsnId, cycles: u32, outcome: &Outcome) {
        let cycles = u64::from(cycles);
        self.cost.stall_cycles += cycles;
        let is_doubtful = outcome.is_first_touch() && self.cost.by_part.len() > 1;
        if let Some(part) = self.part() {
            part.stall_cycles += cycles;
            part.doubtful_cycles += if is_doubtful { cycles } else { 0 };
        }
        add(&mut self.cost.by_insn, insn, cycles);
    }

    /// The cost, with what aliased loads waited.
    pub fn finish(self) -> Cost {
        let mut cost = self.cost;
        let each = self.aliasing.map_or(0.0, |aliasing| aliasing.wait_cycles * self.shown);
        cost.by_insn.resize(cost.by_insn.len().max(self.aliased.len()), 0);
        for (cycles, loads) in cost.by_insn.iter_mut().zip(&self.aliased) {
            let waited = (*loads as f64 * each).round() as u64;
            *cycles += waited;
            cost.stall_cycles += waited;
        }
        cost
    }
}

fn add(by_insn: &mut Vec<u64>, insn: InsnId, count: u64) {
    let insn = insn.0 as usize;
    if insn >= by_insn.len() {
        by_insn.resize(insn + 1, 0);
    }
    by_insn[insn] += count;
}

impl Observer for Watcher<'_> {
    fn control(&mut self, vcpu: u32, control: &Control<'_>) {
        self.running.control(vcpu, control);
        if matches!(control, Control::Mark { number: MARK_PART, .. }) {
            self.cost.by_part.push(PartCost::default());
        }
    }

    fn instructions(&mut self, vcpu: u32, instructions: u64) {
        if self.running.owner(vcpu as usize) == Owner::Command
            && let Some(part) = self.part()
        {
            part.instructions += instructions;
        }
    }

    fn hit(&mut self, reference: &Effective) {
        if let Some(aliasing) = self.aliasing {
            self.buffered(reference, aliasing);
        }
    }

    fn redirected(&mut self, branch: &Mispredicted, cycles: u32) {
        if self.running.owner(branch.cpu as usize) == Owner::Command {
            self.waits(branch.insn, cycles, &Outcome::default());
        }
    }

    fn waited_for(&mut self, reference: &Effective, outcome: &Outcome, cycles: u32) {
        if self.is_commands(reference) {
            self.waits(reference.record.insn(), cycles, outcome);
        }
    }

    fn miss(&mut self, reference: &Effective, outcome: &Outcome) {
        self.hit(reference);
        if !self.is_commands(reference) {
            return;
        }
        self.waits(reference.record.insn(), outcome.stall_cycles, outcome);
        if reference.kind != Kind::Fetch {
            for (misses, class) in self.cost.misses.iter_mut().zip(outcome.missed) {
                *misses += u64::from(class.is_some());
            }
        }
        let mut bus = BusTally::default();
        outcome.add_traffic(&mut bus);
        outcome.add_traffic(&mut self.cost.bus);
        if reference.kind != Kind::Fetch && self.inside(reference.record.vaddr()) {
            self.cost.transactions_inside += bus.transactions();
        } else {
            self.cost.transactions_outside += bus.transactions();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearmiss_machine::describe::{cut, preset};
    use nearmiss_machine::model::{Model, ModelOptions};
    use nearmiss_record::abi::ChunkHeader;
    use nearmiss_record::machine::{Placement, Sharing};
    use nearmiss_record::policy::{AddressPolicy, Order, Policy};
    use nearmiss_record::reference::{ControlKind, Record};
    use nearmiss_record::run;
    use nearmiss_record::trace::TraceHeader;
    use nearmiss_record::units::InsnId;

    const PAGE_BYTES: u64 = 4096;

    /// A walk over the first line of each of 16 pages, twice; `rounds` walks in all.
    fn walk(pages: u64, insn: u32, rounds: u64) -> Vec<Record> {
        let load = |page: u64| Record::reference(Kind::Load, page * PAGE_BYTES, 8, 0, InsnId(insn), page, 1);
        (0..rounds).flat_map(|_| (pages..pages + 16).map(load)).collect()
    }

    fn switch(tid: u64) -> Vec<Record> {
        let mut records = vec![Record::control(ControlKind::Switch, 0x1000 + tid, 0, tid | tid << 32)];
        records.resize(6, Record::default());
        records
    }

    fn begin() -> Vec<Record> {
        let mut records = vec![Record::control(ControlKind::Mark, 1, 0, 0)];
        records.resize(4, Record::default());
        records
    }

    /// Costs of a command on CPU 0, as recorded and colored, with strangers on CPU 1 or not.
    fn costs(strangers: bool) -> [Cost; 2] {
        let mut machine = cut(&preset("zen3-milan").unwrap().machine().unwrap(), 2);
        machine.caches.retain(|cache| cache.shared_by == Sharing::Core);
        machine.latency.level_cycles.truncate(machine.levels());
        machine.memory.placement = Placement::AsRecorded;
        let colored =
            AddressPolicy::Color { ranges: vec![(0, 64 * PAGE_BYTES)], align: PAGE_BYTES, colors: 16, line: 64 };
        [AddressPolicy::Recorded, colored].map(|address| {
            let filter = run::Filter { line_log2: 6, fetches: true, clear_on_slice: true, ..Default::default() };
            let header = TraceHeader { cpus: 2, filter, ..TraceHeader::default() };
            let policy = Policy { address, ..Policy::default() };
            let options = ModelOptions::of(&header, Order::Recorded);
            let watcher = Watcher::new(&machine, &[(0, 64 * PAGE_BYTES)]);
            let mut model = Model::new(&machine, &policy, &options, watcher).unwrap();
            let mut chunks = vec![(0, [switch(50), begin(), walk(1, 3, 4)].concat())];
            if strangers {
                // On a CPU with caches of its own.
                chunks.push((1, [switch(30), walk(101, 3, 40)].concat()));
                chunks.push((0, [switch(0), switch(50)].concat()));
            }
            chunks.push((0, walk(1, 4, 4)));
            for (seq, (vcpu, records)) in chunks.iter().enumerate() {
                let (seq, records_there) = (seq as u64, records.len() as u32);
                let header = ChunkHeader { seq, vcpu: *vcpu, records: records_there, ..ChunkHeader::default() };
                model.chunk(&header, records).unwrap();
            }
            model.finish().unwrap().1.finish()
        })
    }

    #[test]
    fn strangers_change_neither_the_cost_of_a_command_nor_its_gain() {
        let [alone, colored] = costs(false);
        // 16 lines for one set of eight ways: all but what two walks could share miss, and colored only the first walk.
        assert!(alone.misses[0] > 8 * 16 / 2 && alone.stall_cycles > colored.stall_cycles, "{alone:?} {colored:?}");
        assert_eq!(colored.misses[0], 16);
        assert_eq!(costs(true), [alone, colored]);
    }
}
