//! One recording, replayed with its pages on other nodes and on several page placements.

use super::homes::{Homes, Served};
use nearmiss_record::model::BusTally;

/// The middle of some values; of an even number, that of the two in the middle.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.get(values.len().saturating_sub(1) / 2)?, values.get(values.len() / 2)?);
    Some((low + high) / 2.0)
}

/// Work that was served, and the functions of the kernel that took part.
pub struct Recording {
    /// Served work by page placement, then by [`Homes::ALL`].
    pub placed: Vec<Vec<Served>>,
    /// Functions of the kernel with the most cycles, as shares of the kernel's, in percent.
    pub functions: Vec<(String, f64)>,
}

impl Recording {
    /// A figure of each placement.
    fn each(&self, of: impl Fn(&dyn Fn(Homes) -> Served) -> f64) -> Vec<f64> {
        self.placed.iter().map(|served| of(&|homes| served[homes as usize])).collect()
    }

    /// Returns the median over the placements.
    fn middle(&self, of: impl Fn(&dyn Fn(Homes) -> Served) -> f64) -> f64 {
        median(self.each(of)).unwrap_or_default()
    }

    /// A figure of the served time or reads.
    pub fn of(&self, homes: Homes, figure: impl Fn(Served) -> f64) -> f64 {
        self.middle(|served| figure(served(homes)))
    }

    /// Returns how much longer it takes on two nodes than on one, in percent: by placement.
    pub fn overheads(&self, homes: Homes) -> Vec<f64> {
        self.each(|served| (served(homes).total() / served(Homes::OneNode).total().max(1.0) - 1.0) * 100.0)
    }

    /// The median of [`Self::overheads`].
    pub fn overhead(&self, homes: Homes) -> f64 {
        median(self.overheads(homes)).unwrap_or_default()
    }

    /// Returns the median overhead of user mode (0) or of the kernel (1), where the kernel places pages.
    pub fn overhead_of(&self, mode: usize) -> f64 {
        self.middle(|served| {
            (served(Homes::Kernel).cycles[mode] / served(Homes::OneNode).cycles[mode].max(1.0) - 1.0) * 100.0
        })
    }

    /// A class of bus reads where the kernel places pages, in percent of all.
    pub fn class(&self, class: fn(&BusTally) -> u64) -> f64 {
        self.of(Homes::Kernel, |served| {
            served.count(class) as f64 * 100.0 / served.count(BusTally::reads).max(1) as f64
        })
    }

    /// Share of bus reads that are local, in percent.
    pub fn locality(&self) -> f64 {
        100.0 - self.class(|bus| bus.read_remote)
    }

    /// Returns how many times the overhead of the kernel's homes blind ones have: by placement.
    pub fn blind_times(&self) -> Vec<f64> {
        let pairs = self.overheads(Homes::Blind).into_iter().zip(self.overheads(Homes::Kernel));
        pairs.map(|(blind, aware)| blind / aware.max(0.1)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(user: f64, kernel: f64, remote: u64) -> Served {
        let bus = BusTally { read_remote: remote, read_local_none: 100 - remote, ..BusTally::default() };
        Served { cycles: [user, kernel], bus: [bus, BusTally::default()] }
    }

    /// One node 100; blind 130, 120, 150; the kernel's homes 110, 110, 120.
    fn recording() -> Recording {
        let placed = [(130.0, 110.0), (120.0, 110.0), (150.0, 120.0)].map(|(blind, kernel)| {
            vec![served(60.0, 40.0, 0), served(0.0, blind, 50), served(kernel - 50.0, 50.0, 20), served(100.0, 0.0, 0)]
        });
        Recording { placed: placed.to_vec(), functions: Vec::new() }
    }

    #[test]
    fn figures_are_medians_of_what_each_placement_gives() {
        let recording = recording();
        let rounded = |values: Vec<f64>| values.iter().map(|value| value.round() as i64).collect::<Vec<_>>();
        assert_eq!(rounded(recording.overheads(Homes::Blind)), [30, 20, 50]);
        assert_eq!(recording.overhead(Homes::Kernel).round(), 10.0);
        assert_eq!(rounded(recording.blind_times()), [3, 2, 3]);
        assert_eq!((recording.overhead_of(0).round(), recording.overhead_of(1).round()), (0.0, 25.0));
        assert_eq!((recording.locality(), recording.class(|bus| bus.read_local_none)), (80.0, 80.0));
    }
}
