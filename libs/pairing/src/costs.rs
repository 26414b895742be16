//! Costs of tasks together in one domain.

/// Costs of tasks: alone, and each pair together. A domain of several tasks costs the mean of its pairs' sums for each
/// task: its tasks run two at a time, or each beside all others, and either way every pair has the same part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Costs {
    tasks: usize,
    /// Symmetric; the diagonal is alone.
    pairs: Vec<f64>,
}

impl Costs {
    /// Creates the costs of so many tasks, all zero.
    pub fn new(tasks: usize) -> Self {
        Costs { tasks, pairs: vec![0.0; tasks * tasks] }
    }

    /// Returns how many tasks there are.
    pub fn tasks(&self) -> usize {
        self.tasks
    }

    /// Both together cost so much; what is no number, or not in the table, is left out.
    pub fn set(&mut self, a: usize, b: usize, cost: f64) {
        if a < self.tasks && b < self.tasks && cost.is_finite() {
            self.pairs[a * self.tasks + b] = cost;
            self.pairs[b * self.tasks + a] = cost;
        }
    }

    /// A task alone costs so much.
    pub fn set_alone(&mut self, task: usize, cost: f64) {
        self.set(task, task, cost);
    }

    /// Returns the cost of both together.
    pub fn pair(&self, a: usize, b: usize) -> f64 {
        if a < self.tasks && b < self.tasks { self.pairs[a * self.tasks + b] } else { 0.0 }
    }

    /// Returns the cost of a task alone.
    pub fn alone(&self, task: usize) -> f64 {
        self.pair(task, task)
    }

    /// Returns the cost of the tasks of one domain: each is beside each other one equally often.
    pub fn group(&self, group: &[usize]) -> f64 {
        match group {
            [] => 0.0,
            [one] => self.alone(*one),
            more => {
                let pairs = more.iter().enumerate().flat_map(|(at, a)| more[at + 1..].iter().map(move |b| (*a, *b)));
                pairs.map(|(a, b)| self.pair(a, b)).sum::<f64>() / (more.len() - 1) as f64
            }
        }
    }

    /// Returns the cost of a grouping.
    pub fn groups(&self, groups: &[Vec<usize>]) -> f64 {
        groups.iter().map(|group| self.group(group)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_costs_the_mean_over_who_is_beside_whom() {
        let mut costs = Costs::new(3);
        costs.set(0, 1, 2.0);
        costs.set(1, 2, 3.0);
        costs.set(2, 0, 7.0);
        costs.set_alone(1, 1.5);
        assert_eq!((costs.group(&[]), costs.group(&[1]), costs.group(&[0, 1])), (0.0, 1.5, 2.0));
        assert_eq!(costs.group(&[0, 1, 2]), 6.0);
        assert_eq!(costs.groups(&[vec![1], vec![0, 2]]), 8.5);
        costs.set(0, 1, f64::NAN);
        assert_eq!((costs.pair(0, 1), costs.pair(0, 9)), (2.0, 0.0));
    }
}
