//! `nearmiss apply color`: the command with its thread stacks and large blocks colored by
//! preloaded libraries.
//!
//! ```no_run
//! use nearmiss_remedy::color::apply::{Options, apply};
//! use nearmiss_workload::Workload;
//!
//! let (workload, coloring) = apply(Workload::new(["python3", "x.py"]), &Options::default())?;
//! let running = workload.launch_suspended()?.resume()?;
//! let pid = running.pid();
//! running.wait()?;
//! eprintln!("{}", coloring.report(pid)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod libraries;
mod options;
mod program;
mod report;

pub use options::{Args, Options};
pub use report::{Blocks, Report, Stacks};

use crate::{CannotEngage, Engaged, Engagement, NotEngaged};
use libraries::Libraries;
use nearmiss_workload::Workload;
use report::SharedReport;
use std::ffi::{OsStr, OsString};

/// Coloring in place around a command. Nothing of it persists: dropping it removes the
/// libraries' temporary directory, and the rest ends with the command's processes.
#[derive(Debug)]
pub struct Coloring {
    options: Options,
    shared: SharedReport,
    _libraries: Libraries,
}

/// Puts a command under coloring.
///
/// The environment variable `NEARMISS_COLOR` tells programs built with `nearmiss-color.h`
/// or the crate `nearmiss-color` how many colors to use.
pub fn apply(workload: Workload, options: &Options) -> Result<(Workload, Coloring), CannotEngage> {
    options.check()?;
    program::check(&workload)?;
    let libraries = Libraries::write(options)?;
    let shared = SharedReport::create()?;
    let preload = join_preload(workload.variable("LD_PRELOAD"), libraries.paths());
    let asan_options = workload.variable("ASAN_OPTIONS");
    let mut workload = workload
        .env("LD_PRELOAD", preload)
        .env("NEARMISS_COLOR", options.colors.to_string())
        .env("NEARMISS_COLOR_PRELOAD", shared.parameters(options))
        .env("ASAN_OPTIONS", sanitizer_options(asan_options))
        .keep_open(shared.descriptor());
    for path in libraries.removal_order() {
        workload = workload.remove_if_killed(path);
    }
    Ok((workload, Coloring { options: options.clone(), shared, _libraries: libraries }))
}

impl Coloring {
    /// What was colored since the last report, provided that the launched process `pid` was
    /// under coloring.
    pub fn report(&self, pid: i32) -> Result<Report, NotEngaged> {
        let snapshot = self.shared.take();
        let missing: Vec<&str> = [
            (self.options.stacks, snapshot.stacks.has(pid), "stacks"),
            (self.options.block_bytes.is_some(), snapshot.blocks.has(pid), "blocks"),
        ]
        .into_iter()
        .filter_map(|(asked, engaged, name)| (asked && !engaged).then_some(name))
        .collect();
        if missing.is_empty() {
            Ok(Report::new(&self.options, &snapshot))
        } else {
            Err(NotEngaged {
                pid,
                why: format!(
                    "its program did not load the library for {} (did it start with LD_PRELOAD taken away, or end at once?)",
                    missing.join(" and ")
                ),
            })
        }
    }
}

impl Engagement for Coloring {
    fn confirm(&self, pid: i32) -> Result<Engaged, NotEngaged> {
        self.report(pid).map(|report| Engaged {
            text: report.to_string(),
            // Plain numbers and names: it cannot fail.
            record: serde_json::to_value(&report).unwrap_or_default(),
        })
    }
}

/// What is preloaded already stays. Ours comes before it, since it must wrap an allocator
/// that is preloaded; only the sanitizers' runtimes insist on being first.
fn join_preload(present: Option<OsString>, ours: Vec<&OsStr>) -> OsString {
    let present = present.unwrap_or_default();
    let text = present.to_string_lossy();
    let mut entries: Vec<&OsStr> = ours;
    let (first, rest): (Vec<&str>, Vec<&str>) = text
        .split([':', ' '])
        .filter(|entry| !entry.is_empty())
        .partition(|entry| ["asan", "tsan", "lsan", "hwasan"].iter().any(|name| entry.contains(name)));
    entries.splice(0..0, first.into_iter().map(OsStr::new));
    entries.extend(rest.into_iter().map(OsStr::new));
    entries.join(OsStr::new(":"))
}

/// Programs built with the address sanitizer refuse to start after another library, though
/// both get on well; their other options stay.
fn sanitizer_options(present: Option<OsString>) -> OsString {
    const AFTER_US: &str = "verify_asan_link_order=0";
    match present {
        Some(mut options) if !options.is_empty() => {
            options.push(":");
            options.push(AFTER_US);
            options
        }
        _ => AFTER_US.into(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_preloaded_already_is_kept() {
        let joined =
            |present: &str| join_preload(Some(present.into()), vec![OsStr::new("/ours.so")]).into_string().unwrap();
        assert_eq!(joined(""), "/ours.so");
        assert_eq!(joined("/a.so /b.so:/c.so"), "/ours.so:/a.so:/b.so:/c.so");
        assert_eq!(joined("/a.so:libasan.so.8"), "libasan.so.8:/ours.so:/a.so");
    }
}
