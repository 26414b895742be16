//! Fate of the lines that copies write: an observer of one replay of the run as it was.

use super::way::{CopyWay, Ways};
use nearmiss_machine::observer::{Effective, Observer, Outcome};
use nearmiss_machine::owner::{Owner, Running};
use nearmiss_record::maps::{Decoder, Event, Mapping};
use nearmiss_record::policy::CallSite;
use nearmiss_record::reference::{Control, Kind};
use rustc_hash::{FxHashMap, FxHashSet};

/// Counts of the copies of one way.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CopyCounts {
    /// Call sites of the way that store.
    pub sites: Vec<CallSite>,
    /// Calls.
    pub copies: u64,
    /// Bytes stored.
    pub bytes: u64,
    /// Different lines that the copies wrote.
    pub target_lines: u64,
    /// Different lines that the copies read.
    pub source_lines: u64,
    /// Written lines that their next reader found in a cache.
    pub read_soon: u64,
    /// Written lines that their next reader had to fetch from memory.
    pub read_late: u64,
    /// Written lines that nobody read before they were written again, while a cache had them.
    pub written_again_soon: u64,
    /// Written lines that nobody read before they were written again, while no cache had them.
    pub written_again_late: u64,
}

/// A line's latest write by a way that is watched.
#[derive(Clone, Copy)]
struct Written {
    way: u32,
    /// Whether nobody has read it since.
    unread: bool,
}

/// Number of a way that is not watched.
const NOT: u32 = u32::MAX;

/// The observer of copies: see the module's text.
pub(super) struct Sight<'a> {
    ways: Ways<'a>,
    /// Ways inside of functions that are watched; those of calls all are.
    inside: &'a FxHashSet<CopyWay>,
    line_log2: u32,
    levels: usize,
    running: Running,
    contexts: Vec<u32>,
    /// Whether a context was entered and has not stored yet, by CPU.
    fresh: Vec<bool>,
    decoders: Vec<Decoder>,
    numbers: FxHashMap<CopyWay, u32>,
    of_site: FxHashMap<CallSite, u32>,
    seen: Vec<(CopyWay, CopyCounts)>,
    written: FxHashMap<u64, Written>,
    targets: FxHashSet<(u32, u64)>,
    sources: FxHashSet<(u32, u64)>,
    /// Executable mappings of files.
    mappings: Vec<Mapping>,
}

/// Result of the replay.
pub(super) struct Sights {
    /// Counts by way.
    pub ways: Vec<(CopyWay, CopyCounts)>,
    /// Executable mappings of files.
    pub mappings: Vec<Mapping>,
}

impl<'a> Sight<'a> {
    pub fn new(ways: Ways<'a>, inside: &'a FxHashSet<CopyWay>, cpus: usize, line_bytes: u64, levels: usize) -> Self {
        Sight {
            ways,
            inside,
            line_log2: line_bytes.max(1).ilog2(),
            levels,
            running: Running::new(cpus),
            contexts: vec![0; cpus],
            fresh: vec![false; cpus],
            decoders: (0..cpus).map(|_| Decoder::default()).collect(),
            numbers: FxHashMap::default(),
            of_site: FxHashMap::default(),
            seen: Vec::new(),
            written: FxHashMap::default(),
            targets: FxHashSet::default(),
            sources: FxHashSet::default(),
            mappings: Vec::new(),
        }
    }

    pub fn finish(mut self) -> Sights {
        self.seen.retain(|(_, seen)| seen.bytes > 0);
        Sights { ways: self.seen, mappings: self.mappings }
    }

    /// Number of the way of a call site, where it is watched.
    fn number(&mut self, site: CallSite) -> u32 {
        if let Some(number) = self.of_site.get(&site) {
            return *number;
        }
        let way = self.ways.of(site);
        let watched = matches!(way, CopyWay::Called { .. }) || self.inside.contains(&way);
        let seen = &mut self.seen;
        let number = if watched {
            *self.numbers.entry(way).or_insert_with(|| {
                seen.push((way, CopyCounts::default()));
                seen.len() as u32 - 1
            })
        } else {
            NOT
        };
        self.of_site.insert(site, number);
        number
    }

    /// A reference of data; `cached`: some cache had its line.
    fn reference(&mut self, reference: &Effective, cached: bool) {
        let cpu = reference.cpu as usize;
        let line = reference.address >> self.line_log2;
        if reference.kind == Kind::Fetch {
            return;
        }
        let commands = cpu < self.contexts.len() && self.running.owner(cpu) == Owner::Command;
        let number = if commands {
            self.number(CallSite { context: self.contexts[cpu], insn: reference.record.insn().0 })
        } else {
            NOT
        };
        match reference.kind {
            Kind::Load => self.load(line, number, cached),
            Kind::Store if number != NOT => self.store(line, number, cached, reference),
            _ => {
                self.written.remove(&line);
            }
        }
    }

    fn load(&mut self, line: u64, number: u32, cached: bool) {
        if let Some(written) = self.written.get_mut(&line).filter(|written| written.unread) {
            written.unread = false;
            let (_, seen) = &mut self.seen[written.way as usize];
            *if cached { &mut seen.read_soon } else { &mut seen.read_late } += 1;
        }
        if number != NOT && self.sources.insert((number, line)) {
            self.seen[number as usize].1.source_lines += 1;
        }
    }

    fn store(&mut self, line: u64, number: u32, cached: bool, reference: &Effective) {
        let cpu = reference.cpu as usize;
        let fresh = std::mem::take(&mut self.fresh[cpu]);
        let (_, seen) = &mut self.seen[number as usize];
        seen.copies += u64::from(fresh);
        seen.bytes += u64::from(reference.size);
        let site = CallSite { context: self.contexts[cpu], insn: reference.record.insn().0 };
        if !seen.sites.contains(&site) {
            seen.sites.push(site);
        }
        let before = self.written.insert(line, Written { way: number, unread: true });
        seen.target_lines +=
            u64::from(before.is_none_or(|before| before.way != number) && self.targets.insert((number, line)));
        // The stores that complete a line differ from one that writes it anew by its first byte.
        let anew = reference.address & ((1 << self.line_log2) - 1) == 0;
        if anew && before.is_some_and(|before| before.unread) {
            *if cached { &mut seen.written_again_soon } else { &mut seen.written_again_late } += 1;
        }
    }
}

impl Observer for Sight<'_> {
    fn control(&mut self, vcpu: u32, control: &Control<'_>) {
        let cpu = (vcpu as usize).min(self.contexts.len() - 1);
        self.running.control(vcpu, control);
        match control {
            Control::Context(context) => {
                self.contexts[cpu] = *context;
                self.fresh[cpu] = true;
            }
            Control::Maps(bytes) => {
                let mappings = &mut self.mappings;
                // A damaged part ends there; the model's own tables report it.
                let _ = self.decoders[cpu].feed(bytes, |event| {
                    if let Event::Map { mapping, .. } = event
                        && mapping.executable
                        && mapping.is_file()
                    {
                        mappings.push(mapping);
                    }
                });
            }
            _ => {}
        }
    }

    fn hit(&mut self, reference: &Effective) {
        self.reference(reference, true);
    }

    fn miss(&mut self, reference: &Effective, outcome: &Outcome) {
        let cached = outcome.missed[self.levels.saturating_sub(1)].is_none();
        self.reference(reference, cached);
    }

    fn instructions(&mut self, _: u32, _: u64) {}
}

#[cfg(test)]
#[path = "sight_tests.rs"]
mod tests;
