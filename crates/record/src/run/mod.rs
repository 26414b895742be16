//! The run directory: one file an arrow of the data path, each written to a temporary name and renamed.

mod coverage;
mod cut_off;
mod scratch;
mod seal;
mod whole;

pub use coverage::Coverage;
pub use scratch::Scratch;
pub(crate) use whole::temporary;
pub use whole::{remove_unfinished, write_whole};

use crate::machine::CacheKind;
pub use crate::schema::Record;
use crate::schema::is_record;
use crate::{observed, words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// Directory of the runs unless specified.
pub const DEFAULT_PARENT: &str = "nearmiss-runs";
/// Command, place and options of the run: [`Manifest`].
pub const MANIFEST: &str = "manifest.json";
/// The recorded stream.
pub const TRACE: &str = "trace.nmt";
/// Names of the instructions.
pub const SYMBOLS: &str = "symbols.json";
/// Counts of the model.
pub const MODEL: &str = "model.json";
/// Findings and their remedies: [`crate::finding::Findings`].
pub const FINDINGS: &str = "findings.json";
/// Effects of remedies: [`crate::rehearsal::Rehearsals`].
pub const REHEARSALS: &str = "rehearsals.json";
/// Comparison of two sides: [`crate::verdict::Verdict`].
pub const VERDICT: &str = "verdict.json";
/// The page to look at.
pub const REPORT: &str = "report.html";

/// A file of a run that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Reading or writing failed.
    #[error("{path}: {}", words::io_error(source))]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The content does not fit its schema.
    #[error("{path}: {source}; the file is damaged or of another version of nearmiss: record the run again")]
    Json {
        /// Path of the file.
        path: PathBuf,
        /// Place and reason.
        source: serde_json::Error,
    },
    /// Written by another version.
    #[error("{path}: schema `{found}`, this nearmiss reads `{expected}`: record the run again")]
    Schema {
        /// Path of the file.
        path: PathBuf,
        /// Schema that the file names.
        found: String,
        /// Schema that this version reads.
        expected: &'static str,
    },
    /// The content was changed since nearmiss wrote it.
    #[error("{path}: edited after nearmiss wrote it (its checksum does not fit): {}", instead(path))]
    Edited {
        /// Path of the file.
        path: PathBuf,
    },
    /// The run's recorder ended before the run was whole.
    #[error(
        "{path}: this run was cut off at {}: its {missing} is missing, and {left}; record it again",
        humantime::format_rfc3339_seconds(*when)
    )]
    CutOff {
        /// The directory.
        path: PathBuf,
        /// Time of the last write.
        when: SystemTime,
        /// Missing file.
        missing: &'static str,
        /// Files that can still be read.
        left: String,
    },
    /// The run's recorder is still at work.
    #[error("{0}: this run is still being recorded; wait for its end")]
    Unfinished(PathBuf),
    /// There is a file, such as a program.
    #[error("{0}: a file and no run; a command goes behind `--`: `nearmiss diagnose -- {0}`")]
    File(PathBuf),
    /// There is no run.
    #[error("{0}: no run here (no manifest.json); record one with `nearmiss trace -- CMD`")]
    NoRun(PathBuf),
    /// There is a run, of another recorder.
    #[error("{0}: this run is no observation (no observe.json); record one with `nearmiss observe -- CMD`")]
    NotObserved(PathBuf),
    /// A replay of a part would be taken for one of the run.
    #[error(
        "{run}: its trace keeps {kept} of {of} records, and the replay of a part is no replay of the run; record it again with a larger --max-trace"
    )]
    PartOfATrace {
        /// The run.
        run: PathBuf,
        /// Records that the trace keeps.
        kept: u64,
        /// Records that there were.
        of: u64,
    },
}

