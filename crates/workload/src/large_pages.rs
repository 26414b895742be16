//! Whom the kernel gives pages of 2 MiB for memory without a file: `transparent_hugepage` of `mm`
//! (Documentation/admin-guide/mm/transhuge.rst).

use std::fmt;
use std::path::Path;

/// The kernel's setting for pages of 2 MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LargePages {
    /// All programs.
    Always,
    /// Programs that request such pages by `madvise`.
    Madvise,
    /// No programs.
    Never,
}

impl LargePages {
    /// The file of the setting.
    pub const FILE: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

    /// This machine's setting; none where the kernel has no such pages.
    pub fn here() -> Option<Self> {
        Self::below(Path::new("/sys/kernel/mm/transparent_hugepage"))
    }

    /// The setting of one size, from Linux 6.8 on, goes before that of all sizes unless it is `inherit`.
    fn below(directory: &Path) -> Option<Self> {
        let of_size = read(&directory.join("hugepages-2048kB/enabled"));
        of_size.or_else(|| read(&directory.join("enabled")))
    }
}

fn read(file: &Path) -> Option<LargePages> {
    let text = std::fs::read_to_string(file).ok()?;
    let (_, rest) = text.split_once('[')?;
    match rest.split_once(']')?.0 {
        "always" => Some(LargePages::Always),
        "madvise" => Some(LargePages::Madvise),
        "never" => Some(LargePages::Never),
        _ => None,
    }
}

/// Writes the kernel's word for the setting.
impl fmt::Display for LargePages {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            LargePages::Always => "always",
            LargePages::Madvise => "madvise",
            LargePages::Never => "never",
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_of_the_size_goes_first() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(LargePages::below(place.path()), None);
        std::fs::write(place.path().join("enabled"), "always [madvise] never\n").unwrap();
        assert_eq!(LargePages::below(place.path()), Some(LargePages::Madvise));
        let of_size = place.path().join("hugepages-2048kB");
        std::fs::create_dir(&of_size).unwrap();
        for (text, setting) in [
            ("always [inherit] madvise never\n", LargePages::Madvise),
            ("always inherit madvise [never]\n", LargePages::Never),
            ("[always] inherit madvise never\n", LargePages::Always),
        ] {
            std::fs::write(of_size.join("enabled"), text).unwrap();
            assert_eq!(LargePages::below(place.path()), Some(setting), "{text}");
        }
    }
}
