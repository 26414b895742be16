//! Lines that stores wrote past the caches and that loads miss soon after: an observer of one replay of the run.

use super::super::way::{CopyWay, Ways};
use nearmiss_machine::observer::{Effective, Observer, Outcome};
use nearmiss_machine::owner::{Owner, Running};
use nearmiss_record::policy::CallSite;
use nearmiss_record::reference::{Control, Kind};
use rustc_hash::FxHashMap;

/// Stores past the caches of one way.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct StoresAround {
    /// Call sites of the way that store so.
    pub sites: Vec<CallSite>,
    /// Bytes stored.
    pub bytes: u64,
    /// Lines written, as often as they were.
    pub lines: u64,
    /// Written lines that a load missed before so many others were written that no cache would have held them.
    pub reread: u64,
    /// Lines that were written between such a line's write and its load, summed up.
    pub between: u64,
    /// Cycles that these loads waited.
    pub stall_cycles: u64,
}

/// A line's latest write past the caches.
#[derive(Clone, Copy)]
struct Written {
    way: u32,
    /// Lines written so far.
    at: u64,
}

/// The observer: see the module's text.
pub(super) struct Rereads<'a> {
    ways: Ways<'a>,
    line_log2: u32,
    /// Lines of the outermost cache.
    held: u64,
    running: Running,
    contexts: Vec<u32>,
    numbers: FxHashMap<CallSite, u32>,
    seen: Vec<(CopyWay, StoresAround)>,
    written: FxHashMap<u64, Written>,
    lines: u64,
    latest: u64,
}

impl<'a> Rereads<'a> {
    /// `held`: lines of the outermost cache.
    pub fn new(ways: Ways<'a>, cpus: usize, line_bytes: u64, held: u64) -> Self {
        Rereads {
            ways,
            line_log2: line_bytes.max(1).ilog2(),
            held,
            running: Running::new(cpus),
            contexts: vec![0; cpus],
            numbers: FxHashMap::default(),
            seen: Vec::new(),
            written: FxHashMap::default(),
            lines: 0,
            latest: u64::MAX,
        }
    }

    /// Returns the ways that store past the caches, by the cost of their lines to readers, most first.
    pub fn finish(mut self) -> Vec<(CopyWay, StoresAround)> {
        self.seen.sort_by_key(|(way, seen)| (std::cmp::Reverse(seen.stall_cycles), *way));
        self.seen
    }

    fn number(&mut self, site: CallSite) -> u32 {
        if let Some(number) = self.numbers.get(&site) {
            return *number;
        }
        let way = self.ways.of(site);
        let known = self.seen.iter().position(|(other, _)| *other == way);
        let number = known.unwrap_or_else(|| {
            self.seen.push((way, StoresAround::default()));
            self.seen.len() - 1
        });
        self.seen[number].1.sites.push(site);
        self.numbers.insert(site, number as u32);
        number as u32
    }

    fn store(&mut self, reference: &Effective, line: u64) {
        let cpu = (reference.cpu as usize).min(self.contexts.len() - 1);
        if reference.record.is_kernel() || self.running.owner(cpu) != Owner::Command {
            return;
        }
        let way = self.number(CallSite { context: self.contexts[cpu], insn: reference.record.insn().0 });
        self.lines += u64::from(line != self.latest);
        let seen = &mut self.seen[way as usize].1;
        seen.bytes += u64::from(reference.size);
        seen.lines += u64::from(line != self.latest);
        self.latest = line;
        self.written.insert(line, Written { way, at: self.lines });
    }

    fn load(&mut self, line: u64, stall_cycles: u32) {
        let Some(written) = self.written.remove(&line) else { return };
        let between = self.lines - written.at;
        if between < self.held {
            let seen = &mut self.seen[written.way as usize].1;
            seen.reread += 1;
            seen.between += between;
            seen.stall_cycles += u64::from(stall_cycles);
        }
    }
}

impl Observer for Rereads<'_> {
    fn control(&mut self, vcpu: u32, control: &Control<'_>) {
        self.running.control(vcpu, control);
        if let (Control::Context(context), Some(known)) = (control, self.contexts.get_mut(vcpu as usize)) {
            *known = *context;
        }
    }

    fn hit(&mut self, reference: &Effective) {
        if reference.kind == Kind::NtStore {
            self.store(reference, reference.address >> self.line_log2);
        }
    }

    fn miss(&mut self, reference: &Effective, outcome: &Outcome) {
        let line = reference.address >> self.line_log2;
        match reference.kind {
            Kind::NtStore => self.store(reference, line),
            Kind::Load => self.load(line, outcome.stall_cycles),
            Kind::Store | Kind::Atomic => {
                self.written.remove(&line);
            }
            _ => {}
        }
    }

    fn instructions(&mut self, _: u32, _: u64) {}
}

#[cfg(test)]
#[path = "sight_tests.rs"]
mod tests;
