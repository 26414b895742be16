//! When a copy had better go through the caches.

use super::group::Group;
use nearmiss_record::words::{bytes, percent};

/// A target is read soon where so many of its lines are found in a cache by their next reader.
pub(super) const SOON: f64 = 0.5;
/// A copy pushes out nobody where, of its lines, a smaller share is blamed for a miss beyond the first level.
const PUSHES_OUT: f64 = 0.05;
/// A source pollutes as its target does from so much of its size on.
const AS_LARGE: f64 = 0.5;
/// Below so many bytes a copy, the lines that are whole are few and the fence at its end is dear.
pub(super) const LEAST_COPY_BYTES: u64 = 512;

/// A reason to leave a copy as it is, or what limits its gain.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Against {
    /// Written lines are read while a cache has them: this share of the lines.
    ReadSoon(f64),
    /// Lines are still there when the copy writes them again: this share of the lines, so they push out nobody.
    Fits(f64),
    /// The copy reads as many lines as it writes, and these still come through the caches: bytes of both.
    LargeSource {
        /// Bytes of different lines that the copy reads.
        source: u64,
        /// Bytes of different lines that the copy writes.
        target: u64,
    },
    /// Copies of so few bytes.
    Small(u64),
}

impl Against {
    /// Whether the reason forbids the copy, regardless of a rehearsal; the others limit the copy's gain.
    pub fn forbids(&self) -> bool {
        !matches!(self, Against::LargeSource { .. })
    }

    /// Names the reason in two words, for a column.
    pub fn word(&self) -> &'static str {
        match self {
            Against::ReadSoon(_) => "read soon",
            Against::Fits(_) => "fits the caches",
            Against::LargeSource { .. } => "large source",
            Against::Small(_) => "small copies",
        }
    }

    /// Describes the reason as a sentence without its end.
    pub fn sentence(&self) -> String {
        match self {
            Against::ReadSoon(share) => {
                format!("{} of the lines that it writes are read while a cache still has them", percent(*share))
            }
            Against::Fits(share) => format!(
                "its target and what else is used fit the caches together: {} of its lines are still there when it writes \
                 them again",
                percent(*share)
            ),
            Against::LargeSource { source, target } => format!(
                "its source ({}) is as large as its target ({}), and what it reads still comes through the caches",
                bytes(*source),
                bytes(*target)
            ),
            Against::Small(each) => format!("its copies are small, {} each", bytes(*each)),
        }
    }
}

/// Returns the reasons against letting a group's copies go past the caches; `line_bytes`: of the longest line.
pub(super) fn against(group: &Group, line_bytes: u64) -> Vec<Against> {
    let seen = &group.seen;
    let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
    let mut reasons = Vec::new();
    let soon = seen.read_soon_share();
    if soon >= SOON {
        reasons.push(Against::ReadSoon(soon));
    }
    let again = seen.written_again_soon + seen.written_again_late;
    if share(seen.written_again_soon, again) >= SOON && share(group.blamed_beyond_first(), again) < PUSHES_OUT {
        reasons.push(Against::Fits(share(seen.written_again_soon, again)));
    }
    if share(seen.source_lines, seen.target_lines) >= AS_LARGE {
        let (source, target) = (seen.source_lines * line_bytes, seen.target_lines * line_bytes);
        reasons.push(Against::LargeSource { source, target });
    }
    let each = seen.mean_bytes();
    if each < LEAST_COPY_BYTES {
        reasons.push(Against::Small(each));
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::super::blame::Blame;
    use super::super::sight::CopyCounts;
    use super::*;

    fn blame(misses: &[(&str, u64)]) -> Blame {
        let mut blame = Blame::default();
        misses.iter().for_each(|(cache, misses)| blame.add(cache, (0, 0), *misses));
        blame
    }

    /// Copies of 4 KiB that nobody reads again and that push out what others need.
    fn polluting() -> Group {
        let seen = CopyCounts {
            copies: 512,
            bytes: 2 << 20,
            target_lines: 16_384,
            source_lines: 64,
            written_again_soon: 16_384,
            ..CopyCounts::default()
        };
        Group {
            site: "store".parse().unwrap_or_else(|why: String| panic!("{why}")),
            function: "store".to_owned(),
            is_reachable: true,
            is_kernels: false,
            seen,
            blame: blame(&[("L1d", 400), ("L2", 8_000)]),
            blamed_cycles: 100_000,
        }
    }

    #[test]
    fn nothing_speaks_against_a_copy_that_pollutes() {
        assert_eq!(against(&polluting(), 64), []);
    }

    #[test]
    fn each_threshold_has_two_sides() {
        let words = |change: &dyn Fn(&mut Group)| {
            let mut group = polluting();
            change(&mut group);
            against(&group, 64).iter().map(Against::word).collect::<Vec<_>>()
        };
        assert_eq!(words(&|g| (g.seen.read_soon, g.seen.written_again_soon) = (16_384, 16_384)), ["read soon"]);
        assert_eq!(words(&|g| (g.seen.read_soon, g.seen.written_again_soon) = (16_383, 16_385)), [""; 0]);
        // 819 of 16,384 lines are one under a twentieth.
        assert_eq!(words(&|g| g.blame = blame(&[("L1d", 9_000), ("L2", 819)])), ["fits the caches"]);
        assert_eq!(words(&|g| g.blame = blame(&[("L2", 820)])), [""; 0]);
        assert_eq!(words(&|g| g.seen.source_lines = 8_192), ["large source"]);
        assert_eq!(words(&|g| g.seen.source_lines = 8_191), [""; 0]);
        assert_eq!(words(&|g| g.seen.copies = (2 << 20) / 511), ["small copies"]);
        assert_eq!(words(&|g| g.seen.copies = (2 << 20) / 512), [""; 0]);
    }

    #[test]
    fn a_large_source_limits_the_gain_and_does_not_forbid() {
        assert!(!Against::LargeSource { source: 1, target: 1 }.forbids());
        assert!(Against::ReadSoon(1.0).forbids() && Against::Fits(1.0).forbids() && Against::Small(64).forbids());
        let sentence = Against::LargeSource { source: 2 << 20, target: 2 << 20 }.sentence();
        assert!(sentence.starts_with("its source (2 MiB) is as large as its target (2 MiB)"), "{sentence}");
    }
}
