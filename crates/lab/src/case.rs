//! Cases and cells, and their names.

use crate::placeholder;
use crate::spec::{Axis, FileSystem, Guest, Level, Spec, Workload};

/// A workload under one level of each axis that it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatrixCase {
    /// Index of the workload.
    pub(crate) workload: usize,
    /// The axes that it takes, each with the index of a level.
    pub(crate) levels: Vec<(usize, usize)>,
    /// `WORKLOAD,AXIS=LEVEL,…`.
    pub name: String,
}

impl MatrixCase {
    /// The identifier of a repetition, counted from 1.
    pub fn cell(&self, repetition: u32) -> String {
        format!("{},r{repetition}", self.name)
    }

    pub(crate) fn workload<'a>(&self, spec: &'a Spec) -> &'a Workload {
        &spec.workload[self.workload]
    }

    /// The file system of its directories, if a level makes one: the last axis decides.
    pub(crate) fn file_system<'a>(&self, spec: &'a Spec) -> Option<&'a FileSystem> {
        self.levels(spec).filter_map(|(_, level)| level.filesystem.as_ref()).last()
    }

    /// The guest that its cells run in: the settings of its levels together, the last one first.
    pub(crate) fn guest(&self, spec: &Spec) -> Option<Guest> {
        let together = |mut all: Guest, one: &Guest| {
            all.kernel = one.kernel.clone().or(all.kernel);
            all.arguments.extend(one.arguments.iter().cloned());
            all.cpus = one.cpus.or(all.cpus);
            all.memory = one.memory.clone().or(all.memory);
            all
        };
        let of_levels = self.levels(spec).filter_map(|(_, level)| level.guest.as_ref());
        of_levels.fold(None, |all: Option<Guest>, one| Some(together(all.unwrap_or_default(), one)))
    }

    /// Whether its cells begin with an empty page cache.
    pub(crate) fn drops_caches(&self, spec: &Spec) -> bool {
        spec.drop_caches || self.levels(spec).any(|(_, level)| level.drop_caches)
    }

    pub(crate) fn levels<'a>(&self, spec: &'a Spec) -> impl Iterator<Item = (&'a Axis, &'a Level)> {
        self.levels.iter().map(|&(axis, level)| (&spec.axis[axis], &spec.axis[axis].level[level]))
    }
}

/// One repetition of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Index of the case.
    pub(crate) case: usize,
    pub(crate) repetition: u32,
}

/// All cases, in the order of the specification.
pub(crate) fn cases(spec: &Spec) -> Vec<MatrixCase> {
    let mut found = Vec::new();
    for (index, workload) in spec.workload.iter().enumerate() {
        let mut of_workload = vec![MatrixCase { workload: index, levels: Vec::new(), name: workload.name.clone() }];
        for (axis_index, axis) in spec.axis.iter().enumerate().filter(|(_, axis)| takes(spec, workload, axis)) {
            let with = |case: &MatrixCase, (level_index, level): (usize, &Level)| MatrixCase {
                levels: case.levels.iter().copied().chain([(axis_index, level_index)]).collect(),
                name: format!("{},{}={}", case.name, axis.name, level.name),
                ..*case
            };
            let all = |case| axis.level.iter().enumerate().map(move |level| with(case, level));
            of_workload = of_workload.iter().flat_map(all).collect();
        }
        found.extend(of_workload);
    }
    found
}

/// Whether the axis varies the workload: by the workload's own list, or because some level can change it.
pub(crate) fn takes(spec: &Spec, workload: &Workload, axis: &Axis) -> bool {
    match &workload.axes {
        Some(axes) => axes.contains(&axis.name),
        None => axis.level.iter().any(|level| changes(spec, workload, level)),
    }
}

fn changes(spec: &Spec, workload: &Workload, level: &Level) -> bool {
    let from_outside = level.cpus.is_some()
        || !level.env.is_empty()
        || !level.prefix.is_empty()
        || level.drop_caches
        || level.guest.is_some();
    let a_place = level.filesystem.is_some() && uses_directories(spec, workload);
    from_outside || a_place || level.set.keys().any(|name| uses(spec, workload, name))
}

fn uses_directories(spec: &Spec, workload: &Workload) -> bool {
    (1..=workload.directories).any(|number| uses(spec, workload, &format!("dir{number}")))
}

/// Whether the workload's texts have the placeholder, or those of a level that the workload takes.
pub(crate) fn uses(spec: &Spec, workload: &Workload, name: &str) -> bool {
    let named = |axis: &&Axis| workload.axes.as_ref().is_none_or(|axes| axes.contains(&axis.name));
    let of_levels = spec.axis.iter().filter(named).flat_map(|axis| &axis.level).flat_map(texts_of_level);
    texts(spec, workload).into_iter().chain(of_levels).any(|text| placeholder::names(&text).contains(&name))
}

/// Texts of a level that change a workload by themselves, and have placeholders.
fn texts_of_level(level: &Level) -> impl Iterator<Item = String> {
    level.prefix.iter().chain(level.env.values()).cloned()
}

/// All texts of a workload in which placeholders are filled in.
pub(crate) fn texts(spec: &Spec, workload: &Workload) -> Vec<String> {
    let prepare = workload.prepare.iter().flat_map(|command| command.words());
    let files = spec.figures(workload).into_values().filter_map(|figure| figure.file.clone());
    let commands = workload.command.words().into_iter().chain(prepare);
    commands.chain(workload.env.values().cloned()).chain(files).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::Changes;
    use std::path::Path;

    #[test]
    fn the_papers_patterns_are_sound_in_both_sizes() {
        let text = include_str!("../../../research/papers/pollution/lab.toml");
        let spec = |scale: Option<&str>| {
            let changes = Changes { scale: scale.map(str::to_owned), ..Changes::default() };
            Spec::parse(Path::new("lab.toml"), text, &changes).unwrap()
        };
        let (paper, small) = (spec(None), spec(Some("small")));
        // 12 patterns, by 4 sets of instruments, by 2 numbers of CPUs, on one kind of file system.
        assert_eq!((cases(&paper).len(), cases(&small).len()), (96, 96));
        assert_eq!((paper.set["size1"].as_str(), small.set["size1"].as_str()), ("8G", "512M"));
        let case = &cases(&small)[3];
        assert_eq!(case.cell(1), "p1,instruments=clock,cpus=2,fs=ext4,r1");
        assert_eq!(case.file_system(&small).unwrap().kind, "ext4");
    }
}
