//! The QEMU binary.

use std::path::PathBuf;
use std::process::Command;

use super::error::{GuestError, Tried};
use super::kernel::KernelImage;

/// A QEMU system emulator for x86-64 whose TCG loads plugins.
#[derive(Debug, Clone)]
pub struct QemuBinary {
    /// The binary.
    pub path: PathBuf,
    /// Where its firmware lies, for one that is unpacked and not installed (`-L`).
    pub firmware: Option<PathBuf>,
    /// Major and minor version.
    pub version: (u32, u32),
}

impl QemuBinary {
    /// The one that `PATH` finds.
    pub fn installed() -> Result<Self, GuestError> {
        let path = find_program("qemu-system-x86_64", "qemu-system-x86")?;
        Self::at(path, None)
    }

    /// QEMU 10 where `scripts/setup-qemu10.sh` unpacks it, in the cache.
    pub fn unpacked() -> Result<Self, GuestError> {
        let directory = KernelImage::cache().with_file_name("qemu").join("10");
        let path = directory.join("bin/qemu-system-x86_64");
        if !path.exists() {
            return Err(GuestError::Qemu { path, what: "is not there: run scripts/setup-qemu10.sh".into() });
        }
        Self::at(path, Some(directory.join("firmware")))
    }

    /// One by path; `firmware` is the directory with `bios-256k.bin` and the like, where it is not
    /// the one that was built in.
    pub fn at(path: PathBuf, firmware: Option<PathBuf>) -> Result<Self, GuestError> {
        let output = Command::new(&path).arg("--version").output().tried(format!("{} --version", path.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        match parse_version(&text) {
            Some(version) if version == (7, 2) || version.0 >= 10 => Ok(Self { path, firmware, version }),
            Some((major, minor)) => Err(GuestError::Qemu {
                path,
                what: format!("is version {major}.{minor}; the tap is tested with 7.2 and 10 only"),
            }),
            None => Err(GuestError::Qemu { path, what: "does not tell its version".into() }),
        }
    }

    /// What a user of this emulator must expect, and what to do about it.
    pub fn caution(&self) -> Option<String> {
        let (major, minor) = self.version;
        (self.tcg_threads() == "multi").then(|| {
            format!(
                "QEMU {major}.{minor} ends by a segmentation fault in about one short run of twelve where the guest has \
                 several CPUs, and the trace is then cut: use QEMU 7.2, as Debian 12 has it"
            )
        })
    }

    /// Version 10 hands callbacks of one TCG thread the wrong CPU; 7.2 breaks guests with several.
    pub(crate) fn tcg_threads(&self) -> &'static str {
        if self.version.0 >= 10 { "multi" } else { "single" }
    }
}

fn parse_version(text: &str) -> Option<(u32, u32)> {
    let number = text.split("version ").nth(1)?.split_whitespace().next()?;
    let mut parts = number.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// The absolute path of a program of `PATH`.
pub(super) fn find_program(name: &str, package: &'static str) -> Result<PathBuf, GuestError> {
    std::env::var_os("PATH")
        .iter()
        .flat_map(std::env::split_paths)
        .chain(["/usr/bin".into(), "/usr/sbin".into()])
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
        .ok_or_else(|| GuestError::NoProgram { program: name.into(), package })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_debian_and_upstream() {
        assert_eq!(parse_version("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)"), Some((7, 2)));
        assert_eq!(parse_version("QEMU emulator version 10.0.2"), Some((10, 0)));
        assert_eq!(parse_version("something else"), None);
    }

    #[test]
    fn version_10_is_used_with_caution() {
        let caution = |version| QemuBinary { path: "qemu".into(), firmware: None, version }.caution();
        assert_eq!(caution((7, 2)), None);
        assert!(caution((10, 1)).unwrap().starts_with("QEMU 10.1 ends by a segmentation fault"));
    }
}
