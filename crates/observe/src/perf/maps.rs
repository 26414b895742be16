//! Which file lies where in each observed process, kept up to date while they run.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A mapping of executable memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    pub end: u64,
    pub file_offset: u64,
    pub path: Arc<Path>,
}

/// The executable mappings of one process, by start address.
pub type AddressSpace = BTreeMap<u64, Mapping>;

/// The executable mappings of the observed processes.
#[derive(Default)]
pub struct AddressSpaces {
    spaces: HashMap<i32, AddressSpace>,
    paths: HashMap<PathBuf, Arc<Path>>,
    /// Counts every change of a process, so that what was derived from the mappings can be refreshed.
    versions: HashMap<i32, u64>,
}

impl AddressSpaces {
    /// Adds a mapping; what it covers is gone.
    pub fn map(&mut self, pid: i32, start: u64, length: u64, file_offset: u64, path: &Path) {
        let path = match self.paths.get(path) {
            Some(path) => path.clone(),
            None => {
                let shared: Arc<Path> = path.into();
                self.paths.insert(path.to_owned(), shared.clone());
                shared
            }
        };
        let end = start.saturating_add(length);
        let space = self.spaces.entry(pid).or_default();
        let covered: Vec<u64> = space.range(..end).filter(|(_, m)| m.end > start).map(|(s, _)| *s).collect();
        for s in covered {
            space.remove(&s);
        }
        space.insert(start, Mapping { end, file_offset, path });
        *self.versions.entry(pid).or_default() += 1;
    }

    /// A new process begins with its parent's mappings.
    pub fn fork(&mut self, parent: i32, child: i32) {
        if parent != child
            && let Some(space) = self.spaces.get(&parent).cloned()
        {
            self.spaces.insert(child, space);
            *self.versions.entry(child).or_default() += 1;
        }
    }

    /// A process begins anew.
    pub fn exec(&mut self, pid: i32) {
        self.spaces.remove(&pid);
        *self.versions.entry(pid).or_default() += 1;
    }

    /// Reads the mappings of a process that runs already; does nothing when it cannot be read.
    pub fn read(&mut self, pid: i32) {
        let Ok(text) = fs::read_to_string(format!("/proc/{pid}/maps")) else { return };
        for line in text.lines() {
            if let Some((start, end, offset, path)) = executable(line) {
                self.map(pid, start, end - start, offset, Path::new(path));
            }
        }
    }

    /// Whether anything is known about the process.
    pub fn knows(&self, pid: i32) -> bool {
        self.spaces.contains_key(&pid)
    }

    /// Changes whenever the mappings of the process change.
    pub fn version(&self, pid: i32) -> u64 {
        self.versions.get(&pid).copied().unwrap_or(0)
    }

    /// The mappings of a process.
    pub fn of(&self, pid: i32) -> Option<&AddressSpace> {
        self.spaces.get(&pid)
    }

    /// The file an address of a process comes from, and its offset there.
    pub fn find(&self, pid: i32, address: u64) -> Option<(&Arc<Path>, u64)> {
        let (start, mapping) = self.spaces.get(&pid)?.range(..=address).next_back()?;
        (address < mapping.end).then(|| (&mapping.path, address - start + mapping.file_offset))
    }
}

fn executable(line: &str) -> Option<(u64, u64, u64, &str)> {
    let mut fields = line.splitn(6, ' ').filter(|f| !f.is_empty());
    let (start, end) = fields.next()?.split_once('-')?;
    if !fields.next()?.contains('x') {
        return None;
    }
    let offset = fields.next()?;
    let path = line.splitn(6, ' ').nth(5).map_or("", str::trim_start);
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    Some((hex(start)?, hex(end)?, hex(offset)?, if path.is_empty() { "//anon" } else { path }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_in_their_files() {
        let mut spaces = AddressSpaces::default();
        spaces.map(1, 0x1000, 0x1000, 0x500, Path::new("/bin/a"));
        spaces.fork(1, 2);
        spaces.map(1, 0x1800, 0x1000, 0, Path::new("/bin/b"));
        let at = |pid, address| spaces.find(pid, address).map(|(p, o)| (p.to_str().unwrap().to_owned(), o));
        assert_eq!(at(2, 0x1010), Some(("/bin/a".to_owned(), 0x510)));
        assert_eq!(at(1, 0x1810), Some(("/bin/b".to_owned(), 0x10)));
        assert_eq!(at(1, 0x1010), None, "the new mapping replaced the old one");
        assert_eq!(at(1, 0x2800), None);
        assert_eq!(at(3, 0x1010), None);
    }

    #[test]
    fn lines_of_maps_are_read() {
        let line = "55d0c0a00000-55d0c0b00000 r-xp 0001a000 fe:00 1234                       /usr/bin/with space";
        assert_eq!(executable(line), Some((0x55d0c0a00000, 0x55d0c0b00000, 0x1a000, "/usr/bin/with space")));
        assert_eq!(executable("7f00-7f10 rw-p 00000000 00:00 0 [heap]"), None);
        assert_eq!(executable("7f00-7f10 r-xp 00000000 00:00 0 "), Some((0x7f00, 0x7f10, 0, "//anon")));
    }
}
