//! CPUs for the tasks of a run, as `apply --bind` gives them out, and the policies of their replays.

use super::apply::Bind;
use super::plan;
use super::remote_accesses::RemoteAccesses;
use nearmiss_analysis::{CaseError, Traced};
use nearmiss_machine::attribution::Cause;
use nearmiss_machine::describe::node_of;
use nearmiss_record::machine::Machine;
use nearmiss_record::policy::{Bound, Home, HomePolicy, HomeRule, PlacePolicy, Policy};
use nearmiss_workload::{CpuSet, Node};

/// Addresses of user mode.
const USER: (u64, u64) = (0, 1 << 63);

/// The command's tasks where they were recorded: what another place of theirs is compared with.
pub fn as_recorded(case: &Traced) -> Policy {
    let tasks = tasks(case).into_iter().map(|pid| Bound { pid, cpu: None }).collect();
    Policy { place: PlacePolicy::InOrder { tasks }, ..Policy::default() }
}

/// Returns the policy that puts each task on the next CPU of a plan, in the order in which the tasks began. The first
/// touches of a task are then on the node of its CPU, but for what the kernel put elsewhere, and for what of files was
/// in memory before the task came.
pub fn policy(case: &Traced, seen: &RemoteAccesses, bind: &Bind) -> Result<Policy, CaseError> {
    let cpus = cpus(case.machine(), bind)?;
    let tasks = tasks(case).into_iter().zip(cpus.iter().cycle());
    let tasks = tasks.map(|(pid, cpu)| Bound { pid, cpu: Some(*cpu) }).collect();
    let stays = |cause| matches!(cause, Cause::PageCache | Cause::Image | Cause::Elsewhere);
    let staying = seen.objects.iter().filter(|object| stays(object.cause));
    let first = HomeRule { pages: Some(USER), task: None, home: Home::FirstTouch };
    let rules = staying.flat_map(plan::rules_staying).chain([first]).collect();
    Ok(Policy { place: PlacePolicy::InOrder { tasks }, home: HomePolicy::Rules(rules), ..Policy::default() })
}

/// Threads of the command, ascending, as they began.
fn tasks(case: &Traced) -> Vec<u32> {
    let of_command = case.model.tasks.iter().filter(|task| task.of_command && task.tid != 0);
    let mut tasks: Vec<u32> = of_command.map(|task| task.tid).collect();
    tasks.sort_unstable();
    tasks.dedup();
    tasks
}

/// The CPUs of a machine in the order of a plan.
fn cpus(machine: &Machine, bind: &Bind) -> Result<Vec<u32>, CaseError> {
    let all = 0..machine.topology.cpus();
    let of = |node: u32| all.clone().filter(|cpu| node_of(machine, *cpu) == node).map(|cpu| cpu as usize).collect();
    let nodes: Vec<Node> = (0..machine.memory.nodes.max(1)).map(|number| Node { number, cpus: of(number) }).collect();
    let allowed: CpuSet = all.map(|cpu| cpu as usize).collect();
    let plan = bind.plan(&nodes, &allowed).map_err(|error| CaseError::Unfit(error.to_string()))?;
    Ok(plan.into_iter().map(|cpu| cpu as u32).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use nearmiss_machine::describe::{cut, preset};

    #[test]
    fn plans_follow_the_nodes_of_the_machine() {
        let machine = cut(&preset("pentium3-xeon-numa-2x2").unwrap().machine().unwrap(), 4);
        assert_eq!(cpus(&machine, &Bind::RoundRobin).unwrap(), [0, 2, 1, 3]);
        assert_eq!(cpus(&machine, &Bind::Compact).unwrap(), [0, 1, 2, 3]);
        assert_eq!(cpus(&machine, &Bind::Plan(vec![3, 0])).unwrap(), [3, 0]);
        let refused = cpus(&machine, &Bind::Plan(vec![4])).unwrap_err().to_string();
        assert!(refused.contains("CPU 4 is not one of 0-3"), "{refused}");
    }
}
