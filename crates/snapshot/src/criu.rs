//! CRIU: which one is here, and whether it serves this kernel.

use crate::SnapshotError;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The variable that names a CRIU.
const VARIABLE: &str = "NEARMISS_CRIU";
/// The program and its libraries, as `scripts/setup-criu.sh` unpacks them.
const PROGRAM: &str = "usr/sbin/criu";
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";
const LINKER: &str = "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2";

/// A CRIU that starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Criu {
    /// Words that start CRIU: the program, or the dynamic linker with the program.
    words: Vec<OsString>,
    /// Major and minor version of CRIU.
    pub version: (u32, u32),
    /// Version in CRIU's own words.
    pub version_text: String,
}

/// Whether a CRIU serves a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// The CRIU serves, as far as is known.
    Serves,
    /// A process with TCP sockets cannot be taken a snapshot of.
    NoSockets,
    /// No process can be taken a snapshot of, for this reason.
    Fails(&'static str),
}

impl Criu {
    /// Returns the CRIU that `NEARMISS_CRIU` names, the newest in the cache, or the installed one. Errors: none is
    /// there, or the one that was found does not start.
    pub fn find() -> Result<Criu, SnapshotError> {
        let named = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
        let found = named.or_else(|| newest_in(&cache())).or_else(installed).ok_or(SnapshotError::NoCriu)?;
        Criu::at(&found)
    }

    /// A CRIU by its path, or by the directory of an unpacked one.
    pub fn at(path: &Path) -> Result<Criu, SnapshotError> {
        let tree = [Some(path), path.parent().and_then(Path::parent)].into_iter().flatten();
        let tree = tree.into_iter().find(|tree| tree.join(PROGRAM).is_file() && tree.join(LINKER).is_file());
        let words = tree.map_or_else(|| vec![path.into()], through_linker);
        let bad = |why: String| SnapshotError::BadCriu(path.to_owned(), why);
        let output = command(&words).arg("--version").stdin(Stdio::null()).output().map_err(|e| bad(e.to_string()))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version_text = text.lines().find_map(|line| line.strip_prefix("Version: ")).unwrap_or_default().to_owned();
        let version = version(&version_text).ok_or_else(|| bad("it names no version".into()))?;
        Ok(Criu { words, version, version_text })
    }

    /// Returns the words that start CRIU, for the guest.
    pub fn words(&self) -> &[OsString] {
        &self.words
    }

    /// Whether the CRIU serves a kernel of this release.
    pub fn fit(&self, kernel: &str) -> Fit {
        match version(kernel) {
            Some(kernel) if kernel >= (6, 16) && self.version < (4, 0) => {
                Fit::Fails("because it cannot read that kernel's vDSO")
            }
            Some(kernel) if kernel >= (6, 16) && self.version < (4, 2) => Fit::NoSockets,
            _ => Fit::Serves,
        }
    }

    /// Returns the CRIU that [`Criu::find`] finds for this kernel, and whether it serves the kernel wholly.
    pub fn fitting() -> Result<(Criu, Fit), SnapshotError> {
        let criu = Criu::find()?;
        let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
        match criu.fit(&kernel) {
            Fit::Fails(why) => Err(SnapshotError::TooOld { criu: criu.version_text, kernel, why }),
            fit => Ok((criu, fit)),
        }
    }

    /// Whether established connections can be left alone: without, they are read out, and blocked for the pause.
    pub(crate) fn leaves_connections(&self) -> bool {
        self.version >= (4, 0)
    }
}

/// A command of these words.
pub(crate) fn command(words: &[OsString]) -> Command {
    let mut command = Command::new(words.first().map_or(std::ffi::OsStr::new("criu"), |word| word));
    command.args(words.get(1..).unwrap_or_default());
    command
}

fn through_linker(tree: &Path) -> Vec<OsString> {
    vec![tree.join(LINKER).into(), "--library-path".into(), tree.join(LIBRARIES).into(), tree.join(PROGRAM).into()]
}

/// `$XDG_CACHE_HOME/nearmiss` or `~/.cache/nearmiss`.
pub(crate) fn own_cache() -> PathBuf {
    let set = |name| std::env::var_os(name).filter(|value: &OsString| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    base.unwrap_or_else(|| PathBuf::from("/var/cache")).join("nearmiss")
}

fn cache() -> PathBuf {
    own_cache().join("criu")
}

fn newest_in(cache: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(cache).ok()?.flatten();
    let trees = entries.filter_map(|entry| {
        let tree = entry.path();
        let version = version(entry.file_name().to_str()?)?;
        tree.join(PROGRAM).is_file().then_some((version, tree))
    });
    trees.max().map(|(_, tree)| tree)
}

fn installed() -> Option<PathBuf> {
    ["/usr/sbin/criu", "/usr/local/sbin/criu", "/usr/bin/criu"]
        .map(PathBuf::from)
        .into_iter()
        .find(|path| path.is_file())
}

/// The first two numbers of a version.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(['.', '-']).map(str::parse);
    let (major, minor) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some((major, minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_kernels_need_a_new_criu() {
        let criu = |version| Criu { words: Vec::new(), version, version_text: String::new() };
        assert!(matches!(criu((3, 17)).fit("6.18.44-x"), Fit::Fails(_)));
        assert_eq!(criu((3, 17)).fit("6.1.0-9-amd64"), Fit::Serves);
        assert_eq!(criu((4, 1)).fit("6.16.0"), Fit::NoSockets);
        assert_eq!(criu((4, 2)).fit("6.18.44"), Fit::Serves);
    }

    #[test]
    fn a_version_is_its_first_two_numbers() {
        assert_eq!(version("4.2.1"), Some((4, 2)));
        assert_eq!(version("6.12.117+deb12-cloud-amd64"), Some((6, 12)));
        assert_eq!(version("images"), None);
    }
}
