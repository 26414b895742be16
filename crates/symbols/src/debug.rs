//! Whether source lines are to be had.

use object::read::elf::ElfFile64;
use object::{LittleEndian, Object};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Directory in which distributions keep debug information apart from its files.
const DEBUG_DIRECTORY: &str = "/usr/lib/debug";

/// Whether the file at `path` has source lines, or a file that it names has, where debuggers look for it.
pub(super) fn has_lines(parsed: &ElfFile64<'_, LittleEndian>, path: &Path) -> bool {
    let named = |name: &str| parsed.section_by_name(name).is_some();
    if named(".debug_line") || named(".zdebug_line") {
        return true;
    }
    if let Ok(Some([first, rest @ ..])) = parsed.build_id() {
        let hex: String = rest.iter().map(|b| format!("{b:02x}")).collect();
        if Path::new(DEBUG_DIRECTORY).join(format!(".build-id/{first:02x}/{hex}.debug")).is_file() {
            return true;
        }
    }
    let Ok(Some((name, _))) = parsed.gnu_debuglink() else { return false };
    // The loader's path may go through a link; the debug file lies where the file does.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (name, Some(directory)) = (OsStr::from_bytes(name), path.parent()) else { return false };
    let apart = Path::new(DEBUG_DIRECTORY).join(directory.strip_prefix("/").unwrap_or(directory));
    [directory.join(name), directory.join(".debug").join(name), apart.join(name)]
        .iter()
        .any(|p| *p != path && p.is_file())
}
