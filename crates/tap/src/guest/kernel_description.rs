//! The guest kernel's own description: its symbols and its types. They are the same at each boot, so they are kept.

use std::fmt;
use std::sync::Arc;

use super::channel::FileKind;
use super::kernel::KernelImage;
use super::sealed;

/// The kernel's own files, as text and bytes in memory: nothing of a run reads the cache a second time.
#[derive(Clone, PartialEq, Eq)]
pub struct KernelDescription {
    /// The guest's `/proc/kallsyms`.
    pub kallsyms: Arc<str>,
    /// The guest's `/sys/kernel/btf/vmlinux`.
    pub btf: Arc<[u8]>,
}

impl fmt::Debug for KernelDescription {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "KernelDescription {{ kallsyms: {} bytes, btf: {} bytes }}", self.kallsyms.len(), self.btf.len())
    }
}

impl KernelDescription {
    fn new(kallsyms: &[u8], btf: Vec<u8>) -> Self {
        Self { kallsyms: String::from_utf8_lossy(kallsyms).into(), btf: btf.into() }
    }

    /// Returns the description from an earlier boot, if the cache still has all of it.
    pub(super) fn kept(kernel: &KernelImage) -> Option<Self> {
        Some(Self::new(&sealed::read(&kernel.kallsyms())?, sealed::read(&kernel.btf())?))
    }

    fn keep(&self, kernel: &KernelImage) {
        // A cache that cannot be written costs the next boot some time, no more.
        let _ = sealed::store(&kernel.kallsyms(), self.kallsyms.as_bytes())
            .and_then(|()| sealed::store(&kernel.btf(), &self.btf));
    }
}

/// Gathers the two files from their parts, which come before anything of the user's runs in the guest.
#[derive(Default)]
pub(super) struct Gathering {
    kallsyms: Gathered,
    btf: Gathered,
}

#[derive(Default)]
struct Gathered {
    bytes: Vec<u8>,
    whole: bool,
}

/// Debian's kernel has 7 MB of symbols and 5 MB of types.
const LARGEST: usize = 64 << 20;

impl Gathering {
    /// Takes a part; an empty one is the file's end. Errors: the file is whole already, or too long.
    pub(super) fn take(&mut self, kind: FileKind, part: &[u8]) -> Result<(), String> {
        let (file, name) = match kind {
            FileKind::Kallsyms => (&mut self.kallsyms, "symbols"),
            FileKind::Btf => (&mut self.btf, "types"),
        };
        if file.whole {
            return Err(format!("the kernel's {name} a second time"));
        }
        if file.bytes.len() + part.len() > LARGEST {
            return Err(format!("more than {} MiB of the kernel's {name}", LARGEST >> 20));
        }
        file.whole = part.is_empty();
        file.bytes.extend_from_slice(part);
        Ok(())
    }

    /// Both files, kept for later boots. Errors: one of them is missing or not whole.
    pub(super) fn finish(self, kernel: &KernelImage) -> Result<KernelDescription, String> {
        for (file, name) in [(&self.kallsyms, "/proc/kallsyms"), (&self.btf, "/sys/kernel/btf/vmlinux")] {
            if !file.whole || file.bytes.is_empty() {
                return Err(format!("the guest's kernel has no {name}: name another kernel with --kernel"));
            }
        }
        let description = KernelDescription::new(&self.kallsyms.bytes, self.btf.bytes);
        description.keep(kernel);
        Ok(description)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::fs;

    fn image(place: &std::path::Path) -> KernelImage {
        fs::write(place.join("vmlinuz"), "").unwrap();
        KernelImage::named(place.to_str().unwrap()).unwrap()
    }

    fn gather(parts: &[(FileKind, &[u8])]) -> Result<Gathering, String> {
        let mut gathering = Gathering::default();
        for (kind, part) in parts {
            gathering.take(*kind, part)?;
        }
        Ok(gathering)
    }

    #[test]
    fn whole_files_are_kept_and_damaged_ones_count_as_absent() {
        use FileKind::{Btf, Kallsyms};
        let place = tempfile::tempdir().unwrap();
        let kernel = image(place.path());
        assert_eq!(KernelDescription::kept(&kernel), None);
        let all: [(FileKind, &[u8]); 5] =
            [(Kallsyms, b"0 A"), (Kallsyms, b" x\n"), (Kallsyms, b""), (Btf, b"\x9f\xeb"), (Btf, b"")];
        let description = gather(&all).unwrap().finish(&kernel).unwrap();
        assert_eq!((&*description.kallsyms, &*description.btf), ("0 A x\n", b"\x9f\xeb".as_slice()));
        assert_eq!(KernelDescription::kept(&kernel), Some(description));
        fs::write(kernel.btf(), b"\x9f\xec").unwrap();
        assert_eq!(KernelDescription::kept(&kernel), None);
    }

    #[test]
    fn half_a_file_and_a_second_one_are_refused() {
        use FileKind::{Btf, Kallsyms};
        let place = tempfile::tempdir().unwrap();
        let kernel = image(place.path());
        let half = gather(&[(Kallsyms, b"0 A x\n"), (Kallsyms, b""), (Btf, b"\x9f\xeb")]).unwrap();
        assert!(half.finish(&kernel).unwrap_err().contains("no /sys/kernel/btf/vmlinux"));
        let twice = gather(&[(Kallsyms, b"0 A x\n"), (Kallsyms, b""), (Kallsyms, b"0 A y\n")]);
        assert_eq!(twice.err().as_deref(), Some("the kernel's symbols a second time"));
        let mut long = Gathering::default();
        long.take(Btf, &vec![0; LARGEST]).unwrap();
        assert_eq!(long.take(Btf, &[0]), Err("more than 64 MiB of the kernel's types".into()));
        assert!(!kernel.kallsyms().exists());
    }
}
