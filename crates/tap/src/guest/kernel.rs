//! The guest's kernel: Debian's package, unpacked into the cache and never installed.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::{GuestError, Tried};
use super::sealed;

/// An unpacked kernel and what was derived from it.
///
/// A directory `<cache>/nearmiss/kernel/<version>` holds `vmlinuz`, `overlay.ko` (absent where it
/// is built in), `drivers` (modules that the guest's agent loads first, in the order of their names; absent or empty
/// where they are built in) and, once derived, `vmlinux` (the image that `vmlinuz` unpacks to: loading it
/// directly saves the guest from unpacking it, about a second), `kallsyms`, `btf` and `facts.json`, each derived file
/// with a checksum beside it: one that is damaged is derived again.
#[derive(Debug, Clone)]
pub struct KernelImage {
    directory: PathBuf,
}

impl KernelImage {
    /// The cache of kernels: `$XDG_CACHE_HOME/nearmiss/kernel` or `~/.cache/nearmiss/kernel`.
    pub fn cache() -> PathBuf {
        std::env::var_os("XDG_CACHE_HOME")
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
            .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))
            .unwrap_or_else(|| PathBuf::from("/var/cache"))
            .join("nearmiss/kernel")
    }

    /// The newest kernel of the cache in the series that the guest's figures are tied to; a later one where there is no
    /// other.
    pub fn newest() -> Result<Self, GuestError> {
        let cache = Self::cache();
        let found = in_cache(&cache);
        let usual = found.iter().rfind(|(version, _)| series(version) <= USUAL_SERIES);
        match usual.or(found.last()) {
            Some((_, directory)) => Ok(Self { directory: directory.clone() }),
            None => Err(GuestError::NoKernel(cache)),
        }
    }

    /// The newest kernel of the cache, if it is of this series (such as 6.16) or a later one.
    pub fn newest_from(wanted: (u64, u64)) -> Option<Self> {
        let (version, directory) = in_cache(&Self::cache()).pop()?;
        (series(&version) >= wanted).then_some(Self { directory })
    }

    /// A kernel by version (a directory of the cache) or by path (a directory with `vmlinuz`).
    pub fn named(version_or_path: &str) -> Result<Self, GuestError> {
        let directory = if version_or_path.contains('/') {
            PathBuf::from(version_or_path)
        } else {
            Self::cache().join(version_or_path)
        };
        if directory.join("vmlinuz").exists() { Ok(Self { directory }) } else { Err(GuestError::NoKernel(directory)) }
    }

    /// Returns the directory of the kernel and of what was derived from it.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The kernel's release, as `uname -r` prints it.
    pub fn release(&self) -> String {
        self.directory.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }

    /// The guest's `/proc/kallsyms`; absent before the first boot.
    pub(super) fn kallsyms(&self) -> PathBuf {
        self.directory.join("kallsyms")
    }

    /// The guest's BTF (`/sys/kernel/btf/vmlinux`); absent before the first boot.
    pub(super) fn btf(&self) -> PathBuf {
        self.directory.join("btf")
    }

    /// The image that [`KernelImage::bootable`] returned last, not looked at again: nothing of it runs in a guest that is
    /// restored.
    pub(super) fn image(&self) -> PathBuf {
        let unpacked = self.directory.join("vmlinux");
        if unpacked.exists() { unpacked } else { self.directory.join("vmlinuz") }
    }

    /// Identity of this kernel, wherever it lies: the checksum of its unpacked image.
    pub(super) fn identity(&self) -> String {
        if !self.directory.join("vmlinux").exists() {
            self.bootable();
        }
        let image = self.image();
        sealed::seal_beside(&image).unwrap_or_else(|| {
            let about = fs::metadata(&image);
            let changed = about.and_then(|about| Ok((about.len(), about.modified()?))).ok();
            format!("{} {changed:?}", image.display())
        })
    }

    /// The image to boot: unpacked at first use, the packed one where that fails (a read-only
    /// cache, a compression other than zstd).
    pub(super) fn bootable(&self) -> PathBuf {
        let unpacked = self.directory.join("vmlinux");
        if sealed::read(&unpacked).is_some() {
            return unpacked;
        }
        let packed = self.directory.join("vmlinuz");
        match fs::read(&packed).ok().as_deref().and_then(unpack_elf) {
            Some(image) if sealed::store(&unpacked, &image).is_ok() => unpacked,
            _ => packed,
        }
    }

    /// The module that CRIU needs to restore a process; absent where it is built in, or was not unpacked.
    pub fn netlink_module(&self) -> Option<PathBuf> {
        Some(self.directory.join("nfnetlink.ko")).filter(|module| module.is_file())
    }

    /// The overlay file system's module, ready to load.
    pub(super) fn overlay_module(&self) -> Result<Option<Vec<u8>>, GuestError> {
        module(self.directory.join("overlay.ko"))
    }

    /// Modules of the guest's devices, in the order in which they are loaded; none where they are built in.
    pub(super) fn drivers(&self) -> Result<Vec<Vec<u8>>, GuestError> {
        let entries = fs::read_dir(self.directory.join("drivers")).into_iter().flatten();
        let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
        paths.into_iter().filter_map(|path| module(path).transpose()).collect()
    }
}

