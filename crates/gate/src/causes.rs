//! Which functions, objects and system calls the difference of a figure comes from.

use crate::figure::{level, taken_apart};
use nearmiss_record::baseline::{BaselinePart, Side};
use nearmiss_record::gate::{Cause, PartKind};
use nearmiss_record::model::{ByClass, MissClass};
use std::collections::BTreeMap;

/// Most causes of a kind.
const MOST: usize = 5;
/// A part with less of the difference is no cause: one in so many.
const LEAST: f64 = 20.0;

/// The parts that grew most, functions first, then objects; of system calls, each with its caller.
pub(crate) fn causes(figure: &str, difference: f64, old: &Side, new: &Side) -> Vec<Cause> {
    let (mode, what) = taken_apart(figure);
    if what == "syscalls" || what.starts_with("syscalls.") {
        return system_calls(what, difference, old, new);
    }
    let Some(mode) = mode else { return Vec::new() };
    let functions =
        grown(what, difference, old, new, |part| part.kind == PartKind::Function && usize::from(part.kernel) == mode);
    let objects = match level(what).is_some() || what == "coherence" {
        true => grown(what, difference, old, new, |part| part.kind == PartKind::Object && is_object_of(part, mode)),
        false => Vec::new(),
    };
    functions.into_iter().chain(objects).collect()
}

/// Objects have no mode: what only the kernel has is no user mode's.
fn is_object_of(part: &BaselinePart, mode: usize) -> bool {
    const KERNELS: [&str; 6] = ["slab", "page cache", "page table", "kernel stack", "kernel variable", "kernel memory"];
    mode == 1 || !KERNELS.contains(&part.module.as_str())
}

type Pair<'a> = [Option<&'a BaselinePart>; 2];

fn grown(what: &str, difference: f64, old: &Side, new: &Side, is_one: impl Fn(&BaselinePart) -> bool) -> Vec<Cause> {
    let functions = old.parts.iter().filter(|part| part.kind == PartKind::Function);
    let whole: u64 = functions.map(|part| count(what, part)).sum();
    // What a baseline left out for having little had that little.
    let most_left_out = whole.checked_div(old.least_kept).unwrap_or(0);
    let one = |pair: &Pair<'_>| {
        let cause = cause(what, pair)?;
        let before = if pair[0].is_none() { cause.new.min(most_left_out) } else { cause.old };
        Some(Cause { old: before, ..cause })
    };
    let mut grown: Vec<Cause> = pairs(old, new, is_one).iter().filter_map(one).collect();
    grown.retain(|cause| cause.difference() as f64 * LEAST >= difference && cause.difference() > 0);
    grown.sort_by(|a, b| (b.difference(), &a.name).cmp(&(a.difference(), &b.name)));
    grown.truncate(MOST);
    grown
}

/// Pairs each part with its like on the other side. Two builds of a program are two files, so only a program's name counts.
fn pairs<'a>(old: &'a Side, new: &'a Side, is_one: impl Fn(&BaselinePart) -> bool) -> Vec<Pair<'a>> {
    let mut pairs: BTreeMap<(PartKind, &str, &str), Vec<Pair<'a>>> = BTreeMap::new();
    for (at, side) in [old, new].into_iter().enumerate() {
        for part in side.parts.iter().filter(|part| is_one(part)) {
            let of_program = part.kind == PartKind::Function && !part.kernel && !part.module.contains(".so");
            let module = if of_program { "" } else { part.module.as_str() };
            let known = pairs.entry((part.kind, part.name.as_str(), module)).or_default();
            match known.iter_mut().find(|pair| pair[at].is_none()) {
                Some(pair) => pair[at] = Some(part),
                None => known.push(std::array::from_fn(|side| (side == at).then_some(part))),
            }
        }
    }
    pairs.into_values().flatten().collect()
}

fn cause(what: &str, pair: &Pair<'_>) -> Option<Cause> {
    let part = pair[1].or(pair[0])?;
    let [old, new] = pair.map(|part| part.map_or(0, |part| count(what, part)));
    let [before, after] = pair.map(|part| part.map_or(0, |part| part.calls));
    let calls = if part.kind == PartKind::Function { (before, after) } else { (0, 0) };
    Some(Cause {
        kind: part.kind,
        name: part.name.clone(),
        module: part.module.clone(),
        file: part.file.clone(),
        line: part.line,
        caller: part.caller.clone(),
        old,
        new,
        class: class(what, pair),
        calls,
    })
}

