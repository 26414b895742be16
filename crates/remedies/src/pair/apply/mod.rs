//! `nearmiss apply pair`: the command with its tasks beside those with which they share a cache well.
//!
//! A daemon sets the affinity of tasks: each group of tasks gets the CPUs of a domain. On a machine with one domain
//! alone, tasks that hurt each other get one CPU together instead, so that they never run at the same time.

mod counters;
mod daemon;
mod domains;
mod ext;
mod followed;
mod options;
mod plan_basis;
mod plans;
mod refusals;
mod report;
mod table;

pub(super) use report::RECORD;

pub use super::kept::{FILE as KEPT_PAIRS, KeptPair, KeptPairs, KeptShared, KeptTask, SCHEMA as KEPT_PAIRS_SCHEMA};
pub use super::level::SharedLevel;
pub use options::{Args, With};
pub use report::{Report, Scheduler, Together, Verified};

use crate::command_line::args;
use crate::follow::Follower;
use clap::ArgMatches;
use counters::KernelCounters;
use daemon::Daemon;
use domains::Domains;
use followed::tasks_under;
use nearmiss_analysis::{Ability, Acts, Applied, CannotEngage, Engaged, Engagement, Inability, NotEngaged};
use nearmiss_workload::{CounterKind, CpuSet, TaskId, Workload};
use refusals::Kernel;
use std::path::Path;
use std::time::Duration;
use table::Table;

const SYSTEM: &str = "/sys/devices/system";
const KERNEL: &str = "/sys/kernel";
/// How often the daemon looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);

/// The remedy in place around a command.
pub struct PairEngagement {
    args: Args,
    domains: Domains,
    follower: Option<Follower<Daemon>>,
    scheduler: Option<(ext::Attached, Follower<ext::Seats>)>,
    /// Level that the table's tasks shared, where those of a group share something else here.
    unlike: Option<KeptShared>,
}

/// Puts a command under the remedy. Errors: the reason that forbids it.
pub fn apply(workload: Workload, args: &Args) -> Result<(Workload, PairEngagement), CannotEngage> {
    Ok((workload, PairEngagement::new(args, None)?))
}

/// Puts a command under the remedy for the registry, with the options as they were given.
pub(super) fn engage(workload: Workload, given: &ArgMatches) -> Result<Applied, CannotEngage> {
    apply(workload, &args::<Args>(given)?).map(Applied::from)
}

/// Puts a process that runs already under the remedy for the registry.
pub(super) fn attach(pid: i32, given: &ArgMatches) -> Result<Box<dyn Engagement>, CannotEngage> {
    let process = running(pid)?;
    let mut around = PairEngagement::new(&args::<Args>(given)?, Some(&process))?;
    around.begin(&process, true)?;
    Ok(Box::new(around))
}

/// A process that runs. Errors: it has ended.
fn running(pid: i32) -> Result<TaskId, CannotEngage> {
    TaskId::of(pid).ok_or_else(|| CannotEngage::Parameters(format!("process {pid}: it has ended")))
}

