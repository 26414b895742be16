//! Filters that a trace for a machine may be made with, and machines that a filtered trace can be replayed on.
//!
//! The tap drops (counts, does not send) a reference to the line that its filter set remembers: the line this vCPU
//! referenced last among all lines with the same index bits. Dropping is exact if the model, had it seen the
//! reference, would have counted a first-level hit and changed nothing.
//!
//! **Claim.** Let D be the machine's first-level data cache and X the line that the filter remembers in a set. The drop
//! is exact if
//! 1. the filter's line is no longer than D's, and no longer than 64 bytes (a record's byte mask);
//! 2. the filter's index bits are address bits that also index D, and lie inside the page offset;
//! 3. one vCPU alone uses each instance of D;
//! 4. every inclusive outer level, which takes lines out of D from behind, is also used by that vCPU alone, and
//!    indexed by address bits that include the filter's;
//! 5. D's replacement is LRU, tree-PLRU or random.
//!
//! *Proof.* The tap filters by virtual address and a machine's caches may be indexed by the physical one: inside the
//! page offset they are equal (2). Two lines of one set of D, or of an inclusive level, agree in all of its index bits,
//! so in the filter's (2, 4): any reference of this vCPU to X's set, in either, since the last one to X would have
//! displaced X in the filter. None did, so X was the last line this vCPU touched there, and with (3, 4) the last that
//! anyone touched there. It was filled or hit then; only a fill in the same set could evict it, from D or from behind,
//! and there was none. Another CPU's store can invalidate it: the tap makes every vCPU forget a line that another vCPU
//! stores to, and the vCPU that stored forget a line that another loads (`native/tap/sharing.c`). So X is in D: a hit,
//! which no outer level sees. X is the most recently used line of its set: touching it again leaves LRU order and the
//! tree's bits as they are, and random replacement keeps no state on a hit (5). SRRIP does not qualify: a second touch
//! promotes a line that the fill had inserted as distant. A store to X after loads only does change state (clean to
//! dirty, an upgrade): the filter remembers loads and stores apart, so the first store is sent. Fetches never enter D: a
//! checked machine's first level is split. ∎
//!
//! The same holds for fetches, their own filter (same index bits) and the first-level instruction cache, so its index
//! bits count in (2) and its sharing in (3). One gap remains, and [`approximations`] names it: behind an inclusive
//! *unified* level a fetch may push out a data line that the data filter remembers, and a reference a line of code.
//!
//! If (3) or (4) fails, or an index is hashed, the **one-line filter** remains. It remembers only the very last line
//! of data of its vCPU, and of code, so between two touches of X no other such line was touched there; and where several
//! CPUs use a first level or an inclusive one, it is cleared whenever another vCPU ran (`clear_on_slice`), so nothing happened anywhere.
//!
//! All this holds for the recorded order. The modelled order moves references inside a round of slices. The tap
//! therefore sends whole what two tasks touch on two CPUs, one of them writing, as long as they do. Drops of its filter
//! before it found the sharing are counted ([`SideTables::lost_before_share`](nearmiss_record::side::SideTables)).
//!
//! SRRIP (5) admits no filter of ours: [`approximations`] lists it, too.

use super::check::{cpus_per_instance, sets};
use nearmiss_record::machine::{Cache, CacheKind, Inclusion, Index, Machine, Replacement};
use nearmiss_record::run::{Associativity, Filter, FirstLevel};

/// log₂ of the smallest page any machine may have: below it virtual and physical addresses agree.
const PAGE_LOG2: u32 = 12;
/// log₂ of the most bytes a record's mask covers.
const MASK_LOG2: u32 = 6;

/// Returns the strongest exact filter for a machine (as cut down to the guest's CPUs). Further contents of a trace
/// (contexts, stores, tasks, the heap) are left off: they are the user's choice and change no figure.
pub fn filter_for(machine: &Machine) -> Filter {
    let line_log2 = line_log2(machine);
    let (index_low, index_bits) =
        if one_line_reason(machine).is_some() { (line_log2, 0) } else { index_range(machine) };
    Filter {
        line_log2,
        index_low,
        index_bits,
        clear_on_slice: must_clear(machine),
        fetches: machine.caches.iter().any(|c| c.kind == CacheKind::Instruction),
        branches: machine.core.is_some(),
        ..Filter::default()
    }
}

