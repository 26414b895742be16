//! The stream's front: decodes records, keeps instructions, time and order, and calls the engine.

use crate::describe;
use crate::model::core::{Core, Ticks};
use crate::model::engine::{Access, Engine};
use crate::model::options::{ModelError, ModelOptions, Position};
use crate::model::sites::Sites;
use crate::model::stream::codes::{add_all, codes_of};
use crate::model::stream::earlier::Earlier;
use crate::model::stream::fields::Place;
use crate::model::stream::misses::Misses;
use crate::model::stream::placing::Placing;
use crate::model::stream::policy::{self, Rules};
use crate::model::stream::round::Round;
use crate::model::stream::vcpu::{Cpu, report_drained};
use crate::model::stream::written_around::WrittenAround;
use crate::model::totals::ModelTotals;
use crate::observer::{Effective, Observer, Outcome};
use nearmiss_code::CodeMap;
use nearmiss_record::abi::ChunkHeader;
use nearmiss_record::machine::{CacheKind, Index, Machine};
use nearmiss_record::policy::{CallSite, Order, Policy};
use nearmiss_record::reference::{Control, FLAG_CONT, FLAG_FIRST_HIT, Kind, MARK_PART, Record};

/// A replay of one stream on one machine; see the module's text.
pub struct Replay<E: Engine, O: Observer> {
    pub(in crate::model) engine: E,
    pub(in crate::model) observer: O,
    pub(in crate::model) rules: Rules,
    /// Puts tasks on other CPUs first.
    placing: Option<Placing>,
    order: Order,
    pub(in crate::model) only_user: bool,
    filter_line_log2: u32,
    /// First-level lines, data and fetches.
    pub(in crate::model) line_log2: [u32; 2],
    /// Records may reach beyond a first-level line, and are cut.
    cuts: bool,
    /// Halves of a straddling record may lie in one first-level line, and are joined.
    joins: bool,
    pub(in crate::model) virtual_tags: bool,
    /// None of all that applies to any record that stays in its line: hits need no more than a look, which
    /// [`Replay::plain`] has taken.
    pub(in crate::model) is_plain: bool,
    /// The code seen so far, if the machine's cores use it.
    pub(in crate::model) codes: Option<CodeMap>,
    pub(in crate::model) cpus: Vec<Cpu>,
    spaces: Vec<u64>,
    sites: Sites,
    /// Misses are blamed on call sites.
    numbers_sites: bool,
    notes: Vec<String>,
    next_seq: Option<u64>,
    /// Instructions at the end of the latest chunk, by recorded CPU.
    chunk_totals: Vec<u64>,
    pub(in crate::model) records: u64,
    pub(in crate::model) earlier: Earlier,
    written_around: Option<WrittenAround>,
    pub(in crate::model) round: Round,
    /// Modelled order: time at which the present round began.
    pub(in crate::model) round_began: u64,
    /// Modelled order: added to a CPU's clock to get the time.
    pub(in crate::model) lead: Vec<i64>,
}

