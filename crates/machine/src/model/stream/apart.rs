//! Bytes that an address policy takes out of their lines: to a line of their own, or to a copy a CPU.

use crate::model::options::ModelError;
use nearmiss_record::machine::Machine;
use nearmiss_record::policy::AddressPolicy;
use rustc_hash::FxHashSet;

/// First address of the new lines: above all memory that a guest has, so that no placement moves them.
const NEW_LINES: u64 = 1 << 46;
const PAGE_LOG2: u32 = 12;

/// Bytes and their new place.
#[derive(Clone, Copy, Debug)]
struct MovedBytes {
    from: u64,
    to: u64,
    at: u64,
}

/// Such a policy, prepared for one lookup a reference.
#[derive(Clone, Debug, Default)]
pub(in crate::model) struct Apart {
    /// Ascending, disjoint.
    places: Vec<MovedBytes>,
    /// Bytes from one CPU's copies to the next one's; 0: all CPUs use the same bytes.
    bytes_a_cpu: u64,
    /// Pages of the bytes that move.
    pages: FxHashSet<u64>,
}

impl Apart {
    /// Prepares the policy; any other policy moves nothing. Refuses, in one sentence, what makes no sense.
    pub fn new(policy: &AddressPolicy) -> Result<Self, ModelError> {
        let (places, spacing, copies) = match policy {
            AddressPolicy::Apart { moved, spacing } => {
                let lines = moved.iter().map(|moved| (moved.from, moved.to, u64::from(moved.line)));
                (lines.collect::<Vec<_>>(), *spacing, false)
            }
            AddressPolicy::Copies { ranges, spacing } => {
                (ranges.iter().zip(0..).map(|((from, to), line)| (*from, *to, line)).collect(), *spacing, true)
            }
            _ => return Ok(Apart::default()),
        };
        let mut apart =
            Apart { bytes_a_cpu: if copies { places.len() as u64 * spacing } else { 0 }, ..Apart::default() };
        for (from, to, line) in places {
            if !spacing.is_power_of_two() || from >= to || from / spacing != (to - 1) / spacing {
                let why = format!(
                    "apart: the bytes {from:#x} to {to:#x} do not lie in one piece of {spacing} bytes, a power of two"
                );
                return Err(ModelError::Refused(why));
            }
            apart.pages.insert(from >> PAGE_LOG2);
            apart.places.push(MovedBytes { from, to, at: NEW_LINES + line * spacing + from % spacing });
        }
        apart.places.sort_unstable_by_key(|place| place.from);
        match apart.places.windows(2).find(|pair| pair[1].from < pair[0].to) {
            Some(pair) => Err(ModelError::Refused(format!("apart: {:#x} moves to two lines", pair[1].from))),
            None => Ok(apart),
        }
    }

    /// Whether any bytes move.
    pub fn moves(&self) -> bool {
        !self.places.is_empty()
    }

    /// Whether bytes near these may move.
    #[inline]
    pub fn concerns(&self, address: u64, size: u32) -> bool {
        self.moves()
            && size > 0
            && (self.pages.contains(&(address >> PAGE_LOG2))
                || self.pages.contains(&((address + u64::from(size) - 1) >> PAGE_LOG2)))
    }

    /// Returns a byte's place for a CPU, and how many of the `size` bytes from it on lie behind it.
    pub fn place(&self, cpu: usize, address: u64, size: u32) -> (u64, u32) {
        let next = self.places.partition_point(|place| place.to <= address);
        let until = |end: u64| u64::from(size).min(end - address) as u32;
        match self.places.get(next) {
            Some(place) if place.from <= address => {
                (place.at + (address - place.from) + cpu as u64 * self.bytes_a_cpu, until(place.to))
            }
            Some(place) => (address, until(place.from)),
            None => (address, size),
        }
    }
}

/// Refuses new lines that the machine would keep coherent together.
pub(in crate::model) fn check(policy: &AddressPolicy, machine: &Machine) -> Result<(), ModelError> {
    let (AddressPolicy::Apart { spacing, .. } | AddressPolicy::Copies { spacing, .. }) = policy else { return Ok(()) };
    let longest = machine.caches.iter().map(|cache| cache.line.0).max().unwrap_or(0);
    if *spacing >= longest {
        return Ok(());
    }
    let why =
        format!("apart: {spacing} bytes a line, and {} has lines of {longest}; set at least as many", machine.name);
    Err(ModelError::Refused(why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearmiss_record::policy::Moved;

    fn apart(moved: &[(u64, u64, u32)]) -> Result<Apart, ModelError> {
        let moved = moved.iter().map(|&(from, to, line)| Moved { from, to, line }).collect();
        Apart::new(&AddressPolicy::Apart { moved, spacing: 64 })
    }

    #[test]
    fn a_reference_is_cut_where_its_bytes_part() {
        let apart = apart(&[(0x1008, 0x1010, 0), (0x1018, 0x1020, 1)]).unwrap();
        assert_eq!(apart.place(1, 0x1000, 32), (0x1000, 8));
        assert_eq!(apart.place(1, 0x1008, 24), (NEW_LINES + 8, 8));
        assert_eq!(apart.place(1, 0x100c, 2), (NEW_LINES + 12, 2));
        assert_eq!(apart.place(1, 0x1010, 16), (0x1010, 8));
        assert_eq!(apart.place(1, 0x1018, 64), (NEW_LINES + 64 + 0x18, 8));
        assert_eq!(apart.place(1, 0x1020, 8), (0x1020, 8));
        assert!(apart.concerns(0x1ff0, 8) && apart.concerns(0x0ffc, 8) && !apart.concerns(0x0ff8, 8));
    }

    #[test]
    fn every_cpu_has_a_copy_of_its_own() {
        let policy = AddressPolicy::Copies { ranges: vec![(0x1000, 0x1040), (0x2040, 0x2080)], spacing: 64 };
        let copies = Apart::new(&policy).unwrap();
        let at = |cpu| copies.place(cpu, 0x2048, 8).0 - NEW_LINES;
        assert_eq!([at(0), at(1), at(2)], [0x48, 0xc8, 0x148]);
    }

    #[test]
    fn a_policy_without_sense_is_refused() {
        assert!(apart(&[(0x1000, 0x1010, 0), (0x1008, 0x1018, 1)]).is_err());
        assert!(apart(&[(0x1030, 0x1050, 0)]).is_err() && apart(&[(0x1010, 0x1010, 0)]).is_err());
    }
}
