//! Lines that stores have just written past the caches. Who reads one waits until it has arrived in memory, and no
//! prefetcher runs ahead of that: such lines come one by one.

use crate::model::engine::Access;
use crate::model::quick_map::QuickMap;
use nearmiss_record::machine::Machine;
use nearmiss_record::reference::Kind;

/// Bytes that went past the caches since, or came back, below which each of the machine's figures holds.
const WITHIN_BYTES: [u64; 3] = [2 << 10, 8 << 10, 32 << 10];

/// Lines written past the caches, of a machine whose core has the price of reading them soon.
pub(in crate::model) struct WrittenAround {
    cycles: [u32; 3],
    line_log2: u32,
    /// Lines written and read again so far.
    passed: u64,
    /// Line of the latest write.
    latest: u64,
    /// Count of passed lines at the latest write of a line, by line.
    lines: QuickMap<u64, u64>,
}

impl WrittenAround {
    pub fn of(machine: &Machine) -> Option<Self> {
        let cycles = machine.core?.reread_cycles?;
        Some(Self::new(cycles, machine.data_cache(1)?.line.0.max(1).ilog2()))
    }

    fn new(cycles: [u32; 3], line_log2: u32) -> Self {
        WrittenAround { cycles, line_log2, passed: 0, latest: u64::MAX, lines: QuickMap::default() }
    }

    /// Returns the cycles after which the line of a load is there, if it was written past the caches a moment ago.
    #[inline]
    pub fn reread(&mut self, access: &Access, missed: u8) -> Option<u32> {
        match access.kind {
            Kind::NtStore => {
                self.store(access.address >> self.line_log2);
                None
            }
            Kind::Load if missed != 0 && !self.lines.is_empty() => self.load(access.address >> self.line_log2),
            _ => None,
        }
    }

    fn store(&mut self, line: u64) {
        if line == self.latest {
            return;
        }
        let oldest = WITHIN_BYTES[2] >> self.line_log2;
        if self.lines.len() as u64 > 4 * oldest {
            let passed = self.passed;
            self.lines.retain(|_, at| passed - *at < oldest);
        }
        self.passed += 1;
        self.latest = line;
        self.lines.insert(line, self.passed);
    }

    fn load(&mut self, line: u64) -> Option<u32> {
        let since = (self.passed - self.lines.remove(&line)?) << self.line_log2;
        self.passed += 1;
        WITHIN_BYTES.iter().position(|within| since < *within).map(|at| self.cycles[at])
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::describe::preset;
    use nearmiss_record::reference::Record;

    const LINE: u64 = 64;

    /// The cycles of a read of the first line after so many others were written past the caches.
    fn behind(lines: u64) -> Option<u32> {
        let mut around = WrittenAround::new([9, 7, 5], LINE.ilog2());
        let mut access = |kind, address, missed| {
            let record = Record::default();
            let access = Access {
                cpu: 0,
                kind,
                address,
                vaddr: address,
                size: 8,
                site: 0,
                missed_before: 0,
                was_there: 0,
                stayed: 0,
                now: 0,
                record,
            };
            around.reread(&access, missed)
        };
        for line in 0..=lines {
            assert_eq!(access(Kind::NtStore, line * LINE, 0), None);
            access(Kind::NtStore, line * LINE + 8, 0);
        }
        assert_eq!(access(Kind::Load, 0, 0), None, "a hit waits for nothing");
        let first = access(Kind::Load, 0, 7);
        assert_eq!(access(Kind::Load, 0, 7), None, "it has arrived");
        first
    }

    #[test]
    fn a_line_costs_by_what_was_written_past_the_caches_since() {
        assert_eq!([0, 31, 32, 127, 128].map(behind), [Some(9), Some(9), Some(7), Some(7), Some(5)]);
        assert_eq!([511, 512, 100_000].map(behind), [Some(5), None, None]);
    }

    #[test]
    fn a_machine_without_the_figures_has_no_such_lines() {
        assert!(WrittenAround::of(&preset("zen4-genoa").unwrap().machine().unwrap()).is_none());
    }
}
