//! Which place each task of a plan gets.

use nearmiss_pairing::Costs;

/// Costs of these tasks alone, by their place among them.
pub fn among(costs: &Costs, slots: &[usize]) -> Costs {
    let mut among = Costs::new(slots.len());
    for (a, one) in slots.iter().enumerate() {
        among.set_alone(a, costs.alone(*one));
        slots.iter().enumerate().skip(a + 1).for_each(|(b, other)| among.set(a, b, costs.pair(*one, *other)));
    }
    among
}

/// Costs by which those that hurt each other come together: tasks of one CPU never run at the same time.
pub fn apart(costs: &Costs) -> Costs {
    let tasks = costs.tasks();
    let pairs = || (0..tasks).flat_map(|a| (a + 1..tasks).map(move |b| (a, b)));
    let most = pairs().map(|(a, b)| costs.pair(a, b)).fold(0.0, f64::max);
    let mut apart = Costs::new(tasks);
    pairs().for_each(|(a, b)| apart.set(a, b, most - costs.pair(a, b)));
    apart
}

pub fn by_member(groups: &[Vec<usize>], members: usize) -> Vec<usize> {
    let mut places = vec![0; members];
    for (place, group) in groups.iter().enumerate() {
        group.iter().filter(|member| **member < members).for_each(|member| places[*member] = place);
    }
    places
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use nearmiss_pairing::Planner;

    const PLANNER: Planner = Planner { least_gain: 0.02 };

    fn costs(of: &[(usize, usize, f64)]) -> Costs {
        let mut costs = Costs::new(4);
        of.iter().for_each(|(a, b, cost)| costs.set(*a, *b, *cost));
        costs
    }

    #[test]
    fn tasks_that_hurt_each_other_take_turns_on_one_cpu() {
        // Chases 0 and 1 leave each other alone; streams 2 and 3 spoil everybody.
        let of = costs(&[(0, 1, 2.0), (2, 3, 4.0), (0, 2, 3.5), (0, 3, 3.5), (1, 2, 3.5), (1, 3, 3.5)]);
        let plan = PLANNER.plan(&apart(&of), &[None; 4], &[2, 2]).unwrap();
        // Either each chase with a stream (so that likes run at the same time), or likes on one CPU; the sums decide:
        // 2 + 4 run at the same time against 3.5 + 3.5.
        assert_ne!(plan.domain_of[0], plan.domain_of[1], "{plan:?}");
        assert_ne!(plan.domain_of[2], plan.domain_of[3], "{plan:?}");
    }

    #[test]
    fn costs_of_some_tasks_are_those_of_the_table() {
        let of = costs(&[(1, 3, 7.0), (0, 1, 5.0)]);
        assert_eq!(among(&of, &[3, 1]).pair(0, 1), 7.0);
        assert_eq!(by_member(&[vec![1], vec![0, 2]], 3), [1, 0, 1]);
    }
}
