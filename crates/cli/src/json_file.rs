//! `--json FILE` of the wrappers: looked at before their command runs, since its output cannot be had again.

use std::path::{Path, PathBuf};

/// A file that can be written, as far as can be known. The text says what to do.
pub fn json_file(name: &str) -> Result<PathBuf, String> {
    if name == "-" {
        return Err("standard output is the command's: name a file".to_owned());
    }
    let path = PathBuf::from(name);
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if path.is_dir() || !directory.is_dir() {
        return Err("no such place for a file: name one in a directory that exists".to_owned());
    }
    Ok(path)
}
