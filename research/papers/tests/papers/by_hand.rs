//! Figures that can be worked out without the model, and the model's own.

use nearmiss_papers::coloring::hand::cyclic_walk_miss_percent;
use nearmiss_papers::coloring::{figures, walk};

#[test]
fn poisson_gives_57_14_and_2_percent() {
    let rounded = [256, 512, 1024].map(|kb| cyclic_walk_miss_percent(1024, kb, 32).round());
    assert_eq!(rounded, [57.0, 14.0, 2.0]);
    assert!(cyclic_walk_miss_percent(1024, 1024, 1) > 99.99);
}

/// 1,024 tasks, five placements: the standard error of the mean is about 0.8 points at 256 KB.
#[test]
fn an_undisturbed_walk_misses_as_poisson_predicts() {
    for (kilobytes, name) in figures::SIZES {
        let modelled = walk::undisturbed(name).unwrap();
        let by_hand = cyclic_walk_miss_percent(1024, kilobytes, 32);
        assert!((modelled - by_hand).abs() < 2.5, "{kilobytes} KB: {modelled} against {by_hand}");
    }
}

#[test]
fn equation_2_gives_the_papers_numbers_of_colors() {
    let least = |kb| [256, 512, 1024].map(|processes| figures::least_colors(processes, kb));
    assert_eq!(least(512), [4, 8, 16]);
    assert_eq!(least(1024), [2, 4, 8]);
}
