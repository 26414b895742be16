//! Command-line arguments of `apply pair`.

use crate::pair::level::SharedLevel;
use std::path::PathBuf;
use std::time::Duration;

/// `nearmiss apply pair`'s arguments, shared with the other verbs that take the remedy.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Take the table of pairs from this run, as `nearmiss rehearse pair` left it there; without it, hardware counters
    /// show who shares
    #[arg(long, value_name = "RUN")]
    pub table: Option<PathBuf>,
    /// Level that the tasks of a group are to share [default: the innermost that there are two of, else the innermost]
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub domain: Option<SharedLevel>,
    /// How often masks are looked at and groups are planned anew
    #[arg(long, value_name = "T", default_value = "1s", value_parser = period)]
    pub period: Duration,
    /// Who puts tasks beside each other: their affinity, or a scheduler of nearmiss's own in the kernel
    #[arg(long, value_enum, value_name = "WHAT", default_value = "affinity")]
    pub with: With,
    /// Also move tasks with an affinity that the program has set itself
    #[arg(long)]
    pub override_masks: bool,
    /// Read counts that every kernel has in place of hardware counters: it shows what the daemon costs, not who shares
    #[arg(long, hide = true)]
    pub stand_in_counters: bool,
}

/// Who puts tasks beside each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum With {
    /// A daemon that sets the affinity of tasks.
    #[default]
    Affinity,
    /// A scheduler in the kernel (sched_ext) that chooses the next task by the one that runs beside it.
    SchedExt,
}

impl Default for Args {
    fn default() -> Self {
        let (table, domain) = (None, None);
        let period = Duration::from_secs(1);
        Args { table, domain, period, with: With::Affinity, override_masks: false, stand_in_counters: false }
    }
}

fn period(text: &str) -> Result<Duration, String> {
    let bounds = Duration::from_millis(10)..=Duration::from_secs(3600);
    let period = humantime::parse_duration(text).ok().filter(|period| bounds.contains(period));
    period.ok_or_else(|| format!("{text} is not a time from 10ms to 1h, such as 500ms"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_is_long_enough_to_be_cheap() {
        assert_eq!(period("500ms"), Ok(Duration::from_millis(500)));
        assert!(period("9ms").is_err() && period("2h").is_err() && period("often").is_err());
    }
}