fn count(what: &str, part: &BaselinePart) -> u64 {
    let counts = &part.counts;
    match what {
        "instructions" => counts.instructions,
        "loads" => counts.loads,
        "stores" => counts.stores,
        "cycles" => counts.cycles,
        _ => classes(what, part).iter().sum(),
    }
}

/// Misses by class; of coherence, the classes with another CPU as their cause.
fn classes(what: &str, part: &BaselinePart) -> ByClass {
    let at = |level: usize| part.counts.misses.get(level).copied().unwrap_or_default();
    if what == "coherence" {
        let all = at(0);
        return std::array::from_fn(|class| if MissClass::ALL[class].is_sharing() { all[class] } else { 0 });
    }
    level(what).map_or([0; 6], at)
}

/// The class that grew most.
fn class(what: &str, pair: &Pair<'_>) -> Option<(MissClass, i64)> {
    let [old, new] = pair.map(|part| part.map_or([0; 6], |part| classes(what, part)));
    let grown = MissClass::ALL.map(|class| (class, new[class as usize] as i64 - old[class as usize] as i64));
    grown.into_iter().max_by_key(|(_, by)| *by).filter(|(_, by)| *by > 0)
}

/// Each call that is made more often, with who calls it.
fn system_calls(what: &str, difference: f64, old: &Side, new: &Side) -> Vec<Cause> {
    let only = what.strip_prefix("syscalls.");
    let names = new.figures.keys().filter_map(|name| name.strip_prefix("syscalls."));
    let mean = |side: &Side, call: &str| {
        let counts = side.figures.get(&format!("syscalls.{call}")).map_or(&[][..], Vec::as_slice);
        counts.iter().sum::<u64>() / counts.len().max(1) as u64
    };
    let one = |call: &str| {
        let more = mean(new, call).saturating_sub(mean(old, call));
        let wrapper =
            wrapper(call, new).filter(|found| calls_of(found, new) >= calls_of(found, old) + more.div_ceil(2));
        let by = wrapper.and_then(|wrapper| function(&wrapper.caller, new));
        Cause {
            kind: PartKind::SystemCall,
            name: call.to_owned(),
            module: by.map_or(String::new(), |by| by.module.clone()),
            file: by.map_or(String::new(), |by| by.file.clone()),
            line: by.map_or(0, |by| by.line),
            caller: wrapper.map_or(String::new(), |wrapper| wrapper.caller.clone()),
            old: mean(old, call),
            new: mean(new, call),
            class: None,
            calls: (0, 0),
        }
    };
    let mut causes: Vec<Cause> = names.filter(|call| only.is_none_or(|only| only == *call)).map(one).collect();
    causes.retain(|cause| cause.difference() as f64 * LEAST >= difference && cause.difference() > 0);
    causes.sort_by_key(|cause| std::cmp::Reverse(cause.difference()));
    causes.truncate(MOST);
    causes
}

/// The C library's function that makes a system call, which has the call's name but for underscores and suffixes.
fn wrapper<'a>(call: &str, side: &'a Side) -> Option<&'a BaselinePart> {
    let plain = |name: &str| {
        let name = name.split('@').next().unwrap_or(name).trim_start_matches("__GI_").trim_start_matches('_');
        let name = name.strip_prefix("libc_").unwrap_or(name);
        name.trim_end_matches("64").trim_end_matches("_nocancel").to_owned()
    };
    let call = plain(call.strip_prefix("new").unwrap_or(call));
    let is_one = |part: &&BaselinePart| part.kind == PartKind::Function && !part.kernel && plain(&part.name) == call;
    side.parts.iter().filter(is_one).max_by_key(|part| part.calls)
}

/// Calls of functions of this name in all modules of a side.
fn calls_of(function: &BaselinePart, side: &Side) -> u64 {
    let alike = |part: &&BaselinePart| part.kind == function.kind && part.name == function.name && !part.kernel;
    side.parts.iter().filter(alike).map(|part| part.calls).sum()
}

