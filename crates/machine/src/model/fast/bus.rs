//! Transactions to memory: each occupies a channel for a while.

use crate::model::fast::plan::Plan;

/// Busy channels. In the recorded order each CPU has a clock of its own, so each has its own queue; in the modelled
/// order all share one time and one queue.
pub(crate) struct Bus {
    free_at: Vec<u64>,
    channels: usize,
    buses: usize,
    by_node: bool,
    by_cpu: bool,
    occupied_cycles: u64,
}

impl Bus {
    pub fn new(plan: &Plan, by_cpu: bool) -> Self {
        let buses = if plan.bus_by_node { plan.nodes } else { 1 };
        let queues = buses * if by_cpu { plan.core.len() } else { 1 };
        Bus {
            free_at: vec![0; queues * plan.channels],
            channels: plan.channels,
            buses,
            by_node: plan.bus_by_node,
            by_cpu,
            occupied_cycles: plan.transaction_cycles,
        }
    }

    /// A transaction to `home` at `now`. Returns how long it waits for a channel.
    pub fn transact(&mut self, cpu: usize, home: u8, now: u64) -> u64 {
        let bus = if self.by_node { usize::from(home) } else { 0 };
        let queue = if self.by_cpu { cpu * self.buses + bus } else { bus };
        let channels = &mut self.free_at[queue * self.channels..(queue + 1) * self.channels];
        let Some(free_at) = channels.iter_mut().min_by_key(|free| **free) else { return 0 };
        let start = now.max(*free_at);
        *free_at = start + self.occupied_cycles;
        start - now
    }
}
