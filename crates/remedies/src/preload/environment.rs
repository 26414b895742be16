//! The environment in which the loader preloads our libraries.

use nearmiss_workload::Workload;
use std::ffi::{OsStr, OsString};

/// The command with these libraries preloaded, beside what is preloaded already.
pub fn preloading(workload: Workload, libraries: Vec<&OsStr>) -> Workload {
    let preload = join_preload(workload.variable("LD_PRELOAD"), libraries);
    let asan_options = sanitizer_options(workload.variable("ASAN_OPTIONS"));
    workload.env("LD_PRELOAD", preload).env("ASAN_OPTIONS", asan_options)
}

/// Puts ours before what is preloaded already, since it must wrap an allocator that is preloaded; only the sanitizers'
/// runtimes insist on being first.
fn join_preload(present: Option<OsString>, ours: Vec<&OsStr>) -> OsString {
    let present = present.unwrap_or_default();
    let text = present.to_string_lossy();
    let mut entries: Vec<&OsStr> = ours;
    let (first, rest): (Vec<&str>, Vec<&str>) = text
        .split([':', ' '])
        .filter(|entry| !entry.is_empty())
        .partition(|entry| ["asan", "tsan", "lsan", "hwasan"].iter().any(|name| entry.contains(name)));
    entries.splice(0..0, first.into_iter().map(OsStr::new));
    entries.extend(rest.into_iter().map(OsStr::new));
    entries.join(OsStr::new(":"))
}

/// Programs built with the address sanitizer refuse to start after another library, though
/// both get on well; their other options stay.
fn sanitizer_options(present: Option<OsString>) -> OsString {
    const AFTER_US: &str = "verify_asan_link_order=0";
    match present {
        Some(mut options) if !options.is_empty() => {
            options.push(":");
            options.push(AFTER_US);
            options
        }
        _ => AFTER_US.into(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn earlier_preloads_are_kept() {
        let joined =
            |present: &str| join_preload(Some(present.into()), vec![OsStr::new("/ours.so")]).into_string().unwrap();
        assert_eq!(joined(""), "/ours.so");
        assert_eq!(joined("/a.so /b.so:/c.so"), "/ours.so:/a.so:/b.so:/c.so");
        assert_eq!(joined("/a.so:libasan.so.8"), "libasan.so.8:/ours.so:/a.so");
    }
}
