//! Removes the sizes of open files from an image: CRIU refuses to restore a process with a file of another size than at
//! the dump, and the process on the host goes on to write its files.
//!
//! The image `files.img` has a `FileEntry` a file; field 3 is a `RegFileEntry` with the field `size`
//! (`images/fdinfo.proto`, `images/regfile.proto`).

use crate::wire::{Value, fields, messages, put_bytes};

/// Two magic numbers.
const HEAD: usize = 8;
/// `FileEntry.reg`.
const REGULAR: u64 = 3;
/// `RegFileEntry.size`.
const SIZE: u64 = 8;

/// The image without sizes.
pub(crate) fn forget_sizes(image: &[u8]) -> Vec<u8> {
    let mut changed = image.get(..HEAD).unwrap_or(image).to_vec();
    for entry in messages(image, HEAD) {
        let entry = without_size(entry);
        changed.extend((entry.len() as u32).to_le_bytes());
        changed.extend(entry);
    }
    changed
}

fn without_size(entry: &[u8]) -> Vec<u8> {
    let mut changed = Vec::new();
    for field in fields(entry) {
        match field.value {
            Value::Bytes(file) if field.number == REGULAR => {
                let kept: Vec<u8> = fields(file).filter(|f| f.number != SIZE).flat_map(|f| f.whole).copied().collect();
                put_bytes(&mut changed, REGULAR, &kept);
            }
            _ => changed.extend(field.whole),
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_size_goes() {
        let image = |file: &[u8]| {
            let mut entry = vec![0x08, 0x01];
            put_bytes(&mut entry, REGULAR, file);
            [&[1, 2, 3, 4, 5, 6, 7, 8], &(entry.len() as u32).to_le_bytes()[..], &entry].concat()
        };
        let with = image(&[0x08, 0x05, 0x40, 0xac, 0x02, 0x48, 0x01]);
        assert_eq!(forget_sizes(&with), image(&[0x08, 0x05, 0x48, 0x01]));
        assert_eq!(forget_sizes(&[1, 2]), [1, 2]);
    }
}
