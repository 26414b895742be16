//! `nearmiss apply bypass --files`: the command's regular files kept out of the page cache, by a preloaded library.

use super::after_kill::{self, AfterKill};
use super::report::{LeftAlone, Report, SCHEMA};
use crate::preload::{Library, LibraryCounts, Preload, Refusals, try_on_true};
use nearmiss_analysis::{Ability, Acts, Applied, CannotEngage, Engaged, Engagement, NotEngaged};
use nearmiss_workload::Workload;
use std::fmt;

/// The library takes no longer one.
const LONGEST_GLOB: usize = 4095;

/// The library, with the counters of `native/preload/files/streams.h`.
static LIBRARY: Library = Library {
    name: "files",
    file: "nearmiss-bypass-files.so",
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/bypass-files.so")),
    counters: &[
        FILES,
        DONTCACHE,
        WINDOWS,
        GIVEN_BACK,
        KEPT,
        COPIES,
        LEFT_DIRECT,
        LEFT_UNNAMED,
        LEFT_MEMORY,
        LEFT_UNSEEN,
        LEFT_CROWDED,
        LEFT_UNWRITTEN,
        REFUSED,
        LEFT_BEHIND,
    ],
};

const FILES: &str = "files";
const DONTCACHE: &str = "dontcache";
const WINDOWS: &str = "windows";
const GIVEN_BACK: &str = "given back";
const KEPT: &str = "kept";
const COPIES: &str = "copies";
const LEFT_DIRECT: &str = "left direct";
const LEFT_UNNAMED: &str = "left unnamed";
const LEFT_MEMORY: &str = "left memory";
const LEFT_UNSEEN: &str = "left unseen";
const LEFT_CROWDED: &str = "left crowded";
const LEFT_UNWRITTEN: &str = "left unwritten";
const REFUSED: &str = "refused";
const LEFT_BEHIND: &str = "left behind";

const REFUSALS: Refusals = Refusals {
    go: "it makes its system calls itself, which no preloaded library sees",
    statically_linked: "or let the program drop its pages itself (posix_fadvise)",
};

/// Which files leave nothing in the page cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// A pattern of names; all files where there is none.
    pub only: Option<String>,
    /// How the library looks into the page cache.
    pub eyes: Eyes,
}

/// The system call that reports what of a file is in the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Eyes {
    /// `cachestat` where the kernel has it (6.5), else `mincore`.
    #[default]
    Best,
    /// `mincore`, as on older kernels.
    Mincore,
    /// Neither: files with pages that only windows could give back are left alone.
    None,
}

impl Options {
    fn check(&self) -> Result<(), CannotEngage> {
        let Some(only) = &self.only else { return Ok(()) };
        if only.is_empty() || only.len() > LONGEST_GLOB || only.contains('\0') {
            let why = format!("--only {only:?}: must be a pattern of 1 to {LONGEST_GLOB} letters");
            return Err(CannotEngage::Parameters(why));
        }
        if only.contains('/') && !only.starts_with(['/', '*']) {
            let why = format!("--only {only}: a pattern with / is about absolute names; begin with / or **/");
            return Err(CannotEngage::Parameters(why));
        }
        Ok(())
    }
}

/// `files`, or `files named *.tar`.
impl fmt::Display for Options {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.only {
            Some(only) => write!(out, "files named {only}"),
            None => out.write_str("files"),
        }
    }
}

/// The remedy in place around a command. Nothing of it persists.
#[derive(Debug)]
pub struct Files {
    options: Options,
    preload: Preload,
}

/// Puts a command under the remedy.
pub fn apply(workload: Workload, options: &Options) -> Result<(Workload, Files), CannotEngage> {
    options.check()?;
    let preload = Preload::new(&workload, vec![&LIBRARY], &REFUSALS)?;
    let workload = match &options.only {
        Some(only) => workload.env("NEARMISS_FILES_ONLY", only),
        None => workload,
    };
    let workload = preload.around(workload, "NEARMISS_FILES_PRELOAD", &format!("eyes={}", options.eyes as u8));
    Ok((workload, Files { options: options.clone(), preload }))
}

/// Puts a command under the remedy for the registry.
pub fn engage(workload: Workload, options: &Options) -> Result<Applied, CannotEngage> {
    apply(workload, options).map(Applied::from)
}

/// Whether a program's files can be reached here: those of `true` can.
pub fn abilities() -> Vec<Ability> {
    vec![try_on_true("preloaded library for files", |workload| apply(workload, &Options::default()))]
}

impl Files {
    /// Reports what went by which way since the last report, provided that the launched process `pid` was under the
    /// remedy.
    pub fn report(&self, pid: i32) -> Result<Report, NotEngaged> {
        let part = self.preload.confirm_only(pid)?;
        Ok(self.of(&part, &after_kill::give_back(&self.preload.rests())))
    }

    fn of(&self, part: &LibraryCounts, after_kill: &AfterKill) -> Report {
        Report {
            schema: SCHEMA,
            only: self.options.only.clone(),
            programs: part.programs,
            files: part.counter(FILES),
            refusing_files: part.counter(REFUSED),
            dontcache_bytes: part.counter(DONTCACHE),
            window_bytes: part.counter(WINDOWS),
            given_back_bytes: part.counter(GIVEN_BACK),
            after_kill_bytes: after_kill.given_back_bytes,
            kept_bytes: part.counter(KEPT),
            copies: part.counter(COPIES),
            left: LeftAlone {
                direct_bytes: part.counter(LEFT_DIRECT),
                unnamed_bytes: part.counter(LEFT_UNNAMED),
                memory_bytes: part.counter(LEFT_MEMORY),
                unseen_bytes: part.counter(LEFT_UNSEEN),
                crowded_bytes: part.counter(LEFT_CROWDED),
                unwritten_bytes: part.counter(LEFT_UNWRITTEN),
                used_bytes: part.counter(LEFT_BEHIND),
                killed_bytes: after_kill.left_bytes,
            },
        }
    }
}

impl Engagement for Files {
    fn confirm(&mut self, pid: i32) -> Result<Engaged, NotEngaged> {
        self.report(pid).map(|report| Engaged::reported(&report, Acts::Counted(report.files)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_that_could_fit_nothing_is_refused() {
        let check = |only: &str| Options { only: Some(only.to_owned()), ..Options::default() }.check();
        assert!(check("*.tar").is_ok() && check("/srv/**").is_ok() && check("**/backup/*").is_ok());
        let refused = check("srv/*").err().map(|error| error.to_string());
        assert_eq!(
            refused.as_deref(),
            Some("--only srv/*: a pattern with / is about absolute names; begin with / or **/")
        );
        assert!(check("").is_err() && check(&"x".repeat(4096)).is_err());
    }
}
