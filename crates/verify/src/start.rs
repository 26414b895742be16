//! Cost that a remedy adds to the start of a program: a part of every time with it, and of a short command's a large
//! one.

use crate::interval::Averages;
use crate::{Error, SideCommand};
use nearmiss_record::verdict::Start;
use nearmiss_workload::Stdio;
use std::time::{Duration, Instant};

/// Pairs of runs at most, and the time after which no other begins.
const PAIRS: usize = 40;
const LIMIT: Duration = Duration::from_secs(2);
/// Fewer give no interval at 95%.
const LEAST_PAIRS: usize = 6;

/// Measures it on a program that does nothing, plainly and under the remedy, as CPU time: what other programs do
/// meanwhile is not in it.
pub(crate) fn measure(mut without: SideCommand, mut with: SideCommand) -> Result<Start, Error> {
    let begun = Instant::now();
    let mut added = Vec::new();
    while added.len() < LEAST_PAIRS || (added.len() < PAIRS && begun.elapsed() < LIMIT) {
        // The order turns about, so that neither side is always the one that finds the caches warm.
        let (first, second) = if added.len() % 2 == 0 { (&mut without, &mut with) } else { (&mut with, &mut without) };
        let (first, second) = (cpu_seconds(first)?, cpu_seconds(second)?);
        added.push(if added.len() % 2 == 0 { second - first } else { first - second });
    }
    let averages = Averages::new(&added);
    let seconds = averages.middle().unwrap_or_default();
    let (low_seconds, high_seconds) = averages.interval(0.05).unwrap_or((seconds, seconds));
    for engagement in [without.engagement, with.engagement].into_iter().flatten() {
        engagement.end()?;
    }
    Ok(Start { program: without.name, pairs: added.len(), seconds, low_seconds, high_seconds })
}

fn cpu_seconds(side: &mut SideCommand) -> Result<f64, Error> {
    let quiet = side.workload.clone().stdin(Stdio::Null).stdout(Stdio::Null).stderr(Stdio::Null);
    let suspended = quiet.launch_suspended()?;
    let pid = suspended.pid();
    if let Some(engagement) = &mut side.engagement {
        engagement.started(pid)?;
    }
    let finished = suspended.resume()?.wait()?;
    if let Some(engagement) = &mut side.engagement {
        engagement.confirm(pid).map_err(|source| Error::NotEngaged { run: 0, source })?;
    }
    Ok((finished.user_ns + finished.system_ns) as f64 * 1e-9)
}
