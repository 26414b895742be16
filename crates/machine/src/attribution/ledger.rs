//! Compact counts: a row costs little until it misses.

use crate::observer::Outcome;
use nearmiss_record::model::{BusTally, ByClass, LevelTally, MAX_LEVELS, Tally};
use nearmiss_record::reference::{FLAG_CONT, Kind, Record};

/// Number of misses, and their stalls.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    pub times: u64,
    pub stall_cycles: u64,
    /// Stall cycles of these behind branches that were predicted wrongly.
    pub mispredicted_cycles: u64,
}

impl Count {
    /// A miss that was counted once.
    #[inline]
    pub fn once(outcome: &Outcome) -> Self {
        Count { times: 1, stall_cycles: outcome.stall_cycles.into(), mispredicted_cycles: 0 }
    }
}

/// References and fetches, whether they hit or missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct References {
    pub loads: u64,
    /// Non-temporal ones included.
    pub stores: u64,
    pub nt_stores: u64,
    /// Second halves of straddling references: line accesses, not references.
    pub second_halves: u64,
    pub fetches: u64,
}

impl References {
    #[inline]
    pub fn count(&mut self, record: Record) {
        self.count_all(record, 1);
    }

    /// As many as are like this one.
    #[inline]
    pub fn count_all(&mut self, record: Record, times: u64) {
        if record.flags() & FLAG_CONT != 0 {
            self.second_halves += times;
            return;
        }
        match record.kind() {
            Some(Kind::Load | Kind::Atomic) => self.loads += times,
            Some(Kind::Store) => self.stores += times,
            Some(Kind::NtStore) => {
                self.stores += times;
                self.nt_stores += times;
            }
            Some(Kind::Fetch) => self.fetches += times,
            Some(Kind::Control) | None => {}
        }
    }

    pub fn add(&mut self, other: &References) {
        self.loads += other.loads;
        self.stores += other.stores;
        self.nt_stores += other.nt_stores;
        self.second_halves += other.second_halves;
        self.fetches += other.fetches;
    }

    pub fn all(&self) -> u64 {
        self.loads + self.stores + self.second_halves + self.fetches
    }
}

/// Part of a level's tally that a record belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TallyPart {
    Load = 0,
    Store = 1,
    Fetch = 2,
}

fn part(record: Record) -> TallyPart {
    match record.kind() {
        Some(Kind::Fetch) => TallyPart::Fetch,
        Some(Kind::Store | Kind::NtStore) => TallyPart::Store,
        _ => TallyPart::Load,
    }
}

/// Sums of the misses of one row and one [`TallyPart`].
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    misses: [ByClass; MAX_LEVELS],
    bus: BusTally,
    stall_cycles: u64,
    first_touch_cycles: u64,
    mispredicted_cycles: u64,
}

/// Misses of a row: indices into the [`Ledger`], 0 while there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Row([u32; 3]);

/// Misses of many rows.
#[derive(Debug)]
pub(super) struct Ledger {
    slots: Vec<Slot>,
}

impl Default for Ledger {
    fn default() -> Self {
        // Slot 0 is unused: a row that points there has no misses.
        Ledger { slots: vec![Slot::default()] }
    }
}

impl Ledger {
    /// Adds the outcome of `record` to `row`.
    #[inline]
    pub fn add(&mut self, row: &mut Row, record: Record, outcome: &Outcome) {
        self.add_all(row, record, outcome, Count::once(outcome));
    }

    /// Adds the outcomes of `count` records like this one.
    pub fn add_all(&mut self, row: &mut Row, record: Record, outcome: &Outcome, count: Count) {
        let index = &mut row.0[part(record) as usize];
        if *index == 0 {
            *index = self.slots.len() as u32;
            self.slots.push(Slot::default());
        }
        let slot = &mut self.slots[*index as usize];
        for (counts, class) in slot.misses.iter_mut().zip(outcome.missed) {
            if let Some(class) = class {
                counts[class as usize] += count.times;
            }
        }
        if transactions(outcome) > 0 {
            outcome.add_traffic_of(count.times, &mut slot.bus);
        }
        slot.stall_cycles += count.stall_cycles;
        slot.mispredicted_cycles += count.mispredicted_cycles;
        if outcome.is_first_touch() {
            slot.first_touch_cycles += count.stall_cycles;
        }
    }

    /// The row as the record writes it; cycles hold the stalls only.
    pub fn tally(&self, row: Row, references: &References, levels: usize) -> Tally {
        let mut tally = Tally {
            loads: references.loads,
            stores: references.stores,
            line_accesses: references.loads + references.stores + references.second_halves,
            nt_stores: references.nt_stores,
            levels: vec![LevelTally::default(); levels],
            ..Tally::default()
        };
        for (part, index) in row.0.iter().enumerate() {
            let slot = &self.slots[*index as usize];
            for (level, misses) in tally.levels.iter_mut().zip(&slot.misses) {
                match part {
                    0 => level.load_misses = *misses,
                    1 => level.store_misses = *misses,
                    _ => level.fetch_misses = *misses,
                }
            }
            let Slot { bus, stall_cycles, first_touch_cycles, mispredicted_cycles, .. } = *slot;
            tally += &Tally { bus, stall_cycles, first_touch_cycles, mispredicted_cycles, ..Tally::default() };
        }
        tally
    }
}

/// Returns the number of transactions that `outcome` caused.
pub(super) fn transactions(outcome: &Outcome) -> u64 {
    let others = [outcome.write_backs, u8::from(outcome.invalidated), outcome.nt_full, outcome.nt_partial];
    others.into_iter().map(u64::from).sum::<u64>() + u64::from(outcome.read.is_some())
}

/// Counts of one instruction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InsnRow {
    pub references: References,
    pub misses: Row,
}

impl InsnRow {
    pub fn is_idle(&self) -> bool {
        self.misses == Default::default() && self.references == References::default()
    }
}
