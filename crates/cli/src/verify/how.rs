//! How any two sides are compared: the arguments that all of `verify` shares, and the plan that follows from them.

use super::load::UnderLoadArgs;
use super::share::parse_share;
use nearmiss_record::run;
use nearmiss_record::verdict::Better;
use nearmiss_verify::{Error, LEAST_PAIRS, Plan, Printed};
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of every comparison.
#[derive(clap::Args)]
pub struct ComparisonArgs {
    /// Judge a number that the command, or its load, prints: the regular expression's first group. Repeatable: each
    /// has a verdict of its own, and without a load the first one decides [default: wall time, or the CPU time where
    /// only that separates the two]
    #[arg(long, value_name = "REGEX")]
    metric: Vec<String>,
    /// A higher number is better: of each --metric, or of this one alone
    #[arg(long, value_name = "REGEX", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    higher: Vec<String>,
    #[command(flatten)]
    pub load: UnderLoadArgs,
    /// A shell command that runs to its end before each run, and is not measured
    #[arg(long, value_name = "CMD")]
    pub prepare: Option<String>,
    /// A shell command that runs beside each run: is it harmed?
    #[arg(long, value_name = "CMD")]
    pub beside: Option<String>,
    /// Also count this event, as `perf list` names it (repeatable); named with :u where the kernel lets this user count
    /// user mode alone [default: cycles, instructions and cache-misses, where the machine has counters]
    #[arg(long = "count", value_name = "EVENT")]
    pub count: Vec<String>,
    /// Exit with 1 unless this gain is certain, such as 5%
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    require_gain: Option<f64>,
    /// Run at least so many pairs: more than decide the verdict make its interval narrower
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(LEAST_PAIRS as i64..))]
    pairs: u16,
    /// Begin no new pairs after this time, once the least number of pairs is done
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = nearmiss_usage::some_time)]
    time_limit: Duration,
    /// Seed of the order of runs
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Print the verdict as JSON
    #[arg(long)]
    pub json: bool,
    /// Directory for the verdict and the runs' output
    #[arg(long, value_name = "DIR", default_value = run::DEFAULT_PARENT)]
    pub runs: PathBuf,
}

impl ComparisonArgs {
    /// The figures that are read of what the command, or its load, prints. Errors: an expression that is none, or
    /// nothing of which a higher number would be better.
    pub fn figures(&self) -> Result<Vec<Printed>, Error> {
        let (all, alone): (Vec<_>, Vec<_>) = self.higher.iter().partition(|expression| expression.is_empty());
        if !all.is_empty() && self.metric.is_empty() {
            let what =
                "--higher names the --metric that is better where it is higher; give --metric REGEX, or --higher=REGEX";
            return Err(Error::Parameters(what.to_owned()));
        }
        let better = if all.is_empty() { Better::Lower } else { Better::Higher };
        let metrics = self.metric.iter().map(|expression| Printed::new("--metric", expression, better));
        let higher = alone.into_iter().map(|expression| Printed::new("--higher", expression, Better::Higher));
        metrics.chain(higher).collect()
    }

    /// Whether the verdict is about a number that the command prints.
    pub fn judges_what_is_printed(&self) -> bool {
        !(self.load.is_given() || self.metric.is_empty() && self.higher.is_empty())
    }

    /// The plan of a comparison by these figures.
    pub fn plan(&self, figures: &[Printed]) -> Plan {
        let default = Plan::default();
        let first = figures.first();
        Plan {
            metric: first.map_or(default.metric, |first| first.name.clone()),
            // No other number decides whether a number that the command prints is better.
            second: default.second.filter(|_| first.is_none()),
            better: first.map_or(Better::Lower, |first| first.better),
            beside: figures.iter().skip(1).map(|figure| (figure.name.clone(), figure.better)).collect(),
            rate_tolerance: self.load.rate_within,
            seed: self.seed,
            least_pairs: self.pairs.into(),
            most_pairs: default.most_pairs.max(self.pairs.into()),
            time_limit: self.time_limit,
            required_gain: self.require_gain,
            ..default
        }
    }
}