impl<E: Engine, O: Observer> Replay<E, O> {
    /// Builds the model of a machine under a policy. Refuses, in one sentence, anything that the machine, the policy or
    /// the trace's filter does not allow; approximations are in [`Replay::notes`].
    pub fn new(machine: &Machine, policy: &Policy, options: &ModelOptions, observer: O) -> Result<Self, ModelError> {
        let recorded_cpus = options.cpus as usize;
        let placing = Placing::of(machine, policy, options)?;
        let is_even = placing.is_some() || options.even_slices;
        let cpus = if placing.is_some() { machine.topology.cpus() } else { options.cpus };
        let options = &ModelOptions { cpus, ..options.clone() };
        let engine = E::new(machine, policy, options)?;
        let rules = Rules::new(policy)?;
        let filter = options.filter;
        let mut notes = Vec::new();
        if filter.line_log2 > 0 {
            describe::can_replay(filter, machine).map_err(ModelError::Refused)?;
            notes.extend(describe::approximations(filter, machine).into_iter().map(|note| note.sentence().to_owned()));
        }
        let approximations = policy::check(policy, machine, options)?;
        notes.extend(approximations.into_iter().map(|one| one.sentence().to_owned()));
        let lines = |kind: CacheKind| {
            let first = machine
                .caches
                .iter()
                .filter(|c| c.kind == kind || c.kind == CacheKind::Unified)
                .min_by_key(|c| c.level);
            first.map_or(6, |c| c.line.0.max(1).ilog2())
        };
        let longest = machine.caches.iter().map(|c| c.line.0.max(1).ilog2()).max().unwrap_or(6);
        if options.coherence && options.cpus > 1 && filter.line_log2 > 0 && longest > filter.line_log2 {
            notes.push(format!(
                "Coherence figures are a lower bound: the machine keeps {} bytes coherent together, the trace's filter watched {} bytes for sharing.",
                1u64 << longest,
                1u64 << filter.line_log2
            ));
        }
        if options.order == Order::Recorded && options.cpus > 1 {
            notes.push(
                "Order recorded: sharing is a lower bound, and CPUs do not wait for one another's bus transactions."
                    .to_owned(),
            );
        }
        let line_log2 = [lines(CacheKind::Data), lines(CacheKind::Instruction)];
        let comes_cut = (1..=line_log2[0].min(line_log2[1])).contains(&filter.line_log2);
        let cuts = !comes_cut || rules.moves();
        let joins = filter.line_log2 > 0 && line_log2[0].max(line_log2[1]) > filter.line_log2;
        let virtual_tags = !options.coherence && machine.caches.iter().any(|c| c.index == Index::Virtual);
        let pace = (machine.cycles_per_instruction.max(0.0) * 65536.0).round() as Ticks;
        Ok(Replay {
            cpus: (0..options.cpus)
                .map(|cpu| Cpu::new(engine.node(cpu as usize), pace, Core::new(machine, &policy.pages)))
                .collect(),
            chunk_totals: vec![0; recorded_cpus],
            placing,
            engine,
            observer,
            is_plain: comes_cut && !joins && rules.keeps_references(),
            cuts,
            joins,
            rules,
            order: options.order,
            only_user: options.only_user,
            filter_line_log2: if filter.line_log2 == 0 { 6 } else { filter.line_log2 },
            line_log2,
            virtual_tags,
            codes: codes_of(machine, policy, options),
            spaces: Vec::new(),
            sites: Sites::default(),
            numbers_sites: options.reasons,
            notes,
            next_seq: None,
            records: 0,
            earlier: Earlier::new(machine, options.starts_late),
            written_around: WrittenAround::of(machine),
            round: Round { is_even, ..Round::default() },
            round_began: 0,
            lead: vec![0; options.cpus as usize],
        })
    }

    /// Returns facts for the reader, one sentence each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Takes the next chunk, in order of `seq`.
    pub fn chunk(&mut self, header: &ChunkHeader, records: &[Record]) -> Result<(), ModelError> {
        self.check(header, records)?;
        let Some(mut placing) = self.placing.take() else { return self.replay_chunk(header, records) };
        placing.take(header, records)?;
        self.replay_placed(&mut placing, false)?;
        self.placing = Some(placing);
        Ok(())
    }

    /// Whether a recorder can have written a chunk behind the ones before.
    fn check(&mut self, header: &ChunkHeader, records: &[Record]) -> Result<(), ModelError> {
        let here = Position { chunk: header.seq, record: 0 };
        if self.next_seq.is_some_and(|next| next != header.seq) {
            return Err(here.bad(format!("chunk {} was expected", self.next_seq.unwrap_or(0))));
        }
        self.next_seq = header.seq.checked_add(1);
        let cpus = self.chunk_totals.len();
        let Some(total) = self.chunk_totals.get_mut(header.vcpu as usize) else {
            return Err(here.bad(format!("vCPU {} of {cpus}", header.vcpu)));
        };
        if header.records as usize != records.len() {
            return Err(here.bad(format!("{} records announced, {} there", header.records, records.len())));
        }
        if header.instructions < *total {
            return Err(here.bad("the vCPU's instruction count runs backwards"));
        }
        *total = header.instructions;
        Ok(())
    }

    fn replay_placed(&mut self, placing: &mut Placing, ended: bool) -> Result<(), ModelError> {
        while let Some((header, records)) = placing.next(ended) {
            self.replay_chunk(&header, &records)?;
        }
        Ok(())
    }

