//! From a cause of remote reads to a finding: what happens, why, what to do, what it would gain.

use super::apply::Bind;
use super::costs::{Change, NumaCosts};
use super::evidence::{self, reason};
use super::plan::Treatment;
use super::remote_accesses::RemoteAccesses;
use crate::command_line::command_line;
use nearmiss_analysis::{Case, CaseError, RehearsalRequest, Suspicion, Traced, Value};
use nearmiss_machine::attribution::{Cause, RemoteObject};
use nearmiss_machine::describe::{Approximation, approximate_policy};
use nearmiss_record::finding::{Base, EvidenceKind, EvidenceLine, Finding, Prediction, Reach};
use nearmiss_record::rehearsal::Rehearsal;
use nearmiss_record::words::percent;
use std::sync::Arc;

/// Remote reads of one cause.
pub struct Local {
    treatment: Treatment,
    seen: Arc<RemoteAccesses>,
}

impl Local {
    /// Makes the suspicion for a treatment, from what was seen of a run.
    pub fn new(treatment: Treatment, seen: Arc<RemoteAccesses>) -> Self {
        Local { treatment, seen }
    }

    /// The objects that it is about, most waits first.
    fn objects(&self) -> Vec<&RemoteObject> {
        match &self.treatment {
            Treatment::Home(object) | Treatment::Interleave(object) => vec![object],
            other => self.seen.objects.iter().filter(|object| object.cause == other.cause()).collect(),
        }
    }

    fn waits(&self) -> u64 {
        self.objects().iter().map(|object| object.waits).sum()
    }

    fn name(&self) -> String {
        let objects = self.objects();
        let mut names: Vec<String> = objects.iter().take(2).map(|object| format!("`{}`", object.name)).collect();
        if objects.len() > 2 {
            names.push("others".to_owned());
        }
        names.join(" and ")
    }

    fn symptom(&self) -> String {
        format!(
            "{} of the modelled cycles wait for {}, which lies in another node's memory",
            percent(self.most_gain()),
            self.name()
        )
    }

    fn cause(&self) -> String {
        let objects = self.objects();
        let Some(object) = objects.first() else { return String::new() };
        match &self.treatment {
            Treatment::Home(object) if object.cause == Cause::Elsewhere => format!(
                "{} on one node and it lies on another one: so it does where another task touched the rest of its large page \
                 (2 MiB) first, or where it was touched before the recording began.",
                used_by(&object.users)
            ),
            Treatment::Home(_) => format!(
                "{} touched it first, so the kernel put it on the node where that ran; {} on another node, and nobody \
                 else uses it.",
                threads(&object.first),
                used_by(&object.users)
            ),
            Treatment::Interleave(_) => {
                format!("{} of several nodes, and hardly anybody writes it.", used_by(&object.users))
            }
            Treatment::Bind => {
                "The task ran on several nodes, and its pages stayed where it touched them first.".to_owned()
            }
            Treatment::Pools => {
                "Tasks of several nodes use the blocks, and the allocator gives each back to where it first came from, not to the node \
                 that used it last.".to_owned()
            }
            Treatment::NoneForWritten | Treatment::NoneForFiles => {
                let why = reason(object.cause);
                format!("{}{}: no home of it is near all of them.", why[..1].to_uppercase(), &why[1..])
            }
        }
    }

    fn treatment_text(&self) -> String {
        match &self.treatment {
            Treatment::Home(_) => "Homes of its pages on the nodes that use them".to_owned(),
            Treatment::Interleave(_) => {
                "Its pages on all nodes in turn, so that none has to serve all; a copy on each node would make all reads local".to_owned()
            }
            Treatment::Bind => "Each task on a CPU of its own for all its life".to_owned(),
            Treatment::Pools => "Heap blocks from pools by thread".to_owned(),
            Treatment::NoneForWritten => "None by homes: the lines pass between the nodes wherever they lie".to_owned(),
            Treatment::NoneForFiles => "None by homes of the program's own memory".to_owned(),
        }
    }

    fn reach(&self, options: Option<&Vec<String>>) -> Reach {
        let inside = |why: &str, change: &str| Reach::Inside { why: why.to_owned(), change: change.to_owned() };
        match (&self.treatment, options) {
            (_, Some(_)) => Reach::Outside,
            (Treatment::NoneForWritten, _) => {
                inside("it is not a matter of homes", "write it less often, or let each node keep what it mostly uses")
            }
            (Treatment::NoneForFiles, _) => inside(
                "the page cache belongs to no program",
                "read the file first on the node that uses it, or keep a copy a node",
            ),
            _ => inside(
                "no call allocates this memory, so that nothing can choose its node from outside",
                "let the thread that uses it touch it first",
            ),
        }
    }

    /// Replays of the treatment, and the number of the one that it rests on.
    fn costs(&self, case: &Traced) -> Result<(NumaCosts, usize), CaseError> {
        let mut changes = Change::fitting(&self.treatment);
        if self.treatment != Treatment::Bind {
            changes.drain(..changes.len() - 1);
        }
        let costs = NumaCosts::new(case, &self.treatment, &self.seen, changes)?;
        let best = costs.best();
        Ok((costs, best))
    }

