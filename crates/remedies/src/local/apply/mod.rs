//! `nearmiss apply local`: the command with its tasks bound, and its memory on chosen nodes.
//!
//! Affinity and memory policy are set before the command's first instruction, and inherited. Two preloaded libraries do
//! what only the program itself can: bind a task before it runs, and choose the node of one call's memory.

mod follow;
mod homes;
mod libraries;
mod options;
mod outside;
mod report;

pub(super) use report::RECORD;

pub use homes::{HomeOf, Mapping, Target};
pub use options::{Args, Bind};
pub use report::Report;

use crate::command_line::args;
use crate::follow::Follower;
use crate::preload::{self, LibraryCountsList, Preload, takes_libraries, try_on_true};
use clap::ArgMatches;
use follow::Binder;
use libraries::{HOMES, REFUSALS, TASKS};
use nearmiss_analysis::{Ability, Acts, Applied, CannotEngage, Engaged, Engagement, Inability, NotEngaged};
use nearmiss_record::words::counted;
use nearmiss_workload::{CpuSet, MemoryPolicy, Node, Workload};
use outside::{Mover, Plan};

/// The remedy in place around a command. Nothing of it persists.
#[derive(Debug)]
pub struct NumaEngagement {
    preload: Option<Preload>,
    plan: Vec<usize>,
    follower: Option<Follower<Binder>>,
    outside: Option<Plan>,
    mover: Option<Mover>,
    /// Former setting of automatic balancing.
    balancing: Option<String>,
    /// Report as far as known before the command runs.
    report: Report,
    pools: bool,
    homes: bool,
}

/// Puts a command under the remedy.
pub fn apply(workload: Workload, args: &Args) -> Result<(Workload, NumaEngagement), CannotEngage> {
    let nodes = Node::with_memory()?;
    args.check(&nodes)?;
    let plan = match &args.bind {
        Some(bind) => bind.plan(&nodes, &CpuSet::allowed()?)?,
        None => Vec::new(),
    };
    let mut report = Report { schema: report::SCHEMA, plan: plan.clone(), ..Report::default() };
    let several = nodes.len() > 1;
    if !several && !args.homes.is_empty() {
        report.out_of_reach.push("No home was given: this machine's memory is one node.".to_owned());
    }
    let workload = of_all(workload, args.of_all().filter(|_| several), &nodes, &mut report);
    let outside = args.from_outside();
    let outside = (several && !outside.is_empty()).then(|| Plan {
        homes: outside,
        nodes: nodes.iter().map(|node| node.number).collect(),
        after: args.after,
    });
    let balancing = outside.as_ref().and_then(|_| outside::balancing_to_restore());
    let workload = balancing
        .iter()
        .fold(workload, |workload, before| workload.restore_if_killed(outside::BALANCING, before.as_bytes()));
    let workload = plan.first().map_or(workload.clone(), |first| workload.pin([*first].into_iter().collect()));
    let homes: Vec<String> = args.of_calls().filter(|_| several).filter_map(homes::rule).collect();
    let needs_library = args.pools.is_some() || !homes.is_empty();
    let loads = takes_libraries(&workload, &REFUSALS);
    let (preload, workload) = match loads {
        Err(error) if needs_library => return Err(error),
        Err(error) => {
            report.out_of_reach.extend(follows(&error, &plan));
            (None, workload)
        }
        Ok(()) if needs_library || !plan.is_empty() => {
            let (preload, workload) = preloaded(workload, args.pools.as_deref(), &homes, &plan, &nodes)?;
            (Some(preload), workload)
        }
        Ok(()) => (None, workload),
    };
    let (follower, mover) = (None, None);
    let (pools, homes) = (args.pools.is_some(), !homes.is_empty());
    Ok((workload, NumaEngagement { preload, plan, follower, outside, mover, balancing, report, pools, homes }))
}