/// Ways of a set that a record can name.
const WAYS_MAX: u32 = 16;

/// Returns the part of the first level behind the filter of this machine (as cut down to the guest's CPUs) that the tap
/// can run itself, when the records go to one model of it that follows at once, and nowhere else.
///
/// The tap then is the first level, and the model keeps only what the tap reports. That is exact if one CPU is all
/// there is, sets and ways are the level's own, replacement can be followed without a clock or dice, and no outer level
/// takes lines out of it. Beyond misses the tap reports a line's first store, which makes it dirty; a use now and then,
/// for the shadow that separates conflicts from capacity; and, for a line that goes, whether it was used again, by
/// which pollution is judged.
pub fn first_level_for(machine: &Machine) -> Option<FirstLevel> {
    let filter = filter_for(machine);
    let alone = machine.topology.cpus() == 1 && filter.index_bits > 0 && filter.line_log2 == MASK_LOG2;
    let inclusive = machine.caches.iter().any(|c| c.inclusion == Inclusion::Inclusive);
    let first = |kind| {
        let mut caches = machine.caches.iter().filter(|c| c.level == 1 && c.kind == kind);
        let (cache, None) = (caches.next()?, caches.next()) else { return None };
        let tree = match cache.replacement {
            Replacement::Lru => false,
            Replacement::TreePlru => true,
            Replacement::Random | Replacement::Srrip => return None,
        };
        let whole = filter.index_low == MASK_LOG2
            && cache.line.0 == 1 << filter.line_log2
            && sets(cache) == 1 << filter.index_bits
            && cache.ways <= WAYS_MAX
            && cache.index != Index::Hashed;
        whole.then_some(Associativity { ways: cache.ways, tree })
    };
    let (data, fetch) = (first(CacheKind::Data), first(CacheKind::Instruction));
    let first = FirstLevel { data, fetch, misses_only: false };
    (alone && !inclusive && first != FirstLevel::default()).then_some(first)
}

/// Whether a machine's cores wait for loads that any filter drops: those behind a store to the same offset of another page,
/// though they hit. Less than a cycle is noise of a calibration.
pub fn every_load_counts(machine: &Machine) -> bool {
    machine.store_aliasing.is_some_and(|aliasing| aliasing.wait_cycles >= 1.0)
}

/// Returns the filter of [`filter_for`] for one model that only counts: the tap runs the first level of instructions,
/// with lines known since their translation. Data would need a lookup, for which such a model is too fast.
pub fn filter_for_counts(machine: &Machine) -> Filter {
    let fetch = first_level_for(machine).and_then(|first| first.fetch);
    let first_level = fetch.map(|_| FirstLevel { data: None, fetch, misses_only: true });
    Filter { first_level, branches: false, ..filter_for(machine) }
}

/// Whether the caches of `first` are those of `whole`.
fn is_part(first: FirstLevel, whole: Option<FirstLevel>) -> bool {
    let same = |of: Option<Associativity>, its| of.is_none() || of == its;
    whole.is_some_and(|whole| same(first.data, whole.data) && same(first.fetch, whole.fetch))
}

