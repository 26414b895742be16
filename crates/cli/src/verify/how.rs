//! How any two sides are compared: the arguments that all of `verify` shares, and the plan that follows from them.

use nearmiss_record::run;
use nearmiss_record::verdict::Better;
use nearmiss_verify::{Error, LEAST_PAIRS, Metric, Plan};
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of every comparison.
#[derive(clap::Args)]
pub struct How {
    /// Judge a number that the command prints: the regular expression's first group [default: wall time, or the
    /// CPU time where only that tells the two apart]
    #[arg(long, value_name = "REGEX")]
    pub metric: Option<String>,
    /// A higher number is better
    #[arg(long, requires = "metric")]
    higher: bool,
    /// A shell command that runs to its end before each run, and is not measured
    #[arg(long, value_name = "CMD")]
    pub prepare: Option<String>,
    /// A shell command that runs beside each run: is it harmed?
    #[arg(long, value_name = "CMD")]
    pub beside: Option<String>,
    /// Also count this event, as `perf list` names it (repeatable) [default: cycles, instructions and cache-misses,
    /// where the machine has counters]
    #[arg(long = "count", value_name = "EVENT")]
    pub count: Vec<String>,
    /// Exit with 1 unless this gain is certain, such as 5%
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    require_gain: Option<f64>,
    /// Run at least so many pairs: more than decide the verdict make its interval narrower
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(LEAST_PAIRS as i64..))]
    pairs: u16,
    /// Begin no new pairs after this time, once the least number of pairs is done
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = parse_limit)]
    time_limit: Duration,
    /// Seed of the order of runs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print the verdict as JSON
    #[arg(long)]
    pub json: bool,
    /// Where the verdict and the runs' output are kept
    #[arg(long, value_name = "DIR", default_value = run::DEFAULT_PARENT)]
    pub runs: PathBuf,
}

impl How {
    /// What the verdict is about. Errors: an expression that is none.
    pub fn judged(&self) -> Result<Metric, Error> {
        self.metric.as_deref().map_or_else(|| Ok(Metric::default()), Metric::printed)
    }

    /// The plan of a comparison by this metric.
    pub fn plan(&self, metric: &Metric) -> Plan {
        let default = Plan::default();
        Plan {
            metric: metric.name().to_owned(),
            // Of a number that the command prints, no other number says whether it is better.
            second: default.second.filter(|_| self.metric.is_none()),
            better: if self.higher { Better::Higher } else { Better::Lower },
            seed: self.seed,
            least_pairs: self.pairs.into(),
            most_pairs: default.most_pairs.max(self.pairs.into()),
            time_limit: self.time_limit,
            required_gain: self.require_gain,
            ..default
        }
    }
}

/// A time in which something can be measured.
fn parse_limit(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(Duration::ZERO) => Err("no pair fits in no time; write for example 30s".to_owned()),
        Ok(limit) => Ok(limit),
        Err(error) => Err(error.to_string()),
    }
}

/// `5%` or `0.05`, as a share.
fn parse_share(text: &str) -> Result<f64, String> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|p| p / 100.0),
        None => text.parse(),
    };
    share
        .ok()
        .filter(|s| (0.0..1.0).contains(s))
        .ok_or_else(|| format!("`{text}` is not a share; write for example 5%"))
}
