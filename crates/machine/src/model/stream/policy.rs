//! Changes of a policy to a reference before the caches see it, and the refused parts of a policy.

use crate::describe::{self, Approximation};
use crate::model::options::{ModelError, ModelOptions};
use crate::model::stream::apart::{self, Apart};
use crate::model::stream::fields::{Fields, Place};
use nearmiss_record::machine::Machine;
use nearmiss_record::policy::StorePolicy;
use nearmiss_record::policy::{AddressPolicy, CallSite, Home, HomePolicy, HomeRule, PlacePolicy, Policy};
use nearmiss_record::reference::{Kind, Record};
use rustc_hash::FxHashSet;

/// Refuses what the machine or the trace's filter does not carry, in one sentence; returns what is only approximate.
pub(in crate::model) fn check(
    policy: &Policy,
    machine: &Machine,
    options: &ModelOptions,
) -> Result<Vec<Approximation>, ModelError> {
    let filter = options.filter;
    let places = policy.place != PlacePolicy::Recorded;
    if let StorePolicy::NonTemporal { .. } = policy.store {
        describe::can_go_around(filter, machine).map_err(ModelError::Refused)?;
    }
    if let AddressPolicy::Fields { .. } = policy.address {
        describe::can_place_fields(filter).map_err(ModelError::Refused)?;
    }
    if let PlacePolicy::Tasks { .. } = policy.place {
        describe::can_place_tasks(filter).map_err(ModelError::Refused)?;
    }
    if let HomePolicy::Rules(rules) = &policy.home {
        rules.iter().try_for_each(|rule| check_home(rule, machine, options)).map_err(ModelError::Refused)?;
    }
    if !policy.pages.is_recorded() && (machine.core.is_none() || machine.tlb.is_none()) {
        let why =
            format!("pages: the file of {} describes no translation by a core; add [core] and [tlb]", machine.name);
        return Err(ModelError::Refused(why));
    }
    apart::check(&policy.address, machine)?;
    let moves = policy.address != AddressPolicy::Recorded;
    Ok(describe::approximate_policy(filter, machine, moves, places))
}

fn check_home(rule: &HomeRule, machine: &Machine, options: &ModelOptions) -> Result<(), String> {
    if let Some((from, to)) = rule.pages.filter(|(from, to)| from >= to) {
        return Err(format!("home: the range {from:#x} to {to:#x} is empty; its end must lie above its begin"));
    }
    match rule.home {
        Home::Node(node) if node >= machine.memory.nodes => Err(format!(
            "home: node {node} of {}, which has {}; name one from 0 on",
            machine.name, machine.memory.nodes
        )),
        Home::Pool => describe::can_pool(options.filter),
        _ => Ok(()),
    }
}

/// A policy prepared for one lookup a reference.
#[derive(Clone, Debug)]
pub(in crate::model) struct Rules {
    /// Sorted, disjoint.
    ranges: Vec<(u64, u64)>,
    /// One a range, where objects move by numbers of their own; else empty.
    shifts: Vec<u64>,
    align_log2: u32,
    colors: u64,
    color_bytes: u64,
    apart: Apart,
    fields: Fields,
    /// A bit an instruction: some of its call sites go around.
    around: Vec<u64>,
    sites: FxHashSet<CallSite>,
    /// Call sites with non-temporal stores that become plain.
    plain: FxHashSet<CallSite>,
}

