use crate::looks::Looks;
use crate::order::{Coin, Side};
use crate::pairs::Pairs;
use crate::{Better, Comparison, Error, Outcome, Rates, Sample, Stopped, Verdict, loads, rates};
use nearmiss_record::verdict::{SCHEMA, Sides, Start};
use std::time::Duration;

/// Fewer pairs cannot show a difference in either of two metrics: all agree in 2 of 2^n cases, and each has 1%.
pub const LEAST_PAIRS: usize = 8;

/// How a comparison is carried out.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The metric that the verdict is about.
    pub metric: String,
    /// A second metric that may decide where the first cannot, if its ratio lies within the first one's interval. Each
    /// has half of the error. Ignored where runs do not have it.
    pub second: Option<String>,
    /// Which way it is better.
    pub better: Better,
    /// Metrics that get a verdict of their own beside this one, and which way each is better.
    pub beside: Vec<(String, Better)>,
    /// Whether the two sides are known to do the same work; if not, no verdict on the metric stands.
    pub work_is_known: bool,
    /// The share of an offered rate that a load may miss, and of the requests that may fail.
    pub rate_tolerance: f64,
    /// Decides the order within the pairs.
    pub seed: u64,
    /// Runs of each side before the first that counts.
    pub warm_up: usize,
    /// Least number of pairs, at least [`LEAST_PAIRS`].
    pub least_pairs: usize,
    /// Largest number of pairs, however fast they are.
    pub most_pairs: usize,
    /// No new pair begins after this time, once the least number of pairs is done.
    pub time_limit: Duration,
    /// The error rate: how often a difference is claimed where there is none.
    pub alpha: f64,
    /// A difference of this share must not be missed: where it could be, the verdict is too
    /// noisy rather than no difference.
    pub resolution: f64,
    /// The gain that the user requires, as a share.
    pub required_gain: Option<f64>,
}

impl Default for Plan {
    fn default() -> Self {
        Plan {
            metric: crate::WALL.to_owned(),
            second: Some(crate::CPU.to_owned()),
            better: Better::Lower,
            beside: Vec::new(),
            work_is_known: true,
            rate_tolerance: 0.01,
            seed: 1,
            warm_up: 1,
            least_pairs: 10,
            most_pairs: 1000,
            time_limit: Duration::from_secs(120),
            alpha: 0.02,
            resolution: 0.03,
            required_gain: None,
        }
    }
}

impl Plan {
    fn check(&self) -> Result<(), Error> {
        let wrong = |what: &str| Err(Error::Parameters(what.to_owned()));
        if self.least_pairs < LEAST_PAIRS {
            return Err(Error::Parameters(format!(
                "the number of pairs must be at least {LEAST_PAIRS}: fewer cannot show a difference at 98%"
            )));
        }
        if !(self.alpha > 0.0 && self.alpha < 0.5 && self.resolution > 0.0 && self.resolution < 1.0) {
            return wrong("the error rate must lie between 0 and 0.5, the resolution between 0 and 1");
        }
        Ok(())
    }

    /// Returns the second metric, where the runs have it.
    fn second(&self, pairs: &Pairs) -> Option<&str> {
        self.second.as_deref().filter(|second| *second != self.metric && pairs.has(second))
    }

    /// How much of the time, or of the largest number of pairs, is used up.
    fn used(&self, pairs: usize, elapsed: Duration) -> f64 {
        let time = elapsed.as_secs_f64() / self.time_limit.as_secs_f64().max(1e-9);
        time.max(pairs as f64 / self.most_pairs.max(self.least_pairs) as f64)
    }
}

/// Source of samples.
pub trait Source {
    /// Runs one side once.
    fn measure(&mut self, side: Side) -> Result<Sample, Error>;

    /// The time since the beginning.
    fn elapsed(&mut self) -> Duration;

    /// Whether the remedy has done anything so far, or may have.
    fn has_acted(&self) -> bool {
        true
    }

    /// Returns the part of a run that the remedy's start takes.
    fn start(&self) -> Option<Start> {
        None
    }

    /// Returns the plan, adapted to the figures of the first runs.
    fn planned(&self, plan: &Plan) -> Plan {
        plan.clone()
    }
}

