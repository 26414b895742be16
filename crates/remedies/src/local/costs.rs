//! Cost of a run with its pages on other nodes, or with its tasks on other CPUs.

use super::apply::Bind;
use super::homes::Homes;
use super::places;
use super::plan::Treatment;
use super::remote_accesses::RemoteAccesses;
use nearmiss_analysis::{CaseError, Cost, PLACEMENTS, Replays, Traced, seeds, spread, waits};
use nearmiss_record::figures::{Cell, Table};
use nearmiss_record::finding::SavingRange;
use nearmiss_record::model::BusTally;
use nearmiss_record::policy::{Order, Policy};
use nearmiss_record::rehearsal::Rehearsal;

/// Name of the parameter, as its option is named.
pub const PARAMETER: &str = "policies";

/// One thing that a rehearsal changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nodes that hold the pages.
    Homes(Homes),
    /// CPUs that run the tasks.
    Places(Bind),
}

impl Change {
    /// Returns the change of this name, as a rehearsal takes it: slashes part the CPUs of a plan, since commas part
    /// values.
    pub fn named(name: &str) -> Option<Self> {
        let places = || Bind::parse(&name.replace('/', ",")).ok().map(Change::Places);
        Homes::named(name).map(Change::Homes).or_else(places)
    }

    fn name(&self) -> String {
        match self {
            Change::Homes(homes) => homes.name().to_owned(),
            Change::Places(bind) => bind.to_string().replace(',', "/"),
        }
    }

    /// Returns the changes that fit a treatment.
    pub fn fitting(treatment: &Treatment) -> Vec<Self> {
        match treatment {
            Treatment::Bind => [Bind::RoundRobin, Bind::Compact].map(Change::Places).to_vec(),
            other => Homes::fitting(other).into_iter().map(Change::Homes).collect(),
        }
    }

    fn clearing(&self, case: &Traced, treatment: &Treatment, seen: &RemoteAccesses) -> u64 {
        match self {
            Change::Homes(homes) => homes.clearing(case, treatment, seen),
            Change::Places(_) => 0,
        }
    }
}

/// Costs of the run as it was, and changed.
pub struct NumaCosts {
    /// Costs by policy and placement; the first policy is the run as it was.
    costs: Vec<Vec<Cost>>,
    changes: Vec<Change>,
    /// Cycles, by policy, that the kernel needs longer to clear pages which are no longer on the node that touches them
    /// first. It clears them at addresses of its own, before a replay can attribute them.
    clearing: Vec<u64>,
    /// Cycles of the command but for stalls.
    computing_cycles: u64,
    /// Seeds of the placements.
    pub placements: Vec<u64>,
}

impl NumaCosts {
    /// Replays the run as it was, and with each of these changes.
    pub fn new(
        case: &Traced,
        treatment: &Treatment,
        seen: &RemoteAccesses,
        changes: Vec<Change>,
    ) -> Result<Self, CaseError> {
        let placements = seeds(case.machine(), PLACEMENTS);
        let homes = |change: &Change| match change {
            Change::Homes(homes) => Some(homes.policy(treatment, seen)),
            Change::Places(_) => None,
        };
        let policies: Vec<Policy> = [Policy::default()].into_iter().chain(changes.iter().filter_map(homes)).collect();
        let mut with_homes = Replays::of(case).policies(&policies).placements(&placements).run()?.into_iter();
        let mut costs: Vec<Vec<Cost>> = with_homes.next().into_iter().collect();
        let mut placed = placed(case, seen, &changes, &placements, &costs)?.into_iter();
        costs.extend(changes.iter().filter_map(|change| match change {
            Change::Homes(_) => with_homes.next(),
            Change::Places(_) => placed.next(),
        }));
        let clearing = changes.iter().map(|change| change.clearing(case, treatment, seen));
        let clearing = [0].into_iter().chain(clearing).collect();
        let totals = &case.model.totals;
        Ok(NumaCosts { costs, changes, clearing, computing_cycles: totals.cycles - totals.stall_cycles, placements })
    }

    /// Returns the change that saves most. The last of several is the treatment's own, unless tasks are bound.
    pub fn best(&self) -> usize {
        let gain = |at: &usize| self.gain_of(*at).0;
        let places = (1..self.costs.len()).filter(|at| matches!(self.changes[at - 1], Change::Places(_)));
        // The first of those that save as much.
        places.rev().max_by(|a, b| gain(a).total_cmp(&gain(b))).unwrap_or(self.costs.len() - 1)
    }

