//! Counts by field and function, and the lines of visits.

use super::calls::{CallTree, LiveCalls, OUTSIDE};
use super::places::{Place, Places};
use nearmiss_record::kernel_structures::LINE_BYTES;
use nearmiss_record::reference::{Control, Kind, Record};
use nearmiss_record::symbols::{KernelStructure, Symbols};
use rustc_hash::FxHashMap;

/// First address that is not user space's.
const USER_END: u64 = 1 << 47;
/// Different sets of lines of visits that are kept apart, for a structure and function.
const MOST_SETS: usize = 1 << 12;
/// CPUs of a guest, at most: a damaged file may claim more.
const MOST_CPUS: u32 = 64;

/// Lines of an object that a visit uses, ascending.
type Lines = Vec<u32>;
/// Lines that a call, or a stay in the kernel, has used, by structure and object.
type Touched = FxHashMap<(usize, u32), Lines>;

/// Loads, and stores with atomics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub reads: u64,
    pub writes: u64,
}

/// Visits of the objects of one structure.
#[derive(Clone, Debug, Default)]
pub(super) struct VisitCounts {
    /// Visits by their lines.
    pub sets: FxHashMap<Lines, u64>,
    /// Visits by number of lines.
    pub by_size: Vec<u64>,
    /// Visits by line.
    pub by_line: Vec<u64>,
}

impl VisitCounts {
    fn add(&mut self, lines: Lines) {
        add_one(&mut self.by_size, lines.len());
        lines.iter().for_each(|line| add_one(&mut self.by_line, *line as usize));
        if self.sets.len() < MOST_SETS || self.sets.contains_key(&lines) {
            *self.sets.entry(lines).or_default() += 1;
        }
    }
}

fn add_one(counts: &mut Vec<u64>, at: usize) {
    if at >= counts.len() {
        counts.resize(at + 1, 0);
    }
    counts[at] += 1;
}

#[derive(Default)]
struct Cpu {
    context: u32,
    task: u64,
    calls: LiveCalls<Touched>,
    /// Lines of this stay in the kernel, if no function was chosen.
    stay: Touched,
}

/// See the module's text.
pub(super) struct Uses<'a> {
    structures: &'a [KernelStructure],
    pub places: Places<'a>,
    tree: CallTree,
    is_chosen: bool,
    /// Function by instruction.
    functions: Vec<u32>,
    cpus: Vec<Cpu>,
    /// Calls of tasks that do not run.
    elsewhere: FxHashMap<u64, LiveCalls<Touched>>,
    /// By structure, field (none: bytes between) and function.
    pub counts: FxHashMap<(usize, Option<usize>, u32), Count>,
    /// References by structure and line.
    pub by_line: FxHashMap<(usize, u32), Count>,
    /// Visits by structure and chosen function.
    pub visits: FxHashMap<(usize, usize), VisitCounts>,
}

impl<'a> Uses<'a> {
    /// `is_chosen`: count during the calls in `tree` alone.
    pub fn new(symbols: &'a Symbols, tree: CallTree, is_chosen: bool) -> Self {
        Uses {
            structures: &symbols.kernel_structures,
            places: Places::new(symbols),
            tree,
            is_chosen,
            functions: symbols.insns.iter().map(|insn| insn.0).collect(),
            cpus: Vec::new(),
            elsewhere: FxHashMap::default(),
            counts: FxHashMap::default(),
            by_line: FxHashMap::default(),
            visits: FxHashMap::default(),
        }
    }

    /// Takes a chunk of a sound trace.
    pub fn chunk(&mut self, vcpu: u32, context: u32, records: &[Record]) {
        let cpu = vcpu.min(MOST_CPUS - 1) as usize;
        if cpu >= self.cpus.len() {
            self.cpus.resize_with(cpu + 1, Cpu::default);
        }
        self.cpus[cpu].context = context;
        let mut at = 0;
        while let Some(&record) = records.get(at) {
            at += 1;
            match record.kind() {
                Some(Kind::Control) => {
                    let payload = records.get(at..at + record.payload_records().unwrap_or(0)).unwrap_or(&[]);
                    if let Ok(control) = Control::decode(record, payload) {
                        self.control(cpu, &control);
                    }
                    at += payload.len();
                }
                Some(kind) => self.reference(cpu, kind, record),
                None => {}
            }
        }
    }

    fn control(&mut self, cpu: usize, control: &Control<'_>) {
        match *control {
            Control::Context(context) => self.cpus[cpu].context = context,
            Control::Switch { task, .. } => {
                self.end_stay(cpu);
                let now = &mut self.cpus[cpu];
                let before = std::mem::replace(&mut now.task, task);
                let calls = std::mem::replace(&mut now.calls, self.elsewhere.remove(&task).unwrap_or_default());
                self.elsewhere.insert(before, calls);
            }
            _ => {}
        }
    }

