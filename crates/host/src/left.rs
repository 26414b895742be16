//! Part of the last level that the machine's neighbours leave: guests of the same package, or other programs.
//!
//! sysfs lists the level's whole size. A chase through a buffer of growing size shows how much of it is left, by the
//! size at which half of the loads go to memory.

use std::f64::consts::LN_2;

/// Most that is walked: where this much is left, the rest does not matter to a measurement of some seconds.
const MOST_WALK: u64 = 256 << 20;

/// Steps of a size between one power of two and the next: a cache of so many ways, and up to twice as many.
const STEPS: f64 = 8.0;

/// Bytes left of a level of `own` bytes behind one of `nearer` bytes; `None`: half of the level or more, or as far as was
/// looked. `walk` gives the nanoseconds of a load from a buffer of some size.
///
/// Neighbours push out lines at random. A buffer of `b` bytes is walked round and round in a level with `left` bytes,
/// of which each miss replaces a random line. A share `h = exp(-(1 - h) * b / left)` of the buffer is still there at
/// the next access: a half where `b = left * 2 ln 2`.
pub fn bytes(
    (nearer, own): (u64, u64),
    (hit_ns, memory_ns): (f64, f64),
    mut walk: impl FnMut(u64) -> Option<f64>,
) -> Option<u64> {
    let half = (hit_ns + memory_ns) / 2.0;
    let (mut size, mut before) = (nearer.saturating_mul(2).max(1), hit_ns);
    while size <= own.min(MOST_WALK) {
        let ns = walk(size)?;
        if ns >= half {
            let beyond = (half - before.min(half)) / (ns - before.min(half)).max(f64::MIN_POSITIVE);
            let crossing = size as f64 / 2.0 * beyond.exp2();
            return Some(in_steps(crossing / (2.0 * LN_2)).max(nearer)).filter(|left| left.saturating_mul(2) <= own);
        }
        (size, before) = (size * 2, ns);
    }
    None
}

/// The nearest number of ways from [`STEPS`] on, times a power of two.
fn in_steps(bytes: f64) -> u64 {
    let way = bytes.max(1.0).log2().floor().exp2() / STEPS;
    ((bytes / way).round() * way) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Time of a load if each miss replaces a random line, and neighbours leave so much.
    fn level(left: u64) -> impl Fn(u64) -> Option<f64> {
        move |size| {
            let ratio = size as f64 / left as f64;
            let hits = (0..1000).fold(0.0, |h: f64, _| (-(1.0 - h) * ratio).exp());
            Some(40.0 * hits + 160.0 * (1.0 - hits))
        }
    }

    #[test]
    fn the_part_left_ends_where_half_of_the_loads_go_to_memory() {
        let left = |left| bytes((2 * MIB, 480 * MIB), (40.0, 160.0), level(left));
        for mib in [12, 16, 25, 64] {
            let (found, of) = (left(mib * MIB).unwrap() as f64, (mib * MIB) as f64);
            assert!((0.85..1.15).contains(&(found / of)), "{mib}: {found}");
        }
        assert_eq!(left(MIB), Some(2 * MIB), "nothing but the nearer level");
        assert_eq!(left(512 * MIB), None);
    }

    #[test]
    fn a_level_that_neighbours_hardly_touch_is_as_the_kernel_lists_it() {
        let left = |left| bytes((MIB, 32 * MIB), (40.0, 160.0), level(left));
        assert_eq!(left(32 * MIB), None);
        assert_eq!(left(8 * MIB), Some(9 * MIB));
        assert_eq!(bytes((MIB, 32 * MIB), (20.0, 100.0), |_| None), None, "no memory to walk through");
    }

    #[test]
    fn times_measured_on_a_guest_give_what_they_show() {
        // Medians of 4, 8, 16 and 32 MiB on a guest with 2 MiB of its own and 480 MiB of a package.
        let left = |measured: [f64; 4]| {
            let walk = |size: u64| measured.get((size / MIB).ilog2() as usize - 2).copied();
            bytes((2 * MIB, 480 * MIB), (35.0, 166.0), walk).unwrap() as f64 / MIB as f64
        };
        assert_eq!(left([34.3, 37.0, 85.6, 155.7]), 13.0);
        assert_eq!(left([35.4, 42.3, 88.6, 164.0]), 13.0);
        assert_eq!(left([35.6, 40.9, 131.6, 169.4]), 9.0);
    }
}
