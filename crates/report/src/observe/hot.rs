//! Places of samples: by function, by line, by instruction, by call site.

use nearmiss_record::observed::{Frame, Profile, Sample};
use std::collections::HashMap;

/// A function, line or instruction with its samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hot {
    /// Function, `file:line` or address.
    pub name: String,
    /// Module of the code.
    pub module: String,
    /// Kernel code.
    pub kernel: bool,
    /// Samples that fell on the code.
    pub samples: u64,
    /// Events those samples stand for.
    pub weight: u64,
    /// Samples with the code anywhere on the stack.
    pub inclusive: u64,
}

/// A caller of a function, with the samples it brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSite {
    /// The caller, at the line of the call.
    pub frame: Frame,
    /// Samples in the function (itself, not what it called) when called from here.
    pub samples: u64,
}

/// A function's share of misses beside its share of references.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratio {
    /// The function.
    pub name: String,
    /// Share of the misses, 0 to 1.
    pub misses: f64,
    /// Share of the references, 0 to 1.
    pub references: f64,
}

/// The index of the first event of a role.
pub fn event_of(profile: &Profile, role: &str) -> Option<u32> {
    profile.events.iter().position(|e| e.role == role).and_then(|i| u32::try_from(i).ok())
}

/// Samples of an event that fell on somebody's work.
pub(super) fn samples(profile: &Profile, event: u32) -> impl Iterator<Item = &Sample> {
    // Samples of the idle task are no work of anybody's.
    let idle = |s: &Sample| profile.threads.get(s.thread as usize).is_some_and(|t| t.1 == 0);
    profile.samples.iter().filter(move |s| s.event == event && !idle(s))
}

fn frames<'a>(profile: &'a Profile, sample: &Sample) -> impl Iterator<Item = &'a Frame> + use<'a> {
    let stack = profile.stacks.get(sample.stack as usize).map_or(&[][..], Vec::as_slice);
    stack.iter().filter_map(|i| profile.frames.get(*i as usize))
}

/// All samples of an event, idle ones left out: how many, and the events they stand for.
pub fn total(profile: &Profile, event: u32) -> (u64, u64) {
    samples(profile, event).fold((0, 0), |(n, w), s| (n + 1, w + s.weight))
}

/// Functions by samples, most first. Their `samples` sum to the total.
pub fn hottest(profile: &Profile, event: u32) -> Vec<Hot> {
    let mut hot: HashMap<(&str, &str), Hot> = HashMap::new();
    for sample in samples(profile, event) {
        let mut seen: Vec<(&str, &str)> = Vec::new();
        let mut innermost = true;
        for frame in frames(profile, sample) {
            let key = (frame.function.as_str(), frame.module.as_str());
            let row = hot.entry(key).or_insert_with(|| blank(&frame.function, frame));
            if innermost {
                row.samples += 1;
                row.weight += sample.weight;
                innermost = false;
            }
            if !seen.contains(&key) {
                row.inclusive += 1;
                seen.push(key);
            }
        }
        if innermost {
            let row = hot.entry(("[unattributed]", "")).or_insert_with(|| blank("[unattributed]", &Frame::default()));
            row.samples += 1;
            row.weight += sample.weight;
            row.inclusive += 1;
        }
    }
    sorted(hot.into_values())
}

/// Source lines by samples that fell on them; code without lines goes by its function.
pub fn lines(profile: &Profile, event: u32) -> Vec<Hot> {
    innermost_by(profile, event, |f| if f.line.is_empty() { f.function.clone() } else { f.line.clone() })
}

/// Source lines of a function by samples that fell on them; none where its file has no lines.
pub fn lines_of(profile: &Profile, event: u32, function: &str) -> Vec<Hot> {
    let mut all = innermost_by(profile, event, |f| if f.function == function { f.line.clone() } else { String::new() });
    all.retain(|h| !h.name.is_empty());
    all
}

/// Instructions of a function by samples that fell on them.
pub fn instructions(profile: &Profile, event: u32, function: &str) -> Vec<Hot> {
    let mut all = innermost_by(profile, event, |f| {
        if f.function == function { format!("{:#x} {}", f.address, f.line) } else { String::new() }
    });
    all.retain(|h| !h.name.is_empty());
    all
}

fn innermost_by(profile: &Profile, event: u32, name: impl Fn(&Frame) -> String) -> Vec<Hot> {
    let mut hot: HashMap<String, Hot> = HashMap::new();
    for sample in samples(profile, event) {
        if let Some(frame) = frames(profile, sample).next() {
            let name = name(frame);
            let row = hot.entry(name.clone()).or_insert_with(|| blank(&name, frame));
            row.samples += 1;
            row.weight += sample.weight;
            row.inclusive += 1;
        }
    }
    sorted(hot.into_values())
}

