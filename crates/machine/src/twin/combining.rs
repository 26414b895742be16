//! Write-combining, the slow way.

use super::buffer::Buffer;
use super::cache::Went;
use super::engine::{Slow, bytes_of};
use crate::model::Access;
use crate::observer::Outcome;
use std::collections::BTreeSet;

impl Slow {
    pub(super) fn send(&mut self, buffer: &Buffer) -> (u8, u8) {
        let bytes = self.tables[self.plan.data[0].at(0)].line_bytes();
        let tally = &mut self.nodes[usize::from(buffer.home)];
        if buffer.bytes.len() as u64 == bytes {
            tally.nt_full += 1;
            return (1, 0);
        }
        let pieces: BTreeSet<u64> = buffer.bytes.iter().map(|byte| byte / 8).collect();
        tally.nt_partial += pieces.len() as u64;
        (0, pieces.len() as u8)
    }

    pub(super) fn send_for(&mut self, buffer: &Buffer, access: &Access, outcome: &mut Outcome) -> u64 {
        let (full, partial) = self.send(buffer);
        outcome.nt_full += full;
        outcome.nt_partial += partial;
        (0..full + partial).map(|_| self.bus.transact(access.cpu, buffer.home, access.now)).max().unwrap_or(0)
    }

    pub(super) fn store_around(&mut self, access: &Access, outcome: &mut Outcome) {
        let cpu = access.cpu;
        let written = bytes_of(access.address, access.size);
        let own: Vec<usize> =
            (0..self.tables.len()).filter(|&at| self.plan.instances[at].cpus >> cpu & 1 == 1).collect();
        let others = self.plan.others[cpu].clone();
        let mut dirty = false;
        for &at in own.iter().chain(&others) {
            dirty |= self.lines_of_unit(at, access.address).iter().any(|&line| self.tables[at].is_dirty(line));
        }
        for at in own {
            for line in self.lines_of_unit(at, access.address) {
                self.tables[at].shadow.retain(|&l| l != line);
                self.tables[at].remove(line, Went::Away);
            }
        }
        others.iter().for_each(|&at| self.take(at, access.address, &written));
        if dirty {
            self.write_back(outcome.home, access, outcome);
        }
        let bytes = self.tables[self.plan.data[cpu].at(0)].line_bytes();
        let line = access.address / bytes;
        let core = self.plan.core[cpu];
        let last = access.effective(self.plan.node[cpu]);
        let mut waits = 0;
        let mut at = self.buffers[core].iter().position(|b| b.line == line);
        if at.is_none() {
            if self.buffers[core].len() == self.plan.combining_buffers {
                let oldest = self.buffers[core].remove(0);
                waits = waits.max(self.send_for(&oldest, access, outcome));
            }
            self.buffers[core].push(Buffer { line, bytes: BTreeSet::new(), last, home: outcome.home });
            at = Some(self.buffers[core].len() - 1);
        }
        if let Some(at) = at {
            let buffer = &mut self.buffers[core][at];
            buffer.bytes.extend(written);
            (buffer.last, buffer.home) = (last, outcome.home);
            if buffer.bytes.len() as u64 == bytes {
                let whole = self.buffers[core].remove(at);
                waits = waits.max(self.send_for(&whole, access, outcome));
            }
        }
        outcome.stall_cycles = u32::try_from(waits).unwrap_or(u32::MAX);
    }
}
