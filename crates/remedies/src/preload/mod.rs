//! The kit of remedies that act through preloaded libraries: it writes the libraries, builds the command's environment,
//! keeps the page on which they shake hands and count, and refuses programs that would not load them.
//!
//! A remedy declares its [`Library`]s and their counters; everything else is here. The libraries' side is
//! `native/preload/kit`.

mod environment;
mod libraries;
mod page;
mod program;
mod trial;
mod words;

pub use page::{LibraryCounts, LibraryCountsList, Rest};
pub use program::Refusals;
pub(crate) use program::loads_libraries;
pub use trial::try_on_true;
pub use words::own_malloc;

use nearmiss_analysis::{CannotEngage, NotEngaged};
use nearmiss_workload::{GuardedFiles, Workload};
use page::Page;
use std::path::Path;

/// A preloaded library of a remedy.
#[derive(Debug)]
pub struct Library {
    /// Name of the library in the parameters and in messages, a word.
    pub name: &'static str,
    /// Name of the library's file.
    pub file: &'static str,
    /// Content of the file.
    pub bytes: &'static [u8],
    /// Names of the library's counters, by their number.
    pub counters: &'static [&'static str],
}

/// Refuses programs that would load no library; `refusals` words why.
pub fn takes_libraries(workload: &Workload, refusals: &Refusals) -> Result<(), CannotEngage> {
    program::check(workload, refusals)
}

/// The command with somebody else's library preloaded, behind those that are put around it later.
pub fn beside(workload: Workload, library: &Path) -> Workload {
    environment::preloading(workload, vec![library.as_os_str()])
}

/// Libraries in place around a command. Dropping it removes their files; the rest ends with the command's processes.
#[derive(Debug)]
pub struct Preload {
    libraries: Vec<&'static Library>,
    files: GuardedFiles,
    page: Page,
}

impl Preload {
    /// Writes the libraries and makes the page. `refusals` words why some programs cannot be reached.
    pub fn new(
        workload: &Workload,
        libraries: Vec<&'static Library>,
        refusals: &Refusals,
    ) -> Result<Self, CannotEngage> {
        program::check(workload, refusals)?;
        let page = Page::create(libraries.len())?;
        Ok(Preload { files: libraries::write(&libraries)?, libraries, page })
    }

    /// The command with the libraries preloaded; `variable` carries their parameters, a list of `key=value`.
    pub fn around(&self, workload: Workload, variable: &str, parameters: &str) -> Workload {
        let parts = self.libraries.iter().enumerate().map(|(part, library)| format!(",{}={part}", library.name));
        let parameters = format!("{parameters},{}{}", self.page.parameters(), parts.collect::<String>());
        let files = self.files.paths().iter().map(|file| file.as_os_str()).collect();
        environment::preloading(workload, files).env(variable, parameters).keep_open(self.page.descriptor())
    }

    /// Returns what ended processes had still to give back: they were killed, or became other programs.
    pub fn rests(&self) -> Vec<Rest> {
        self.page.rests()
    }

    /// Returns the counts of a remedy's only library since the last call, as [`confirm`](Self::confirm) does.
    pub fn confirm_only(&self, pid: i32) -> Result<LibraryCounts, NotEngaged> {
        self.confirm(pid).map(|parts| parts.into_iter().next().unwrap_or_default())
    }

    /// Returns the libraries' counts since the last call, provided that the launched process `pid` had all of them.
    pub fn confirm(&self, pid: i32) -> Result<LibraryCountsList, NotEngaged> {
        let parts = self.page.take(&self.libraries);
        let missing: Vec<&str> = parts.iter().filter(|part| !part.has(pid)).map(|part| part.library).collect();
        if missing.is_empty() {
            return Ok(parts);
        }
        let why = format!(
            "its program did not load the library for {} (did it start with LD_PRELOAD taken away, or end at once?)",
            missing.join(" and ")
        );
        Err(NotEngaged { pid, why })
    }
}
