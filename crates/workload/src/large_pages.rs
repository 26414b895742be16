//! Whom the kernel gives pages of 2 MiB for memory without a file: `transparent_hugepage` of `mm`
//! (Documentation/admin-guide/mm/transhuge.rst).

use std::fmt;
use std::path::{Path, PathBuf};

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
    /// The file of the setting of all sizes.
    pub const FILE: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

    /// This machine's setting; none where the kernel has no such pages.
    pub fn here() -> Option<Self> {
        Self::with_its_file().map(|(setting, _)| setting)
    }

    /// This machine's setting and the file that has it.
    pub fn with_its_file() -> Option<(Self, PathBuf)> {
        Self::below(Path::new("/sys/kernel/mm/transparent_hugepage"))
    }

    /// The setting of one size, from Linux 6.8 on, goes before that of all sizes unless it is `inherit`.
    fn below(directory: &Path) -> Option<(Self, PathBuf)> {
        let files = ["hugepages-2048kB/enabled", "enabled"].map(|file| directory.join(file));
        files.into_iter().find_map(|file| read(&file).map(|setting| (setting, file)))
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
        let of_all = place.path().join("enabled");
        std::fs::write(&of_all, "always [madvise] never\n").unwrap();
        assert_eq!(LargePages::below(place.path()), Some((LargePages::Madvise, of_all.clone())));
        let of_size = place.path().join("hugepages-2048kB/enabled");
        std::fs::create_dir(of_size.parent().unwrap()).unwrap();
        for (text, setting, file) in [
            ("always [inherit] madvise never\n", LargePages::Madvise, &of_all),
            ("always inherit madvise [never]\n", LargePages::Never, &of_size),
            ("[always] inherit madvise never\n", LargePages::Always, &of_size),
        ] {
            std::fs::write(&of_size, text).unwrap();
            assert_eq!(LargePages::below(place.path()), Some((setting, file.clone())), "{text}");
        }
    }
}
