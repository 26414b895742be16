//! The memory nodes of this machine, as the kernel numbers them.

use crate::{CpuSet, Error};
use std::fs;
use std::path::Path;

const NODES: &str = "/sys/devices/system/node";

/// One node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Number of the node.
    pub number: u32,
    /// CPUs of the node; none where it is memory alone.
    pub cpus: CpuSet,
}

impl Node {
    /// Returns the nodes that have memory, ascending; one of all CPUs where the kernel lists no nodes.
    pub fn with_memory() -> Result<Vec<Node>, Error> {
        Self::under(Path::new(NODES))
    }

    fn under(directory: &Path) -> Result<Vec<Node>, Error> {
        let Ok(listed) = fs::read_to_string(directory.join("has_memory")) else {
            return Ok(vec![Node { number: 0, cpus: CpuSet::allowed()? }]);
        };
        // A list of nodes is written as a list of CPUs is.
        let numbers: CpuSet = listed.trim().parse()?;
        let node = |number: usize| {
            let cpus = fs::read_to_string(directory.join(format!("node{number}/cpulist"))).unwrap_or_default();
            let cpus = if cpus.trim().is_empty() { CpuSet::default() } else { cpus.trim().parse()? };
            Ok(Node { number: number as u32, cpus })
        };
        numbers.iter().map(node).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_read_with_their_cpus() {
        let place = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(place.path().join(name), text).unwrap();
        write("has_memory", "0,2\n");
        for (node, cpus) in [(0, "0-1,4\n"), (2, "\n")] {
            fs::create_dir(place.path().join(format!("node{node}"))).unwrap();
            write(&format!("node{node}/cpulist"), cpus);
        }
        let nodes = Node::under(place.path()).unwrap();
        let seen: Vec<(u32, String)> = nodes.iter().map(|node| (node.number, node.cpus.to_string())).collect();
        assert_eq!(seen, [(0, "0-1,4".to_owned()), (2, String::new())]);
    }

    #[test]
    fn a_kernel_without_nodes_has_one() {
        let nodes = Node::under(Path::new("/nonexistent")).unwrap();
        assert_eq!(nodes, [Node { number: 0, cpus: CpuSet::allowed().unwrap() }]);
    }
}
