//! The project's own programs to look at.

use std::path::Path;

/// The path of one.
pub fn subject(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/subjects").join(name);
    assert!(path.is_file(), "{}: build it with `make subjects`", path.display());
    path.canonicalize().expect("a path").display().to_string()
}
