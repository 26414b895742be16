//! The grouping of tasks onto domains that costs least.

use crate::costs::Costs;
use crate::exact::{MOST_EXACT, exact};
use crate::matching::matching;
use crate::search::search;

/// Tasks in groups, one group a domain.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grouping {
    /// Groups in the order of the requested sizes; tasks ascending.
    pub groups: Vec<Vec<usize>>,
    /// Cost of the grouping.
    pub cost: f64,
    /// No grouping of these sizes costs less; otherwise none that differs by one swap of two tasks does.
    pub is_optimum: bool,
}

/// Sizes of groups, as equal as they can be, the larger ones first.
pub fn balanced(tasks: usize, domains: usize) -> Vec<usize> {
    let domains = domains.max(1);
    (0..domains).map(|domain| tasks / domains + usize::from(domain < tasks % domains)).collect()
}

/// The grouping of these sizes that costs least. Pairs by weighted matching, larger groups exactly for up to 16 tasks,
/// and by a local search beyond. None where the sizes do not make up the tasks.
pub fn optimum(costs: &Costs, sizes: &[usize]) -> Option<Grouping> {
    if sizes.iter().try_fold(0usize, |sum, size| sum.checked_add(*size)) != Some(costs.tasks()) {
        return None;
    }
    let found = if sizes.iter().all(|size| *size <= 2) { matching(costs, sizes) } else { None };
    let (mut groups, is_optimum) = match found {
        Some(groups) => (groups, true),
        None if costs.tasks() <= MOST_EXACT => (exact(costs, sizes), true),
        None => (search(costs, sizes), false),
    };
    groups.iter_mut().for_each(|group| group.sort_unstable());
    Some(Grouping { cost: costs.groups(&groups), groups, is_optimum })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_differ_by_one_at_most() {
        assert_eq!(balanced(7, 3), [3, 2, 2]);
        assert_eq!(balanced(2, 4), [1, 1, 0, 0]);
        assert_eq!(balanced(5, 0), [5]);
    }

    #[test]
    fn sizes_that_do_not_make_up_the_tasks_have_no_grouping() {
        assert_eq!(optimum(&Costs::new(4), &[2, 1]), None);
        assert_eq!(optimum(&Costs::new(4), &[usize::MAX, 5]), None);
        assert_eq!(optimum(&Costs::new(0), &[]).map(|grouping| grouping.groups), Some(vec![]));
    }
}