/// Returns the way to make a record anew.
fn instead(record: &Path) -> &'static str {
    match record.file_name().and_then(|name| name.to_str()) {
        Some(MODEL) => "`nearmiss report RUN -m MACHINE` models a kept trace again; else record the run again",
        Some(FINDINGS) => "diagnose the run again",
        Some(REHEARSALS) => "rehearse the run again",
        Some(VERDICT) => "verify again",
        _ => "record the run again",
    }
}

/// Kind of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunKind {
    /// `trace`: a command in the guest.
    Traced,
    /// `observe`: a live program.
    Observed,
    /// `verify`: two sides, interleaved.
    Verified,
}

impl fmt::Display for RunKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            RunKind::Traced => "a run of `nearmiss trace`",
            RunKind::Observed => "a run of `nearmiss observe`",
            RunKind::Verified => "a run of `nearmiss verify`",
        })
    }
}

/// A run directory.
#[derive(Clone, Debug)]
pub struct RunDir {
    path: PathBuf,
    /// Directories made by [`RunDir::create`], outermost first.
    parents: Vec<PathBuf>,
    /// Lock held while the run is being recorded.
    lock: Option<Arc<fs::File>>,
}

impl RunDir {
    /// Makes `parent/NAME`, where NAME is `stem` or, if taken, `stem-2`, `stem-3`, … First removes the files that
    /// killed processes left in the runs beside it.
    pub fn create(parent: &Path, stem: &str) -> Result<Self, RunError> {
        let io = |path: &Path| {
            let path = path.to_owned();
            move |source| RunError::Io { path, source }
        };
        let mut parents: Vec<_> = parent.ancestors().take_while(|p| !p.exists()).map(Path::to_owned).collect();
        parents.reverse();
        fs::create_dir_all(parent).map_err(io(parent))?;
        cut_off::sweep(parent);
        for n in 1.. {
            let path = parent.join(if n == 1 { stem.to_owned() } else { format!("{stem}-{n}") });
            match fs::create_dir(&path).and_then(|()| cut_off::hold(&path)) {
                Ok(Some(lock)) => return Ok(RunDir { path, parents, lock: lock.map(Arc::new) }),
                Ok(None) => {}
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(RunError::Io { path, source }),
            }
        }
        unreachable!("names do not run out")
    }

    /// Removes the run, and the directories that were made for it alone. Anything that cannot be removed stays: the
    /// error that made a run worthless is the one that matters.
    pub fn discard(&self) {
        // Another thread that still writes to the run finds no more directory under its name.
        let nameless = whole::temporary(&self.path);
        let place = fs::rename(&self.path, &nameless).map_or(&self.path, |()| &nameless);
        let _ = fs::remove_dir_all(place);
        // Refused while another run is in them.
        let _ = self.parents.iter().rev().try_for_each(fs::remove_dir);
    }

    /// Opens an existing run: a directory with a manifest.
    pub fn open(path: &Path) -> Result<Self, RunError> {
        if !path.join(MANIFEST).is_file() {
            return Err(cut_off::why_no_run(path));
        }
        Ok(Self::existing(path.to_owned()))
    }

    fn existing(path: PathBuf) -> Self {
        RunDir { path, parents: Vec::new(), lock: None }
    }

    /// Whether a process is recording this run now.
    pub fn is_recorded_now(&self) -> bool {
        self.lock.is_some() || cut_off::is_recorded_now(&self.path)
    }

    /// The newest run below `parent` that has been recorded to its end, by its manifest's time of writing.
    pub fn newest(parent: &Path) -> Result<Self, RunError> {
        Self::newest_with(parent, &[MODEL, observed::FILE, VERDICT])
    }

    /// The newest run below `parent` that has one of these files. If none has and a model is among them, the newest one
    /// that has a trace.
    pub fn newest_with(parent: &Path, names: &[&str]) -> Result<Self, RunError> {
        let newest = |names: &[&str]| {
            let entries = fs::read_dir(parent).ok()?.flatten().map(|entry| entry.path());
            let with = entries.filter(|run| names.iter().any(|name| run.join(name).is_file()));
            let timed = with.filter_map(|run| Some((fs::metadata(run.join(MANIFEST)).ok()?.modified().ok()?, run)));
            timed.max().map(|(_, run)| Self::existing(run))
        };
        let to_be_modelled = || names.contains(&MODEL).then(|| newest(&[TRACE])).flatten();
        newest(names).or_else(to_be_modelled).ok_or_else(|| cut_off::why_no_runs(parent))
    }