/// Whether a trace made with this filter can be replayed exactly on this machine; if not, why.
pub fn can_replay(filter: Filter, machine: &Machine) -> Result<(), String> {
    let again = "record the run again with -m of this machine";
    if filter.line_log2 > line_log2(machine) {
        return Err(format!(
            "the trace was filtered by lines of {} bytes and {} has lines of {}; {again}",
            1u64 << filter.line_log2,
            machine.name,
            1u64 << line_log2(machine)
        ));
    }
    if !filter.fetches && machine.caches.iter().any(|c| c.kind == CacheKind::Instruction) {
        return Err(format!(
            "the trace has no instruction fetches and {} has instruction caches; {again}",
            machine.name
        ));
    }
    if filter.first_level.is_some_and(|first| !is_part(first, first_level_for(machine))) {
        return Err(format!("the tap ran another first level than that of {}; {again}", machine.name));
    }
    if filter.index_bits > 0 {
        if let Some(reason) = one_line_reason(machine) {
            return Err(format!("the trace was made with a filter of several lines and {reason}; {again}"));
        }
        let (low, bits) = index_range(machine);
        if filter.index_low < low || filter.index_low + filter.index_bits > low + bits {
            return Err(format!(
                "the trace was filtered by address bits {} to {} and only bits {low} to {} separate sets of {}; {again}",
                filter.index_low,
                filter.index_low + filter.index_bits - 1,
                (low + bits).saturating_sub(1),
                machine.name,
            ));
        }
    }
    if must_clear(machine) && !filter.clear_on_slice {
        return Err(format!(
            "several CPUs of {} share a first level or an inclusive one, and the trace's filter was not cleared between their slices; {again}",
            machine.name
        ));
    }
    Ok(())
}

/// A figure that a replay is not exact in, as a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inexact {
    /// Off by an unknown amount to either side.
    Approximate(&'static str),
    /// Off to one side.
    Bound(&'static str),
}

impl Inexact {
    /// Returns the sentence.
    pub fn sentence(self) -> &'static str {
        match self {
            Inexact::Approximate(sentence) | Inexact::Bound(sentence) => sentence,
        }
    }
}

/// Figures that a replay of such a trace on such a machine is not exact in.
pub fn approximations(filter: Filter, machine: &Machine) -> Vec<Inexact> {
    let mut notes = Vec::new();
    if filter.index_bits > 0 {
        notes.push(Inexact::Approximate("The first level's division into conflict and capacity misses is approximate: its fully associative shadow did not see what the filter dropped."));
        notes.push(Inexact::Approximate(
            "The miss-ratio curve is approximate for sizes near the first level's: the filter dropped repeats.",
        ));
    }
    if filter.first_level.is_some() {
        notes.push(Inexact::Bound(
            "The first level's pollution counts lines that were in it at the end as never used again.",
        ));
    }
    notes.extend(approximate_misses(filter, machine));
    notes
}

/// Returns those approximations that concern how often a cache misses, and not only why.
pub fn approximate_misses(filter: Filter, machine: &Machine) -> Vec<Inexact> {
    let mut notes = Vec::new();
    if machine.caches.iter().any(|c| c.inclusion == Inclusion::Inclusive && c.kind == CacheKind::Unified)
        && filter.fetches
    {
        notes.push(Inexact::Bound("Inclusion victims of the first level are a lower bound: the filter dropped repeats of a line of code across data references, and the other way round."));
    }
    if machine.caches.iter().any(|c| c.level == 1 && c.replacement == Replacement::Srrip) {
        notes.push(Inexact::Approximate(
            "The first level's figures are approximate: under SRRIP a dropped repeat would have promoted its line.",
        ));
    }
    if must_clear(machine) {
        notes.push(Inexact::Approximate("In the modelled order, first-level figures are approximate: CPUs that share a cache are interleaved within a slice, the filter was cleared between slices."));
    }
    notes
}

/// Condition 1.
fn line_log2(machine: &Machine) -> u32 {
    machine.caches.iter().map(|c| c.line.0.max(1).ilog2()).min().unwrap_or(MASK_LOG2).min(MASK_LOG2)
}

/// First levels and inclusive levels: the filter must track which lines share a set there.
fn watched(machine: &Machine) -> impl Iterator<Item = &Cache> {
    machine.caches.iter().filter(|c| c.level == 1 || c.inclusion == Inclusion::Inclusive)
}

/// Condition 2: lowest bit and number of the index bits that all watched caches have, inside the page offset.
fn index_range(machine: &Machine) -> (u32, u32) {
    let low = watched(machine).map(|c| c.line.0.max(1).ilog2()).max().unwrap_or(PAGE_LOG2);
    let high = watched(machine).map(|c| c.line.0.max(1).ilog2() + sets(c).max(1).ilog2()).min().unwrap_or(0);
    (low, high.min(PAGE_LOG2).saturating_sub(low))
}

