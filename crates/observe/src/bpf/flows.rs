//! How long tasks were in each state, up to any moment: waits that last count as they go on, not when they end.

use super::layout::{Flow, Flows};
use aya::Ebpf;
use aya::maps::PerCpuArray;

/// Time spent in each state, of all tasks together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    of: [u64; super::layout::FLOWS],
}

impl Spent {
    /// Returns the time spent until `at_ns`, since the programs were attached.
    pub fn until(ebpf: &Ebpf, at_ns: u64) -> Self {
        let cells = ebpf.map("flows").and_then(|map| PerCpuArray::<_, Flows>::try_from(map).ok());
        let values = cells.and_then(|cells| cells.get(&0, 0).ok());
        values.map(|values| Self::sum(values.iter(), at_ns)).unwrap_or_default()
    }

    fn sum<'a>(cpus: impl Iterator<Item = &'a Flows>, at_ns: u64) -> Self {
        let mut sums = [0i64; super::layout::FLOWS];
        for flows in cpus {
            for (sum, cell) in sums.iter_mut().zip(flows.of) {
                let since = at_ns.wrapping_sub(cell.changed_ns).cast_signed();
                *sum = sum.wrapping_add(cell.area_ns).wrapping_add(cell.open.wrapping_mul(since));
            }
        }
        // A program that runs while its cell is read can leave a moment's error, never a state without end.
        Spent { of: sums.map(|sum| sum.max(0).cast_unsigned()) }
    }

    /// Returns the time spent in one of the states.
    pub fn of(&self, flow: Flow) -> u64 {
        self.of.get(flow as usize).copied().unwrap_or(0)
    }

    /// Returns the time spent since an earlier moment.
    pub fn since(&self, before: &Self) -> Self {
        let mut of = self.of;
        for (now, before) in of.iter_mut().zip(before.of) {
            *now = now.saturating_sub(before);
        }
        Spent { of }
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::{FLOWS, FlowCell};
    use super::*;

    #[test]
    fn a_wait_counts_while_it_lasts_and_may_end_on_another_cpu() {
        let nothing = FlowCell { area_ns: 0, open: 0, changed_ns: 0 };
        let cpu = |cell| {
            let mut of = [nothing; FLOWS];
            of[Flow::Futex as usize] = cell;
            Flows { of }
        };
        // It begins at 100 on one CPU.
        let began = cpu(FlowCell { area_ns: 0, open: 1, changed_ns: 100 });
        let idle = cpu(nothing);
        assert_eq!(Spent::sum([began, idle].iter(), 150).of(Flow::Futex), 50);
        // It ends at 400 on the other.
        let ended = cpu(FlowCell { area_ns: 0, open: -1, changed_ns: 400 });
        let later = Spent::sum([began, ended].iter(), 1_000);
        assert_eq!(later.of(Flow::Futex), 300);
        assert_eq!(later.since(&Spent::sum([began, idle].iter(), 150)).of(Flow::Futex), 250);
        assert_eq!(later.of(Flow::OnCpu), 0);
    }
}
