//! The foundation's figures, measured here and now: `make bench`, or `cargo bench -p nearmiss-cli --bench foundation`.
//!
//! (a) counts and time beside cachegrind's, (b) the whole machine, (c) replay, (d) many geometries in one pass,
//! (e) boot, (f) memory, (g) what a trace costs by kind of program. Times are medians of interleaved runs with their
//! spread; nothing here gates anything.
//! With `-- NAME`, (a) alone, of the programs with it in their name; with `-- whole`, (b) to (f) alone;
//! with `-- slowdown`, (g) alone.

mod cachegrind;
mod programs;
mod slowdown;
mod whole;

use std::time::Duration;

/// Timed runs of each side.
const RUNS: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let place = tempfile::tempdir()?;
    programs::write_inputs(place.path())?;
    std::env::set_current_dir(place.path())?;
    match std::env::args().skip(1).find(|a| !a.starts_with('-')) {
        Some(only) if only == "whole" => whole::measure(),
        Some(only) if only == "slowdown" => slowdown::measure(),
        Some(name) => cachegrind::compare(&name),
        None => {
            cachegrind::compare("")?;
            whole::measure()?;
            slowdown::measure()
        }
    }
}

/// Median, least and greatest of some times.
fn spread(mut times: Vec<Duration>) -> (f64, String) {
    times.sort_unstable();
    let seconds = |d: Duration| d.as_secs_f64();
    let (low, median, high) = (seconds(times[0]), seconds(times[times.len() / 2]), seconds(times[times.len() - 1]));
    (median, format!("{median:.2} s [{low:.2}–{high:.2}]"))
}