/// The memory policy that all processes of the command inherit.
fn of_all(workload: Workload, target: Option<Target>, nodes: &[Node], report: &mut Report) -> Workload {
    let Some(target) = target else { return workload };
    let (policy, words) = match target {
        Target::Node(node) => (MemoryPolicy::Prefer(node), format!("on node {node}")),
        Target::Interleave => {
            (MemoryPolicy::Interleave(nodes.iter().map(|node| node.number).collect()), "interleaved".to_owned())
        }
    };
    report.home_of_all = Some(words);
    workload.memory(policy)
}

/// Returns the note on a program that loads no library, and is to be bound.
fn follows(error: &CannotEngage, plan: &[usize]) -> Option<String> {
    let CannotEngage::Program { program, .. } = error else { return None };
    (!plan.is_empty()).then(|| {
        format!(
            "{} loads no library: its new tasks are bound as the kernel announces them, a moment after they began; homes \
             of single calls and pools do not reach it.",
            program.display()
        )
    })
}

fn preloaded(
    workload: Workload,
    pools: Option<&str>,
    homes: &[String],
    plan: &[usize],
    nodes: &[Node],
) -> Result<(Preload, Workload), CannotEngage> {
    let homes_library = (!homes.is_empty()).then_some(&HOMES);
    let preload = Preload::new(&workload, [&TASKS].into_iter().chain(homes_library).collect(), &REFUSALS)?;
    let mut workload = workload;
    if let Some(named) = pools {
        let pool = libraries::pool(named)?;
        workload = preload::beside(workload, &pool).env("NEARMISS_LOCAL_POOL", pool);
    }
    if !homes.is_empty() {
        workload = workload.env("NEARMISS_LOCAL_HOMES", homes.join(";"));
    }
    let cpus: Vec<String> = plan.iter().map(usize::to_string).collect();
    let mask = nodes.iter().filter(|node| node.number < 64).fold(0u64, |mask, node| mask | 1 << node.number);
    let workload = workload.env("NEARMISS_LOCAL_CPUS", cpus.join(","));
    let workload = preload.around(workload, "NEARMISS_LOCAL_PRELOAD", &format!("nodes={mask:x}"));
    Ok((preload, workload))
}

/// Puts a command under the remedy for the registry, with the options as they were given.
pub(super) fn engage(workload: Workload, given: &ArgMatches) -> Result<Applied, CannotEngage> {
    apply(workload, &args::<Args>(given)?).map(Applied::from)
}