    /// A chunk of the CPU that it runs on.
    fn replay_chunk(&mut self, header: &ChunkHeader, records: &[Record]) -> Result<(), ModelError> {
        if self.order == Order::Recorded {
            self.cpus[header.vcpu as usize].context = header.context;
            let mut at = 0;
            loop {
                if self.is_plain {
                    at = self.plain(header.vcpu as usize, records, at, usize::MAX);
                }
                if at == records.len() {
                    break;
                }
                at = self.step(header.vcpu as usize, records, at, header.seq)?;
            }
            self.end_chunk(header);
            return Ok(());
        }
        if !self.round.takes(header) {
            self.run_round()?;
        }
        // In the modelled order another CPU may get to new code before the CPU of the chunk.
        if let Some(codes) = &mut self.codes {
            add_all(codes, records);
        }
        self.round.push(header, records);
        Ok(())
    }

    /// The window is over.
    pub fn finish(mut self) -> Result<(ModelTotals, O), ModelError> {
        if let Some(mut placing) = self.placing.take() {
            self.replay_placed(&mut placing, true)?;
        }
        self.run_round()?;
        let Replay { engine, mut observer, mut cpus, mut codes, sites, .. } = self;
        let mut totals = engine.finish(&sites, &mut |drained| report_drained(&mut cpus, &mut observer, drained));
        for cpu in &mut cpus {
            cpu.count_plain();
            cpu.tally.cycles = cpu.clock() >> 16;
            let levels = totals.caches.iter().map(|c| usize::from(c.level)).max().unwrap_or(0);
            cpu.tally.levels = cpu.misses[..levels].iter().map(Misses::tally).collect();
        }
        totals.translation = cpus.iter().filter_map(|cpu| cpu.core.translated()).reduce(|mut all, cpu| {
            all += cpu;
            all
        });
        totals.cpus = cpus.into_iter().map(|cpu| cpu.tally).collect();
        totals.records = self.records;
        observer.ended(&mut codes);
        Ok((totals, observer))
    }

    /// A CPU's clock: its instructions' cycles and its stalls.
    #[inline]
    pub(in crate::model) fn clock(&self, cpu: usize) -> u64 {
        self.cpus[cpu].clock() >> 16
    }

    /// The time at which a CPU acts: its own clock, or in the modelled order the round's, less the ticks charged ahead.
    #[inline]
    pub(in crate::model) fn now(&mut self, cpu: usize) -> u64 {
        let state = &mut self.cpus[cpu];
        let ahead = state.core.ahead(state.tally.instructions);
        (state.clock().saturating_sub(ahead) >> 16).saturating_add_signed(self.lead[cpu])
    }

    pub(in crate::model) fn count_instructions(&mut self, cpu: usize, new: u64, is_modelled: bool) {
        if new > 0 && is_modelled {
            self.cpus[cpu].executes(new);
            self.observer.instructions(cpu as u32, new);
        }
    }

    pub(in crate::model) fn end_chunk(&mut self, header: &ChunkHeader) {
        let state = &mut self.cpus[header.vcpu as usize];
        let new = state.instructions.chunk(header.instructions);
        let is_modelled = !(self.only_user && state.in_kernel);
        self.count_instructions(header.vcpu as usize, new, is_modelled);
    }