    fn reference(&mut self, cpu: usize, kind: Kind, record: Record) {
        if !record.is_kernel() {
            return self.end_stay(cpu);
        }
        let now = &mut self.cpus[cpu];
        let insn = record.insn().0;
        if self.is_chosen {
            let node = self.tree.node(now.context, insn);
            let visits = &mut self.visits;
            now.calls.at(&self.tree, node, |function, touched| ended(visits, function, touched));
            if node == OUTSIDE {
                return;
            }
        }
        if kind == Kind::Fetch || record.vaddr() < USER_END {
            return;
        }
        let Some(place) = self.places.find(record.paddr()) else { return };
        let touched = if self.is_chosen { now.calls.innermost() } else { Some(&mut now.stay) };
        if let Some(lines) = touched.map(|touched| touched.entry((place.structure, place.object)).or_default()) {
            let line = place.offset / LINE_BYTES;
            if let Err(at) = lines.binary_search(&line) {
                lines.insert(at, line);
            }
        }
        self.count(place, kind == Kind::Load, record);
    }

    fn count(&mut self, place: Place, is_read: bool, record: Record) {
        let more = |count: &mut Count| if is_read { count.reads += 1 } else { count.writes += 1 };
        more(self.by_line.entry((place.structure, place.offset / LINE_BYTES)).or_default());
        let function = self.functions.get(record.insn().0 as usize).copied().unwrap_or(0);
        let fields = &self.structures[place.structure].fields;
        let (from, to) = (place.offset, place.offset + record.size());
        let first = fields.partition_point(|field| field.from.saturating_add(field.bytes) <= from);
        let used = fields[first..].iter().take_while(|field| field.from < to).count();
        for field in first..first + used {
            more(self.counts.entry((place.structure, Some(field), function)).or_default());
        }
        if used == 0 {
            more(self.counts.entry((place.structure, None, function)).or_default());
        }
    }

    fn end_stay(&mut self, cpu: usize) {
        if !self.cpus[cpu].stay.is_empty() {
            let stay = std::mem::take(&mut self.cpus[cpu].stay);
            ended(&mut self.visits, 0, stay);
        }
    }

    /// Ends what is under way.
    pub fn finish(&mut self) {
        (0..self.cpus.len()).for_each(|cpu| self.end_stay(cpu));
        let live = self.cpus.iter_mut().map(|cpu| &mut cpu.calls).chain(self.elsewhere.values_mut());
        for calls in live {
            calls.at(&self.tree, OUTSIDE, |function, touched| ended(&mut self.visits, function, touched));
        }
    }
}

