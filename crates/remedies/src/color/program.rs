//! Whether the program that ran colors by itself on request.

use nearmiss_record::run::Manifest;
use nearmiss_workload::Workload;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Variable that `nearmiss-color.h` and the crate `nearmiss-color` read from the environment.
const VARIABLE: &[u8] = b"NEARMISS_COLOR";
/// Larger programs are not searched.
const MOST_BYTES: u64 = 1 << 30;

/// Whether the program of a run was built with `nearmiss-color.h`: its file has the variable's name in it. A file that
/// is no longer there was not.
pub fn reads_environment(manifest: &Manifest) -> bool {
    let Some(name) = manifest.command.first() else { return false };
    locate(name, Path::new(&manifest.cwd)).is_some_and(|path| has_variable(&path))
}

/// Whether the program of a command that can be launched reads the variable, or its own words do, as a script of a
/// shell does.
pub fn command_reads_variable(workload: &Workload) -> bool {
    let file = workload.program().map(|path| workload.directory().map_or(path.clone(), |at| at.join(&path)));
    file.is_ok_and(|file| has_variable(&file)) || workload.argv().iter().any(|word| contains_variable(word.as_bytes()))
}

fn has_variable(path: &Path) -> bool {
    let small = std::fs::metadata(path).is_ok_and(|about| about.len() <= MOST_BYTES);
    small && std::fs::read(path).is_ok_and(|bytes| contains_variable(&bytes))
}

/// The preloaded libraries' own variable begins alike and is none.
fn contains_variable(bytes: &[u8]) -> bool {
    bytes.windows(VARIABLE.len() + 1).any(|w| w.starts_with(VARIABLE) && w[VARIABLE.len()] != b'_')
}

fn locate(name: &str, directory: &Path) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(directory.join(name));
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|d| d.join(name)).find(|file| file.is_file())
}
