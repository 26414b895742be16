//! Figures that can be worked out by hand.

/// Ways of the second level of both machines.
const WAYS: u32 = 4;
const LINE_BYTES: u64 = 32;

/// Misses of a cyclic walk under LRU, in percent, over tasks placed at random in `colors` colors, with nothing displaced
/// between walks: the tasks in sets that hold more tasks than ways. A set's number of tasks is Poisson; a task shares its
/// set with a Poisson number of others, and misses if these are as many as the ways or more.
pub fn cyclic_walk_miss_percent(processes: u64, kilobytes: u64, colors: u32) -> f64 {
    disturbed_walk_miss_percent(processes, kilobytes, colors, 0)
}

/// As above, with `lines` other lines, anywhere, used between two walks: they too are Poisson in a set.
pub fn disturbed_walk_miss_percent(processes: u64, kilobytes: u64, colors: u32, lines: u64) -> f64 {
    let sets = kilobytes * 1024 / LINE_BYTES / u64::from(WAYS);
    let sets_of_a_color = (kilobytes / 8 / u64::from(WAYS)).max(1);
    let mean = processes as f64 / (sets_of_a_color * u64::from(colors)) as f64 + lines as f64 / sets as f64;
    let mut term = (-mean).exp();
    let mut fits = 0.0;
    for others in 0..WAYS {
        fits += term;
        term *= mean / f64::from(others + 1);
    }
    (1.0 - fits) * 100.0
}
