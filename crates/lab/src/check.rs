//! Which specifications make sense.

use crate::case::{cases, takes, texts, uses};
use crate::figure::{REGEX, WORDS, expression};
use crate::placeholder;
use crate::spec::{Axis, Figure, FileSystem, Guest, Level, Spec, Workload, listed};
use nearmiss_record::units::Bytes;
use nearmiss_verify::Better;
use nearmiss_workload::CpuSet;
use std::collections::BTreeSet;

/// The names that the lab itself fills in, beside `dir1`, `dir2`, ….
const BUILT_IN: [&str; 2] = ["nearmiss", "out"];
/// The longest name of a file, less what a temporary name adds.
const LONGEST_NAME: usize = 220;
const MOST_CASES: usize = 100_000;
const MOST_REPETITIONS: u32 = 10_000;
/// A workload's directories become devices where an axis makes file systems.
const MOST_DIRECTORIES: u32 = 64;
/// Most CPUs of a guest: as many as `trace --cpus` gives.
const MOST_GUEST_CPUS: u32 = 64;

/// Errors: what is wrong, and what would be right.
pub(crate) fn check(spec: &Spec) -> Result<(), String> {
    sound_name("name", &spec.name)?;
    numbers(spec)?;
    if spec.workload.is_empty() {
        return Err("no workload: write a [[workload]] with name and command".to_owned());
    }
    distinct("workload", spec.workload.iter().map(|w| w.name.as_str()))?;
    distinct("axis", spec.axis.iter().map(|a| a.name.as_str()))?;
    set_names(spec)?;
    spec.workload.iter().try_for_each(|workload| known_axes(spec, workload))?;
    spec.axis.iter().try_for_each(|axis| sound_axis(spec, axis))?;
    spec.workload.iter().try_for_each(|workload| sound_workload(spec, workload))?;
    few_enough(spec)?;
    match cases(spec).iter().map(|case| case.cell(u32::MAX)).find(|name| name.len() > LONGEST_NAME) {
        Some(name) => Err(format!("the cell {name} has too long a name for a file: choose shorter names")),
        None => Ok(()),
    }
}

/// Combinations grow as products do, and all of them are kept in memory.
fn few_enough(spec: &Spec) -> Result<(), String> {
    let cases = |workload: &Workload| {
        let levels = spec.axis.iter().filter(|axis| takes(spec, workload, axis)).map(|axis| axis.level.len());
        levels.fold(1, usize::saturating_mul)
    };
    let all = spec.workload.iter().map(cases).fold(0, usize::saturating_add);
    if all > MOST_CASES {
        return Err(format!("{all} cases, which is every combination of levels: at most {MOST_CASES}; leave axes out"));
    }
    Ok(())
}

fn numbers(spec: &Spec) -> Result<(), String> {
    if spec.repetitions == 0 {
        return Err("repetitions = 0: nothing would run; write 1 or more".to_owned());
    }
    if spec.most_repetitions() > MOST_REPETITIONS {
        return Err(format!("{} repetitions: at most {MOST_REPETITIONS}", spec.most_repetitions()));
    }
    if !(spec.timeout_s > 0.0 && spec.timeout_s <= 1e6) {
        return Err(format!("timeout_s = {}: must be above 0, and at most 1000000", spec.timeout_s));
    }
    if spec.spread.wide.is_nan() || spec.spread.wide <= 0.0 {
        return Err(format!("spread.wide = {}: must be a share above 0, such as 0.1", spec.spread.wide));
    }
    let metric = spec.spread.metric.as_str();
    let has_it =
        |workload: &Workload| crate::ended::TIMES.contains(&metric) || spec.figures(workload).contains_key(metric);
    if !spec.workload.iter().all(has_it) {
        return Err(format!(
            "spread.metric = {metric:?}: not every workload has that figure; wall_s and cpu_s always are"
        ));
    }
    Ok(())
}

fn sound_name(what: &str, name: &str) -> Result<(), String> {
    let sound = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    match name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(sound) {
        true => Ok(()),
        false => Err(format!(
            "{what} {name:?}: names are made of letters, digits and -_.+ and begin with one of the first two"
        )),
    }
}

fn distinct<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for name in names {
        sound_name(what, name)?;
        if !seen.insert(name) {
            return Err(format!("{what} {name:?} is there twice: give the second one another name"));
        }
    }
    Ok(())
}

