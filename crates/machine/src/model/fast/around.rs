//! Non-temporal stores go around the caches, by way of write-combining buffers.

use crate::model::cache::DIRTY;
use crate::model::cache::bytes::mask_within;
use crate::model::engine::Access;
use crate::model::fast::Fast;
use crate::model::fast::combining::Combined;
use crate::observer::Outcome;

impl Fast {
    pub(in crate::model) fn send_combined(&mut self, combined: &Combined) -> (u8, u8) {
        let (full, partial) = combined.transactions(self.caches[self.plan.data[0].at(0)].line_log2);
        let tally = &mut self.nodes[usize::from(combined.home)];
        tally.nt_full += u64::from(full);
        tally.nt_partial += u64::from(partial);
        (full, partial)
    }

    /// A buffer goes because of a reference: returns how long its transactions waited.
    fn send_for(&mut self, combined: &Combined, access: &Access, outcome: &mut Outcome) -> u64 {
        let (full, partial) = self.send_combined(combined);
        outcome.nt_full += full;
        outcome.nt_partial += partial;
        (0..full + partial).map(|_| self.bus.transact(access.cpu, combined.home, access.now)).max().unwrap_or(0)
    }

    pub(in crate::model) fn drain_for(&mut self, access: &Access, outcome: &mut Outcome) -> u64 {
        let gone = self.buffers[self.plan.core[access.cpu]].drain();
        gone.iter().map(|combined| self.send_for(combined, access, outcome)).max().unwrap_or(0)
    }

    /// A non-temporal store: cached copies go, modified ones written back first; the bytes wait in a buffer.
    pub(in crate::model) fn store_around(&mut self, access: &Access, page: u32, outcome: &mut Outcome) {
        let unit = access.address >> self.plan.unit_log2 << self.plan.unit_log2;
        let mut dirty = false;
        for at in 0..self.caches.len() {
            let own = self.plan.instances[at].cpus & 1 << access.cpu != 0;
            if !own && self.plan.others[access.cpu].is_empty() {
                continue;
            }
            let Some(spot) = self.pages.spot(page, at) else { continue };
            let line_log2 = self.caches[at].line_log2;
            for line_address in (unit..unit + (1 << self.plan.unit_log2)).step_by(1 << line_log2) {
                let cache = &mut self.caches[at];
                let line = cache.line_of(spot, line_address);
                dirty |= cache.frame_of(line).is_some_and(|frame| cache.flags(frame) & DIRTY != 0);
                if own {
                    cache.thrown_out(line);
                } else {
                    cache.taken_by_other(line, mask_within(line_address, line_log2, access.address, access.size));
                }
            }
        }
        if dirty {
            self.write_back(page, access, outcome);
        }
        let line_log2 = self.caches[self.plan.data[access.cpu].at(0)].line_log2;
        let line_address = access.address >> line_log2 << line_log2;
        let new = Combined {
            line: access.address >> line_log2,
            mask: mask_within(line_address, line_log2, access.address, access.size),
            home: outcome.home,
            last: access.effective(self.plan.node[access.cpu]),
        };
        let core = self.plan.core[access.cpu];
        let gone = self.buffers[core].store(new, self.plan.combining_buffers, line_log2);
        let waits = gone.iter().flatten().map(|combined| self.send_for(combined, access, outcome)).max();
        outcome.stall_cycles = u32::try_from(waits.unwrap_or(0)).unwrap_or(u32::MAX);
    }
}