fn ended(visits: &mut FxHashMap<(usize, usize), VisitCounts>, function: usize, touched: Touched) {
    for ((structure, _), lines) in touched {
        visits.entry((structure, function)).or_default().add(lines);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearmiss_record::reference::{ControlKind, FLAG_KERNEL};
    use nearmiss_record::side::Context;
    use nearmiss_record::symbols::{KernelField, KernelPages, PageUse};
    use nearmiss_record::units::InsnId;

    const RECEIVE: u32 = 0;
    const ACKNOWLEDGE: u32 = 1;
    const OTHER: u32 = 2;

    /// Objects of 128 bytes in a slab of pages 10 and 11: fields at 0, 64 and 72. Instructions 0 to 2 are of functions 0
    /// to 2.
    fn symbols() -> Symbols {
        let field = |name: &str, from| KernelField { name: name.into(), from, bytes: 8 };
        let fields = vec![field("state", 0), field("window", 64), field("queue", 72)];
        let structure = KernelStructure {
            name: "tcp_sock".into(),
            caches: vec!["TCP".into()],
            bytes: 80,
            fields,
            ..KernelStructure::default()
        };
        let slab = PageUse::Slab { cache: "TCP".into(), object_bytes: 80, stride_bytes: 128, is_shared: false };
        Symbols {
            insns: vec![(0, 0, 0), (1, 0, 0), (2, 0, 0)],
            kernel_pages: KernelPages { uses: vec![slab], runs: vec![(10, 2, 0)] },
            kernel_structures: vec![structure],
            ..Symbols::default()
        }
    }

    /// Context 1: called by `OTHER`; 2: called by `RECEIVE` in there.
    fn uses(symbols: &Symbols, chosen: Vec<u32>) -> Uses<'_> {
        let is_chosen = chosen.iter().any(|number| *number > 0);
        let contexts = [(0, 0), (0, OTHER), (1, RECEIVE)].map(|(parent, call)| Context { parent, call });
        Uses::new(symbols, CallTree::new(chosen, vec![0, 1, 2], &contexts), is_chosen)
    }

    fn at(kind: Kind, object: u64, offset: u64, insn: u32) -> Record {
        let paddr = (10 * 4096 + object * 128).wrapping_add(offset);
        let vaddr = 0xffff_8880_0000_0000 + paddr;
        Record::reference(kind, vaddr, 8, FLAG_KERNEL, InsnId(insn), paddr >> 12, 1)
    }

    fn context(number: u64) -> Record {
        Record::control(ControlKind::Context, number, 0, 0)
    }

    fn user() -> Record {
        Record::reference(Kind::Load, 0x1000, 8, 0, InsnId(OTHER), 3, 1)
    }

    fn visits(uses: &Uses<'_>, function: usize) -> Vec<(Lines, u64)> {
        let found = uses.visits.get(&(0, function)).map(|visits| &visits.sets);
        let mut sets: Vec<(Lines, u64)> = found.into_iter().flatten().map(|(lines, n)| (lines.clone(), *n)).collect();
        sets.sort();
        sets
    }

    fn count(uses: &Uses<'_>, field: Option<usize>, function: u32) -> (u64, u64) {
        let count = uses.counts.get(&(0, field, function)).copied().unwrap_or_default();
        (count.reads, count.writes)
    }

    #[test]
    fn without_functions_a_visit_is_a_stay_in_the_kernel() {
        let symbols = symbols();
        let mut uses = uses(&symbols, vec![0, 0, 0]);
        let (load, store) = (Kind::Load, Kind::Store);
        // Objects 0 and 40 in one stay, object 0 in the next; the last of the slab, and a place of no object.
        let first = [at(load, 0, 0, RECEIVE), at(store, 0, 64, RECEIVE), at(load, 40, 72, OTHER), user()];
        uses.chunk(0, 0, &first);
        uses.chunk(0, 0, &[at(load, 0, 4, OTHER), at(store, 63, 0, OTHER), at(load, 64, 0, OTHER)]);
        uses.finish();
        assert_eq!(visits(&uses, 0), [(vec![0], 2), (vec![0, 1], 1), (vec![1], 1)]);
        assert_eq!([count(&uses, Some(0), RECEIVE), count(&uses, Some(0), OTHER)], [(1, 0), (1, 1)]);
        assert_eq!([count(&uses, Some(1), RECEIVE), count(&uses, Some(2), OTHER)], [(0, 1), (1, 0)]);
        assert_eq!(uses.places.found, [(3, true)]);
    }

    #[test]
    fn an_object_outside_of_slabs_has_its_place() {
        let mut symbols = symbols();
        symbols.kernel_structures[0].places = vec![9 * 4096 + 64];
        let mut uses = uses(&symbols, vec![0, 0, 0]);
        let load = |offset| at(Kind::Load, 0, offset, OTHER);
        let place = |page: u64, offset: u64| (page * 4096 + offset).wrapping_sub(10 * 4096);
        // Ahead of the object, its first and its last byte, behind it.
        uses.chunk(0, 0, &[63, 64, 143, 144].map(|offset| load(place(9, offset))));
        uses.finish();
        assert_eq!((visits(&uses, 0), uses.places.found[0]), (vec![(vec![0, 1], 1)], (1, true)));
        assert_eq!([count(&uses, Some(0), OTHER), count(&uses, Some(2), OTHER)], [(1, 0), (1, 0)]);
    }

    #[test]
    fn a_call_is_a_visit_and_what_it_calls_of_the_chosen_is_another() {
        let symbols = symbols();
        let mut uses = uses(&symbols, vec![1, 2, 0]);
        let (load, store) = (Kind::Load, Kind::Store);
        let call = |more: &[Record]| {
            let receive = [context(1), at(load, 0, 0, RECEIVE), context(2), at(store, 0, 72, OTHER)];
            [&receive[..], more, &[context(1), at(load, 0, 0, RECEIVE), at(load, 5, 0, OTHER)]].concat()
        };
        uses.chunk(0, 0, &call(&[]));
        uses.chunk(0, 1, &call(&[at(store, 0, 64, ACKNOWLEDGE)]));
        uses.finish();
        assert_eq!(visits(&uses, 0), [(vec![0, 1], 2)]);
        assert_eq!(visits(&uses, 1), [(vec![1], 1)]);
        // References outside of the chosen functions do not count.
        assert_eq!([count(&uses, Some(0), RECEIVE), count(&uses, Some(0), OTHER)], [(4, 0), (0, 0)]);
        assert_eq!([count(&uses, Some(2), OTHER), count(&uses, Some(1), ACKNOWLEDGE)], [(0, 2), (0, 1)]);
    }

    #[test]
    fn a_call_goes_on_when_its_task_runs_again() {
        let symbols = symbols();
        let mut uses = uses(&symbols, vec![1, 0, 0]);
        let switch = |task: u64| {
            let mut records = vec![Record::control(ControlKind::Switch, task, 0, 7)];
            records.resize(6, Record::default());
            records
        };
        let (load, store) = (Kind::Load, Kind::Store);
        uses.chunk(0, 0, &switch(0x7000));
        uses.chunk(0, 1, &[at(load, 0, 0, RECEIVE)]);
        uses.chunk(0, 1, &switch(0x8000));
        uses.chunk(0, 0, &[at(load, 0, 0, OTHER)]);
        uses.chunk(0, 0, &switch(0x7000));
        uses.chunk(1, 1, &[at(load, 1, 0, RECEIVE)]);
        uses.chunk(0, 1, &[at(store, 0, 64, RECEIVE)]);
        uses.finish();
        assert_eq!(visits(&uses, 0), [(vec![0], 1), (vec![0, 1], 1)]);
    }
}