fn blank(name: &str, frame: &Frame) -> Hot {
    Hot {
        name: name.to_owned(),
        module: frame.module.clone(),
        kernel: frame.kernel,
        samples: 0,
        weight: 0,
        inclusive: 0,
    }
}

fn sorted(rows: impl Iterator<Item = Hot>) -> Vec<Hot> {
    let mut rows: Vec<Hot> = rows.collect();
    rows.sort_by(|a, b| (b.samples, b.inclusive).cmp(&(a.samples, a.inclusive)).then_with(|| a.name.cmp(&b.name)));
    rows
}

/// Returns the callers of a function when samples fall into it, most first.
pub fn call_sites(profile: &Profile, event: u32, function: &str) -> Vec<CallSite> {
    let mut sites: HashMap<(&str, &str), CallSite> = HashMap::new();
    for sample in samples(profile, event) {
        let mut stack = frames(profile, sample);
        if stack.next().is_none_or(|f| f.function != function) {
            continue;
        }
        let nobody = Frame { function: "[no caller recorded]".to_owned(), ..Frame::default() };
        let caller = stack.next();
        let key = caller.map_or(("", ""), |f| (f.function.as_str(), f.line.as_str()));
        let site =
            sites.entry(key).or_insert_with(|| CallSite { frame: caller.cloned().unwrap_or(nobody), samples: 0 });
        site.samples += 1;
    }
    let mut sites: Vec<CallSite> = sites.into_values().collect();
    sites.sort_by(|a, b| b.samples.cmp(&a.samples).then_with(|| a.frame.function.cmp(&b.frame.function)));
    sites
}

/// P1's sign: functions by share of misses, beside their share of references.
pub fn ratios(profile: &Profile) -> Vec<Ratio> {
    let (Some(misses), Some(references)) = (event_of(profile, "misses"), event_of(profile, "references")) else {
        return Vec::new();
    };
    let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
    let all_misses = total(profile, misses).1;
    let all_references = total(profile, references).1;
    let by_name: HashMap<String, u64> = hottest(profile, references).into_iter().map(|h| (h.name, h.weight)).collect();
    let mut rows: Vec<Ratio> = hottest(profile, misses)
        .into_iter()
        .filter(|h| h.weight > 0)
        .map(|h| Ratio {
            misses: share(h.weight, all_misses),
            references: share(by_name.get(&h.name).copied().unwrap_or(0), all_references),
            name: h.name,
        })
        .collect();
    rows.sort_by(|a, b| b.misses.total_cmp(&a.misses));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearmiss_record::observed::Event;

    fn frame(function: &str, line: &str) -> Frame {
        Frame { function: function.into(), module: "m".into(), line: line.into(), ..Frame::default() }
    }

    fn profile() -> Profile {
        let event = |role: &str| Event { role: role.into(), ..Event::default() };
        let sample = |event, stack, weight| Sample { event, stack, weight, ..Sample::default() };
        Profile {
            events: vec![event("misses"), event("references")],
            frames: vec![frame("copy", "c:1"), frame("write", "w:7"), frame("read", "r:9"), frame("main", "m:2")],
            stacks: vec![vec![0, 1, 3], vec![0, 2, 3], vec![3], vec![]],
            threads: vec![(1, 1, "t".into()), (0, 0, "swapper".into())],
            samples: vec![
                sample(0, 0, 10),
                sample(0, 0, 10),
                sample(0, 1, 10),
                sample(0, 2, 10),
                sample(0, 3, 10),
                Sample { thread: 1, ..sample(0, 0, 1000) },
                sample(1, 0, 10),
                sample(1, 2, 90),
            ],
        }
    }

    #[test]
    fn functions_sum_to_the_total_and_idle_is_left_out() {
        let p = profile();
        let hot = hottest(&p, 0);
        assert_eq!(hot.iter().map(|h| h.samples).sum::<u64>(), 5);
        assert_eq!(total(&p, 0), (5, 50));
        assert_eq!((hot[0].name.as_str(), hot[0].samples, hot[0].inclusive), ("copy", 3, 3));
        let main = hot.iter().find(|h| h.name == "main").unwrap();
        assert_eq!((main.samples, main.inclusive), (1, 4));
        assert!(hot.iter().any(|h| h.name == "[unattributed]" && h.samples == 1));
    }

    #[test]
    fn each_caller_has_a_row() {
        let sites = call_sites(&profile(), 0, "copy");
        let sites: Vec<_> = sites.iter().map(|s| (s.frame.function.as_str(), s.samples)).collect();
        assert_eq!(sites, [("write", 2), ("read", 1)]);
    }

    #[test]
    fn misses_stand_beside_references() {
        let rows = ratios(&profile());
        assert_eq!(rows[0], Ratio { name: "copy".into(), misses: 0.6, references: 0.1 });
    }
}
