//! A case's commands, with the placeholders filled in.

use crate::Error;
use crate::case::MatrixCase;
use crate::placeholder::fill;
use crate::spec::{CommandLine, FileSystem, Spec};
use nearmiss_workload::{CpuSet, Stdio, Workload};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Directories of a cell, and the program with which its words `{nearmiss}` begin.
pub(crate) struct Places<'a> {
    pub(crate) nearmiss: &'a Path,
    /// Directory in which every command starts.
    pub(crate) start: &'a Path,
    /// Directory of the cell's artifacts.
    pub(crate) out: PathBuf,
    /// Directories that are removed with the cell.
    pub(crate) directories: Vec<PathBuf>,
}

/// The values of all placeholders of a case: the level's before the specification's.
pub(crate) fn values(spec: &Spec, case: &MatrixCase, places: &Places<'_>) -> BTreeMap<String, String> {
    let mut values = spec.set.clone();
    for (_, level) in case.levels(spec) {
        values.extend(level.set.clone());
    }
    let path = |path: &Path| path.display().to_string();
    values.insert("nearmiss".to_owned(), path(places.nearmiss));
    values.insert("out".to_owned(), path(&places.out));
    let numbered = places.directories.iter().zip(1..);
    values.extend(numbered.map(|(directory, number)| (format!("dir{number}"), path(directory))));
    values
}

/// The command that is measured: the prefixes of the levels, the first axis outermost, then the workload's own words.
pub(crate) fn measured(
    spec: &Spec,
    case: &MatrixCase,
    values: &BTreeMap<String, String>,
    places: &Places<'_>,
) -> Result<Workload, Error> {
    let prefixes = case.levels(spec).flat_map(|(_, level)| level.prefix.clone());
    let words: Vec<String> = prefixes.chain(case.workload(spec).command.words()).collect();
    with_surroundings(spec, case, words, values, places)
}

/// The command that runs before it, under the same CPUs and variables and without the prefixes.
pub(crate) fn prepare(
    spec: &Spec,
    case: &MatrixCase,
    values: &BTreeMap<String, String>,
    places: &Places<'_>,
) -> Result<Option<Workload>, Error> {
    let command = case.workload(spec).prepare.as_ref().map(CommandLine::words);
    command.map(|words| with_surroundings(spec, case, words, values, places)).transpose()
}

/// Makes the command that makes a file system in an image.
pub(crate) fn mkfs(of: &FileSystem, image: &Path, values: &BTreeMap<String, String>) -> Workload {
    // Without these options those of ext prompt for a plain file, and print what they do.
    let without_prompt: &[&str] = if of.kind.starts_with("ext") { &["-q", "-F"] } else { &[] };
    let options = of.mkfs.iter().map(|word| fill(word, values));
    let words = [format!("mkfs.{}", of.kind)].into_iter().chain(without_prompt.iter().map(|&word| word.to_owned()));
    let search = std::env::var("PATH").unwrap_or_default();
    let argv: Vec<String> = words.chain(options).chain([image.display().to_string()]).collect();
    // Debian's directories of such programs, also for root without root's PATH.
    Workload::new(argv).env("PATH", format!("{search}:/usr/sbin:/sbin")).stdin(Stdio::Null)
}

fn with_surroundings(
    spec: &Spec,
    case: &MatrixCase,
    words: Vec<String>,
    values: &BTreeMap<String, String>,
    places: &Places<'_>,
) -> Result<Workload, Error> {
    let argv = words.iter().map(|word| fill(word, values));
    let mut workload = Workload::new(argv).cwd(places.start).stdin(Stdio::Null).whole_tree();
    let of_levels = case.levels(spec).flat_map(|(_, level)| &level.env);
    for (name, value) in case.workload(spec).env.iter().chain(of_levels) {
        workload = workload.env(name, fill(value, values));
    }
    if let Some(cpus) = cpus(spec, case)? {
        workload = workload.pin(cpus);
    }
    Ok(workload)
}

/// The CPUs that the levels name: those that all of them have.
pub(crate) fn cpus(spec: &Spec, case: &MatrixCase) -> Result<Option<CpuSet>, Error> {
    let mut common: Option<CpuSet> = None;
    for text in case.levels(spec).filter_map(|(_, level)| level.cpus.as_ref()) {
        let named: CpuSet = text.parse()?;
        common = Some(match common {
            None => named,
            Some(before) => before.iter().filter(|cpu| named.iter().any(|other| other == *cpu)).collect(),
        });
    }
    Ok(common)
}
