//! Size from which on a chase loses the last level to the machine's neighbours: guests of the same package, or other
//! programs.
//!
//! A level evicts the line that was used longest ago. A chase through a buffer uses each of its lines again after as many
//! loads as the buffer has lines. Neighbours bring lines in all the while, and the longer that takes, the more of them:
//! beyond some size they fill all that the level has beside the buffer before a line's turn comes, and then the loads
//! take many times as long, so that more is lost at once. A walk that needs no load to end before the next one comes back
//! to its lines sooner, and keeps more.

/// Most that is walked: where this much is kept, the rest does not matter to a measurement of some seconds.
const MOST_WALK: u64 = 256 << 20;

/// Steps of a size between one power of two and the next.
const STEPS: f64 = 8.0;

/// Bytes of a chase that keeps its lines in a level of `own` bytes behind one of `nearer` bytes; `None`: half of the level
/// or more, or as far as was looked. `walk` returns the nanoseconds of a load from a buffer of some size.
pub fn bytes(
    (nearer, own): (u64, u64),
    (hit_ns, memory_ns): (f64, f64),
    mut walk: impl FnMut(u64) -> Option<f64>,
) -> Option<u64> {
    let half = (hit_ns + memory_ns) / 2.0;
    let (mut kept, mut kept_ns) = (nearer, hit_ns);
    let mut size = larger(nearer.max(1));
    while size <= own.min(MOST_WALK) {
        let ns = walk(size)?;
        if ns >= half {
            let beyond = (half - kept_ns.min(half)) / (ns - kept_ns.min(half)).max(f64::MIN_POSITIVE);
            let crossing = kept as f64 + (size - kept) as f64 * beyond;
            return Some(in_steps(crossing).max(nearer)).filter(|left| left.saturating_mul(2) <= own);
        }
        (kept, kept_ns) = (size, ns);
        size = larger(size);
    }
    None
}

/// The next size to walk: powers of two, and one and a half times these.
fn larger(size: u64) -> u64 {
    if size.is_power_of_two() { size + size / 2 } else { (size + 1).next_power_of_two() }
}

/// The nearest number of steps, in which a power of two has eight.
fn in_steps(bytes: f64) -> u64 {
    let step = bytes.max(1.0).log2().floor().exp2() / STEPS;
    ((bytes / step).round() * step) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Time of a load if a chase of more than so much goes to memory for most of its lines.
    fn level(kept: u64) -> impl Fn(u64) -> Option<f64> {
        move |size| Some(if size <= kept { 41.0 } else { 150.0 })
    }

    #[test]
    fn a_chase_is_kept_up_to_where_half_of_its_loads_go_to_memory() {
        let left = |kept| bytes((2 * MIB, 480 * MIB), (40.0, 160.0), level(kept));
        for mib in [4, 12, 16, 64] {
            let found = left(mib * MIB).map_or(0.0, |bytes| bytes as f64 / (mib * MIB) as f64);
            assert!((1.0..1.35).contains(&found), "{mib}: {found}");
        }
        assert_eq!(left(MIB), Some(5 * MIB / 2), "hardly more than the nearer level");
        assert_eq!(left(512 * MIB), None);
    }

    #[test]
    fn a_level_that_neighbours_hardly_touch_is_as_the_kernel_lists_it() {
        let left = |kept| bytes((MIB, 32 * MIB), (40.0, 160.0), level(kept));
        assert_eq!(left(16 * MIB), None, "some 20 MiB of 32");
        assert_eq!(left(8 * MIB), Some(10 * MIB));
        assert_eq!(bytes((MIB, 32 * MIB), (20.0, 100.0), |_| None), None, "no memory to walk through");
    }

    #[test]
    fn times_measured_on_a_guest_give_what_they_show() {
        // Best times of 1.5 to 16 MiB on a guest with 1 MiB of its own and 32 MiB of a package.
        let measured = [12.3, 13.5, 14.2, 15.1, 17.9, 106.4, 125.2, 133.9];
        let walk = |size: u64| {
            let at = 2 * (size / MIB).ilog2() as usize + usize::from(!size.is_power_of_two());
            measured.get(at.saturating_sub(1)).copied()
        };
        assert_eq!(bytes((MIB, 32 * MIB), (14.5, 155.0), walk), Some(15 * MIB / 2));
    }
}