    /// Whether it was recorded with a trace and cut off before it was modelled.
    pub fn is_to_be_modelled(&self) -> bool {
        self.file(TRACE).is_file() && !self.file(MODEL).is_file() && !self.is_recorded_now()
    }

    /// Returns the kind of the run, by the files that only this kind has.
    pub fn kind(&self) -> RunKind {
        if self.file(observed::FILE).is_file() {
            RunKind::Observed
        } else if self.file(VERDICT).is_file() {
            RunKind::Verified
        } else {
            RunKind::Traced
        }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Path of one of the run's files.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Refuses a run with a trace that does not keep all that was recorded.
    pub fn has_whole_trace(&self) -> Result<(), RunError> {
        let manifest = self.read_json::<Manifest>(MANIFEST)?;
        let (kept, left_out) = (manifest.records, manifest.records_left_out);
        match left_out {
            0 => Ok(()),
            _ => Err(RunError::PartOfATrace { run: self.path.clone(), kept, of: kept.saturating_add(left_out) }),
        }
    }

    /// Reads a JSON file of the run; one of another schema, and one that was edited, is refused.
    pub fn read_json<T: Record>(&self, name: &str) -> Result<T, RunError> {
        let path = self.file(name);
        let bytes = fs::read(&path).map_err(|source| RunError::Io { path: path.clone(), source })?;
        if seal::check(&bytes).is_err() {
            return Err(RunError::Edited { path });
        }
        let record: T =
            serde_json::from_slice(&bytes).map_err(|source| RunError::Json { path: path.clone(), source })?;
        if record.schema() != T::SCHEMA {
            // A damaged file may contain anything: one line of it.
            let found = record.schema().chars().filter(|c| !c.is_control()).take(60).collect();
            return Err(RunError::Schema { path, found, expected: T::SCHEMA });
        }
        Ok(record)
    }

    /// Writes a JSON file of the run with its checksum, whole or not at all. Byte-identical for equal values.
    pub fn write_json<T: Serialize>(&self, name: &str, value: &T) -> Result<(), RunError> {
        let bytes = serde_json::to_vec(value).map_err(|source| RunError::Json { path: self.file(name), source })?;
        let mut bytes = seal::sealed(bytes);
        bytes.push(b'\n');
        write_whole(&self.file(name), &bytes)
    }
}

/// `nearmiss/manifest/1`.
pub const SCHEMA: &str = "nearmiss/manifest/1";

is_record!(Manifest);

/// `manifest.json`: command, place and options of the run. Times are for people; no figure depends on them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of nearmiss.
    pub nearmiss: String,
    /// The command with its arguments.
    pub command: Vec<String>,
    /// Working directory.
    pub cwd: String,
    /// RFC 3339, UTC.
    pub started: String,
    /// Recorder: `tap`, `observe` or `verify`.
    pub recorder: String,
    /// Machine the guest was shaped by.
    pub machine: String,
    /// CPUs of the guest.
    pub cpus: u32,
    /// Guest kernel.
    pub kernel: String,
    /// Emulator and version.
    pub emulator: String,
    /// Exit status of the command, if it exited.
    pub exit_status: Option<i32>,
    /// Signal that ended it, if one did.
    pub signal: Option<i32>,
    /// Why the record ends before the command did, or begins elsewhere, if so.
    pub cut: Option<String>,
    /// The guest's kernel killed a process for memory. Older runs do not have it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub out_of_memory: bool,
    /// Only the command's user-mode references were recorded.
    pub only_user: bool,
    /// The filter that made the trace.
    pub filter: Filter,
    /// Clock of the guest: `host` or `instructions`.
    pub clock: String,
    /// Records kept and written.
    pub records: u64,
    /// Records that were modelled and that the trace does not keep, for its size or for a full disk.
    #[serde(default, skip_serializing_if = "crate::schema::is_zero")]
    pub records_left_out: u64,
    /// Bytes of guest memory by node.
    pub node_bytes: Vec<u64>,
    /// Wall time from the command's start to the window's in nanoseconds, *measured*.
    #[serde(default, skip_serializing_if = "crate::schema::is_zero")]
    pub ahead_ns: u64,
    /// Wall time of the window in nanoseconds, *measured*.
    pub window_ns: u64,
    /// Wall time from start to a guest that is ready, *measured*.
    pub boot_ns: u64,
    /// The guest was restored from a saved state of its boot. Older runs booted theirs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restored: bool,
    /// Work between boot and command. Older runs do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm: Option<Warm>,
    /// Recorded part of the run, if that may not be all. Older runs do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub covered: Option<Coverage>,
    /// Facts for the reader, one sentence each.
    pub notes: Vec<String>,
}

