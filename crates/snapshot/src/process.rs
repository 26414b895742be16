//! A process as `/proc` shows it.

use crate::SnapshotError;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A process as it was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Number of the process.
    pub pid: i32,
    /// Name of the process, of 15 bytes at most.
    pub name: String,
    /// Command line of the process; the name where there is none.
    pub command: Vec<OsString>,
    /// Working directory of the process.
    pub directory: PathBuf,
    /// Bytes of resident memory.
    pub resident: u64,
    /// Process that traces this one; 0: none.
    pub(crate) tracer: i32,
    pub(crate) parent: i32,
}

impl Process {
    /// Looks at a process. Errors: it is not there, or is a thread of another.
    pub fn of(pid: i32) -> Result<Process, SnapshotError> {
        let none = |_| SnapshotError::NoProcess(pid);
        let status = fs::read_to_string(path(pid, "status")).map_err(none)?;
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let number = |name: &str| field(name).and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        if number("Tgid:") != u64::try_from(pid).ok() {
            return Err(SnapshotError::NoProcess(pid));
        }
        let name = field("Name:").unwrap_or_default().to_owned();
        let line = fs::read(path(pid, "cmdline")).map_err(none)?;
        let words = line.split(|byte| *byte == 0).filter(|word| !word.is_empty());
        let mut command: Vec<OsString> = words.map(|word| OsString::from_vec(word.to_vec())).collect();
        if command.is_empty() {
            command.push(name.clone().into());
        }
        Ok(Process {
            pid,
            name,
            command,
            directory: fs::read_link(path(pid, "cwd")).unwrap_or_default(),
            resident: number("VmRSS:").unwrap_or(0) << 10,
            tracer: number("TracerPid:").and_then(|pid| i32::try_from(pid).ok()).unwrap_or(0),
            parent: number("PPid:").and_then(|pid| i32::try_from(pid).ok()).unwrap_or(0),
        })
    }

    /// This process and all that descend from it, it first.
    pub fn with_descendants(self) -> Vec<Process> {
        let listed = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = listed.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let mut others: Vec<Process> = pids.filter_map(|pid| Process::of(pid).ok()).collect();
        let mut found = vec![self];
        let mut next = 0;
        while let Some(parent) = found.get(next).map(|process| process.pid) {
            let (children, rest) = others.into_iter().partition(|process| process.parent == parent);
            others = rest;
            found.extend(children);
            next += 1;
        }
        found
    }

    /// Returns the path of a file of the process under `/proc`.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        path(self.pid, name)
    }

    /// Returns the descriptors of the process: number and what each is open on.
    pub(crate) fn descriptors(&self) -> Vec<(i32, PathBuf)> {
        let entries = fs::read_dir(self.file("fd")).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, fs::read_link(entry.path()).ok()?)))
            .collect()
    }

    /// Whether a descriptor can be written to.
    pub(crate) fn writes(&self, descriptor: i32) -> bool {
        let info = fs::read_to_string(self.file(&format!("fdinfo/{descriptor}"))).unwrap_or_default();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
        flags
            .and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok())
            .is_some_and(|flags| flags & libc::O_ACCMODE != 0)
    }
}

/// The inode that a descriptor of this kind is open on: 12 of `pipe:[12]`.
pub(crate) fn inode_of(target: &Path, kind: &str) -> Option<u64> {
    let rest = target.as_os_str().as_bytes().strip_prefix(kind.as_bytes())?;
    std::str::from_utf8(rest.strip_prefix(b":[")?.strip_suffix(b"]")?).ok()?.parse().ok()
}

fn path(pid: i32, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{name}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_found_with_its_child() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let own = Process::of(std::process::id() as i32).unwrap();
        assert!(own.resident > 0 && own.directory == std::env::current_dir().unwrap());
        let family: Vec<i32> = own.with_descendants().iter().map(|process| process.pid).collect();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(family[0] == std::process::id() as i32 && family.contains(&(child.id() as i32)), "{family:?}");
        assert!(matches!(Process::of(child.id() as i32), Err(SnapshotError::NoProcess(_))));
    }

    #[test]
    fn a_pipe_has_an_inode() {
        assert_eq!(inode_of(Path::new("pipe:[77]"), "pipe"), Some(77));
        assert_eq!(inode_of(Path::new("socket:[77]"), "pipe"), None);
    }
}
