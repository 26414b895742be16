//! Files of the cache with a checksum of ours beside them: a file that is damaged, or that another program wrote,
//! counts as absent and is made again.

use std::fs;
use std::path::{Path, PathBuf};

use nearmiss_record::run::{RunError, write_whole};

/// Writes the file and its checksum.
pub(crate) fn store(path: &Path, content: &[u8]) -> Result<(), RunError> {
    write_whole(path, content)?;
    write_whole(&seal_of(path), seal(content).as_bytes())
}

/// The file's content; `None` where the file or its checksum is missing, or the two disagree.
pub(crate) fn read(path: &Path) -> Option<Vec<u8>> {
    let wanted = fs::read_to_string(seal_of(path)).ok()?;
    let content = fs::read(path).ok()?;
    (seal(&content) == wanted).then_some(content)
}

/// The checksum beside a file, which is not read.
pub(crate) fn seal_beside(path: &Path) -> Option<String> {
    fs::read_to_string(seal_of(path)).ok()
}

fn seal_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".sum");
    name.into()
}

fn seal(content: &[u8]) -> String {
    format!("crc32 {:08x} of {} bytes\n", crc32fast::hash(content), content.len())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_changed_cut_or_never_sealed_counts_as_absent() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("kallsyms");
        fs::write(&path, "0000 A somebody_elses\n").unwrap();
        assert_eq!(read(&path), None, "no checksum");
        store(&path, b"0000 A ours\n").unwrap();
        assert_eq!(read(&path).as_deref(), Some(b"0000 A ours\n".as_slice()));
        for damaged in ["0000 A 0urs\n", "0000 A our", "", "0000 A ours\n\n"] {
            fs::write(&path, damaged).unwrap();
            assert_eq!(read(&path), None, "{damaged:?}");
        }
        store(&path, b"0000 A ours\n").unwrap();
        fs::write(seal_of(&path), "crc32 00000000 of 12 bytes\n").unwrap();
        assert_eq!(read(&path), None, "another checksum");
    }
}
