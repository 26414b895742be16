//! Whether a size separates the copies that are worth it from all others: then the C library's own threshold does it,
//! with no library and in a static program too.

use super::group::Group;

/// The least threshold that the C library takes: `0x4040`, of glibc's `sysdeps/x86/dl-cacheinfo.h`.
const LEAST_THRESHOLD: u64 = 0x4040;

/// The threshold above which all copies of a run are of the chosen groups; none where others are as large, or where the
/// chosen are too small. A fill has no source, and does not go by this threshold.
pub(super) fn threshold<'a>(chosen: &[&Group], all: impl Iterator<Item = &'a Group>) -> Option<u64> {
    if chosen.is_empty() || chosen.iter().any(|group| !group.is_reachable || group.seen.source_lines == 0) {
        return None;
    }
    let least = chosen.iter().map(|group| group.seen.mean_bytes()).min()?;
    // Half of the mean: sizes vary.
    let threshold = (least / 2).max(LEAST_THRESHOLD);
    let is_chosen = |group: &Group| chosen.iter().any(|one| one.site == group.site);
    let mut others = all.filter(|group| group.is_reachable && !is_chosen(group));
    (least >= LEAST_THRESHOLD && others.all(|group| group.seen.mean_bytes() < threshold / 2)).then_some(threshold)
}

#[cfg(test)]
mod tests {
    use super::super::sight::CopyCounts;
    use super::*;
    use crate::bypass::copies::blame::Blame;

    fn group(site: &str, each: u64, source_lines: u64, is_reachable: bool) -> Group {
        Group {
            site: site.parse().unwrap_or_else(|why: String| panic!("{why}")),
            function: site.to_owned(),
            is_reachable,
            is_kernels: false,
            seen: CopyCounts { copies: 10, bytes: 10 * each, source_lines, ..CopyCounts::default() },
            blame: Blame::default(),
            blamed_cycles: 0,
        }
    }

    fn of(chosen: &Group, others: &[Group]) -> Option<u64> {
        threshold(&[chosen], others.iter().chain([chosen]))
    }

    #[test]
    fn large_copies_among_small_ones_have_a_threshold() {
        let large = group("store", 65_536, 64, true);
        assert_eq!(of(&large, &[group("read", 4_096, 64, true)]), Some(32_768));
        // Half of it would be less than the C library takes.
        assert_eq!(of(&group("store", 20_000, 64, true), &[]), Some(16_448));
        assert_eq!(of(&group("store", 16_447, 64, true), &[]), None);
    }

    #[test]
    fn copies_of_others_as_large_leave_none_unless_they_are_out_of_reach() {
        let large = group("store", 65_536, 64, true);
        assert_eq!(of(&large, &[group("read", 16_384, 64, true)]), None);
        assert_eq!(of(&large, &[group("read", 16_383, 64, true)]), Some(32_768));
        assert_eq!(of(&large, &[group("inline", 65_536, 64, false)]), Some(32_768));
    }

    #[test]
    fn fills_and_what_is_built_in_have_none() {
        assert_eq!(of(&group("fill", 65_536, 0, true), &[]), None);
        assert_eq!(of(&group("inline", 65_536, 64, false), &[]), None);
    }
}
