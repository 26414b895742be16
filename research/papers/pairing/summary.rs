//! Figures over many runs.

use super::figures::RUNS;
use super::kernel::TICKS_PER_SECOND;
use super::run::Counts;

/// A figure of a run.
pub type Value = dyn Fn(&Counts) -> f64;

/// Returns the run time.
pub fn seconds(counts: &Counts) -> f64 {
    counts.ticks as f64 / TICKS_PER_SECOND as f64
}

/// Returns the misses, in thousand millions.
pub fn misses(counts: &Counts) -> f64 {
    counts.did.misses / 1e9
}

/// Mean over all runs.
pub fn mean(runs: &[Counts], value: &Value) -> f64 {
    runs.iter().map(value).sum::<f64>() / runs.len().max(1) as f64
}

/// Largest of all runs.
pub fn most(runs: &[Counts], value: &Value) -> f64 {
    runs.iter().map(value).fold(f64::NEG_INFINITY, f64::max)
}

/// Smallest of all runs.
pub fn least(runs: &[Counts], value: &Value) -> f64 {
    runs.iter().map(value).fold(f64::INFINITY, f64::min)
}

/// Largest of as many runs as the paper made, on average.
pub fn most_of_ten(runs: &[Counts], value: &Value) -> f64 {
    let tens: Vec<f64> = runs.chunks(RUNS).map(|ten| most(ten, value)).collect();
    tens.iter().sum::<f64>() / tens.len().max(1) as f64
}

/// A whole number over all runs.
pub fn sum(runs: &[Counts], value: impl Fn(&Counts) -> u64) -> f64 {
    runs.iter().map(value).sum::<u64>() as f64
}

/// A part, in percent; NaN of nothing.
pub fn percent(part: f64, of: f64) -> f64 {
    part * 100.0 / of
}

/// A change, in percent.
pub fn change(now: f64, before: f64) -> f64 {
    (now / before - 1.0) * 100.0
}

/// Pearson's correlation.
pub fn correlation(runs: &[Counts], one: &Value, other: &Value) -> f64 {
    let (mean_one, mean_other) = (mean(runs, one), mean(runs, other));
    let product = |f: &Value, g: &Value, mean_f: f64, mean_g: f64| -> f64 {
        runs.iter().map(|counts| (f(counts) - mean_f) * (g(counts) - mean_g)).sum()
    };
    let both = product(one, other, mean_one, mean_other);
    both / (product(one, one, mean_one, mean_one) * product(other, other, mean_other, mean_other)).sqrt()
}

/// Changes of its placement.
pub fn changed(counts: &Counts) -> f64 {
    counts.changed() as f64
}

/// Share of the judgements of pairs that share (1) or do not (0) that were high (0), low (1) or none (2), in percent.
pub fn judged(runs: &[Counts], shares: usize, judged: usize) -> f64 {
    percent(sum(runs, |c| c.judged[shares][judged]), sum(runs, |c| c.judged[shares].iter().sum()))
}

/// Returns how much longer runs take than others, in percent: until all their tasks ended, and until each had on
/// average.
pub fn losses(runs: &[Counts], others: &[Counts]) -> [f64; 2] {
    let mean_end = |counts: &Counts| counts.ended.iter().sum::<u64>() as f64 / counts.ended.len().max(1) as f64;
    [change(mean(runs, &seconds), mean(others, &seconds)), change(mean(runs, &mean_end), mean(others, &mean_end))]
}
