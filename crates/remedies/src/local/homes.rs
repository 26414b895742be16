//! Pages on other nodes: the policies of their replays, and what a replay lacks of them.

use super::plan::{self, Treatment};
use super::remote_accesses::RemoteAccesses;
use nearmiss_analysis::Traced;
use nearmiss_machine::attribution::{Cause, RemoteObject};
use nearmiss_record::machine::Machine;
use nearmiss_record::policy::{Home, HomePolicy, HomeRule, Policy};

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

    /// Returns the homes of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, known)| *known == name).map(|(homes, _)| homes)
    }

    pub(super) fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(homes, _)| *homes == self).map_or("", |(_, name)| name)
    }

    /// Returns the homes that fit a treatment, the treatment's own last.
    pub fn fitting(treatment: &Treatment) -> Vec<Self> {
        match treatment {
            Treatment::Pools => vec![Homes::FirstTouch, Homes::Interleave, Homes::Pools, Homes::Used],
            Treatment::Interleave(_) => vec![Homes::FirstTouch, Homes::Used, Homes::Interleave],
            _ => vec![Homes::FirstTouch, Homes::Interleave, Homes::Used],
        }
    }

    /// The policy, for the objects that a treatment is about.
    pub fn policy(self, treatment: &Treatment, seen: &RemoteAccesses) -> Policy {
        let rules: Vec<HomeRule> = match self {
            Homes::Pools => vec![HomeRule { pages: None, task: None, home: Home::Pool }],
            Homes::FirstTouch => objects(treatment, seen).flat_map(|o| plan::rules(o, Home::FirstTouch)).collect(),
            Homes::Interleave => objects(treatment, seen).flat_map(|o| plan::rules(o, Home::Interleave)).collect(),
            Homes::Used => objects(treatment, seen).flat_map(plan::rules_used).collect(),
        };
        Policy { home: HomePolicy::Rules(rules), ..Policy::default() }
    }

    /// Returns how much longer it takes to clear the pages of a treatment. Those that another task touched first were
    /// on its node, and move away from it. Nothing where the kernel is not modelled, or wherever the first toucher
    /// decides.
    pub(super) fn clearing(self, case: &Traced, treatment: &Treatment, seen: &RemoteAccesses) -> u64 {
        let is_away = self == Homes::Used && treatment.cause() == Cause::FirstTouch;
        if !is_away || case.model.only_user {
            return 0;
        }
        let parts = objects(treatment, seen).flat_map(|object| &object.parts);
        clearing_cycles(case.machine(), parts.map(|part| part.bytes.1 - part.bytes.0).sum())
    }
}

/// Returns how much longer it takes to clear so many bytes in another node's memory.
fn clearing_cycles(machine: &Machine, bytes: u64) -> u64 {
    let line = machine.caches.last().map_or(64, |cache| cache.line.0.max(1));
    let latency = &machine.latency;
    let longer = latency.memory_remote_cycles.saturating_sub(latency.memory_local_cycles);
    (bytes.div_ceil(line) as f64 * f64::from(longer) * (1.0 - machine.overlap)) as u64
}

fn objects<'a>(treatment: &'a Treatment, seen: &'a RemoteAccesses) -> Box<dyn Iterator<Item = &'a RemoteObject> + 'a> {
    match treatment {
        Treatment::Home(object) | Treatment::Interleave(object) => Box::new(std::iter::once(object)),
        other => {
            let cause = other.cause();
            Box::new(seen.objects.iter().filter(move |object| object.cause == cause))
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use nearmiss_machine::describe::preset;

    /// 160 cycles more a line of 32 bytes, of which 30% overlap.
    #[test]
    fn a_page_takes_longer_to_clear_on_another_node() {
        let machine = preset("pentium3-xeon-numa-2x2").unwrap().machine().unwrap();
        assert_eq!(clearing_cycles(&machine, 4096), 128 * 112);
        assert_eq!(clearing_cycles(&machine, 0), 0);
    }
}
