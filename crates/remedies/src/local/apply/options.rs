//! Options of `apply local`.

use super::homes::{HomeOf, Mapping, Named, Target, parse_home};
use nearmiss_analysis::CannotEngage;
use nearmiss_workload::{CpuSet, Node};
use std::fmt;
use std::time::Duration;

/// Most homes that the library takes.
const MOST_HOMES: usize = 64;

/// Placement of new tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bind {
    /// Each on the next node.
    RoundRobin,
    /// One node's CPUs before the next one's.
    Compact,
    /// Each on the next of these CPUs.
    Plan(Vec<usize>),
}

/// `nearmiss apply local`'s arguments, shared with the other verbs that take the remedy.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Args {
    /// Bind each new task to the next CPU: `round-robin` over the nodes, `compact` (one node after the other), or a list
    /// such as 0,2,1,3
    #[arg(long, value_name = "PLAN", value_parser = Bind::parse)]
    pub bind: Option<Bind>,
    /// Put memory on a node, or `interleave` it: `all=NODE`; what a call allocates, `FILE+0xADDRESS[#N][:FROM-TO]=NODE`; or,
    /// moved once from outside, `heap=NODE`, `stack=NODE`, `anonymous=NODE` or a mapped file, `/PATH=NODE`
    #[arg(long = "home", value_name = "MAPPING=NODE", value_parser = parse_home)]
    pub homes: Vec<HomeOf>,
    /// Move what is moved from outside so long after the command began
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = nearmiss_usage::time)]
    pub after: Duration,
    /// Take heap blocks from pools by thread: of this preloaded library [default: tcmalloc, else jemalloc]
    #[arg(long, value_name = "LIBRARY", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub pools: Option<String>,
}

impl Args {
    /// The home of all memory.
    pub fn of_all(&self) -> Option<Target> {
        self.homes.iter().rev().find(|home| home.mapping == Mapping::All).map(|home| home.target)
    }

    /// Homes by call.
    pub fn of_calls(&self) -> impl Iterator<Item = &HomeOf> {
        self.homes.iter().filter(|home| matches!(home.mapping, Mapping::Call { .. }))
    }

    /// Homes that are given from outside.
    pub fn from_outside(&self) -> Vec<(Named, Target)> {
        let named = |home: &HomeOf| match &home.mapping {
            Mapping::Named(named) => Some((named.clone(), home.target)),
            _ => None,
        };
        self.homes.iter().filter_map(named).collect()
    }

    /// Refuses what makes no sense on a machine with these nodes, and what could engage nowhere on it.
    pub fn check(&self, nodes: &[Node]) -> Result<(), CannotEngage> {
        let wrong = |what: String| Err(CannotEngage::Parameters(what));
        if self.bind.is_none() && self.homes.is_empty() && self.pools.is_none() {
            return wrong(
                "nothing is requested: give --bind, --home or --pools; nearmiss diagnose names them".to_owned(),
            );
        }
        if nodes.len() < 2 && self.bind.is_none() && self.pools.is_none() {
            return wrong(
                "this machine's memory is one node, so that no home can be chosen on it; compare recordings in guests: \
                 nearmiss verify local --in-guests pentium3-xeon-numa-2x2 …"
                    .to_owned(),
            );
        }
        if self.of_calls().count() > MOST_HOMES {
            return wrong(format!("--home: more than {MOST_HOMES} of single calls; join some, or interleave"));
        }
        let unknown = |home: &&HomeOf| match home.target {
            Target::Node(number) => nodes.iter().all(|node| node.number != number),
            Target::Interleave => false,
        };
        // Homes on a machine of one node are left out and noted.
        if let Some(HomeOf { target: Target::Node(number), .. }) =
            self.homes.iter().find(unknown).filter(|_| nodes.len() > 1)
        {
            let known: Vec<String> = nodes.iter().map(|node| node.number.to_string()).collect();
            return wrong(format!("--home …={number}: this machine's nodes are {}", known.join(", ")));
        }
        Ok(())
    }
}

