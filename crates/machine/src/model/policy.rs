//! What a policy changes about a reference before the caches see it.

use super::options::ModelError;
use nearmiss_record::policy::{AddressPolicy, Policy, StorePolicy};

/// A policy made ready to be asked once a reference.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Sorted, disjoint.
    ranges: Vec<(u64, u64)>,
    /// One a range, where objects move by numbers of their own; else empty.
    shifts: Vec<u64>,
    align_log2: u32,
    colors: u64,
    color_bytes: u64,
    /// A bit an instruction.
    around: Vec<u64>,
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
            around: Vec::new(),
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
        if let StorePolicy::NonTemporal { insns } = &policy.store {
            for &insn in insns {
                let word = insn as usize / 64;
                if word >= rules.around.len() {
                    rules.around.resize(word + 1, 0);
                }
                rules.around[word] |= 1 << (insn % 64);
            }
        }
        Ok(rules)
    }

    /// Whether any reference may be met otherwise than recorded.
    pub fn changes(&self) -> bool {
        self.moves() || !self.around.is_empty()
    }

    /// Whether any address moves.
    pub fn moves(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// Bytes by which a virtual address moves up, modulo 2^64. The physical address moves by as much: what is shifted beyond its
    /// page lies in the next recorded frame, which the placement puts wherever it puts that frame.
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

    /// Whether a store of this instruction becomes non-temporal.
    #[inline]
    pub fn goes_around(&self, insn: u32) -> bool {
        self.around.get(insn as usize / 64).is_some_and(|word| word >> (insn % 64) & 1 != 0)
    }
}
