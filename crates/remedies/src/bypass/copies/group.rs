//! Copies that go past the caches together: all ways of one call, or those that a user named.

use super::blame::{Blame, Costs, blame};
use super::locate::Locator;
use super::sight::{CopyCounts, Sights};
use super::site::{CodeLocation, Site};
use super::way::{CopyWay, Ways};
use nearmiss_analysis::Traced;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// A group of copies: see the module's text.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Name of the group.
    pub site: Site,
    /// Function of the call, or of the copying instruction, for people.
    pub function: String,
    /// A preloaded library can take the place of the called function.
    pub is_reachable: bool,
    /// The kernel copies.
    pub is_kernels: bool,
    /// Counts of the group's copies.
    pub seen: CopyCounts,
    /// Misses that the group is blamed for.
    pub blame: Blame,
    /// Most cycles that the blamed misses cost the command.
    pub blamed_cycles: u64,
}

impl Group {
    /// Returns the misses that the group is blamed for, but those of first levels: these hold too little for a table
    /// and a copy.
    pub fn blamed_beyond_first(&self) -> u64 {
        self.blame.by_cache().filter(|(cache, _)| !cache.starts_with("L1")).map(|(_, misses)| misses).sum()
    }
}

/// Groups of a run.
pub(super) struct Groups<'a> {
    case: &'a Traced,
    ways: Ways<'a>,
    locator: Locator,
    seen: Vec<(CopyWay, CopyCounts)>,
    blamed: FxHashMap<CopyWay, Blame>,
}

impl<'a> Groups<'a> {
    pub fn new(case: &'a Traced, ways: Ways<'a>, sights: Sights) -> Self {
        let blamed = blame(&ways, &case.pollution);
        Groups { case, ways, locator: Locator::new(sights.mappings), seen: sights.ways, blamed }
    }

    /// Returns one group a call, and one a function that copies by itself.
    pub fn all(&self) -> Vec<Group> {
        let mut by_call: BTreeMap<CopyWay, Vec<usize>> = BTreeMap::new();
        for (at, (way, _)) in self.seen.iter().enumerate() {
            let key = match way {
                CopyWay::Called { call, .. } => CopyWay::Called { call: *call, outer: 0 },
                CopyWay::Inside(_) => *way,
            };
            by_call.entry(key).or_default().push(at);
        }
        let shared = |way: &CopyWay| match way {
            CopyWay::Called { call, .. } => {
                let function = self.ways.function(*call);
                let same = |other: &&CopyWay| matches!(other, CopyWay::Called { call, .. } if self.ways.function(*call) == function);
                by_call.keys().filter(same).count() > 1
            }
            CopyWay::Inside(_) => true,
        };
        by_call.iter().filter_map(|(way, members)| Some(self.group(self.name(*way, shared(way))?, members))).collect()
    }

    /// Returns the groups that a user named; `Err`: the name that nothing in the run has.
    pub fn named(&self, sites: &[Site]) -> Result<Vec<Group>, Site> {
        sites.iter().map(|site| self.of(site)).collect()
    }

    fn of(&self, site: &Site) -> Result<Group, Site> {
        let fits = |way: &CopyWay| match way {
            CopyWay::Called { call, outer } => {
                self.lies(*call, &site.place) && site.caller.as_ref().is_none_or(|caller| self.lies(*outer, caller))
            }
            CopyWay::Inside(function) => site.caller.is_none() && self.is_function(*function, &site.place),
        };
        let members: Vec<usize> = (0..self.seen.len()).filter(|at| fits(&self.seen[*at].0)).collect();
        if members.is_empty() { Err(site.clone()) } else { Ok(self.group(site.clone(), &members)) }
    }

    fn group(&self, site: Site, members: &[usize]) -> Group {
        let mut seen = CopyCounts::default();
        let mut blame = Blame::default();
        for (way, part) in members.iter().map(|at| &self.seen[*at]) {
            seen.add(part);
            blame.extend(self.blamed.get(way));
        }
        let first = members.first().map(|at| self.seen[*at].0);
        let function = match first {
            Some(CopyWay::Called { call, .. }) => self.ways.function(call),
            Some(CopyWay::Inside(function)) => function,
            None => 0,
        };
        Group {
            site,
            function: self.ways.name(function).to_owned(),
            is_reachable: matches!(first, Some(CopyWay::Called { .. })),
            is_kernels: self.ways.is_kernel(function),
            blamed_cycles: Costs::of(self.case, self.ways).most(&blame),
            seen,
            blame,
        }
    }

    /// Returns the call's function where its name identifies the call, else the call's address.
    fn name(&self, way: CopyWay, shared: bool) -> Option<Site> {
        let place = match way {
            CopyWay::Called { call, .. } => {
                let function = self.ways.function(call);
                let name = self.ways.name(function);
                if !shared && is_word(name) {
                    Some(CodeLocation::Function(name.to_owned()))
                } else {
                    self.address(call, function)
                }
            }
            CopyWay::Inside(function) => {
                let stores = self.seen.iter().find(|(other, _)| *other == way)?.1.sites.first()?.insn;
                self.address(stores, function)
                    .or_else(|| Some(CodeLocation::Function(self.ways.name(function).to_owned())))
            }
        };
        Some(Site { place: place?, caller: None })
    }

    fn address(&self, insn: u32, function: u32) -> Option<CodeLocation> {
        let vaddr = self.case.side.insns.get(insn as usize)?.vaddr;
        let path = self.ways.module(function);
        Some(CodeLocation::address(path, self.locator.linked(path, vaddr)?))
    }

    /// Whether an instruction lies at a place.
    fn lies(&self, insn: u32, place: &CodeLocation) -> bool {
        let function = self.ways.function(insn);
        match place {
            CodeLocation::Function(_) => insn != 0 && self.is_function(function, place),
            CodeLocation::Address { .. } => self.address(insn, function).as_ref() == Some(place),
        }
    }

    fn is_function(&self, function: u32, place: &CodeLocation) -> bool {
        let name = self.ways.name(function);
        matches!(place, CodeLocation::Function(wanted) if name.strip_prefix(wanted.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
    }
}

impl CopyCounts {
    /// Returns the share of a line's writes that somebody reads while a cache has it. One that is written again before
    /// that is not read soon.
    pub fn read_soon_share(&self) -> f64 {
        let ends = self.read_soon + self.read_late + self.written_again_soon + self.written_again_late;
        self.read_soon as f64 / ends.max(self.target_lines).max(1) as f64
    }

    /// Bytes of a copy.
    pub fn mean_bytes(&self) -> u64 {
        self.bytes / self.copies.max(1)
    }

    /// Both together; lines that both wrote count twice.
    pub fn add(&mut self, other: &CopyCounts) {
        self.sites.extend(&other.sites);
        self.copies += other.copies;
        self.bytes += other.bytes;
        self.target_lines += other.target_lines;
        self.source_lines += other.source_lines;
        self.read_soon += other.read_soon;
        self.read_late += other.read_late;
        self.written_again_soon += other.written_again_soon;
        self.written_again_late += other.written_again_late;
    }
}

/// A name that can be typed.
fn is_word(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.')
}