fn set_names(spec: &Spec) -> Result<(), String> {
    let levels = spec.axis.iter().flat_map(|axis| &axis.level).flat_map(|level| level.set.keys());
    let scales = spec.scale.values().flat_map(|scale| scale.set.keys());
    for name in spec.set.keys().chain(scales).chain(levels) {
        let own = BUILT_IN.contains(&name.as_str()) || directory_number(name).is_some();
        if !placeholder::is_name(name) || own {
            return Err(format!(
                "set {name}: a placeholder has small letters, digits and _, and is not {}, dir1, dir2, …",
                BUILT_IN.join(", ")
            ));
        }
    }
    let everywhere: BTreeSet<&String> = spec.set.keys().collect();
    match spec.scale.values().flat_map(|scale| scale.set.keys()).find(|name| !everywhere.contains(name)) {
        Some(name) => Err(format!("a scale sets {name}, which [set] does not have: give it a value there")),
        None => Ok(()),
    }
}

fn sound_axis(spec: &Spec, axis: &Axis) -> Result<(), String> {
    if ["workload", "r"].contains(&axis.name.as_str()) {
        return Err(format!("axis {:?}: that name is the lab's own; choose another", axis.name));
    }
    if axis.level.is_empty() {
        return Err(format!("axis {:?} has no level: write [[axis.level]] below it", axis.name));
    }
    distinct(&format!("axis {:?}: level", axis.name), axis.level.iter().map(|l| l.name.as_str()))?;
    let set: BTreeSet<&str> = axis.level.iter().flat_map(|level| level.set.keys()).map(String::as_str).collect();
    if !spec.workload.iter().any(|workload| takes(spec, workload, axis)) {
        return Err(format!(
            "axis {:?}: no workload takes it: no text has what its levels set ({}), or no list `axes` names it",
            axis.name,
            listed(&set.into_iter().collect::<Vec<_>>())
        ));
    }
    axis.level.iter().try_for_each(|level| sound_level(spec, axis, level))
}

fn sound_level(spec: &Spec, axis: &Axis, level: &Level) -> Result<(), String> {
    let place = format!("axis {:?}, level {:?}", axis.name, level.name);
    if let Some(cpus) = &level.cpus {
        cpus.parse::<CpuSet>().map_err(|error| format!("{place}: {error}"))?;
    }
    sound_variables(&place, level.env.keys())?;
    for name in level.set.keys() {
        if !spec.workload.iter().any(|workload| uses(spec, workload, name)) {
            return Err(format!("{place}: sets {name}, but no workload's text has {{{name}}}"));
        }
        // A placeholder that one level alone sets would be empty in the others.
        if !spec.set.contains_key(name) && !axis.level.iter().all(|other| other.set.contains_key(name)) {
            return Err(format!(
                "{place}: sets {name}, which another level does not: give it a value there or in [set]"
            ));
        }
    }
    if let Some(file_system) = &level.filesystem {
        sound_file_system(spec, level, &place, file_system)?;
    }
    if let Some(guest) = &level.guest {
        sound_guest(&place, guest)?;
    }
    let known = |text: &String| known_names(spec, None, &place, text);
    level.prefix.iter().chain(level.env.values()).try_for_each(known)
}

fn sound_file_system(spec: &Spec, level: &Level, place: &str, of: &FileSystem) -> Result<(), String> {
    sound_name(&format!("{place}: filesystem.kind"), &of.kind)?;
    known_names(spec, None, place, &of.size)?;
    of.mkfs.iter().try_for_each(|word| known_names(spec, None, place, word))?;
    let values = spec.set.iter().chain(&level.set).map(|(name, value)| (name.clone(), value.clone())).collect();
    let size = placeholder::fill(&of.size, &values);
    // A size that another axis sets is known in the cell alone.
    match placeholder::names(&size).is_empty() {
        true => Bytes::parse(&size).map(drop).map_err(|error| format!("{place}: filesystem.size: {error}")),
        false => Ok(()),
    }
}

fn sound_guest(place: &str, guest: &Guest) -> Result<(), String> {
    if !guest.cpus.is_none_or(|cpus| (1..=MOST_GUEST_CPUS).contains(&cpus)) {
        return Err(format!("{place}: guest.cpus: a guest has 1 to {MOST_GUEST_CPUS} CPUs"));
    }
    let memory = guest.memory.as_deref().map(Bytes::parse).transpose();
    memory.map(drop).map_err(|error| format!("{place}: guest.memory: {error}"))
}

