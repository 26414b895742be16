//! How long tasks were in each state, up to any moment: waits that last count as they go on, not when they end.

use super::layout::{Flow, Flows};
use super::window::Window;
use aya::Ebpf;
use aya::maps::PerCpuArray;

/// Time spent in each state, of all tasks together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    of: [u64; super::layout::FLOWS],
}

impl Spent {
    /// Returns the time spent in the window until `at_ns`.
    pub fn until(ebpf: &Ebpf, window: Window, at_ns: u64) -> Self {
        // A reading comes a moment later, on a busy machine a long one, and the areas have grown meanwhile.
        if at_ns <= window.begin_ns {
            return Self::default();
        }
        let cells = ebpf.map("flows").and_then(|map| PerCpuArray::<_, Flows>::try_from(map).ok());
        let values = cells.and_then(|cells| cells.get(&0, 0).ok());
        values.map(|values| Self::sum(values.iter(), window, at_ns)).unwrap_or_default()
    }

    fn sum<'a>(cpus: impl Iterator<Item = &'a Flows>, window: Window, at_ns: u64) -> Self {
        let mut sums = [0i64; super::layout::FLOWS];
        for flows in cpus {
            for (sum, cell) in sums.iter_mut().zip(flows.of) {
                let since = window.within(cell.changed_ns, at_ns).cast_signed();
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
        let window = Window { begin_ns: 100, end_ns: 0 };
        let spent = |cells: [Flows; 2], at_ns| Spent::sum(cells.iter(), window, at_ns);
        // It begins at 90 on one CPU, before the window.
        let began = cpu(FlowCell { area_ns: 0, open: 1, changed_ns: 90 });
        let idle = cpu(nothing);
        assert_eq!(spent([began, idle], 150).of(Flow::Futex), 50);
        // It ends at 400 on the other.
        let ended = cpu(FlowCell { area_ns: 0, open: -1, changed_ns: 400 });
        let later = spent([began, ended], 1_000);
        assert_eq!(later.of(Flow::Futex), 300);
        assert_eq!(later.since(&spent([began, idle], 150)).of(Flow::Futex), 250);
        // A state that began behind the instant of the reading is none yet.
        let late = cpu(FlowCell { area_ns: 0, open: 1, changed_ns: 180 });
        assert_eq!(spent([late, idle], 150), Spent::default());
        assert_eq!(later.of(Flow::OnCpu), 0);
    }
}
