//! The figures: their names and their order.

/// User and kernel mode, as names begin.
pub const MODES: [&str; 2] = ["user", "kernel"];
/// Figures that each mode has, without the levels of misses.
pub const OF_A_MODE: [&str; 5] = ["instructions", "loads", "stores", "coherence", "cycles"];
/// Figures of the whole command.
pub const OF_ALL: [&str; 4] = ["walks", "syscalls", "faults", "switches"];
/// Any level's misses, in a limit.
pub const MISSES: &str = "misses";

/// The name of a figure of a mode.
pub fn of_mode(mode: usize, what: &str) -> String {
    format!("{}.{what}", MODES[mode.min(1)])
}

/// The name of a level's misses, such as `l2`.
pub fn level_name(index: usize) -> String {
    format!("l{}", index + 1)
}

/// The level that `l2` names, counted from 0.
pub fn level(what: &str) -> Option<usize> {
    let number: usize = what.strip_prefix('l')?.parse().ok()?;
    number.checked_sub(1)
}

/// Mode and kind of a figure: `user.l2` is `(Some(0), "l2")`, `syscalls.read` is `(None, "syscalls.read")`.
pub fn taken_apart(name: &str) -> (Option<usize>, &str) {
    let mode = |at: usize| name.strip_prefix(MODES[at])?.strip_prefix('.').map(|what| (Some(at), what));
    mode(0).or_else(|| mode(1)).unwrap_or((None, name))
}

/// Returns a figure's place among others: modes first, then what the kernel did for the command.
pub fn rank(name: &str) -> (usize, usize, &str) {
    let (mode, what) = taken_apart(name);
    let of_mode = |what: &str| match (OF_A_MODE.iter().position(|it| *it == what), level(what)) {
        (Some(at), _) if at < 3 => at,
        (_, Some(level)) => 3 + level,
        (Some(at), None) => 100 + at,
        _ => 200,
    };
    let of_all = |what: &str| {
        let base = what.split('.').next().unwrap_or(what);
        OF_ALL.iter().position(|it| *it == base).unwrap_or(OF_ALL.len())
    };
    (mode.unwrap_or(2), if mode.is_some() { of_mode(what) } else { of_all(what) }, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_in_the_order_in_which_they_are_read() {
        let mut names =
            vec!["switches", "kernel.l1", "syscalls.read", "user.cycles", "user.l2", "syscalls", "user.loads"];
        names.sort_by_key(|name| rank(name));
        assert_eq!(
            names,
            ["user.loads", "user.l2", "user.cycles", "kernel.l1", "syscalls", "syscalls.read", "switches"]
        );
    }

    #[test]
    fn a_level_is_counted_from_one() {
        assert_eq!([level("l3"), level("l0"), level("loads")], [Some(2), None, None]);
        assert_eq!(taken_apart("kernel.l2"), (Some(1), "l2"));
        assert_eq!(taken_apart("syscalls.read"), (None, "syscalls.read"));
    }
}