fn sound_variables<'a>(place: &str, mut names: impl Iterator<Item = &'a String>) -> Result<(), String> {
    match names.find(|name| name.is_empty() || name.contains(['=', '\0'])) {
        Some(name) => Err(format!("{place}: {name:?} is no name of a variable")),
        None => Ok(()),
    }
}

fn known_axes(spec: &Spec, workload: &Workload) -> Result<(), String> {
    let axes: Vec<&str> = spec.axis.iter().map(|axis| axis.name.as_str()).collect();
    if let Some(axis) = workload.axes.iter().flatten().find(|axis| !axes.contains(&axis.as_str())) {
        return Err(format!("workload {:?}: axes names {axis:?}; the file has {}", workload.name, listed(&axes)));
    }
    Ok(())
}

fn sound_workload(spec: &Spec, workload: &Workload) -> Result<(), String> {
    let place = format!("workload {:?}", workload.name);
    if workload.command.words().concat().trim().is_empty() {
        return Err(format!("{place}: no command; write for example [\"sort\", \"words.txt\"]"));
    }
    if workload.directories > MOST_DIRECTORIES {
        return Err(format!("{place}: directories = {}: at most {MOST_DIRECTORIES}", workload.directories));
    }
    sound_variables(&place, workload.env.keys())?;
    for text in texts(spec, workload) {
        known_names(spec, Some(workload), &place, &text)?;
    }
    spec.figures(workload).into_iter().try_for_each(|(name, figure)| sound_figure(&place, name, figure))
}

fn known_names(spec: &Spec, workload: Option<&Workload>, place: &str, text: &str) -> Result<(), String> {
    let of_axes = spec.axis.iter().filter(|axis| workload.is_none_or(|workload| takes(spec, workload, axis)));
    let set: Vec<&str> =
        of_axes.flat_map(|axis| &axis.level).flat_map(|level| level.set.keys()).map(String::as_str).collect();
    let directories = workload.map_or(MOST_DIRECTORIES, |workload| workload.directories);
    for name in placeholder::names(text) {
        let a_directory = directory_number(name).is_some_and(|number| (1..=directories).contains(&number));
        if !a_directory && !BUILT_IN.contains(&name) && !spec.set.contains_key(name) && !set.contains(&name) {
            let known: Vec<&str> = spec.set.keys().map(String::as_str).chain(set).collect();
            return Err(format!(
                "{place}: {{{name}}} is not known; there are {}, dir1 … dir{directories}, and what is set: {}; {{{{{name}}}}} stands for itself",
                BUILT_IN.join(", "),
                listed(&known)
            ));
        }
    }
    Ok(())
}

/// 3 of `dir3`.
fn directory_number(name: &str) -> Option<u32> {
    let number = name.strip_prefix("dir")?;
    let plain = !number.starts_with('0') && number.chars().all(|c| c.is_ascii_digit());
    plain.then(|| number.parse().ok()).flatten()
}

fn sound_figure(place: &str, name: &str, figure: &Figure) -> Result<(), String> {
    let place = format!("{place}, figure {name:?}");
    sound_name(&place, name)?;
    if crate::ended::TIMES.contains(&name) {
        return Err(format!("{place}: every cell has that figure already; choose another name"));
    }
    match (&figure.json, &figure.regex, &figure.words) {
        (Some(pointer), None, None) if pointer.is_empty() || pointer.starts_with('/') => Ok(()),
        (Some(pointer), None, None) => {
            Err(format!("{place}: json = {pointer:?}: a pointer begins with a slash, such as /jobs/0/write/bw"))
        }
        (None, Some(_), None) | (None, None, Some(_)) if figure.take.is_some() => {
            Err(format!("{place}: take goes with json; regex takes the last match, words the first"))
        }
        (None, Some(regex), None) => sound_expression(&place, REGEX, regex),
        (None, None, Some(words)) => sound_expression(&place, WORDS, words),
        _ => Err(format!("{place}: give one of json, a pointer, regex, and words, expressions")),
    }
}

fn sound_expression(place: &str, key: &'static str, text: &str) -> Result<(), String> {
    expression(key, text, Better::default()).map(drop).map_err(|error| format!("{place}: {error}"))
}