    /// Handles the record at `at` and what belongs to it; returns where the next begins.
    #[inline]
    pub(in crate::model) fn step(
        &mut self,
        cpu: usize,
        records: &[Record],
        at: usize,
        chunk: u64,
    ) -> Result<usize, ModelError> {
        let record = records[at];
        let kind = match record.kind() {
            Some(Kind::Control) => return self.control(cpu, records, at, chunk),
            Some(kind) => kind,
            None => return Err(Position { chunk, record: at }.bad("no kind of record has this number")),
        };
        self.look_ahead(cpu, records, at);
        let state = &mut self.cpus[cpu];
        let is_modelled = !(self.only_user && record.is_kernel());
        state.in_kernel = record.is_kernel();
        state.halted = false;
        if let Some(codes) = &mut self.codes {
            state.reaches_code(codes, record);
        }
        let instructions = record.instructions();
        if instructions > 0 {
            let new = state.instructions.record(instructions);
            self.count_instructions(cpu, new, is_modelled);
        }
        if !is_modelled {
            return Ok(at + 1);
        }
        let insn = record.insn().0;
        let kind = self.rules.kind(kind, self.cpus[cpu].context, insn);
        let (mut size, mut next) = (record.size(), at + 1);
        if self.joins {
            while let Some(second) = records.get(next).filter(|second| self.joined(record, **second)) {
                size += second.size();
                let new = self.cpus[cpu].instructions.record(second.instructions());
                self.count_instructions(cpu, new, true);
                next += 1;
            }
        }
        let record = record.with_kind(kind);
        let (address, vaddr) = self.moved(cpu, record);
        let second = record.flags() & FLAG_CONT != 0;
        self.records += 1;
        let waits = self.cpus[cpu].waits_if_hit(kind, vaddr, self.rules.page(record));
        let tally = &mut self.cpus[cpu].tally;
        if !second {
            match kind {
                Kind::Load | Kind::Atomic => tally.loads += 1,
                Kind::Store => tally.stores += 1,
                Kind::NtStore => {
                    tally.stores += 1;
                    tally.nt_stores += 1;
                    self.earlier.goes_around(address);
                }
                _ => {}
            }
        }
        tally.line_accesses += u64::from(kind != Kind::Fetch);
        let mut missed_before = 0;
        if second && record.flags() & FLAG_FIRST_HIT == 0 {
            missed_before = self.cpus[cpu].missed;
        }
        if self.cuts && self.is_cut(kind, address, size) || self.rules.parts(address, vaddr, size) {
            let (now, site, was_there, stayed) = (self.now(cpu), self.site(cpu, record), 0, 0);
            let whole = Access { cpu, kind, address, vaddr, size, site, missed_before, was_there, stayed, now, record };
            self.access_parts(&whole, second);
            return Ok(next);
        }
        self.earlier.note(record.paddr(), insn);
        if !self.is_plain && !waits && self.engine.hit(cpu, kind, address, vaddr) {
            self.cpus[cpu].missed = missed_before;
            let node = self.cpus[cpu].node;
            self.observer.hit(&Effective { cpu: cpu as u32, node, kind, address, vaddr, size, record });
        } else {
            let (now, site) = (self.now(cpu), self.site(cpu, record));
            let (was_there, stayed) = self.earlier.was_there(address, insn);
            let access =
                Access { cpu, kind, address, vaddr, size, site, missed_before, was_there, stayed, now, record };
            self.access(&access, second);
        }
        Ok(next)
    }

    /// Number of the call site of a record that may miss.
    #[inline(always)]
    pub(in crate::model) fn site(&mut self, cpu: usize, record: Record) -> u32 {
        if !self.numbers_sites {
            return 0;
        }
        self.sites.number(CallSite { context: self.cpus[cpu].context, insn: record.insn().0 })
    }

    /// Returns the address that identifies the record's line.
    #[inline]
    pub(in crate::model) fn address(&self, cpu: usize, record: Record) -> u64 {
        if self.virtual_tags { self.cpus[cpu].virtual_address(record) } else { record.paddr() }
    }

    /// Whether bytes reach beyond a first-level line.
    #[inline(always)]
    pub(in crate::model) fn is_cut(&self, kind: Kind, address: u64, size: u32) -> bool {
        let line = 1u64 << self.line_log2[usize::from(kind == Kind::Fetch)];
        u64::from(size) > line - (address & (line - 1))
    }

    /// Whether `second` is the other half of `first`, in the same first-level line.
    fn joined(&self, first: Record, second: Record) -> bool {
        let line_log2 = self.line_log2[usize::from(first.kind() == Some(Kind::Fetch))];
        let (from, to) = (first.vaddr(), second.vaddr());
        second.flags() & (FLAG_CONT | FLAG_FIRST_HIT) == FLAG_CONT
            && second.kind() == first.kind()
            && from >> line_log2 == to >> line_log2
            && to > from
            && to - from + u64::from(second.size()) <= 128
            && first.physical_page() == second.physical_page()
    }

    /// Handles an access that may miss: calls the engine, counts, notifies the observer. Returns the levels missed.
    fn access(&mut self, access: &Access, second: bool) -> u8 {
        let mut outcome = Outcome::default();
        let missed = self.engine.access(access, &mut outcome);
        self.count(access, second, missed, &mut outcome);
        missed
    }

