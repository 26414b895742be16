//! The guest's first file system: an uncompressed cpio archive, format "newc".

/// An archive under construction.
pub(super) struct Initramfs {
    bytes: Vec<u8>,
    next_inode: u32,
}

const REGULAR: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;

impl Initramfs {
    pub(super) fn new() -> Self {
        Self { bytes: Vec::new(), next_inode: 1 }
    }

    pub(super) fn directory(&mut self, name: &str) -> &mut Self {
        self.entry(name, DIRECTORY | 0o755, &[])
    }

    pub(super) fn file(&mut self, name: &str, mode: u32, content: &[u8]) -> &mut Self {
        self.entry(name, REGULAR | mode, content)
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) -> &mut Self {
        let name_length = name.len() + 1;
        let fields = [
            self.next_inode,
            mode,
            0, // owner
            0, // group
            1, // links
            0, // modified
            content.len() as u32,
            0,
            0,
            0,
            0, // devices
            name_length as u32,
            0, // checksum, unused in this format
        ];
        self.next_inode += 1;
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
        self
    }

    fn pad(&mut self) {
        let padded = self.bytes.len().next_multiple_of(4);
        self.bytes.resize(padded, 0);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_padding_are_where_the_kernel_looks() {
        let mut archive = Initramfs::new();
        archive.file("init", 0o755, b"abcde");
        let bytes = archive.finish();
        assert_eq!(&bytes[..6], b"070701");
        assert_eq!(&bytes[14..22], b"000081ed", "mode");
        assert_eq!(&bytes[54..62], b"00000005", "size");
        assert_eq!(&bytes[94..102], b"00000005", "name length, with its NUL");
        // 110 + 5 is 115: padded to 116.
        assert_eq!(&bytes[110..121], b"init\0\0abcde");
        assert_eq!(&bytes[124..130], b"070701", "the trailer begins at a multiple of four");
        assert_eq!(bytes.len() % 4, 0);
    }
}
