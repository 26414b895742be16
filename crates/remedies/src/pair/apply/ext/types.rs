//! The kernel's own types (BTF), as far as a loader of a scheduler needs them: numbers of types by name, and where members
//! lie. The format: Documentation/bpf/btf.rst.

/// Kinds of types.
pub const STRUCT: u32 = 4;
pub const FUNC: u32 = 12;

const MAGIC: u32 = 0xeb9f;
/// Bytes of a type's head, and of a member.
const TYPE: usize = 12;
const MEMBER: usize = 12;

/// Types of a kernel. Those that make no sense are not found.
pub struct Types<'a> {
    types: &'a [u8],
    strings: &'a [u8],
}

struct Type<'a> {
    id: u32,
    kind: u32,
    name: u32,
    /// Bytes of a structure.
    size: u32,
    has_bit_fields: bool,
    rest: &'a [u8],
}

/// A structure: its number, size and members.
#[derive(Debug, PartialEq, Eq)]
pub struct Structure {
    pub id: u32,
    pub bytes: u32,
    /// Names, and offsets in bytes, in order.
    pub members: Vec<(String, u32)>,
}

impl Structure {
    /// The place among the members, and the offset in bytes.
    pub fn member(&self, name: &str) -> Option<(usize, u32)> {
        self.members.iter().enumerate().find(|(_, member)| member.0 == name).map(|(at, member)| (at, member.1))
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

impl<'a> Types<'a> {
    /// Parses `/sys/kernel/btf/vmlinux`. None: it is no such file.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let at = |offset: usize| word(bytes, offset).map(|word| word as usize);
        if word(bytes, 0)? & 0xffff != MAGIC {
            return None;
        }
        let (head, types, type_bytes, strings, string_bytes) = (at(4)?, at(8)?, at(12)?, at(16)?, at(20)?);
        let part = |from: usize, length: usize| bytes.get(head.checked_add(from)?..)?.get(..length);
        Some(Types { types: part(types, type_bytes)?, strings: part(strings, string_bytes)? })
    }

    fn iter(&self) -> impl Iterator<Item = Type<'a>> + use<'a> {
        let (mut rest, mut id) = (self.types, 0);
        std::iter::from_fn(move || {
            let info = word(rest, 4)?;
            let (kind, count) = (info >> 24 & 0x1f, (info & 0xffff) as usize);
            // Bytes behind a type's head, by its kind.
            let bytes = match kind {
                1 | 14 | 17 => 4,
                3 => 12,
                4 | 5 | 15 | 19 => 12 * count,
                6 | 13 => 8 * count,
                _ => 0,
            };
            let (head, behind) = rest.split_at_checked(TYPE)?;
            let (own, next) = behind.split_at_checked(bytes)?;
            rest = next;
            id += 1;
            let (name, size) = (word(head, 0)?, word(head, 8)?);
            Some(Type { id, kind, name, size, has_bit_fields: info >> 31 != 0, rest: own })
        })
    }

    fn name(&self, offset: u32) -> Option<&'a str> {
        let name = self.strings.get(offset as usize..)?;
        std::str::from_utf8(name.split(|byte| *byte == 0).next()?).ok()
    }

    fn find(&self, kind: u32, name: &str) -> Option<Type<'a>> {
        self.iter().find(|found| found.kind == kind && self.name(found.name) == Some(name))
    }

    /// The number of the type of this kind and name.
    pub fn id(&self, kind: u32, name: &str) -> Option<u32> {
        Some(self.find(kind, name)?.id)
    }

    /// A structure by its name.
    pub fn structure(&self, name: &str) -> Option<Structure> {
        let found = self.find(STRUCT, name)?;
        let member = |member: &[u8]| {
            let bits = word(member, 8)? & if found.has_bit_fields { 0xff_ffff } else { u32::MAX };
            Some((self.name(word(member, 0)?)?.to_owned(), bits / 8))
        };
        let members = found.rest.chunks_exact(MEMBER).map(member).collect::<Option<_>>()?;
        Some(Structure { id: found.id, bytes: found.size, members })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// An integer, a structure of two, an enumeration, and a function.
    fn kernel() -> Vec<u8> {
        let strings = b"\0int\0ops\0first\0second\0call\0";
        let at = |name: &str| strings.windows(name.len()).position(|part| part == name.as_bytes()).unwrap() as u32;
        let kind = |kind: u32, count: u32| kind << 24 | count;
        let types: Vec<u32> = [
            vec![at("int"), kind(1, 0), 4, 0x20],
            vec![at("ops"), kind(4, 2), 16, at("first"), 1, 0, at("second"), 1, 64],
            vec![0, kind(6, 1), 4, at("first"), 0],
            vec![at("call"), kind(12, 1), 5],
        ]
        .concat();
        let types: Vec<u8> = types.iter().flat_map(|word| word.to_le_bytes()).collect();
        let head = [0x0001_eb9f, 24, 0, types.len() as u32, types.len() as u32, strings.len() as u32];
        [head.iter().flat_map(|word| word.to_le_bytes()).collect(), types, strings.to_vec()].concat()
    }

    #[test]
    fn types_are_found_by_kind_and_name() {
        let bytes = kernel();
        let types = Types::parse(&bytes).unwrap();
        assert_eq!((types.id(FUNC, "call"), types.id(STRUCT, "call")), (Some(4), None));
        let ops = types.structure("ops").unwrap();
        assert_eq!((ops.id, ops.bytes, ops.member("second"), ops.member("third")), (2, 16, Some((1, 8)), None));
    }

    #[test]
    fn types_that_are_cut_short_end_in_nothing_found() {
        let bytes = kernel();
        for length in 0..bytes.len() {
            if let Some(types) = Types::parse(&bytes[..length]) {
                assert!(types.structure("ops").is_none_or(|ops| ops.id == 2));
            }
        }
        assert!(Types::parse(b"not BTF").is_none());
    }

    #[test]
    fn this_kernels_own_types_are_read() {
        let Ok(bytes) = std::fs::read("/sys/kernel/btf/vmlinux") else {
            eprintln!("skipped: this kernel shows nothing of its types");
            return;
        };
        let task = Types::parse(&bytes).unwrap().structure("task_struct").unwrap();
        assert!(task.member("pid").is_some_and(|(_, offset)| offset > 0 && offset < task.bytes));
    }
}