    /// Returns the plan by which tasks are bound under the change of this number, if they are.
    pub fn plan(&self, at: usize) -> Option<&Bind> {
        match self.changes.get(at.checked_sub(1)?)? {
            Change::Places(bind) => Some(bind),
            Change::Homes(_) => None,
        }
    }

    /// The command's cycles under the policy of this number.
    fn cycles(&self, at: usize, cost: &Cost) -> f64 {
        (self.computing_cycles + self.clearing[at] + cost.stall_cycles) as f64
    }

    /// The command's cycles as it was: median over the placements.
    pub fn cycles_before(&self) -> u64 {
        spread(self.costs[0].iter().map(|cost| self.cycles(0, cost))).0 as u64
    }

    /// Share of the command's cycles that the change of this number saves: median, least, most.
    pub fn gain_of(&self, at: usize) -> (f64, f64, f64) {
        let saved = |(before, after)| 1.0 - self.cycles(at, after) / self.cycles(0, before).max(1.0);
        spread(self.costs[0].iter().zip(&self.costs[at]).map(saved))
    }

    /// Ends of what the change of this number saves of the whole run, where parts of it were recorded.
    pub fn of_whole_run(&self, at: usize) -> Option<SavingRange> {
        let [before, after] = [0, at].map(|at| self.costs[at].first());
        before?.saved_of_whole_run(after?, self.computing_cycles)
    }

    /// Share of bus reads that go to other nodes under the change of this number; 0: as it was.
    pub fn remote(&self, at: usize) -> f64 {
        spread(self.costs[at].iter().map(|cost| remote_share(&cost.bus))).0
    }

    /// The table of what was tried.
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
            Cell::text(at.checked_sub(1).map_or("as it was".to_owned(), |change| self.changes[change].name())),
            Cell::Share(median(&|cost| remote_share(&cost.bus))),
            count(|bus| bus.read_remote),
            count(|bus| bus.read_local_none),
            count(|bus| bus.read_local_shared),
            count(|bus| bus.read_local_modified),
            Cell::Cycles(median(&|cost| self.cycles(at, cost)) as u64),
            Cell::Share(self.gain_of(at).0),
        ]
    }
}

/// Costs of the run with its tasks bound, by plan and placement. Replays of bound tasks cover the command's user
/// addresses alone: their cost is set into the costs of the run as it was, where the rest stays.
fn placed(
    case: &Traced,
    seen: &RemoteAccesses,
    changes: &[Change],
    placements: &[u64],
    as_it_was: &[Vec<Cost>],
) -> Result<Vec<Vec<Cost>>, CaseError> {
    let bind = |change: &Change| match change {
        Change::Places(bind) => Some(places::policy(case, seen, bind)),
        Change::Homes(_) => None,
    };
    let bound: Vec<Policy> = changes.iter().filter_map(bind).collect::<Result<_, _>>()?;
    if bound.is_empty() {
        return Ok(Vec::new());
    }
    let policies: Vec<Policy> = [places::as_recorded(case)].into_iter().chain(bound).collect();
    let costs = Replays::of(case).policies(&policies).placements(placements).in_order(Order::Recorded).run()?;
    let set_in = |costs: &Vec<Cost>, before: &[Cost]| {
        let each = as_it_was.concat().into_iter().zip(before).zip(costs);
        each.map(|((was, before), after)| instead(&was, before, after)).collect()
    };
    Ok(costs[1..].iter().map(|bound| set_in(bound, &costs[0])).collect())
}

/// Returns a run's cost with one component replaced.
fn instead(was: &Cost, before: &Cost, after: &Cost) -> Cost {
    let change = |of: fn(&Cost) -> u64| (of(was) + of(after)).saturating_sub(of(before));
    let bus = BusTally {
        read_remote: change(|cost| cost.bus.read_remote),
        read_local_none: change(|cost| cost.bus.read_local_none),
        read_local_shared: change(|cost| cost.bus.read_local_shared),
        read_local_modified: change(|cost| cost.bus.read_local_modified),
        ..was.bus
    };
    Cost { stall_cycles: change(|cost| cost.stall_cycles), bus, ..was.clone() }
}

fn remote_share(bus: &BusTally) -> f64 {
    bus.read_remote as f64 / bus.reads().max(1) as f64
}
