//! The paper's own figures, by its sections and figures. Figures 5 to 7, 10, 14, 16, 18 and 19 are pictures; the values
//! that its text gives of them are here.

/// Section 4.2: mean run time under the proposed method, against the standard.
pub const MEAN_TIME_CHANGE_PERCENT: f64 = -5.0;
/// Section 4.2: longest run time.
pub const LONGEST_TIME_CHANGE_PERCENT: f64 = -12.0;
/// Section 4.2: the same in seconds, "50 s and more".
pub const LONGEST_TIME_SAVED_SECONDS: f64 = 50.0;
/// Section 4.2, figure 7: mean cache misses.
pub const MEAN_MISSES_CHANGE_PERCENT: f64 = -10.0;
/// Section 4.2, figure 7: most cache misses.
pub const MOST_MISSES_CHANGE_PERCENT: f64 = -38.0;
/// Figure 8: cycles of a call of the scheduler, standard and proposed.
pub const CALL_CYCLES: [f64; 2] = [3920.0, 26_078.0];
/// Figure 8: share of the time, in percent.
pub const CALL_PERCENT: [f64; 2] = [0.0015, 0.0096];
/// Figure 9: pairs that do not share judged high, in percent.
pub const LOW_JUDGED_HIGH_PERCENT: f64 = 0.7;
/// Figure 9: pairs that share judged low, in percent.
pub const HIGH_JUDGED_LOW_PERCENT: f64 = 28.0;
/// Section 4.3.1, figure 10: run time and share of the time in pairs that share.
pub const CORRELATION: f64 = -0.98;
/// Figure 15: (i) within (3), standard and proposed, in percent.
pub const HALF_APART_PERCENT: [f64; 2] = [43.8, 27.6];
/// Figure 17: changes of the placement a run, standard and proposed.
pub const CHANGES: [f64; 2] = [2.1, 34.8];
/// Runs of each scheduler.
pub const RUNS: usize = 10;