    /// Handles a reference part by part, each in one first-level line, at the places that the policy gives its bytes.
    fn access_parts(&mut self, whole: &Access, second: bool) {
        let line = 1u64 << self.line_log2[usize::from(whole.kind == Kind::Fetch)];
        let flags = u64::from((whole.record.flags() & !FLAG_FIRST_HIT) | FLAG_CONT);
        let rest = Record { a: whole.record.a & !(63 << 58) | flags << 58, ..whole.record };
        let (mut done, mut missed_before) = (0u32, whole.missed_before);
        while done < whole.size {
            let (address, vaddr) = (whole.address + u64::from(done), whole.vaddr.wrapping_add(done.into()));
            let Place { address, vaddr, bytes } = self.rules.place(whole.cpu, address, vaddr, whole.size - done);
            let size = u64::from(bytes).min(line - (address & (line - 1))) as u32;
            let is_first = done == 0;
            let record = if is_first { whole.record } else { rest };
            self.cpus[whole.cpu].tally.line_accesses += u64::from(!is_first && whole.kind != Kind::Fetch);
            let (now, insn) = (self.now(whole.cpu), whole.record.insn().0);
            self.earlier.note(address, insn);
            let (was_there, stayed) = self.earlier.was_there(address, insn);
            let part = Access { address, vaddr, size, missed_before, was_there, stayed, now, record, ..*whole };
            missed_before |= self.access(&part, second || !is_first);
            done += size;
        }
    }

    fn control(&mut self, cpu: usize, records: &[Record], at: usize, chunk: u64) -> Result<usize, ModelError> {
        let here = Position { chunk, record: at };
        let group = here.group(records)?;
        let control = Control::decode(group[0], &group[1..]).map_err(|what| here.bad(what))?;
        match &control {
            Control::Switch { mm, .. } if *mm != 0 => {
                let known = self.spaces.iter().position(|known| known == mm);
                let number = known.unwrap_or_else(|| {
                    self.spaces.push(*mm);
                    self.spaces.len() - 1
                });
                self.cpus[cpu].space = number as u64 % 0xfff0 + 2;
            }
            Control::Share { line, owner, written } => {
                if *owner as usize >= self.cpus.len() {
                    return Err(here.bad(format!("line owned by vCPU {owner} of {}", self.cpus.len())));
                }
                self.engine.share(line << self.filter_line_log2, *owner as usize, *written);
            }
            Control::Context(context) => self.cpus[cpu].context = *context,
            Control::Code(block) => {
                if let Some(codes) = self.codes.as_mut().filter(|_| self.order == Order::Recorded) {
                    codes.add(block);
                }
            }
            Control::Branch { .. } => self.mispredicts(cpu, &control),
            Control::Halt => self.cpus[cpu].halted = true,
            Control::Mark { number: MARK_PART, .. } => {
                let recorded_cycles = (0..self.cpus.len()).map(|cpu| self.now(cpu)).max();
                self.earlier.pause(recorded_cycles.unwrap_or_default());
            }
            Control::Fence => {
                let now = self.now(cpu);
                let (cpus, observer) = (&mut self.cpus, &mut self.observer);
                self.engine.fence(cpu, now, &mut |drained| report_drained(cpus, observer, drained));
            }
            _ => {}
        }
        self.engine.control(cpu, &control);
        self.observer.control(cpu as u32, &control);
        Ok(at + group.len())
    }
}

impl<E: Engine, O: Observer> Replay<E, O> {
    /// Counts and reports the outcome of an access.
    #[inline(always)]
    pub(in crate::model) fn count(&mut self, access: &Access, second: bool, missed: u8, outcome: &mut Outcome) {
        let state = &mut self.cpus[access.cpu];
        state.missed = missed | access.missed_before;
        state.deep = missed > 1;
        let mut counted = missed & !access.missed_before;
        outcome.continuation = second && missed != 0 && counted == 0;
        while counted != 0 {
            let level = counted.trailing_zeros() as usize;
            counted &= counted - 1;
            if let (Some(class), Some(misses)) = (outcome.missed[level], state.misses.get_mut(level)) {
                misses.count(access.kind, class);
            }
        }
        let reread = self.written_around.as_mut().and_then(|lines| lines.reread(access, missed));
        state.waits(&mut self.codes, access, missed, reread, outcome);
        state.tally.stall_cycles += u64::from(outcome.stall_cycles);
        state.latest_loads.note(access, missed, state.node, outcome);
        if outcome.is_first_touch() {
            state.tally.first_touch_cycles += u64::from(outcome.stall_cycles);
        }
        let traffic = outcome.has_traffic();
        if traffic {
            outcome.add_traffic(&mut state.tally.bus);
        }
        if missed != 0 || traffic || outcome.stall_cycles > 0 {
            self.observer.miss(&access.effective(state.node), outcome);
        } else {
            self.observer.hit(&access.effective(state.node));
        }
    }
}