/// Conditions 3 to 5, and hashed indexes: why only the one-line filter is exact.
fn one_line_reason(machine: &Machine) -> Option<String> {
    let name = &machine.name;
    for cache in watched(machine) {
        let level = cache.level;
        if cpus_per_instance(machine, cache.shared_by) > 1 {
            return Some(match level {
                1 => format!("hardware threads of {name} share their first level"),
                _ => format!("CPUs of {name} share level {level}, which is inclusive and takes lines out of the first"),
            });
        }
        if cache.index == Index::Hashed {
            return Some(format!("level {level} of {name} is indexed by a hash"));
        }
        if level == 1 && cache.replacement == Replacement::Srrip {
            return Some(format!("the first level of {name} counts hits (SRRIP)"));
        }
    }
    None
}

/// Another vCPU can change the contents of this vCPU's first level, or their order.
pub(super) fn must_clear(machine: &Machine) -> bool {
    machine
        .caches
        .iter()
        .any(|c| (c.level == 1 || c.inclusion == Inclusion::Inclusive) && cpus_per_instance(machine, c.shared_by) > 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::describe::{cut, preset};
    use nearmiss_record::units::Bytes;

    fn machine(name: &str) -> Machine {
        cut(&preset(name).expect("a preset").machine().expect("a good one"), 4)
    }

    fn brief(f: Filter) -> (u32, u32, u32, bool) {
        (f.line_log2, f.index_low, f.index_bits, f.clear_on_slice)
    }

    #[test]
    fn each_machine_gets_the_strongest_filter_that_is_exact_for_it() {
        // 8 KiB of 32-byte lines: 128 sets of data, bits 5..12, and 64 of instructions, bits 5..11.
        assert_eq!(brief(filter_for(&machine("pentium-pro-4way-512k"))), (5, 5, 6, false));
        // 8 KiB, 4 ways, and 16 KiB, 8 ways, of 64-byte lines: 32 sets, bits 6..11.
        assert_eq!(brief(filter_for(&machine("xeon-mp-4way-l3"))), (6, 6, 5, false));
        // Two threads a core share the first level.
        assert_eq!(brief(filter_for(&machine("xeon-ht-2x2"))), (6, 6, 0, true));
        assert_eq!(brief(filter_for(&machine("zen4-genoa"))), (6, 6, 0, true));
        // 64 KiB, 4 ways: 256 sets, of which bits 6..12 lie in the page. Its inclusive L2 is private.
        assert_eq!(brief(filter_for(&machine("neoverse-n1"))), (6, 6, 6, false));
        let mut shared = machine("neoverse-n1");
        shared.caches[3].inclusion = Inclusion::Inclusive;
        assert_eq!(brief(filter_for(&shared)), (6, 6, 0, true));
    }

    #[test]
    fn a_first_level_is_run_by_the_tap_only_where_that_is_exact() {
        let one = |name: &str| cut(&preset(name).expect("a preset").machine().expect("a good one"), 1);
        let xeon = one("xeon-sapphire-rapids");
        let first = first_level_for(&xeon).expect("a level of its own");
        assert_eq!(first.data, Some(Associativity { ways: 12, tree: false }));
        assert_eq!(first.fetch, Some(Associativity { ways: 8, tree: true }));
        assert_eq!(first_level_for(&machine("xeon-sapphire-rapids")), None, "several CPUs");
        assert_eq!(first_level_for(&one("zen4-genoa")), None, "its second level is inclusive");
        assert_eq!(first_level_for(&one("pentium-pro-4way-512k")), None, "lines of 32 bytes");
        let filter = Filter { first_level: Some(first), ..filter_for(&xeon) };
        assert_eq!(can_replay(filter, &xeon), Ok(()));
        let half = Filter { first_level: Some(FirstLevel { data: None, ..first }), ..filter };
        assert_eq!(can_replay(half, &xeon), Ok(()));
        assert!(can_replay(filter, &one("xeon-icelake-sp")).is_ok(), "the same first level");
        let mut other = xeon;
        other.caches[0].replacement = Replacement::Random;
        let refused = can_replay(filter, &other).expect_err("another first level");
        assert!(refused.contains("another first level"), "{refused}");
        assert_eq!(can_replay(half, &other), Ok(()), "its instructions are as before");
        assert_eq!(first_level_for(&other), half.first_level);
    }

    #[test]
    fn a_filter_can_always_be_replayed_on_its_own_machine() {
        for p in crate::describe::PRESETS {
            for cpus in [1, 2, 4, 64] {
                let m = cut(&p.machine().expect("a good one"), cpus);
                can_replay(filter_for(&m), &m).unwrap_or_else(|e| panic!("{} at {cpus}: {e}", p.name));
            }
        }
    }

    #[test]
    fn a_machine_that_a_filter_cannot_carry_is_refused_with_the_reason() {
        let mp = filter_for(&machine("xeon-mp-4way-l3"));
        let ppro = filter_for(&machine("pentium-pro-4way-512k"));
        let refuses = |f, m: &Machine, words: &str| {
            let e = can_replay(f, m).expect_err("this must be refused");
            assert!(e.contains(words), "{e}");
        };
        refuses(mp, &machine("pentium-pro-4way-512k"), "lines of 64 bytes");
        refuses(ppro, &machine("xeon-mp-4way-l3"), "bits 5 to 10");
        refuses(mp, &machine("zen4-genoa"), "share their first level");
        let one_line = Filter { index_bits: 0, ..mp };
        refuses(one_line, &machine("zen4-genoa"), "not cleared");
        refuses(Filter { fetches: false, ..mp }, &machine("xeon-mp-4way-l3"), "no instruction fetches");
        let mut inclusive = machine("xeon-mp-4way-l3");
        inclusive.caches[2].inclusion = Inclusion::Inclusive;
        assert_eq!(can_replay(mp, &inclusive), Ok(()));
        inclusive.caches[2].line = Bytes(128);
        refuses(mp, &inclusive, "only bits 7 to 10");
        inclusive.caches[2].index = Index::Hashed;
        refuses(mp, &inclusive, "hash");
        // The one-line filter, cleared, with the shortest lines, carries every machine.
        let all = Filter { line_log2: 5, index_low: 5, clear_on_slice: true, fetches: true, ..Filter::default() };
        for p in crate::describe::PRESETS {
            assert_eq!(can_replay(all, &machine(p.name)), Ok(()), "{}", p.name);
        }
        assert_eq!(approximations(mp, &machine("xeon-mp-4way-l3")).len(), 2);
    }

    /// The claim itself: an LRU first level sees the same misses with and without the dropped references.
    #[test]
    fn dropping_repeats_changes_no_miss() {
        let m = machine("xeon-mp-4way-l3");
        let filter = filter_for(&m);
        let d = m.caches[0].clone();
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state >> 33
        };
        let addresses: Vec<u64> =
            (0..200_000).map(|_| if random() % 3 == 0 { random() % 65_536 } else { random() % 2_048 }).collect();
        let misses = |stream: &[u64]| {
            let mut lru: Vec<Vec<u64>> = vec![Vec::new(); sets(&d) as usize];
            stream
                .iter()
                .filter(|&&a| {
                    let line = a / d.line.0;
                    let set = &mut lru[(line % sets(&d)) as usize];
                    let hit = set.iter().position(|&l| l == line);
                    match hit {
                        Some(i) => {
                            set.remove(i);
                        }
                        None if set.len() == d.ways as usize => {
                            set.remove(0);
                        }
                        None => {}
                    }
                    set.push(line);
                    hit.is_none()
                })
                .count()
        };
        let mut remembered = vec![u64::MAX; 1 << filter.index_bits];
        let kept: Vec<u64> = addresses
            .iter()
            .copied()
            .filter(|a| {
                let slot = (a >> filter.index_low) as usize & ((1 << filter.index_bits) - 1);
                let line = a >> filter.line_log2;
                std::mem::replace(&mut remembered[slot], line) != line
            })
            .collect();
        assert!(kept.len() < addresses.len() * 9 / 10, "the filter drops something: {}", kept.len());
        assert_eq!(misses(&kept), misses(&addresses));
    }
}
