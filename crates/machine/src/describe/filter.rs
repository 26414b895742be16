//! Which filter a trace for a machine may be made with, and which machines a filtered trace can be replayed on.
//!
//! The tap drops (counts, does not send) a reference to the line that its filter set remembers: the line this vCPU
//! referenced last among all lines with the same index bits. Dropping is exact if the model, had it seen the
//! reference, would have counted a first-level hit and changed nothing.
//!
//! **Claim.** Let D be the machine's first-level data cache and X the filter's line. The drop is exact if
//! 1. the filter's line is no longer than D's, and no longer than 64 bytes (a record's byte mask);
//! 2. the filter's index bits are address bits that also index D, and lie inside the page offset;
//! 3. one vCPU alone uses each instance of D;
//! 4. nothing takes lines out of D from behind: no outer level is inclusive;
//! 5. D's replacement is LRU, tree-PLRU or random.
//!
//! *Proof.* The tap filters by virtual address and a machine's D may be indexed by the physical one: inside the page
//! offset they are equal (2). Two lines of one D set agree in all of D's index bits, so in the filter's (2): any
//! reference of this vCPU to X's D set since the last one to X would have displaced X in the filter. None did, so X was
//! the last line this vCPU touched in its D set, and with (3) the last that anyone touched there through this cache. It
//! was filled or hit then; only a fill in the same set could evict it, and there was none; invalidation from behind is
//! excluded by (4), invalidation by another CPU's store concerns lines that the tap marked shared, which always pass. So
//! X is in D: a hit, which no outer level sees. X is the most recently used line of its set: touching it again leaves
//! LRU order and the tree's bits as they are, and random replacement keeps no state on a hit (5). SRRIP does not
//! qualify: the second touch promotes a line that the fill had inserted as distant. A store to X after loads only does
//! change state (clean to dirty, an upgrade): the filter remembers reads and writes apart, so the first store is sent.
//! Instruction fetches do not enter D: a checked machine's first level is split. ∎
//!
//! Where (3) or (4) fails, or D's index is hashed (2), the **one-line filter** remains: it remembers only the very last
//! line, data or instruction, of its vCPU, so between two touches of X nothing at all happened on that vCPU; and where
//! others share D or an inclusive level, it is cleared whenever another vCPU ran (`clear_on_slice`), so nothing
//! happened anywhere. This holds for the recorded order. SRRIP (5) admits no filter of ours: [`filter_for`] says so
//! through [`approximations`].

use super::check::{cpus_per_instance, sets};
use nearmiss_record::machine::{Cache, CacheKind, Inclusion, Index, Machine, Replacement};
use nearmiss_record::run::Filter;

/// log₂ of the smallest page any machine may have: below it virtual and physical addresses agree.
const PAGE_LOG2: u32 = 12;
/// log₂ of the most bytes a record's mask covers.
const MASK_LOG2: u32 = 6;

