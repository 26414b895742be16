//! Contents of `SPEC.toml`.

use nearmiss_verify::Better;
use serde::Deserialize;
use std::collections::BTreeMap;

/// An experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Name of the lab's directory.
    pub name: String,
    /// Shuffles the rounds.
    #[serde(default = "one")]
    pub seed: u64,
    /// How often each case runs.
    #[serde(default = "five")]
    pub repetitions: u32,
    /// How long a cell may take.
    #[serde(default = "ten_minutes")]
    pub timeout_s: f64,
    /// Whether each cell begins with an empty page cache, after its `prepare`.
    #[serde(default)]
    pub drop_caches: bool,
    /// Which cases are repeated.
    #[serde(default)]
    pub spread: Spread,
    /// Values of placeholders.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
    /// Changes by `--scale NAME`.
    #[serde(default)]
    pub scale: BTreeMap<String, Scale>,
    /// Figures that every workload's output has.
    #[serde(default)]
    pub measure: BTreeMap<String, Figure>,
    /// Workloads that run.
    #[serde(default)]
    pub workload: Vec<Workload>,
    /// Conditions of the runs.
    #[serde(default)]
    pub axis: Vec<Axis>,
}

/// When a case's repetitions differ so much that more are needed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Spread {
    /// Which figure is looked at.
    pub metric: String,
    /// Difference between the largest and the least, as a share of the median, from which on a case is wide.
    pub wide: f64,
    /// A wide case is repeated until it has so many repetitions.
    pub repetitions: u32,
}

impl Default for Spread {
    fn default() -> Self {
        Spread { metric: nearmiss_verify::WALL.to_owned(), wide: 0.2, repetitions: 0 }
    }
}

/// A size of the whole experiment.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scale {
    /// Values of placeholders.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
    /// How often each case runs.
    pub repetitions: Option<u32>,
    /// How long a cell may take.
    pub timeout_s: Option<f64>,
}

/// Words, or one string for the shell.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "a command is a string for the shell, or a list of words that runs without one")]
pub enum CommandLine {
    /// Words that run without a shell.
    Words(Vec<String>),
    /// A string for `/bin/sh -c`.
    Shell(String),
}

impl CommandLine {
    /// The words that are executed.
    pub fn words(&self) -> Vec<String> {
        match self {
            CommandLine::Words(words) => words.clone(),
            CommandLine::Shell(text) => ["/bin/sh", "-c", text].map(str::to_owned).to_vec(),
        }
    }
}

/// A command to be measured.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// The workload's part of the identifiers.
    pub name: String,
    /// Measured command.
    pub command: CommandLine,
    /// Command that runs before each cell, and is not measured.
    pub prepare: Option<CommandLine>,
    /// How many directories of its own the workload gets: `{dir1}`, `{dir2}`, …
    #[serde(default = "one")]
    pub directories: u32,
    /// Variables of the command's environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Figures that the command's output has.
    #[serde(default)]
    pub measure: BTreeMap<String, Figure>,
    /// The axes that the workload takes; without the list, all that can change the workload.
    pub axes: Option<Vec<String>>,
}

/// A condition that is varied.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// The axis's part of the identifiers.
    pub name: String,
    /// The conditions.
    pub level: Vec<Level>,
}

/// One condition of an axis.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// The level's part of the identifiers.
    pub name: String,
    /// The CPUs of the cell, in the kernel's list format.
    pub cpus: Option<String>,
    /// Variables of the environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Values of placeholders.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
    /// Words before the command's own, such as a remedy's or an instrument's.
    #[serde(default)]
    pub prefix: Vec<String>,
    /// File system of each of the cell's directories, on a loop device of its own.
    pub filesystem: Option<FileSystem>,
    /// Whether the cell begins with an empty page cache, after its `prepare`.
    #[serde(default)]
    pub drop_caches: bool,
    /// Guest that runs the cell, if not this machine.
    pub guest: Option<Guest>,
}

/// A throw-away guest, booted for the cell alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Guest {
    /// A version in the cache of kernels, or the path of an unpacked one; none: the newest.
    pub kernel: Option<String>,
    /// Further words of the kernel's command line, such as `maxcpus=1`.
    pub arguments: Vec<String>,
    /// CPUs of the guest; none: one.
    pub cpus: Option<u32>,
    /// Memory of the guest, such as `2 GiB`; none: half of what is available.
    pub memory: Option<String>,
}

/// A fresh file system.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSystem {
    /// Kind, as `mkfs.KIND` and `mount -t KIND` name it.
    pub kind: String,
    /// Size of the device, such as `64 MiB`; may have placeholders.
    pub size: String,
    /// Words for `mkfs.KIND`, before the file.
    #[serde(default)]
    pub mkfs: Vec<String>,
    /// Options of the mount, as after `mount -o`, of this kind of file system alone.
    #[serde(default)]
    pub mount: String,
}

/// Source of a cell's figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// A JSON pointer; `*` stands for every element, and the file may hold several documents.
    pub json: Option<String>,
    /// An expression; its last match is the figure: the first group if it has one.
    pub regex: Option<String>,
    /// An expression; its first match is the figure, as words: the first group if it has one.
    pub words: Option<String>,
    /// The file; without it the command's standard output.
    pub file: Option<String>,
    /// Whether a cell without the figure counts all the same: not every level has one.
    #[serde(default)]
    pub optional: bool,
    /// Reduction of several values that a pointer finds.
    pub take: Option<Take>,
    /// Which way the figure is better.
    #[serde(default)]
    pub better: Better,
    /// Unit of the figure, for readers of the table.
    #[serde(default)]
    pub unit: String,
}

/// Reduction of several values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Take {
    /// Sum of the values.
    Sum,
    /// Mean of the values.
    Mean,
    /// The largest value.
    Largest,
    /// The first value in the file.
    First,
}

fn one<T: From<u8>>() -> T {
    1.into()
}

fn five() -> u32 {
    5
}

fn ten_minutes() -> f64 {
    600.0
}

impl Spec {
    /// No case has more repetitions than this.
    pub(crate) fn most_repetitions(&self) -> u32 {
        self.repetitions.max(self.spread.repetitions)
    }

    /// The figures of a workload: those of all, and its own.
    pub fn figures<'a>(&'a self, workload: &'a Workload) -> BTreeMap<&'a str, &'a Figure> {
        let all = self.measure.iter().chain(&workload.measure);
        // Collecting keeps the later one of two of a name: the workload's own.
        all.map(|(name, figure)| (name.as_str(), figure)).collect()
    }
}

/// `a, b`; `none` of nothing.
pub(crate) fn listed(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
