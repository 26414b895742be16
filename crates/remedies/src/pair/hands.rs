//! From a grouping of tasks to what each CPU executes when.
//!
//! In a domain with more tasks than CPUs, each pair is beside each other for the same part of the time, in as few and
//! as long turns as that takes: a tournament. A domain of more than two CPUs deals its tasks by chance, a few times
//! over.

use nearmiss_machine::describe::Domains;
use nearmiss_machine::model::Hand;
use nearmiss_pairing::dealt;

/// How often a domain of several CPUs deals its tasks.
const DEALS: usize = 4;

/// Tasks that a domain's CPUs execute for a while.
struct Turn {
    tasks: Vec<Option<usize>>,
    windows: usize,
}

/// Two tasks beside each other, on the first two CPUs of the first domain.
pub fn pair(a: usize, b: Option<usize>, windows: usize) -> Vec<Hand> {
    vec![Hand { tasks: vec![Some(a), b], windows }]
}

/// A grouping on the domains in their order; each task executes so many windows.
pub fn whole(groups: &[Vec<usize>], domains: &Domains, windows: usize) -> Vec<Hand> {
    let cpus = domains.cpus_each as usize;
    let mut turns: Vec<Vec<Turn>> = groups.iter().map(|group| turns(group, cpus, windows)).collect();
    turns.iter_mut().for_each(|turns| turns.reverse());
    let mut hands = Vec::new();
    while let Some(length) = turns.iter().filter_map(|turns| turns.last().map(|turn| turn.windows)).min() {
        let mut tasks = Vec::with_capacity(cpus * turns.len());
        for turns in &mut turns {
            match turns.last_mut() {
                Some(turn) => {
                    tasks.extend(&turn.tasks);
                    turn.windows -= length;
                }
                None => tasks.extend(vec![None; cpus]),
            }
            turns.pop_if(|turn| turn.windows == 0);
        }
        hands.push(Hand { tasks, windows: length });
    }
    hands
}

fn turns(group: &[usize], cpus: usize, windows: usize) -> Vec<Turn> {
    let rounds: Vec<Vec<Vec<usize>>> = match group.len() {
        0 => Vec::new(),
        few if few <= cpus => vec![vec![group.to_vec()]],
        _ if cpus == 2 => tournament(group),
        _ => (0..DEALS).map(|deal| hands_of(group, cpus, deal)).collect(),
    };
    let count = rounds.len();
    let turn = |round: usize, mut tasks: Vec<Option<usize>>| {
        tasks.resize(cpus, None);
        Turn { tasks, windows: windows * (round + 1) / count - windows * round / count }
    };
    let each = rounds.into_iter().enumerate();
    let turns = each.flat_map(|(round, hands)| hands.into_iter().map(move |hand| (round, hand)));
    let turns = turns.map(|(round, hand)| turn(round, hand.into_iter().map(Some).collect()));
    turns.filter(|turn| turn.windows > 0).collect()
}

/// Rounds in which each task is beside one other, until it was beside each: one stays, the others go around.
fn tournament(group: &[usize]) -> Vec<Vec<Vec<usize>>> {
    let mut seats: Vec<Option<usize>> = group.iter().copied().map(Some).collect();
    if seats.len() % 2 == 1 {
        seats.push(None);
    }
    let half = seats.len() / 2;
    let round = |_| {
        let pairs = (0..half).map(|at| [seats[at], seats[seats.len() - 1 - at]].into_iter().flatten().collect());
        let pairs = pairs.collect();
        seats[1..].rotate_right(1);
        pairs
    };
    (1..2 * half).map(round).collect()
}

/// The tasks of a group dealt onto CPUs.
fn hands_of(group: &[usize], cpus: usize, deal: usize) -> Vec<Vec<usize>> {
    let mut sizes = vec![cpus; group.len() / cpus];
    sizes.push(group.len() % cpus);
    let dealt = dealt(deal as u64, &sizes).into_iter().filter(|hand| !hand.is_empty());
    dealt.map(|hand| hand.into_iter().map(|at| group[at]).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domains(cpus_each: u32, count: u32) -> Domains {
        Domains { level: 1, cpus_each, count }
    }

    #[test]
    fn four_tasks_of_two_cpus_share_them_with_each_other_equally_long() {
        let hands = whole(&[vec![0, 1, 2, 3], vec![4, 5]], &domains(2, 2), 9);
        let dealt_hands: Vec<_> = hands.iter().map(|hand| (hand.tasks.clone(), hand.windows)).collect();
        let hand = |a, b, rest: [Option<usize>; 2], windows| (vec![Some(a), Some(b), rest[0], rest[1]], windows);
        let (both, none) = ([Some(4), Some(5)], [None, None]);
        let wanted = [
            hand(0, 3, both, 3),
            hand(1, 2, both, 3),
            hand(0, 2, both, 3),
            hand(3, 1, none, 3),
            hand(0, 1, none, 3),
            hand(2, 3, none, 3),
        ];
        assert_eq!(dealt_hands, wanted);
    }

    #[test]
    fn every_task_executes_all_its_windows_however_many_share_however_few_cpus() {
        for (tasks, cpus, windows) in [(1, 2, 5), (3, 2, 7), (5, 2, 11), (7, 3, 10), (9, 4, 2), (4, 4, 3)] {
            let group: Vec<usize> = (0..tasks).collect();
            let mut executed = vec![0; tasks];
            for hand in whole(&[group], &domains(cpus, 1), windows) {
                assert_eq!(hand.tasks.len(), cpus as usize);
                hand.tasks.iter().flatten().for_each(|task| executed[*task] += hand.windows);
            }
            assert_eq!(executed, vec![windows; tasks], "{tasks} on {cpus}");
        }
    }
}