/// Compares two sides by samples of them, which come in pairs, one of each side. The caller knows who the sides are.
pub fn compare(plan: &Plan, source: &mut impl Source) -> Result<Verdict, Error> {
    plan.check()?;
    for _ in 0..plan.warm_up.max(1) {
        source.measure(Side::Without)?;
        source.measure(Side::With)?;
    }
    let plan = &source.planned(plan);
    let mut so_far = SoFar { plan, start: source.start(), pairs: Pairs::default() };
    let mut coin = Coin::new(plan.seed);
    let mut looks = None;
    loop {
        so_far.pairs.run(coin.next_pair(), |side| source.measure(side))?;
        let pairs = so_far.pairs.count();
        if !source.has_acted() {
            return so_far.ended(Outcome::NothingToActOn);
        }
        if !plan.work_is_known && plan.beside.is_empty() {
            return so_far.ended(Outcome::Undecided);
        }
        if rates::hopeless(so_far.rates().as_ref(), pairs) {
            return so_far.ended(Outcome::Void);
        }
        // Each of two metrics has half of the error.
        let metrics = if plan.second(&so_far.pairs).is_some() { 2.0 } else { 1.0 };
        let schedule = looks.get_or_insert_with(|| Looks::new(plan.least_pairs, plan.alpha / metrics));
        let elapsed = source.elapsed();
        let used = plan.used(pairs, elapsed);
        let Some(alpha) = schedule.look(pairs, used) else { continue };
        let comparison = so_far.judged(alpha)?;
        let stopped = match (is_decided(&comparison, plan), elapsed >= plan.time_limit) {
            (true, _) => Stopped::Decided,
            (false, true) => Stopped::TimeLimit,
            (false, false) => Stopped::PlannedEnd,
        };
        if stopped == Stopped::Decided || used >= 1.0 {
            let at = looks.map_or_else(Vec::new, Looks::into_pairs);
            let outcome = so_far.outcome(&comparison, alpha);
            return Ok(so_far.verdict(outcome, comparison, alpha, stopped, at));
        }
    }
}

/// A comparison under way.
struct SoFar<'a> {
    plan: &'a Plan,
    start: Option<Start>,
    pairs: Pairs,
}