impl Bind {
    /// `round-robin`, `compact`, or CPUs such as `0,2,1,3`.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "round-robin" => Ok(Bind::RoundRobin),
            "compact" => Ok(Bind::Compact),
            list => {
                let cpus: Result<Vec<usize>, _> = list.split(',').map(|cpu| cpu.trim().parse()).collect();
                let cpus = cpus.ok().filter(|cpus| cpus.len() <= 1024);
                cpus.map(Bind::Plan).ok_or_else(|| "write round-robin, compact, or CPUs such as 0,2,1,3".to_owned())
            }
        }
    }

    /// The CPUs in the order of the tasks. Errors: the plan names a CPU that this process may not use.
    pub fn plan(&self, nodes: &[Node], allowed: &CpuSet) -> Result<Vec<usize>, CannotEngage> {
        let of_node =
            |node: &Node| node.cpus.iter().filter(|cpu| allowed.iter().any(|own| own == *cpu)).collect::<Vec<_>>();
        let by_node: Vec<Vec<usize>> = nodes.iter().map(of_node).filter(|cpus| !cpus.is_empty()).collect();
        match self {
            Bind::Compact => Ok(by_node.concat()),
            Bind::RoundRobin => {
                let most = by_node.iter().map(Vec::len).max().unwrap_or(0);
                Ok((0..most).flat_map(|at| by_node.iter().filter_map(move |cpus| cpus.get(at).copied())).collect())
            }
            Bind::Plan(cpus) => match cpus.iter().find(|cpu| allowed.iter().all(|own| own != **cpu)) {
                Some(cpu) => Err(CannotEngage::Parameters(format!(
                    "--bind: CPU {cpu} is not one of {allowed}, where we may run"
                ))),
                None => Ok(cpus.clone()),
            },
        }
    }
}

impl fmt::Display for Bind {
    /// Writes the binding in the syntax of `--bind`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bind::RoundRobin => out.write_str("round-robin"),
            Bind::Compact => out.write_str("compact"),
            Bind::Plan(cpus) => out.write_str(&cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",")),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn nodes() -> Vec<Node> {
        [(0, "0-1"), (1, "2-3")].map(|(number, cpus)| Node { number, cpus: cpus.parse().unwrap() }).to_vec()
    }

    #[test]
    fn plans_follow_the_nodes_and_keep_to_what_is_allowed() {
        let plan = |bind: Bind, allowed: &str| bind.plan(&nodes(), &allowed.parse().unwrap());
        assert_eq!(plan(Bind::RoundRobin, "0-3").unwrap(), [0, 2, 1, 3]);
        assert_eq!(plan(Bind::Compact, "0-3").unwrap(), [0, 1, 2, 3]);
        assert_eq!(plan(Bind::RoundRobin, "0-2").unwrap(), [0, 2, 1]);
        assert_eq!(plan(Bind::parse("3,0").unwrap(), "0-3").unwrap(), [3, 0]);
        assert!(plan(Bind::Plan(vec![9]), "0-3").unwrap_err().to_string().contains("CPU 9 is not one of 0-3"));
        let written = ["round-robin", "compact", "0,2,1"].map(|text| Bind::parse(text).unwrap().to_string());
        assert_eq!(written, ["round-robin", "compact", "0,2,1"]);
        assert!(Bind::parse("0,,1").is_err() && Bind::parse("somewhere").is_err());
    }

    #[test]
    fn a_choice_that_can_engage_nowhere_is_refused() {
        let one = &nodes()[..1];
        let home = || vec![parse_home("all=interleave").unwrap()];
        let args = |bind: Option<Bind>, homes: Vec<HomeOf>, pools: bool| {
            let pools = pools.then(String::new);
            Args { bind, homes, pools, ..Args::default() }
        };
        let checked = |args: Args, nodes: &[Node]| args.check(nodes).map_err(|error| error.to_string());
        assert!(checked(args(None, Vec::new(), false), &nodes()).unwrap_err().starts_with("nothing is requested"));
        assert!(checked(args(None, home(), false), one).unwrap_err().starts_with("this machine's memory is one node"));
        assert_eq!(checked(args(Some(Bind::Compact), home(), false), one), Ok(()));
        assert_eq!(checked(args(None, home(), true), one), Ok(()));
        assert_eq!(checked(args(None, home(), false), &nodes()), Ok(()));
        let absent = args(None, vec![parse_home("all=7").unwrap()], false);
        assert!(checked(absent, &nodes()).unwrap_err().ends_with("this machine's nodes are 0, 1"));
    }
}