/// `pair, l3, affinity`.
pub(super) fn title(given: &ArgMatches) -> String {
    let args = args::<Args>(given).unwrap_or_default();
    let level = args.domain.map(|level| level.to_string());
    let with = (args.with == With::SchedExt).then(|| "sched_ext".to_owned());
    [Some(super::NAME.to_owned()), level, with].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Domains, sched_ext and counters of this machine.
pub(super) fn abilities() -> Vec<Ability> {
    let refused = |error: CannotEngage, todo: &str| Inability { why: error.to_string(), todo: todo.to_owned() };
    let domains = CpuSet::allowed()
        .map_err(CannotEngage::from)
        .and_then(|allowed| Domains::find(Path::new(SYSTEM), &allowed, None))
        .map(|found| {
            let cpus: Vec<String> = found.cpus.iter().map(ToString::to_string).collect();
            format!("level {}: CPUs {}", found.level, cpus.join(" | "))
        })
        .map_err(|error| refused(error, "use a machine with CPUs that share a cache"));
    let ext = kernel_allows(&[0], With::SchedExt)
        .map(|()| "there, and no scheduler is loaded".to_owned())
        .map_err(|error| refused(error, "use affinity, or a kernel with CONFIG_SCHED_CLASS_EXT"));
    let counters =
        KernelCounters::new(CounterKind::Hardware).map(|_| "of single tasks".to_owned()).map_err(|error| Inability {
            why: format!("this machine counts no events of single tasks: {error}"),
            todo: "take a table of `rehearse pair` (--table)".to_owned(),
        });
    vec![
        Ability { name: "domains of CPUs", state: domains },
        Ability { name: "sched_ext", state: ext },
        Ability { name: "counters of pairs", state: counters },
    ]
}

/// Whether the kernel lets these tasks be placed; 0 stands for a child of ours that has not begun.
fn kernel_allows(tasks: &[i32], with: With) -> Result<(), CannotEngage> {
    let version = std::fs::read_to_string("/proc/sys/kernel/version").unwrap_or_default();
    let cookie = tasks.iter().filter_map(|task| refusals::cookie(*task)).max();
    let has_real_time = tasks.iter().any(|task| refusals::is_real_time(*task));
    Kernel { sys: Path::new(KERNEL), version: &version, cookie, has_real_time }.refuses(with)
}

/// The domains that a table is for, unless others are requested. Errors: this machine has none of them.
fn domains_for(
    kept: Option<&KeptPairs>,
    allowed: &CpuSet,
    requested: Option<SharedLevel>,
) -> Result<Domains, CannotEngage> {
    let find = |level| Domains::find(Path::new(SYSTEM), allowed, level);
    let Some(shared) = kept.and_then(|kept| kept.shared.as_ref()).filter(|_| requested.is_none()) else {
        return find(requested);
    };
    let none_here = find(None)?;
    find(Some(shared.level)).map_err(|_| {
        CannotEngage::Parameters(format!(
            "the table is of tasks that share level {} on {}, which no two of the CPUs {allowed} do here, so it does not hold \
             for them: rehearse on a machine like this one, or give --domain {} to use it all the same",
            shared.level, shared.machine, none_here.level
        ))
    })
}

impl PairEngagement {
    /// Makes the remedy for a process, none if it is a child of ours that has not begun.
    fn new(args: &Args, process: Option<&TaskId>) -> Result<Self, CannotEngage> {
        let tasks = process.map_or_else(|| vec![0], |process| tasks_under(process).iter().map(|id| id.task).collect());
        kernel_allows(&tasks, args.with)?;
        let allowed = process.map_or_else(CpuSet::allowed, |process| CpuSet::of_task(process.task))?;
        let kept = args.table.as_deref().map(KeptPairs::read).transpose()?;
        if let Some(run) = args.table.as_ref().filter(|_| kept.as_ref().is_some_and(|kept| kept.nothing_proposed)) {
            let why =
                "its rehearsal proposed no grouping, as none is certain to save anything: there is nothing to apply";
            return Err(CannotEngage::Parameters(format!("--table {}: {why}", run.display())));
        }
        let domains = domains_for(kept.as_ref(), &allowed, args.domain)?;
        let unlike = kept.and_then(|kept| kept.shared).filter(|shared| shared.level != domains.level);
        let around = PairEngagement { args: args.clone(), domains, follower: None, scheduler: None, unlike };
        match args.with {
            With::SchedExt => drop(around.kept()?),
            With::Affinity => drop(around.table()?),
        }
        Ok(around)
    }

    /// The rehearsal's table, without which there is no scheduler.
    fn kept(&self) -> Result<KeptPairs, CannotEngage> {
        let run = self.args.table.as_ref().ok_or_else(|| {
            CannotEngage::Parameters("--with sched-ext needs the table of a rehearsal: give --table RUN".to_owned())
        })?;
        KeptPairs::read(run)
    }

    fn table(&self) -> Result<Table, CannotEngage> {
        if let Some(run) = &self.args.table {
            return Ok(Table::kept(KeptPairs::read(run)?));
        }
        let kind = if self.args.stand_in_counters { CounterKind::StandIn } else { CounterKind::Hardware };
        let counters = KernelCounters::new(kind).map_err(|error| {
            CannotEngage::Parameters(format!(
                "pair needs a table of pairs, and this machine has no hardware counters that could fill one ({error}): \
                 nearmiss trace --carry tasks -- CMD; nearmiss rehearse pair; then give --table RUN"
            ))
        })?;
        Ok(Table::Counted(Box::new(counters), counters::Learned::default()))
    }

    fn begin(&mut self, process: &TaskId, runs_already: bool) -> Result<(), CannotEngage> {
        let pid = process.process;
        if self.args.with == With::SchedExt {
            return self.begin_scheduler(pid, runs_already);
        }
        let Args { period, override_masks, .. } = self.args;
        let daemon = Daemon::new(*process, runs_already, self.table()?, self.domains.clone(), period, override_masks)?;
        let every = LOOK.min(period);
        self.follower = Some(match runs_already {
            true => Follower::of_time(every, daemon),
            false => Follower::of_forks(pid, every, daemon)?,
        });
        Ok(())
    }

    fn begin_scheduler(&mut self, pid: i32, runs_already: bool) -> Result<(), CannotEngage> {
        if runs_already {
            return Err(CannotEngage::Parameters(
                "--with sched-ext takes a command from its start: a process that runs already can be placed by affinity"
                    .to_owned(),
            ));
        }
        let kept = self.kept()?;
        let attached = ext::Attached::load(&self.domains, &kept)?;
        attached.take(pid)?;
        let seats = ext::Seats::new(pid, attached.maps(), kept, self.args.period);
        self.scheduler = Some((attached, Follower::of_forks(pid, LOOK.min(self.args.period), seats)?));
        Ok(())
    }

    fn scheduled(&self, seats: &ext::Seats, scheduler: Scheduler) -> Report {
        Report {
            schema: report::SCHEMA,
            with: "sched_ext",
            level: self.domains.level.to_string(),
            domains: self.domains.cpus.iter().map(ToString::to_string).collect(),
            table: "a rehearsal",
            tasks: seats.tasks as u64,
            known: seats.known as u64,
            scheduler: Some(scheduler),
            ..Report::default()
        }
    }

    /// Reports the acts since the launch of `pid`; its masks are given back by now.
    pub fn report(&mut self, pid: i32) -> Result<Report, NotEngaged> {
        let not_engaged = || NotEngaged { pid, why: "the daemon ended before the command".to_owned() };
        let mut report = match self.scheduler.take() {
            Some((attached, seats)) => {
                let seats = seats.end().ok_or_else(not_engaged)?;
                let did = attached.end().map_err(|error| NotEngaged { pid, why: error.to_string() })?;
                self.scheduled(&seats, did)
            }
            None => self.follower.take().and_then(Follower::end).ok_or_else(not_engaged)?.end(),
        };
        if let Some(KeptShared { machine, level }) = &self.unlike {
            let here = self.domains.level;
            report.out_of_reach.push(format!(
                "The table is of tasks that share level {level} on {machine}; here they share level {here}."
            ));
        }
        if report.known < 2 {
            report.out_of_reach.push(format!(
                "{} of the command's tasks in the table: there was nothing to choose.",
                if report.known == 0 { "None" } else { "One" }
            ));
        }
        Ok(report)
    }
}

impl Engagement for PairEngagement {
    fn started(&mut self, pid: i32) -> Result<(), CannotEngage> {
        self.begin(&running(pid)?, false)
    }

    fn confirm(&mut self, pid: i32) -> Result<Engaged, NotEngaged> {
        self.report(pid).map(|report| Engaged::reported(&report, Acts::Counted(report.acts())))
    }
}
