//! Dependencies of a saved guest: if any part of it differs, the guest is booted anew.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::super::hardware::Hardware;
use super::super::kernel::KernelImage;

/// Changes with the meaning of anything in a saved guest.
const FORMAT: &str = "saved guest 1";

/// Returns all dependencies of a saved guest as text, a line each.
pub(super) fn key(hardware: &Hardware<'_>, kernel: &KernelImage, inside: &[u8]) -> String {
    let machine = hardware.machine_arguments().join(" ");
    let lines = [
        FORMAT.to_owned(),
        format!("emulator {}", file(&fs::canonicalize(&hardware.qemu.path).unwrap_or_default())),
        format!("machine {machine}"),
        format!("memory {:?}", hardware.memory.iter().map(|(bytes, _)| bytes).collect::<Vec<_>>()),
        format!("release {:?}", hardware.qemu.version),
        format!("arguments {}", hardware.kernel_arguments),
        format!("kernel {}", kernel.identity()),
        format!("agent {:08x} {}", crc32fast::hash(inside), inside.len()),
    ];
    lines.join("\n")
}

/// The name of its file in the cache.
pub(super) fn name(key: &str) -> String {
    format!("{:08x}.guest", crc32fast::hash(key.as_bytes()))
}

/// A file's identity: its content is not read, for time's sake.
fn file(path: &Path) -> String {
    match fs::metadata(path) {
        Ok(about) => {
            let [size, changed, changed_ns] = [about.size() as i64, about.mtime(), about.mtime_nsec()];
            format!("{} {size} {changed}.{changed_ns:09}", path.display())
        }
        Err(error) => format!("{}: {error}", path.display()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::super::config::{GuestShape, InstructionClock};
    use super::super::super::memory_file;
    use super::super::super::qemu::QemuBinary;
    use super::*;

    struct Of {
        shape: GuestShape,
        memory: Vec<u64>,
        icount: Option<InstructionClock>,
        version: (u32, u32),
        arguments: &'static str,
        agent: &'static [u8],
    }

    impl Of {
        fn usual() -> Self {
            Self {
                shape: GuestShape { packages: 1, cores: 4, threads: 1, nodes: 2 },
                memory: vec![256 << 20, 256 << 20],
                icount: None,
                version: (10, 0),
                arguments: "quiet",
                agent: b"agent",
            }
        }

        /// With an emulator and a kernel in this directory.
        fn key(&self, place: &Path) -> String {
            let qemu = QemuBinary { path: place.join("qemu"), version: self.version };
            let sized = |bytes: &u64| (*bytes, memory_file::sized("node", *bytes).unwrap());
            let memory: Vec<_> = self.memory.iter().map(sized).collect();
            let kernel_arguments = self.arguments.to_owned();
            let hardware =
                Hardware { qemu: &qemu, shape: self.shape, memory: &memory, icount: self.icount, kernel_arguments };
            key(&hardware, &KernelImage::named(&place.display().to_string()).unwrap(), self.agent)
        }
    }

    #[test]
    fn every_part_changes_the_key() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path();
        fs::write(place.join("qemu"), "an emulator").unwrap();
        fs::write(place.join("vmlinuz"), "a kernel").unwrap();
        let usual = Of::usual;
        let clock = |shift, leaps| Some(InstructionClock { shift, leaps });
        let mut keys = vec![
            usual().key(place),
            Of { shape: GuestShape { cores: 2, ..usual().shape }, ..usual() }.key(place),
            Of { shape: GuestShape { cores: 2, threads: 2, ..usual().shape }, ..usual() }.key(place),
            Of { shape: GuestShape { cores: 2, packages: 2, ..usual().shape }, ..usual() }.key(place),
            Of { memory: vec![256 << 20, 512 << 20], ..usual() }.key(place),
            Of { memory: vec![512 << 20, 256 << 20], ..usual() }.key(place),
            Of { icount: clock(1, false), ..usual() }.key(place),
            Of { icount: clock(1, true), ..usual() }.key(place),
            Of { icount: clock(2, true), ..usual() }.key(place),
            Of { version: (7, 2), ..usual() }.key(place),
            Of { arguments: "quiet norandmaps", ..usual() }.key(place),
            Of { agent: b"Agent", ..usual() }.key(place),
        ];
        assert_eq!(usual().key(place), keys[0]);
        fs::write(place.join("qemu"), "another emulator").unwrap();
        keys.push(usual().key(place));
        fs::write(place.join("vmlinuz"), "another kernel").unwrap();
        keys.push(usual().key(place));
        let count = keys.len();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), count, "two differ in nothing: {keys:#?}");
    }
}
