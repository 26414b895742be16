//! What a run would have cost with its pages on other nodes.

use super::detect::Seen;
use super::plan::{self, Treatment};
use crate::rehearsal::{Cost, PLACEMENTS, rehearse, seeds, spread, waits};
use crate::replay::CaseError;
use crate::traced::Traced;
use nearmiss_machine::attribution::{Cause, RemoteObject};
use nearmiss_record::figures::{Cell, Table};
use nearmiss_record::model::BusTally;
use nearmiss_record::policy::{Home, HomePolicy, HomeRule, Policy};
use nearmiss_record::rehearsal::Rehearsal;

/// What a rehearsal varies, as its option is named.
pub const PARAMETER: &str = "homes";

/// Homes that a rehearsal tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Homes {
    /// The node of the CPU that touches a page first.
    FirstTouch,
    /// Page by page in turn.
    Interleave,
    /// The node that reads a page most.
    Used,
    /// Heap blocks on the node of the CPU that allocates them first.
    Pools,
}

impl Homes {
    const ALL: [(Homes, &'static str); 4] = [
        (Homes::FirstTouch, "first-touch"),
        (Homes::Interleave, "interleave"),
        (Homes::Used, "used"),
        (Homes::Pools, "pools"),
    ];

    /// By its name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, known)| *known == name).map(|(homes, _)| homes)
    }

    pub(super) fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(homes, _)| *homes == self).map_or("", |(_, name)| name)
    }

    /// Those that fit a treatment, the treatment's own last.
    pub fn fitting(treatment: &Treatment) -> Vec<Self> {
        match treatment {
            Treatment::Pools => vec![Homes::FirstTouch, Homes::Interleave, Homes::Pools, Homes::Used],
            Treatment::Interleave(_) => vec![Homes::FirstTouch, Homes::Used, Homes::Interleave],
            _ => vec![Homes::FirstTouch, Homes::Interleave, Homes::Used],
        }
    }

    /// The policy, for the objects that a treatment is about.
    pub fn policy(self, treatment: &Treatment, seen: &Seen) -> Policy {
        let rules: Vec<HomeRule> = match self {
            Homes::Pools => vec![HomeRule { pages: None, task: None, home: Home::Pool }],
            Homes::FirstTouch => objects(treatment, seen).flat_map(|o| plan::rules(o, Home::FirstTouch)).collect(),
            Homes::Interleave => objects(treatment, seen).flat_map(|o| plan::rules(o, Home::Interleave)).collect(),
            Homes::Used => objects(treatment, seen).flat_map(plan::rules_used).collect(),
        };
        Policy { home: HomePolicy::Rules(rules), ..Policy::default() }
    }
}

fn objects<'a>(treatment: &'a Treatment, seen: &'a Seen) -> Box<dyn Iterator<Item = &'a RemoteObject> + 'a> {
    match treatment {
        Treatment::Home(object) | Treatment::Interleave(object) => Box::new(std::iter::once(object)),
        other => {
            let cause = other.cause();
            Box::new(seen.objects.iter().filter(move |object| object.cause == cause))
        }
    }
}

/// Costs of the run as it was, and under other homes.
pub struct Replays {
    /// By policy and placement; the first policy is the run as it was.
    costs: Vec<Vec<Cost>>,
    names: Vec<&'static str>,
    /// Cycles of the command but for stalls.
    computing_cycles: u64,
    /// Seeds of the placements.
    pub placements: Vec<u64>,
}

impl Replays {
    /// Replays the run as it was, and with these homes.
    pub fn new(case: &Traced, treatment: &Treatment, seen: &Seen, homes: &[Homes]) -> Result<Self, CaseError> {
        let placements = seeds(case.machine(), PLACEMENTS);
        let changed = homes.iter().map(|homes| homes.policy(treatment, seen));
        let policies: Vec<Policy> = [Policy::default()].into_iter().chain(changed).collect();
        let costs = rehearse(case, &policies, &placements, &[])?;
        let names = ["as it was"].into_iter().chain(homes.iter().map(|homes| homes.name())).collect();
        let totals = &case.model.totals;
        Ok(Replays { costs, names, computing_cycles: totals.cycles - totals.stall_cycles, placements })
    }

    fn cycles(&self, cost: &Cost) -> f64 {
        (self.computing_cycles + cost.stall_cycles) as f64
    }

    /// The command's cycles as it was: median over the placements.
    pub fn cycles_before(&self) -> u64 {
        spread(self.costs[0].iter().map(|cost| self.cycles(cost))).0 as u64
    }

    /// Share of the command's cycles that the last homes save: median, least, most.
    pub fn gain(&self) -> (f64, f64, f64) {
        self.gain_of(self.costs.len() - 1)
    }

    fn gain_of(&self, at: usize) -> (f64, f64, f64) {
        let saved = |(before, after)| 1.0 - self.cycles(after) / self.cycles(before).max(1.0);
        spread(self.costs[0].iter().zip(&self.costs[at]).map(saved))
    }

    /// Share of bus reads that go to other nodes, as it was and with the last homes.
    pub fn remote(&self) -> (f64, f64) {
        let share = |costs: &[Cost]| spread(costs.iter().map(|cost| remote_share(&cost.bus))).0;
        (share(&self.costs[0]), share(&self.costs[self.costs.len() - 1]))
    }

    /// The table of the homes that were tried.
    pub fn table(&self, case: &Traced, subject: String) -> Rehearsal {
        let columns = [PARAMETER, "remote", "r", "l-n", "l-s", "l-m", "cycles", "saved"];
        Rehearsal {
            remedy: super::NAME.to_owned(),
            subject,
            basis: format!(
                "medians over {} page placements, {}; classes are of all bus reads of the command",
                self.placements.len(),
                waits(case)
            ),
            placements: self.placements.clone(),
            table: Table {
                title: "rehearsal".to_owned(),
                columns: columns.map(str::to_owned).to_vec(),
                rows: (0..self.costs.len()).map(|at| self.row(at)).collect(),
            },
            more: Vec::new(),
        }
    }

    fn row(&self, at: usize) -> Vec<Cell> {
        let median = |of: &dyn Fn(&Cost) -> f64| spread(self.costs[at].iter().map(of)).0;
        let count = |of: fn(&BusTally) -> u64| Cell::Count(median(&|cost| of(&cost.bus) as f64) as u64);
        vec![
            Cell::text(self.names[at]),
            Cell::Share(median(&|cost| remote_share(&cost.bus))),
            count(|bus| bus.read_remote),
            count(|bus| bus.read_local_none),
            count(|bus| bus.read_local_shared),
            count(|bus| bus.read_local_modified),
            Cell::Cycles(median(&|cost| self.cycles(cost)) as u64),
            Cell::Share(self.gain_of(at).0),
        ]
    }
}

fn remote_share(bus: &BusTally) -> f64 {
    bus.read_remote as f64 / bus.reads().max(1) as f64
}

/// The waits that local memory would have saved of those for remote memory, as a share of the command's cycles: where
/// tasks that stay find their pages. What they find in their caches comes on top.
pub fn bound_gain(case: &Traced, seen: &Seen) -> f64 {
    let latency = &case.machine().latency;
    let (local, remote) = (f64::from(latency.memory_local_cycles), f64::from(latency.memory_remote_cycles));
    let saved = if remote > local { 1.0 - local / remote } else { 0.0 };
    saved * seen.waits(Cause::Moved) as f64 / seen.cycles as f64
}
