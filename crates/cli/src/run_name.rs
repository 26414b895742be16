//! Name of a run's directory: when, and what.

use std::path::Path;

/// `20261122-143000-observe-dd`: `verb` is `observe-`, `what` may begin with a path.
pub fn run_name(verb: &str, what: &str) -> String {
    let last = Path::new(what).file_name().map_or(what.into(), |name| name.to_string_lossy());
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let clean: String = last.chars().map(plain).take(40).collect();
    format!("{}-{verb}{clean}", jiff::Zoned::now().strftime("%Y%m%d-%H%M%S"))
}