/// `local, bound, 2 homes, pools`.
pub(super) fn title(given: &ArgMatches) -> String {
    let args = args::<Args>(given).unwrap_or_default();
    let bound = args.bind.as_ref().map(|_| "bound".to_owned());
    let homes = match args.homes.len() {
        0 => None,
        1 => Some("1 home".to_owned()),
        more => Some(format!("{more} homes")),
    };
    let pools = args.pools.as_ref().map(|_| "pools".to_owned());
    [Some(super::NAME.to_owned()), bound, homes, pools].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Nodes, binding and pools of this machine.
pub(super) fn abilities() -> Vec<Ability> {
    let nodes = Node::with_memory().map_or(0, |nodes| nodes.len());
    let homes = match nodes {
        0 | 1 => Err(Inability {
            why: "one node: no home can be chosen, and --bind keeps tasks in place".to_owned(),
            todo: "compare in guests: nearmiss verify local --in-guests MACHINE".to_owned(),
        }),
        more => Ok(format!("{more} nodes")),
    };
    let missing =
        |_| Inability { why: "no tcmalloc and no jemalloc".to_owned(), todo: libraries::INSTALL_POOLS.to_owned() };
    let pools = libraries::pool("").map(|file| file.display().to_string()).map_err(missing);
    let bind = Args { bind: Some(Bind::Compact), ..Args::default() };
    vec![
        Ability { name: "memory nodes", state: homes },
        try_on_true("preloaded library for tasks", |workload| apply(workload, &bind)),
        Ability { name: "allocator with pools", state: pools },
    ]
}

impl NumaEngagement {
    /// Reports the acts since the last report, provided that the launched process `pid` was under the remedy.
    pub fn report(&mut self, pid: i32) -> Result<Report, NotEngaged> {
        let parts = self.preload.as_ref().map(|preload| preload.confirm(pid)).transpose()?.unwrap_or_default();
        let counter = |library: &str, name: &str| count(&parts, library, name);
        let followed = self.follower.take().and_then(Follower::end).map_or(0, |binder| binder.bound());
        let mut report = self.report.clone();
        report.out_of_reach.extend(self.beside(followed));
        let moved = self.mover.take().map_or(0, Mover::end);
        let first = u64::from(!self.plan.is_empty());
        let report = Report {
            bound: first + followed + counter(TASKS.name, libraries::BOUND),
            homed: counter(HOMES.name, libraries::HOMED),
            homed_bytes: counter(HOMES.name, libraries::HOMED_BYTES),
            moved,
            refused: counter(HOMES.name, libraries::REFUSED) + counter(TASKS.name, libraries::UNBOUND),
            pooled: counter(TASKS.name, libraries::POOLED),
            programs: parts.first().map_or(0, |part| part.programs),
            ..report
        };
        if self.pools && report.pooled == 0 {
            return Err(NotEngaged {
                pid,
                why: "its malloc is not the allocator with pools: it brings its own".to_owned(),
            });
        }
        Ok(report)
    }

    /// Returns the note on programs without the library among others.
    fn beside(&self, followed: u64) -> Option<String> {
        (self.preload.is_some() && followed > 0).then(|| {
            format!(
                "Programs that load no library are among the command's: {} of theirs bound as the kernel announced them, a \
                 moment after they began; homes of single calls and pools do not reach them.",
                counted(followed, "task")
            )
        })
    }

    /// Starts to follow tasks that no library binds. Those are few where a library binds most; the report then notes a
    /// kernel that does not announce them.
    fn follow(&mut self, pid: i32) -> Result<(), CannotEngage> {
        let library = self.preload.as_ref().map(|_| TASKS.file);
        match Binder::start(pid, self.plan.clone(), library) {
            Ok(follower) => self.follower = Some(follower),
            Err(why) if library.is_some() => {
                self.report
                    .out_of_reach
                    .push(format!("Programs that load no library are not bound one by one: {why}."));
            }
            Err(why) => return Err(why),
        }
        Ok(())
    }

    /// Homes of calls can be counted; policies of all memory and bindings act on any command.
    fn acts(&self, report: &Report) -> Acts {
        let counted = self.homes || self.outside.is_some();
        match counted && self.plan.is_empty() && !self.pools && report.home_of_all.is_none() {
            true => Acts::Counted(report.homed + report.moved),
            false => Acts::Uncounted,
        }
    }
}

impl Drop for NumaEngagement {
    fn drop(&mut self) {
        if let Some(before) = self.balancing.take() {
            // Nobody is left to receive an error.
            drop(outside::set_balancing(&before));
        }
    }
}

fn count(parts: &LibraryCountsList, library: &str, name: &str) -> u64 {
    parts.iter().find(|part| part.library == library).map_or(0, |part| part.counter(name))
}

impl Engagement for NumaEngagement {
    fn started(&mut self, pid: i32) -> Result<(), CannotEngage> {
        if !self.plan.is_empty() {
            self.follow(pid)?;
        }
        // Not sooner: the guardian that would set it back is there by now.
        if self.balancing.is_some() {
            outside::set_balancing("0")?;
        }
        self.mover = self.outside.clone().map(|plan| Mover::start(pid, plan));
        Ok(())
    }

    fn end(mut self: Box<Self>) -> Result<(), CannotEngage> {
        self.balancing.take().map_or(Ok(()), |before| outside::set_balancing(&before))
    }

    fn confirm(&mut self, pid: i32) -> Result<Engaged, NotEngaged> {
        let report = self.report(pid)?;
        Ok(Engaged::reported(&report, self.acts(&report)))
    }
}