/// Contents of a module's file; none where there is no such file.
fn module(path: PathBuf) -> Result<Option<Vec<u8>>, GuestError> {
    match fs::read(&path) {
        Ok(module) if module.starts_with(b"\x7fELF") => Ok(Some(module)),
        Ok(_) => {
            let what = "is not an ELF file: run `nearmiss kernel --unpack` again".into();
            Err(GuestError::Kernel { path, what })
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).tried(path.display().to_string()),
    }
}

/// `scripts/setup-kernel.sh` fetches none after it.
const USUAL_SERIES: (u64, u64) = (6, 12);

/// Versions and directories, in rising order.
fn in_cache(cache: &Path) -> Vec<(Vec<u64>, PathBuf)> {
    let mut found: Vec<(Vec<u64>, PathBuf)> = fs::read_dir(cache)
        .map(|entries| entries.filter_map(Result::ok).map(|entry| entry.path()).collect())
        .unwrap_or_else(|_| Vec::new())
        .into_iter()
        .filter(|path: &PathBuf| path.join("vmlinuz").exists())
        .map(|path| (version_key(&path), path))
        .collect();
    found.sort();
    found
}

fn series(version: &[u64]) -> (u64, u64) {
    let number = |at| version.get(at).copied().unwrap_or(0);
    (number(0), number(1))
}

/// The numbers in a version, for comparing: 6.12.117 is newer than 6.12.63.
fn version_key(path: &Path) -> Vec<u64> {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
        .split(|letter: char| !letter.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect()
}

/// Returns the ELF image inside a bzImage with a zstd frame as its payload.
fn unpack_elf(packed: &[u8]) -> Option<Vec<u8>> {
    const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    packed
        .windows(4)
        .enumerate()
        .filter(|(_, window)| *window == ZSTD)
        .take(16)
        .find_map(|(offset, _)| unpack_frame(&packed[offset..]))
}

fn unpack_frame(frame: &[u8]) -> Option<Vec<u8>> {
    use std::io::Read;
    const LARGEST_IMAGE: u64 = 512 << 20;
    let mut image = Vec::new();
    let decoder = zstd::stream::read::Decoder::with_buffer(frame).ok()?.single_frame();
    decoder.take(LARGEST_IMAGE).read_to_end(&mut image).ok()?;
    image.starts_with(b"\x7fELF").then_some(image)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number() {
        let mut paths = ["6.12.117+deb12-cloud-amd64", "6.12.63+deb12-cloud-amd64", "6.1.0-9-cloud-amd64"]
            .map(|name| (version_key(Path::new(name)), name));
        paths.sort();
        assert_eq!(paths[2].1, "6.12.117+deb12-cloud-amd64");
        assert_eq!(paths[0].1, "6.1.0-9-cloud-amd64");
        let of = |name: &str| series(&version_key(Path::new(name)));
        assert!(of("6.12.117+deb12-cloud-amd64") <= USUAL_SERIES && of("6.18.15+deb13-cloud-amd64") > USUAL_SERIES);
        assert_eq!(of("unnamed"), (0, 0));
    }

    #[test]
    fn an_image_is_found_behind_a_false_magic() {
        let image = [b"\x7fELF".as_slice(), &[7; 1000]].concat();
        let mut packed = vec![0x28, 0xb5, 0x2f, 0xfd, 1, 2, 3];
        packed.extend(zstd::encode_all(image.as_slice(), 3).unwrap());
        packed.extend([0xff; 32]);
        assert_eq!(unpack_elf(&packed), Some(image));
        assert_eq!(unpack_elf(b"no kernel at all"), None);
    }
}
