//! The QEMU binary.

use std::path::PathBuf;
use std::process::Command;

use super::error::{GuestError, Tried};
use super::kernel::KernelImage;

/// The first release with physical addresses in its plugin interface as the tap needs them.
const OLDEST: (u32, u32) = (7, 2);

/// Releases that `make test-engines` traces under.
const TESTED: [(u32, u32); 3] = [(7, 2), (10, 0), (11, 1)];

/// A QEMU system emulator for x86-64 with a TCG that loads plugins.
#[derive(Debug, Clone)]
pub struct QemuBinary {
    /// The binary.
    pub path: PathBuf,
    /// Major and minor version.
    pub version: (u32, u32),
}

impl QemuBinary {
    /// The one that the environment's `NEARMISS_QEMU` names, else the one that `PATH` finds.
    pub fn installed() -> Result<Self, GuestError> {
        match std::env::var_os("NEARMISS_QEMU") {
            Some(path) => Self::at(path.into()),
            None => Self::at(find_program("qemu-system-x86_64", "qemu-system-x86")?),
        }
    }

    /// An engine by its name (`10.0`), where `scripts/setup-engines.sh` unpacks it in the cache.
    pub fn unpacked(engine: &str) -> Result<Self, GuestError> {
        let path = KernelImage::cache().with_file_name("engines").join(engine).join("bin/qemu-system-x86_64");
        if !path.exists() {
            return Err(GuestError::Qemu { path, what: "is not there: run scripts/setup-engines.sh".into() });
        }
        Self::at(path)
    }

    /// One by path.
    pub fn at(path: PathBuf) -> Result<Self, GuestError> {
        let output = Command::new(&path).arg("--version").output().tried(format!("{} --version", path.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        match parse_version(&text) {
            Some(version) if version >= OLDEST => Ok(Self { path, version }),
            Some((major, minor)) => {
                Err(GuestError::Qemu { path, what: format!("is version {major}.{minor}: use QEMU 7.2 or later") })
            }
            None => Err(GuestError::Qemu { path, what: "prints no version".into() }),
        }
    }

    /// Returns a caution for users of this emulator, with the remedy: `None` for a release that was tested.
    pub fn caution(&self) -> Option<String> {
        let (major, minor) = self.version;
        (!TESTED.contains(&self.version)).then(|| {
            format!("QEMU {major}.{minor} was never tested with nearmiss: 7.2, 10.0 and 11.1 were (Debian 12, 13 and backports)")
        })
    }

    /// The guest's processor (`-cpu`): one for every release, so that the guest's kernel and C library choose alike.
    ///
    /// ERMS, FSRM and the like make the kernel copy byte by byte, each an access of its own under TCG. The other features
    /// and leaves are those that later releases gave to `max`. The machine type (`arguments.rs`) settles the rest.
    pub(super) fn guest_cpu(&self) -> String {
        let mut cpu = String::from(
            "max,vendor=GenuineIntel,xlevel=0x8000000a,family=15,model=107,stepping=1,erms=off,fsrm=off,3dnowprefetch=off,rdpid=off,\
             cmp-legacy=off,pcommit=off,rdseed=off,sha-ni=off,wbnoinvd=off,x2apic=off,xsaveerptr=off",
        );
        if self.version.0 >= 8 {
            cpu.push_str(",fzrm=off,fsrs=off,fsrc=off,cmpccxadd=off");
        }
        cpu
    }

    /// Returns whether `cmpxchg16b` leaves wrong flags behind.
    ///
    /// Before 8.0 its helper computes them without the translator's pending state. If an interrupt returns into the
    /// block of the instruction, operands become flags; the next interrupt saves them, and its return loads them:
    /// interrupts stay off, or the kernel panics with a double fault.
    pub(super) fn spoils_flags(&self) -> bool {
        self.version.0 < 8
    }

    /// Returns the version of the plugin interface (`QEMU_PLUGIN_VERSION` in QEMU's `include/plugins/qemu-plugin.h`) to
    /// request.
    pub(super) fn plugin_api(&self) -> u32 {
        match self.version {
            (..9, _) => 1,
            (9, 0) => 2,
            (9, 1) => 3,
            (9, 2..) | (10, 0) => 4,
            (10, 1) => 5,
            (10, 2..) | (11, 0) => 6,
            (11.., _) => 7,
        }
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

    fn version(major: u32, minor: u32) -> QemuBinary {
        QemuBinary { path: "qemu".into(), version: (major, minor) }
    }

    #[test]
    fn an_untested_release_is_used_with_caution() {
        assert_eq!(version(7, 2).caution(), None);
        assert_eq!(version(11, 1).caution(), None);
        assert!(version(9, 2).caution().unwrap().starts_with("QEMU 9.2 was never tested"));
    }

    #[test]
    fn each_release_has_its_plugin_interface() {
        let api = |major, minor| version(major, minor).plugin_api();
        assert_eq!([api(7, 2), api(8, 2), api(9, 0), api(9, 2), api(10, 0)], [1, 1, 2, 4, 4]);
        assert_eq!([api(10, 1), api(10, 2), api(11, 0), api(11, 1), api(12, 0)], [5, 6, 6, 7, 7]);
    }
}
