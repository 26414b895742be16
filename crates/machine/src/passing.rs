//! Upper bound of the references that wait for another CPU if slices that followed one another are taken as
//! simultaneous, beyond those that wait in the recorded order.
//!
//! The modelled order changes who uses a line before whom within a round and nowhere else. So a reference can wait for
//! another CPU in this order alone only if another CPU has the line in the same round, and one of the two writes it, or
//! if its CPU comes back to a line that it shared so: each reference of the first sort makes one of the second at most,
//! and counts twice. To count them takes a look at a table each; to model them takes two orders of magnitude longer.

use crate::hashing;
use crate::model::round::belongs_as_recorded;
use nearmiss_record::abi::ChunkHeader;
use nearmiss_record::machine::Machine;
use nearmiss_record::reference::{Kind, Record};

/// Places for lines. Lines that fall on one place count as one, so that the count stays a bound.
const PLACES_LOG2: u32 = 17;

/// Lines of one place, in one round.
#[derive(Clone, Copy, Default)]
struct LineSlot {
    round: u32,
    references: u32,
    /// CPUs that referred to lines of the place.
    cpus: u64,
    written: bool,
}

/// Counts the references that may wait, chunk by chunk in the order of the trace.
pub struct Passing {
    places: Vec<LineSlot>,
    unit_log2: u32,
    round: u32,
    /// CPU and number of each slice of the round.
    slices: Vec<(usize, u64)>,
    records: usize,
    may_wait: u64,
}

impl Passing {
    /// For the coherence unit of a machine: its longest line.
    pub fn new(machine: &Machine) -> Self {
        let longest = machine.caches.iter().map(|cache| cache.line.0).max().unwrap_or(64);
        Passing {
            places: vec![LineSlot::default(); 1 << PLACES_LOG2],
            unit_log2: longest.max(1).ilog2(),
            round: 1,
            slices: Vec::new(),
            records: 0,
            may_wait: 0,
        }
    }

    /// Returns the bound of the references so far.
    pub fn may_wait(&self) -> u64 {
        2 * self.may_wait
    }

    /// Takes the next chunk.
    pub fn chunk(&mut self, header: &ChunkHeader, records: &[Record]) {
        if !belongs_as_recorded(self.records, self.slices.iter().copied(), header) {
            self.round = self.round.wrapping_add(1);
            self.slices.clear();
            self.records = 0;
        }
        let cpu = header.vcpu as usize;
        let latest = self.slices.iter().rfind(|(known, _)| *known == cpu);
        if latest.is_none_or(|(_, number)| *number != header.slice) {
            self.slices.push((cpu, header.slice));
        }
        self.records += records.len();
        let mut at = 0;
        while let Some(record) = records.get(at) {
            at += 1;
            match record.kind() {
                Some(Kind::Control) => at = at.saturating_add(record.payload_records().unwrap_or(0)),
                Some(kind) => self.refers(cpu, kind, *record),
                None => {}
            }
        }
    }

    fn refers(&mut self, cpu: usize, kind: Kind, record: Record) {
        let first = record.paddr();
        let last = first.saturating_add(u64::from(record.size()).saturating_sub(1));
        for unit in first >> self.unit_log2..=last >> self.unit_log2 {
            self.touches(unit, cpu, !matches!(kind, Kind::Load | Kind::Fetch));
        }
    }

    #[inline]
    fn touches(&mut self, unit: u64, cpu: usize, writes: bool) {
        let at = hashing::place(unit, PLACES_LOG2);
        let place = &mut self.places[at];
        if place.round != self.round {
            *place = LineSlot { round: self.round, ..LineSlot::default() };
        }
        let passed = place.written && !place.cpus.is_power_of_two();
        place.cpus |= 1 << (cpu & 63);
        place.written |= writes;
        place.references = place.references.saturating_add(1);
        if place.written && !place.cpus.is_power_of_two() {
            // Those before it may come after it in another order.
            self.may_wait += if passed { 1 } else { u64::from(place.references) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::describe::preset;
    use nearmiss_record::units::InsnId;

    fn chunk(passing: &mut Passing, vcpu: u32, slice: u64, records: &[(Kind, u64)]) {
        let record = |&(kind, line): &(Kind, u64)| Record::reference(kind, line * 64, 8, 0, InsnId(1), line >> 6, 1);
        let records: Vec<Record> = records.iter().map(record).collect();
        let header = ChunkHeader { vcpu, slice, records: records.len() as u32, ..ChunkHeader::default() };
        passing.chunk(&header, &records);
    }

    #[test]
    fn lines_that_two_cpus_have_in_one_round_may_pass() {
        let mut passing = Passing::new(&preset("zen3-milan").unwrap().machine().unwrap());
        chunk(&mut passing, 0, 1, &[(Kind::Load, 1), (Kind::Load, 1), (Kind::Load, 2), (Kind::Store, 3)]);
        assert_eq!(passing.may_wait(), 0);
        chunk(&mut passing, 1, 2, &[(Kind::Load, 2), (Kind::Store, 1), (Kind::Load, 3), (Kind::Load, 3)]);
        assert_eq!(passing.may_wait(), 2 * (3 + 3), "nobody writes line 2");
    }

    #[test]
    fn references_of_another_round_follow_in_every_order() {
        let mut passing = Passing::new(&preset("zen3-milan").unwrap().machine().unwrap());
        chunk(&mut passing, 0, 1, &[(Kind::Store, 1)]);
        (2..=1025).for_each(|slice| chunk(&mut passing, 0, slice, &[(Kind::Load, 9)]));
        chunk(&mut passing, 1, 1026, &[(Kind::Store, 1)]);
        assert_eq!(passing.may_wait(), 0, "a round has 1,024 slices of a CPU");
        chunk(&mut passing, 0, 1027, &[(Kind::Store, 1)]);
        assert_eq!(passing.may_wait(), 2 * 2);
    }
}