impl Rules {
    /// Refuses, in one sentence, what makes no sense.
    pub fn new(policy: &Policy) -> Result<Self, ModelError> {
        let mut rules = Rules {
            ranges: Vec::new(),
            shifts: Vec::new(),
            align_log2: 0,
            colors: 1,
            color_bytes: 0,
            apart: Apart::new(&policy.address)?,
            fields: Fields::new(&policy.address)?,
            around: Vec::new(),
            sites: FxHashSet::default(),
            plain: FxHashSet::default(),
        };
        if let AddressPolicy::Color { ranges, align, colors, line } = &policy.address {
            if !align.is_power_of_two() || *colors == 0 {
                let why = format!(
                    "color: alignment {align} and {colors} colors; alignment must be a power of two and colors at least 1"
                );
                return Err(ModelError::Refused(why));
            }
            let mut sorted = ranges.clone();
            sorted.retain(|(from, to)| from < to);
            sorted.sort_unstable();
            for (from, to) in sorted {
                match rules.ranges.last_mut() {
                    Some(last) if from <= last.1 => last.1 = last.1.max(to),
                    _ => rules.ranges.push((from, to)),
                }
            }
            rules.align_log2 = align.trailing_zeros();
            rules.colors = u64::from(*colors);
            rules.color_bytes = u64::from(*line);
        }
        if let AddressPolicy::Shift { objects } = &policy.address {
            let mut sorted = objects.clone();
            sorted.retain(|object| object.from < object.to);
            sorted.sort_unstable_by_key(|object| object.from);
            if let Some(pair) = sorted.windows(2).find(|pair| pair[1].from < pair[0].to) {
                let why = format!("shift: objects overlap at {:#x}; every address moves one way only", pair[1].from);
                return Err(ModelError::Refused(why));
            }
            rules.ranges = sorted.iter().map(|object| (object.from, object.to)).collect();
            // Modulo 2^64 a move down is a large move up.
            rules.shifts = sorted.iter().map(|object| object.by as u64).collect();
        }
        if let StorePolicy::NonTemporal { sites } = &policy.store {
            for site in sites {
                let word = site.insn as usize / 64;
                if word >= rules.around.len() {
                    rules.around.resize(word + 1, 0);
                }
                rules.around[word] |= 1 << (site.insn % 64);
                rules.sites.insert(*site);
            }
        }
        if let StorePolicy::Plain { sites } = &policy.store {
            rules.plain = sites.iter().copied().collect();
        }
        Ok(rules)
    }

    /// Whether references stay whole and of their kind, wherever they move.
    pub fn keeps_references(&self) -> bool {
        !self.apart.moves() && !self.fields.moves() && self.around.is_empty()
    }

    /// Whether whole references move.
    #[inline(always)]
    pub fn shifts(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// Whether any address moves.
    pub fn moves(&self) -> bool {
        self.shifts() || self.apart.moves() || self.fields.moves()
    }

    /// Whether bytes near these may move out of their lines.
    #[inline]
    pub fn parts(&self, address: u64, vaddr: u64, size: u32) -> bool {
        self.apart.concerns(address, size) || self.fields.concerns(vaddr, size)
    }

    /// Returns the virtual and the physical address by which a record's page is looked up: that of its first byte, in
    /// another array if its field is there.
    pub fn page(&self, record: Record) -> (u64, u64) {
        let (vaddr, paddr, size) = (record.vaddr(), record.paddr(), record.size());
        if !self.fields.concerns(vaddr, size) {
            return (vaddr, paddr);
        }
        let Place { address, vaddr, .. } = self.fields.place(paddr, vaddr, size);
        (vaddr, address)
    }

    /// Returns the place of a byte for a CPU, and how many of the `size` bytes from it on lie behind it.
    pub fn place(&self, cpu: usize, address: u64, vaddr: u64, size: u32) -> Place {
        if self.fields.moves() {
            return self.fields.place(address, vaddr, size);
        }
        let (moved, bytes) = self.apart.place(cpu, address, size);
        Place { address: moved, vaddr: vaddr.wrapping_add(moved.wrapping_sub(address)), bytes }
    }

    /// Bytes by which a virtual address moves up, modulo 2^64. The physical address moves by as much: bytes shifted
    /// beyond their page lie in the next recorded frame, at that frame's place.
    #[inline]
    pub fn shift(&self, vaddr: u64) -> u64 {
        let at = self.ranges.partition_point(|(from, _)| *from <= vaddr);
        if at == 0 || vaddr >= self.ranges[at - 1].1 {
            return 0;
        }
        if let Some(shift) = self.shifts.get(at - 1) {
            return *shift;
        }
        (vaddr >> self.align_log2) % self.colors * self.color_bytes
    }

    /// Whether a store of this instruction, in this calling context, becomes non-temporal.
    #[inline]
    fn goes_around(&self, context: u32, insn: u32) -> bool {
        self.around.get(insn as usize / 64).is_some_and(|word| word >> (insn % 64) & 1 != 0)
            && self.sites.contains(&CallSite { context, insn })
    }

    /// The kind of a reference of a call site, as the policy has it.
    #[inline]
    pub fn kind(&self, recorded: Kind, context: u32, insn: u32) -> Kind {
        match recorded {
            Kind::Store if self.goes_around(context, insn) => Kind::NtStore,
            Kind::NtStore if self.plain.contains(&CallSite { context, insn }) => Kind::Store,
            _ => recorded,
        }
    }
}
