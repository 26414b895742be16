//! Copies in samples of the live program: which callers' copies take the time, or miss. Samples do not show who pays
//! for them, so that nothing is predicted.

use super::finding::unrehearsed;
use super::way::{is_copying, is_libc, is_named};
use nearmiss_analysis::Unrehearsed;
use nearmiss_record::finding::EvidenceKind;
use nearmiss_record::observed::{Frame, Observed, Profile};
use nearmiss_record::words::percent;
use std::collections::BTreeMap;

/// A caller is named from this share of the samples on.
const LEAST_SHARE: f64 = 0.05;

/// The copies of one caller.
#[derive(Clone, Debug, PartialEq)]
struct Copies {
    caller: String,
    /// Share of what the samples stand for.
    share: f64,
    /// The C library names the routine; else it may be one that only reads.
    named: bool,
}

/// Suspects the caller with most of the cache misses in its copies, or of the CPU time where no misses were sampled.
pub(super) fn detect(observed: &Observed) -> Option<Unrehearsed> {
    let profile = observed.profile.as_ref()?;
    let of = |role, what| Some((heaviest(profile, role)?, what));
    let (copies, what) = of("misses", "cache misses").or_else(|| of("clock", "CPU time"))?;
    let why = "samples do not show who pays for a copy";
    (copies.share >= LEAST_SHARE)
        .then(|| unrehearsed(sentence(&copies, what), why, EvidenceKind::Measured, copies.share))
}

fn sentence(copies: &Copies, what: &str) -> String {
    let unnamed = " (or a search: the C library has no symbols here, which Debian's libc6-dbg has)";
    format!(
        "copies that `{}` calls for have {} of the {what} (measured){}; `nearmiss apply bypass --copies -- CMD` counts how \
         many there are and how large they are, and `nearmiss diagnose -- CMD` shows what they push out",
        copies.caller,
        percent(copies.share),
        if copies.named { "" } else { unnamed }
    )
}

/// Returns the heaviest copies in samples of events with this role; none where there are no such samples.
fn heaviest(profile: &Profile, role: &str) -> Option<Copies> {
    let events: Vec<bool> = profile.events.iter().map(|event| event.role == role).collect();
    let of_role = |event: u32| events.get(event as usize).copied().unwrap_or(false);
    let mut all = 0u64;
    let mut callers: BTreeMap<&str, (u64, bool)> = BTreeMap::new();
    for sample in profile.samples.iter().filter(|sample| of_role(sample.event)) {
        all = all.saturating_add(sample.weight);
        if let Some((caller, named)) = caller_of_copy(profile, sample.stack) {
            let (weight, all_named) = callers.entry(caller).or_insert((0, true));
            *weight = weight.saturating_add(sample.weight);
            *all_named &= named;
        }
    }
    let (caller, (weight, named)) = callers.into_iter().max_by_key(|(_, (weight, _))| *weight)?;
    Some(Copies { caller: caller.to_owned(), share: weight as f64 / all.max(1) as f64, named })
}

/// Returns the caller of the copying routine that a stack ends in, from outside of the C library; and whether the
/// routine has a name.
fn caller_of_copy(profile: &Profile, stack: u32) -> Option<(&str, bool)> {
    let stack = profile.stacks.get(stack as usize)?;
    let frame = |at: usize| stack.get(at).and_then(|&number| profile.frames.get(number as usize));
    let (routine, caller): (&Frame, &Frame) = (frame(0)?, frame(1)?);
    let from_outside = !caller.kernel && !is_libc(&caller.module);
    (is_copying(&routine.module, &routine.function) && from_outside)
        .then(|| (caller.function.as_str(), is_named(&routine.function)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearmiss_record::observed::{Event, Sample};

    /// Samples of `events` in stacks of two frames: a routine of the C library, and who called it.
    fn observed(events: &[&str], samples: &[(u32, &str, &str, u64)]) -> Observed {
        let event = |role: &&str| Event { role: (*role).to_owned(), ..Event::default() };
        let mut profile = Profile { events: events.iter().map(event).collect(), ..Profile::default() };
        for &(event, routine, caller, weight) in samples {
            let at = profile.frames.len() as u32;
            let frame = |function: &str, module: &str| Frame {
                function: function.to_owned(),
                module: module.to_owned(),
                ..Frame::default()
            };
            let module = if caller == "fread" { "/lib/libc.so.6" } else { "/usr/bin/p" };
            profile.frames.extend([frame(routine, "/lib/libc.so.6"), frame(caller, module)]);
            profile.stacks.push(vec![at, at + 1]);
            profile.samples.push(Sample { event, stack: at / 2, weight, ..Sample::default() });
        }
        Observed { profile: Some(profile), ..Observed::default() }
    }

    fn found(events: &[&str], samples: &[(u32, &str, &str, u64)]) -> Option<(String, f64)> {
        detect(&observed(events, samples)).map(|found| (found.sentence, found.most_gain))
    }

    #[test]
    fn the_caller_with_most_of_the_copies_is_named() {
        let memcpy = "__memcpy_avx512_unaligned_erms";
        let (sentence, share) =
            found(&["clock"], &[(0, memcpy, "store", 30), (0, memcpy, "read", 20), (0, "qsort", "main", 50)]).unwrap();
        assert!(
            sentence.starts_with("copies that `store` calls for have 30% of the CPU time (measured); "),
            "{sentence}"
        );
        assert_eq!(share, 0.3);
    }

    #[test]
    fn misses_come_before_the_time() {
        let copy = "__memmove_evex_unaligned";
        let (sentence, _) =
            found(&["clock", "misses"], &[(0, copy, "often", 90), (1, copy, "far", 8), (1, "walk", "main", 2)])
                .unwrap();
        assert!(
            sentence.starts_with("copies that `far` calls for have 80% of the cache misses (measured); "),
            "{sentence}"
        );
    }

    #[test]
    fn a_routine_without_a_name_may_be_a_search() {
        let (sentence, _) = found(&["clock"], &[(0, "libc.so.6+0x15b2c0", "store", 1)]).unwrap();
        assert!(sentence.contains("(or a search: the C library has no symbols here"), "{sentence}");
    }

    #[test]
    fn copies_inside_the_c_library_and_few_copies_are_none() {
        let copy = "__memset_avx2_unaligned";
        assert_eq!(found(&["clock"], &[(0, copy, "fread", 1)]), None);
        assert_eq!(found(&["clock"], &[(0, copy, "store", 4), (0, "strlen", "main", 96)]), None);
        assert_eq!(found(&["clock"], &[]), None);
    }
}