fn function<'a>(name: &str, side: &'a Side) -> Option<&'a BaselinePart> {
    side.parts.iter().find(|part| part.kind == PartKind::Function && !part.kernel && part.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearmiss_record::baseline::Counts;

    fn part(kind: PartKind, name: &str, module: &str, misses: ByClass) -> BaselinePart {
        BaselinePart {
            kind,
            name: name.to_owned(),
            module: module.to_owned(),
            kernel: module == "[kernel]",
            file: "table.c".to_owned(),
            line: 41,
            caller: "insert".to_owned(),
            calls: misses.iter().sum::<u64>() / 10,
            counts: Counts { instructions: 7, misses: vec![[0; 6], misses], ..Counts::default() },
        }
    }

    fn side(parts: Vec<BaselinePart>) -> Side {
        Side { parts, ..Side::default() }
    }

    #[test]
    fn the_functions_that_grew_come_first_with_their_class() {
        use PartKind::{Function, Object};
        let old = side(vec![
            part(Function, "grow", "old", [100, 0, 0, 0, 50, 10]),
            part(Function, "walk", "old", [0, 0, 0, 0, 0, 900]),
            part(Function, "clear_page", "[kernel]", [10, 0, 0, 0, 0, 0]),
            part(Object, "table", "heap", [5, 0, 0, 0, 0, 0]),
        ]);
        let new = side(vec![
            part(Function, "grow", "new", [110, 0, 0, 0, 400, 10]),
            part(Function, "walk", "new", [0, 0, 0, 0, 0, 890]),
            part(Function, "check", "new", [0, 0, 0, 0, 0, 30]),
            part(Function, "tiny", "new", [0, 0, 0, 0, 0, 3]),
            part(Function, "clear_page", "[kernel]", [900, 0, 0, 0, 0, 0]),
            part(Object, "table", "heap", [360, 0, 0, 0, 0, 0]),
        ]);
        let found = causes("user.l2", 383.0, &old, &new);
        let seen: Vec<_> = found.iter().map(|it| (it.name.as_str(), it.difference(), it.class)).collect();
        assert_eq!(
            seen,
            [
                ("grow", 360, Some((MissClass::Conflict, 350))),
                ("check", 30, Some((MissClass::Capacity, 30))),
                ("table", 355, Some((MissClass::Compulsory, 355))),
            ]
        );
        assert_eq!((found[0].calls, found[0].caller.as_str(), found[0].line), ((16, 52), "insert", 41));
        assert_eq!(causes("kernel.l2", 890.0, &old, &new)[0].name, "clear_page");
        assert!(causes("faults", 90.0, &old, &new).is_empty(), "nothing shows who faulted");
    }

    #[test]
    fn coherence_is_of_the_first_level_and_by_other_cpus() {
        let counted = |misses: ByClass| {
            let mut part = part(PartKind::Function, "count", "p", [0; 6]);
            part.counts.misses = vec![misses, [9; 6]];
            side(vec![part])
        };
        let found = causes("user.coherence", 70.0, &counted([1, 2, 3, 0, 0, 9]), &counted([90, 2, 73, 0, 0, 9]));
        let seen: Vec<_> = found.iter().map(|it| (it.old, it.new, it.class)).collect();
        assert_eq!(seen, [(5, 75, Some((MissClass::FalseSharing, 70)))]);
    }

    #[test]
    fn a_system_call_is_its_wrappers_callers() {
        let mut old = side(Vec::new());
        let mut write = part(PartKind::Function, "__GI___libc_write", "libc.so.6", [0; 6]);
        write.caller = "flush".to_owned();
        write.calls = 8;
        let mut new = side(vec![write.clone(), part(PartKind::Function, "flush", "p", [0; 6])]);
        for (side, counts) in [(&mut old, [4, 4]), (&mut new, [8, 8])] {
            side.figures.insert("syscalls.write".to_owned(), counts.to_vec());
            side.figures.insert("syscalls.read".to_owned(), vec![3, 3]);
        }
        let found = causes("syscalls", 4.0, &old, &new);
        let seen: Vec<_> =
            found.iter().map(|it| (it.name.as_str(), it.old, it.new, it.caller.as_str(), it.line)).collect();
        assert_eq!(seen, [("write", 4, 8, "flush", 41)]);
        // A wrapper that is not called more often did not make the calls.
        old.parts.push(write);
        assert_eq!(causes("syscalls", 4.0, &old, &new)[0].caller, "");
        assert!(causes("syscalls.read", 1.0, &old, &new).is_empty());
    }

    #[test]
    fn what_a_baseline_left_out_is_not_new() {
        let function = |name: &str, instructions| {
            let part = part(PartKind::Function, name, "program", [0; 6]);
            BaselinePart { counts: Counts { instructions, ..Counts::default() }, ..part }
        };
        let kept = Side { parts: vec![function("main", 1_000_000)], least_kept: 1000, ..Side::default() };
        let parts = vec![function("main", 1_000_500), function("left_out", 900), function("added", 60_000)];
        let found = causes("user.instructions", 60_500.0, &kept, &Side { parts, ..Side::default() });
        let seen: Vec<_> = found.iter().map(|cause| (cause.name.as_str(), cause.old, cause.new)).collect();
        assert_eq!(seen, [("added", 1000, 60_000)]);
    }
}
