//! Options of a guest with memory of several nodes, and of CPUs apart for the load.

use anyhow::bail;
use nearmiss_record::machine::Machine;
use nearmiss_tap::guest::KernelArgument;
use std::ops::Range;

/// How the guest treats its nodes.
#[derive(Clone, Default, clap::Args)]
pub(crate) struct NodeArgs {
    /// Automatic NUMA balancing in a guest of several nodes: Debian's kernel moves pages while the command runs, which
    /// hides on which node they were put
    #[arg(long, value_enum, default_value_t = Balancing::Off, help_heading = "Nodes")]
    balancing: Balancing,
    /// With --load: so many further CPUs, on nodes of their own, where the load runs: the figures of the server are those
    /// of its tasks, and of the other CPUs
    #[arg(long, value_name = "N", requires = "load", value_parser = clap::value_parser!(u32).range(1..=64), help_heading = "Nodes")]
    client_cpus: Option<u32>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum Balancing {
    On,
    #[default]
    Off,
}

/// Which CPUs the server has, and which the load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Apart {
    pub server: Range<u32>,
    pub load: Range<u32>,
}

impl NodeArgs {
    /// Returns the kernel's arguments ahead of the user's own words.
    pub fn kernel_arguments(&self, nodes: u32) -> anyhow::Result<Vec<KernelArgument>> {
        let word = match self.balancing {
            Balancing::Off if nodes > 1 => "numa_balancing=disable",
            Balancing::On if nodes > 1 => "numa_balancing=enable",
            _ => return Ok(Vec::new()),
        };
        Ok(vec![word.parse()?])
    }

    /// The machine with further nodes for the load, each as the others are.
    pub fn with_clients(&self, machine: Machine) -> anyhow::Result<Machine> {
        let Some(clients) = self.client_cpus else { return Ok(machine) };
        let (cpus, nodes) = (machine.topology.cpus(), machine.memory.nodes.max(1));
        let a_node = cpus / nodes;
        // Packages of several nodes would become more than the load needs.
        let packages_a_node = machine.topology.packages / nodes;
        if !clients.is_multiple_of(a_node) || packages_a_node == 0 {
            bail!(
                "--client-cpus {clients}: the nodes of {} as traced have {a_node} CPUs, and the load gets nodes of its own; \
                 give a multiple of {a_node}, or a machine with packages no larger than its nodes",
                machine.name
            );
        }
        let mut machine = machine;
        machine.memory.nodes = nodes + clients / a_node;
        machine.topology.packages += packages_a_node * (clients / a_node);
        Ok(machine)
    }

    /// The division of the widened machine's CPUs.
    pub fn apart(&self, machine: &Machine) -> Option<Apart> {
        let clients = self.client_cpus?;
        let (first, end) = (machine.topology.cpus() - clients, machine.topology.cpus());
        Some(Apart { server: 0..first, load: first..end })
    }

    /// Returns notes on the figures for the reader.
    pub fn notes(&self, machine: &Machine) -> Vec<String> {
        let balancing = match self.balancing {
            _ if machine.memory.nodes < 2 => None,
            Balancing::Off => Some(
                "Automatic NUMA balancing was off in the guest, so that pages stay where they were put; --balancing on \
                 leaves it on."
                    .to_owned(),
            ),
            Balancing::On => {
                Some("Automatic NUMA balancing was on in the guest: pages move between nodes while the command runs.".to_owned())
            }
        };
        let apart = self.apart(machine).map(|Apart { server, load }| {
            format!(
                "The load ran on CPUs {} to {}, nodes of their own, and the server on CPUs {} to {}: figures of the server \
                 are those of its tasks, and of these CPUs.",
                load.start,
                load.end - 1,
                server.start,
                server.end - 1
            )
        });
        balancing.into_iter().chain(apart).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use nearmiss_machine::describe::{check, cut, preset};

    fn machine(name: &str, cpus: u32) -> Machine {
        cut(&preset(name).unwrap().machine().unwrap(), cpus)
    }

    fn args(balancing: Balancing, client_cpus: Option<u32>) -> NodeArgs {
        NodeArgs { balancing, client_cpus }
    }

    #[test]
    fn clients_get_whole_nodes_and_the_machine_stays_sound() {
        let two = args(Balancing::Off, Some(2));
        let wide = two.with_clients(machine("pentium3-xeon-numa-2x2", 4)).unwrap();
        check(&wide).unwrap();
        assert_eq!((wide.topology.cpus(), wide.memory.nodes), (6, 3));
        assert_eq!(two.apart(&wide), Some(Apart { server: 0..4, load: 4..6 }));
        let one_node = args(Balancing::Off, Some(4)).with_clients(machine("pentium3-xeon-8way", 4)).unwrap();
        assert_eq!((one_node.topology.cpus(), one_node.memory.nodes), (8, 2));
        let odd = args(Balancing::Off, Some(3)).with_clients(machine("pentium3-xeon-numa-2x2", 4)).unwrap_err();
        assert!(odd.to_string().contains("give a multiple of 2"), "{odd}");
    }

    #[test]
    fn balancing_is_stated_where_there_are_nodes() {
        let words = |args: &NodeArgs, nodes| {
            args.kernel_arguments(nodes).unwrap().iter().map(ToString::to_string).collect::<String>()
        };
        assert_eq!(words(&args(Balancing::Off, None), 2), "numa_balancing=disable");
        assert_eq!(words(&args(Balancing::On, None), 2), "numa_balancing=enable");
        assert_eq!(words(&args(Balancing::Off, None), 1), "");
        assert!(args(Balancing::Off, None).notes(&machine("pentium3-xeon-8way", 4)).is_empty());
        let noted = args(Balancing::Off, None).notes(&machine("pentium3-xeon-numa-2x2", 4));
        assert!(noted[0].starts_with("Automatic NUMA balancing was off"), "{noted:?}");
    }
}
