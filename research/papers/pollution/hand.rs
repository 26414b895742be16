//! Figures that can be worked out without the model: how long a line lives in a last level under LRU, and so what the
//! copy's lines cost others (Che's approximation).

use super::function::Function;
use super::path::Work;
use super::replica::Counts;

/// Records for which a line stays that is not touched again, in a last level of so many lines: until as many others
/// came. With each record come `fresh` lines that are not used again, and `work.other` drawn from the pool.
pub fn lifetime_records(work: Work, lines: u64, fresh: f64) -> f64 {
    let pool = work.other_lines as f64;
    let came = |records: f64| fresh * records + pool * (1.0 - (-(work.other as f64) * records / pool).exp());
    let (mut low, mut high) = (0.0, 1e9);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if came(middle) < lines as f64 { low = middle } else { high = middle }
    }
    low
}

/// Misses a record on the pool.
pub fn other_misses(work: Work, lines: u64, fresh: f64) -> f64 {
    let records = lifetime_records(work, lines, fresh);
    work.other as f64 * (-(work.other as f64) * records / work.other_lines as f64).exp()
}

/// Lines a record that are not used again, as the model counted them.
pub fn fresh_lines(counts: &Counts) -> f64 {
    counts.each(counts.misses() - counts.of(Function::Other).misses)
}
