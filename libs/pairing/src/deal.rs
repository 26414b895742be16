//! Groupings by chance, from a seed: as a scheduler without regard to caches makes them.

/// Tasks in groups of these sizes, in an order that a seed decides (Fisher and Yates's shuffle by a linear congruence
/// of Knuth's). An equal seed deals equal groups.
pub fn dealt(seed: u64, sizes: &[usize]) -> Vec<Vec<usize>> {
    let mut tasks: Vec<usize> = (0..sizes.iter().sum()).collect();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for at in (1..tasks.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        tasks.swap(at, (state >> 33) as usize % (at + 1));
    }
    let mut tasks = tasks.into_iter();
    sizes.iter().map(|size| tasks.by_ref().take(*size).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_task_is_dealt_once_and_each_group_equally_often() {
        let mut beside = [0; 6];
        for seed in 0..6000 {
            let groups = dealt(seed, &[2, 2, 2]);
            let mut all = groups.concat();
            all.sort_unstable();
            assert_eq!(all, [0, 1, 2, 3, 4, 5]);
            let with_0 = groups.iter().find(|group| group.contains(&0)).unwrap();
            with_0.iter().for_each(|task| beside[*task] += 1);
        }
        assert!(beside[1..].iter().all(|times| (1000..1400).contains(times)), "{beside:?}");
    }
}
