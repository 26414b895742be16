//! The paper's own figures, by its chapters, tables and figures.

/// Chapter 4, table 4.1-3: 8,186,880 kB in all, in records of 4 kB.
pub const RECORDS: f64 = 8_186_880.0 / 4.0;
/// Figure 4.2-4: an event in so many is a sample.
pub const SAMPLED: f64 = 3000.0;
/// OProfile's header, figure 4.2-4.
pub const CLOCK_HZ: f64 = 2201.02e6;

/// Figure 4.2-4: share of the copy among the samples of L3 misses, in percent.
pub const COPY_MISS_PERCENT: f64 = 63.1772;
/// Figure 4.2-5: share of the copy among references of L2 and L3, in percent.
pub const COPY_REFERENCE_PERCENT: f64 = 7.3122;
/// Figure 4.2-4: `_spin_lock_irqsave`.
pub const LOCK_IRQ_MISS_PERCENT: f64 = 1.7617;
/// Figure 4.2-4: `_spin_lock`.
pub const LOCK_MISS_PERCENT: f64 = 1.5854;
/// Figure 4.2-4: `blk_rq_map_sg`.
pub const MAP_PIECES_MISS_PERCENT: f64 = 1.5684;
/// Figure 4.2-4: `journal_add_journal_head`.
pub const JOURNAL_HEAD_MISS_PERCENT: f64 = 1.5430;
/// Figure 4.2-13: share of the copy among samples of the clock, in percent.
pub const COPY_CLOCK_PERCENT: f64 = 13.7168;

/// Table 4.2-4: samples of L3 misses, original.
pub const MISSES: f64 = 58_978.0;
/// Table 4.2-5: of those, in the copy.
pub const COPY_MISSES: f64 = 37_260.0;
/// Table 4.2-3: CPU time, original.
pub const CPU_SECONDS: f64 = 67.397;

/// Table 4.2-10: samples of L3 misses and of those in the copy, original.
pub const DECOMPOSED: [f64; 2] = [58_466.0, 37_125.0];
/// Table 4.2-10: samples of L3 misses where the copy bypasses.
pub const DECOMPOSED_AFTER: f64 = 17_583.0;

/// Counts left after a patch, in percent of the original.
#[derive(Clone, Copy, Debug)]
pub struct Left {
    /// L3 misses.
    pub misses: f64,
    /// L3 misses in the copy.
    pub copy_misses: f64,
    /// CPU time.
    pub cpu: f64,
}

/// Tables 4.2-3 to 4.2-5.
pub const FIRST_PATCH: Left = Left {
    misses: 15_112.0 / MISSES * 100.0,
    copy_misses: 37.0 / COPY_MISSES * 100.0,
    cpu: 59.400 / CPU_SECONDS * 100.0,
};
/// Tables 4.2-6 to 4.2-8.
pub const FINAL_PATCH: Left = Left {
    misses: 17_398.0 / MISSES * 100.0,
    copy_misses: 51.0 / COPY_MISSES * 100.0,
    cpu: 63.905 / CPU_SECONDS * 100.0,
};

/// Events of a record, of so many samples.
pub fn each(samples: f64) -> f64 {
    samples * SAMPLED / RECORDS
}

/// Cycles of a record.
pub fn cycles_each() -> f64 {
    CPU_SECONDS * CLOCK_HZ / RECORDS
}