/// The strongest exact filter for a machine (as cut down to the guest's CPUs). `contexts` is left off: it is the
/// user's choice and changes no figure.
pub fn filter_for(machine: &Machine) -> Filter {
    let (index_low, index_bits) = if one_line_reason(machine).is_some() { (0, 0) } else { index_range(machine) };
    Filter {
        line_log2: line_log2(machine),
        index_low,
        index_bits,
        clear_on_slice: must_clear(machine),
        fetches: machine.caches.iter().any(|c| c.kind == CacheKind::Instruction),
        contexts: false,
    }
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
    if filter.index_bits > 0 {
        if let Some(reason) = one_line_reason(machine) {
            return Err(format!("the trace was made with a filter of several lines and {reason}; {again}"));
        }
        let (low, bits) = index_range(machine);
        if filter.index_low < low || filter.index_low + filter.index_bits > low + bits {
            return Err(format!(
                "the trace was filtered by address bits {} to {} and the first level of {} is indexed by bits {low} to {}; {again}",
                filter.index_low,
                filter.index_low + filter.index_bits - 1,
                machine.name,
                low + bits - 1
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

/// Whether a replay may move addresses (a color policy): objects that move change which lines share a set, so only a
/// filter that needs no sets is exact.
pub fn can_move_addresses(filter: Filter) -> Result<(), String> {
    if filter.index_bits == 0 {
        return Ok(());
    }
    Err("the trace was made with a filter of several lines, which is exact only where lines stay; record it with the one-line filter".into())
}

/// Figures that a replay of such a trace on such a machine gives only approximately, one sentence each.
pub fn approximations(filter: Filter, machine: &Machine) -> Vec<&'static str> {
    let mut notes = Vec::new();
    if filter.index_bits > 0 {
        notes.push("The first level's division into conflict and capacity misses is approximate: its fully associative shadow did not see what the filter dropped.");
        notes.push("The miss-ratio curve is approximate for sizes near the first level's: the filter dropped repeats.");
    }
    if first_data(machine).is_some_and(|d| d.replacement == Replacement::Srrip) {
        notes.push(
            "The first level's figures are approximate: under SRRIP a dropped repeat would have promoted its line.",
        );
    }
    if must_clear(machine) {
        notes.push("In the modelled order, first-level figures are approximate: CPUs that share a cache are interleaved within a slice, the filter was cleared between slices.");
    }
    notes
}

fn first_data(machine: &Machine) -> Option<&Cache> {
    machine.caches.iter().find(|c| c.level == 1 && c.kind != CacheKind::Instruction)
}

/// Condition 1.
fn line_log2(machine: &Machine) -> u32 {
    machine.caches.iter().map(|c| c.line.0.max(1).ilog2()).min().unwrap_or(MASK_LOG2).min(MASK_LOG2)
}

/// Condition 2: lowest bit and number of the index bits of the first level that lie inside the page offset.
fn index_range(machine: &Machine) -> (u32, u32) {
    let Some(d) = first_data(machine) else { return (0, 0) };
    let low = d.line.0.max(1).ilog2();
    let high = (low + sets(d).max(1).ilog2()).min(PAGE_LOG2);
    (low, high.saturating_sub(low))
}

/// Conditions 3 to 5, and a hashed first level: why only the one-line filter is exact.
fn one_line_reason(machine: &Machine) -> Option<String> {
    let d = first_data(machine)?;
    let name = &machine.name;
    if cpus_per_instance(machine, d.shared_by) > 1 {
        return Some(format!("hardware threads of {name} share their first level"));
    }
    if d.index == Index::Hashed {
        return Some(format!("the first level of {name} is indexed by a hash"));
    }
    if let Some(outer) = machine.caches.iter().find(|c| c.inclusion == Inclusion::Inclusive) {
        return Some(format!("level {} of {name} is inclusive and takes lines out of the first", outer.level));
    }
    if d.replacement == Replacement::Srrip {
        return Some(format!("the first level of {name} counts hits (SRRIP)"));
    }
    None
}

/// Another vCPU can change what this vCPU's first level holds, or in which order.
fn must_clear(machine: &Machine) -> bool {
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
        // 8 KiB, 2 ways, 32-byte lines: 128 sets, bits 5..12.
        assert_eq!(brief(filter_for(&machine("pentium-pro-4way-512k"))), (5, 5, 7, false));
        // 8 KiB, 4 ways, 64-byte lines: 32 sets, bits 6..11.
        assert_eq!(brief(filter_for(&machine("xeon-mp-4way-l3"))), (6, 6, 5, false));
        // Two threads a core share the first level.
        assert_eq!(brief(filter_for(&machine("xeon-ht-2x2"))), (6, 0, 0, true));
        assert_eq!(brief(filter_for(&machine("zen4-genoa"))), (6, 0, 0, true));
        // 64 KiB, 4 ways: 256 sets, of which bits 6..12 lie in the page; but its L2 is inclusive, and private.
        assert_eq!(brief(filter_for(&machine("neoverse-n1"))), (6, 0, 0, false));
        let mut n1 = machine("neoverse-n1");
        n1.caches.iter_mut().for_each(|c| c.inclusion = Inclusion::None);
        assert_eq!(brief(filter_for(&n1)), (6, 6, 6, false));
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
    fn what_a_filter_cannot_carry_is_refused_with_the_reason() {
        let mp = filter_for(&machine("xeon-mp-4way-l3"));
        let ppro = filter_for(&machine("pentium-pro-4way-512k"));
        let says = |f, m: &Machine, words: &str| {
            let e = can_replay(f, m).expect_err("this must be refused");
            assert!(e.contains(words), "{e}");
        };
        says(mp, &machine("pentium-pro-4way-512k"), "lines of 64 bytes");
        says(ppro, &machine("xeon-mp-4way-l3"), "bits 5 to 11");
        says(mp, &machine("zen4-genoa"), "share their first level");
        says(filter_for(&machine("neoverse-n1")), &machine("zen4-genoa"), "not cleared");
        says(Filter { fetches: false, ..mp }, &machine("xeon-mp-4way-l3"), "no instruction fetches");
        let mut inclusive = machine("xeon-mp-4way-l3");
        inclusive.caches[2].inclusion = Inclusion::Inclusive;
        says(mp, &inclusive, "inclusive");
        // The one-line filter, cleared, with the shortest lines, carries every machine.
        let all = Filter { line_log2: 5, clear_on_slice: true, fetches: true, ..Filter::default() };
        for p in crate::describe::PRESETS {
            assert_eq!(can_replay(all, &machine(p.name)), Ok(()), "{}", p.name);
        }
        assert!(can_move_addresses(all).is_ok() && can_move_addresses(mp).is_err());
        assert_eq!(approximations(mp, &machine("xeon-mp-4way-l3")).len(), 2);
    }

    /// The claim itself: an LRU first level sees the same misses with and without what the filter drops.
    #[test]
    fn dropping_repeats_changes_no_miss() {
        let mut m = machine("xeon-mp-4way-l3");
        m.caches[0].size = Bytes(8192);
        let filter = filter_for(&m);
        let d = first_data(&m).expect("a first level").clone();
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