impl SoFar<'_> {
    fn comparison(&self, metric: &str, better: Better, alpha: f64) -> Option<Comparison> {
        let start = self.start.as_ref().map_or(0.0, |start| start.high_seconds.max(0.0));
        self.pairs.comparison(metric, better, alpha, start)
    }

    /// The metrics with a verdict of their own, where the load kept up.
    fn named(&self, alpha: f64) -> Vec<Comparison> {
        let kept_up = self.pairs.kept_up();
        let figures = self.plan.beside.iter();
        figures.filter_map(|(name, better)| kept_up.comparison(name, *better, alpha, 0.0)).collect()
    }

    /// Returns the comparison that decides: of the plan's metric, or of its second one where only that separates the
    /// sides.
    fn judged(&self, alpha: f64) -> Result<Comparison, Error> {
        let plan = self.plan;
        let first = self.comparison(&plan.metric, plan.better, alpha).ok_or_else(|| {
            Error::Parameters(format!(
                "{}: not every run has it, or it is zero or negative, so no ratio can be formed",
                plan.metric
            ))
        })?;
        if first.outcome(plan.resolution).is_claim() {
            return Ok(first);
        }
        let second = plan.second(&self.pairs).and_then(|metric| self.comparison(metric, plan.better, alpha));
        // Not where the wall time disagrees, as it does for work that is spread over more CPUs.
        let agrees =
            |second: &Comparison| first.interval.is_some_and(|(low, high)| low <= second.ratio && second.ratio <= high);
        let decides = |second: &Comparison| second.outcome(plan.resolution).is_claim() && agrees(second);
        Ok(second.filter(decides).unwrap_or(first))
    }

    fn rates(&self) -> Option<Rates> {
        rates::of(&self.pairs, self.plan.rate_tolerance)
    }

    /// Returns the outcome of the metric, where the two sides did the same work.
    fn outcome(&self, comparison: &Comparison, alpha: f64) -> Outcome {
        let outcome = comparison.outcome(self.plan.resolution);
        let did_less = outcome == Outcome::Gain && self.closed_loop_slowed(alpha);
        match rates::void(self.rates().as_ref(), self.pairs.count()) || did_less {
            _ if !self.plan.work_is_known => Outcome::Undecided,
            true => Outcome::Void,
            false => outcome,
        }
    }

    /// Whether a load that offers no rate of its own got less done under B: less was spent because less was requested.
    fn closed_loop_slowed(&self, alpha: f64) -> bool {
        let is_result = self.plan.beside.iter().any(|(name, _)| name == loads::ACHIEVED);
        let rate = self.comparison(loads::ACHIEVED, Better::Higher, alpha).filter(|_| is_result);
        rate.is_some_and(|rate| rate.outcome(self.plan.resolution) == Outcome::Loss && rate.metric != self.plan.metric)
    }

    /// Returns the verdict ahead of the first look: no further pair could change it.
    fn ended(self, outcome: Outcome) -> Result<Verdict, Error> {
        let comparison = self.judged(self.plan.alpha)?;
        let (alpha, at) = (self.plan.alpha, vec![self.pairs.count()]);
        Ok(self.verdict(outcome, comparison, alpha, Stopped::Decided, at))
    }

    /// All metrics but one, those with a verdict of their own first.
    fn others(&self, but: &str, alpha: f64) -> Vec<Comparison> {
        let beside = &self.plan.beside;
        // Less is better of all that the caller did not name.
        let better = |name: &str| if name == self.plan.metric { self.plan.better } else { Better::Lower };
        let rest = self.pairs.metrics().into_iter().filter(|name| !beside.iter().any(|(known, _)| known == *name));
        // The rates report what a load offers and gets.
        let rest = rest.filter(|name| !loads::CONDITIONS.contains(&name.as_str()));
        let rest = rest.filter_map(|name| self.comparison(name, better(name), alpha));
        self.named(alpha).into_iter().chain(rest).filter(|comparison| comparison.metric != but).collect()
    }

    fn verdict(
        self,
        outcome: Outcome,
        comparison: Comparison,
        alpha: f64,
        stopped: Stopped,
        looks: Vec<usize>,
    ) -> Verdict {
        let others = self.others(&comparison.metric, alpha);
        let judged = |other: &Comparison| self.plan.beside.iter().any(|(name, _)| *name == other.metric);
        Verdict {
            schema: SCHEMA.to_owned(),
            kind: "measured".to_owned(),
            remedy: None,
            sides: Sides::default(),
            outcome,
            resolution: self.plan.resolution,
            error_rate: self.plan.alpha,
            pairs: self.pairs.count(),
            looks,
            stopped,
            seed: self.plan.seed,
            judged: others.iter().filter(|other| judged(other)).map(|other| other.metric.clone()).collect(),
            rates: self.rates(),
            others,
            required_gain: self.plan.required_gain,
            required_gain_met: self.plan.required_gain.map(|required| is_reached(outcome, &comparison, required)),
            comparison,
            engaged: None,
            start: self.start,
            predicted: None,
            notes: Vec::new(),
            order: self.pairs.order,
            without: self.pairs.without,
            with: self.pairs.with,
        }
    }
}

fn is_reached(outcome: Outcome, comparison: &Comparison, required: f64) -> bool {
    outcome == Outcome::Gain && comparison.gain_interval().is_some_and(|(low, _)| low >= required)
}

/// Whether further pairs could no longer change the verdict.
fn is_decided(comparison: &Comparison, plan: &Plan) -> bool {
    let settled = match comparison.outcome(plan.resolution) {
        Outcome::Gain | Outcome::Loss => true,
        // Twice as fine as need be: the required difference would have been seen by now.
        Outcome::NoDifference => comparison.smallest_detectable.is_some_and(|seen| seen <= plan.resolution / 2.0),
        Outcome::TooNoisy | Outcome::NothingToActOn | Outcome::Void | Outcome::Undecided => false,
    };
    let requirement_settled = match (plan.required_gain, comparison.gain_interval()) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(required), Some((low, high))) => low >= required || high < required,
    };
    settled && requirement_settled
}