    fn prediction(&self, case: &Traced, (costs, best): &(NumaCosts, usize)) -> Prediction {
        // Savings of a change beside its cause are luck: on which node a plan begins, and whom that suits. They count
        // as far as the cause can save as much again, since a task that stays finds its lines in the caches, too.
        let most = 2.0 * self.most_gain();
        let (gain, low, high) = costs.gain_of(*best);
        let [gain, low, high] = [gain, low, high].map(|gain| gain.min(most));
        // Which blocks an allocator hands out cannot be replayed: at best each lies where it is read most.
        let at_most = self.treatment == Treatment::Pools;
        Prediction {
            gain,
            low: if at_most { 0.0 } else { low },
            high,
            of_whole_run: costs.of_whole_run(*best),
            modelled_cycles: costs.cycles_before(),
            placements: costs.placements.clone(),
            of: Base::Cycles { measured: false, at_most },
            overlap: case.machine().hidden_share(),
            approximate: self.approximate(case),
            ..Prediction::default()
        }
    }

    fn approximate(&self, case: &Traced) -> Vec<String> {
        let machine = case.machine();
        match &self.treatment {
            Treatment::Pools => vec![
                "No replay knows which blocks another allocator hands out: the gain is what blocks would save that lie \
                 where they are read most."
                    .to_owned(),
            ],
            Treatment::Bind => {
                let order = "Tasks are bound in the recorded order, and what the kernel does at its own addresses stays \
                             as it was.";
                let filter = approximate_policy(case.filter, machine, false, true);
                let filter = filter.into_iter().filter(|one| one.is_of_first_level()).map(Approximation::sentence);
                [order].into_iter().chain(filter).map(str::to_owned).collect()
            }
            _ => Vec::new(),
        }
    }

    fn unless(&self) -> Vec<String> {
        let text = match &self.treatment {
            Treatment::Home(_) => "the tasks run on other nodes than they did here: bind them too",
            Treatment::Interleave(_) => "one node's memory is fast enough for all",
            Treatment::Bind => "more tasks want to run than there are CPUs",
            Treatment::Pools => "the blocks come from an allocator inside the program, which no library can replace",
            Treatment::NoneForWritten | Treatment::NoneForFiles => return Vec::new(),
        };
        vec![text.to_owned()]
    }
}

/// `thread 104`, `threads 104 and 105`, `9 threads`.
fn threads(ids: &[u32]) -> String {
    match ids {
        [one] => format!("thread {one}"),
        [one, other] => format!("threads {one} and {other}"),
        more => format!("{} threads", more.len()),
    }
}

/// `thread 104 uses it`.
fn used_by(ids: &[u32]) -> String {
    format!("{} {} it", threads(ids), if ids.len() == 1 { "uses" } else { "use" })
}

impl Suspicion for Local {
    fn most_gain(&self) -> f64 {
        self.waits() as f64 / self.seen.cycles as f64
    }

    fn finding(&self, case: &Case) -> Result<Finding, CaseError> {
        let case = case.traced()?;
        let replayed = self.costs(case)?;
        let (costs, best) = &replayed;
        let prediction = self.prediction(case, &replayed);
        let options = self.treatment.options(costs.plan(*best).unwrap_or(&Bind::RoundRobin));
        let mut evidence = evidence::evidence(&self.seen, self.treatment.cause(), self.most_gain());
        evidence.most_gain = evidence.most_gain.max(prediction.high);
        let (before, after) = (percent(costs.remote(0)), percent(costs.remote(*best)));
        let then = format!("{after} of the bus reads would be remote instead of {before}.");
        evidence.lines.push(EvidenceLine::new("Then", then));
        Ok(Finding {
            remedy: super::NAME.to_owned(),
            known: EvidenceKind::Modelled,
            symptom: self.symptom(),
            cause: self.cause(),
            evidence,
            treatment: self.treatment_text(),
            reach: self.reach(options.as_ref()),
            prediction,
            unless: self.unless(),
            apply: options.as_ref().map(|options| command_line("apply", super::NAME, options, &case.manifest.command)),
            verify: options.map(|options| {
                let guests = ["--in-guests".to_owned(), case.machine().name.clone()];
                command_line("verify", super::NAME, &[&guests[..], &options[..]].concat(), &case.manifest.command)
            }),
        })
    }

    fn beyond_limit(&self, _: &Case) -> Result<Option<String>, CaseError> {
        let none = matches!(self.treatment, Treatment::NoneForWritten | Treatment::NoneForFiles);
        Ok(none.then(|| {
            format!(
                "{} wait for another node's memory where {}, which is not a matter of homes",
                percent(self.most_gain()),
                reason(self.treatment.cause())
            )
        }))
    }

    fn rehearse(&self, case: &Case, request: &RehearsalRequest) -> Result<Rehearsal, CaseError> {
        let case = case.traced()?;
        let named = request.values.iter().filter_map(|value| match value {
            Value::Name(name) => Change::named(name),
            Value::Number(_) => None,
        });
        let named: Vec<Change> = named.collect();
        let changes = if named.is_empty() { Change::fitting(&self.treatment) } else { named };
        let costs = NumaCosts::new(case, &self.treatment, &self.seen, changes)?;
        Ok(costs.table(case, format!("{}: {}", self.name(), reason(self.treatment.cause()))))
    }
}
