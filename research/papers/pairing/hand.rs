//! Figures that can be worked out by hand.

use super::run::Class;

/// Share of the time in pairs that share, by section 4.3.1, in class (3) by whether each group has a hardware thread of
/// its own: with two threads on each hardware thread, all pairs of one from here and one from there are as long.
pub fn sharing(class: Class, each_has_its_own: bool) -> f64 {
    match (class, each_has_its_own) {
        (Class::Apart, _) => 1.0,
        (Class::One, _) | (Class::Half, false) => 0.5,
        (Class::Half, true) => 0.0,
    }
}

/// Probability of a class where eight threads are dealt to two cores: of the 70 ways, so many put so many of a group on
/// the first core.
pub fn dealt(class: Class) -> f64 {
    let ways = match class {
        Class::Apart => 2.0,
        Class::One => 32.0,
        Class::Half => 36.0,
    };
    ways / 70.0
}

/// Probability of (i) within (3), where the four threads of a core are dealt to its hardware threads: two ways of six.
pub const HALF_APART_DEALT: f64 = 2.0 / 6.0;