/// Work of the guest between its boot and the command, so that files are in memory as on a host in use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warm {
    /// Wall time of all that, *measured*.
    pub time_ns: u64,
    /// Files read ahead.
    pub files: u64,
    /// Bytes of the files read ahead.
    pub bytes: u64,
    /// The time for reading ahead was over before everything was read.
    pub cut: bool,
    /// The whole run ahead of the recorded one, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<WarmRun>,
}

/// A run of the command ahead of the recorded one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WarmRun {
    /// Wall time of the run, *measured*.
    pub time_ns: u64,
    /// Exit status of the command, if it exited.
    pub exit_status: Option<i32>,
    /// Signal that ended the command, if one did.
    pub signal: Option<i32>,
    /// The run was ended because its time was over.
    pub cut: bool,
}

/// The filter a trace was made with: repeats of its lines were counted, not kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Filter {
    /// log₂ of the filter's line size.
    pub line_log2: u32,
    /// Lowest address bit of the filter's index.
    pub index_low: u32,
    /// Bits of the filter's index; 0: the filter holds one line.
    pub index_bits: u32,
    /// The filter is cleared when another vCPU runs.
    pub clear_on_slice: bool,
    /// Instruction fetches were recorded.
    pub fetches: bool,
    /// Calling contexts were recorded.
    pub contexts: bool,
    /// The tap ran the first level itself: hits there were counted and not sent, unless they changed more than their
    /// set's order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_level: Option<FirstLevel>,
    /// Every store was kept, and the next load of its line: any of them may become non-temporal.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ordered_stores: bool,
    /// The filter forgot at each switch of tasks, and a line is shared by tasks wherever they ran: tasks may be placed
    /// anew.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_task: bool,
    /// The filter dropped no access to data: the fields of objects may be placed anew.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub every_access: bool,
    /// Calls of the command's allocator were recorded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub heap: bool,
    /// Branches that a core would have predicted wrongly were recorded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub branches: bool,
}

impl Filter {
    /// Whether the tap ran the first level's cache of this kind.
    pub fn has_run(&self, kind: CacheKind) -> bool {
        self.first_level
            .is_some_and(|first| if kind == CacheKind::Instruction { first.fetch } else { first.data }.is_some())
    }
}

/// Part of a machine's first level that the tap runs: split, its sets those of the filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FirstLevel {
    /// First level of data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Associativity>,
    /// First level of instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetch: Option<Associativity>,
    /// The tap sent nothing but misses of instructions: enough to count them, but not to find their reasons.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub misses_only: bool,
}

/// Lines of a set of a cache, and the choice of the victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Associativity {
    /// Lines a set.
    pub ways: u32,
    /// Tree-PLRU; else LRU.
    pub tree: bool,
}
