//! The compiled scheduler: its programs, and what the loader has to fill in.

use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget};

/// Bytes of an instruction.
pub const INSTRUCTION: usize = 8;

/// A program of the scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Name of the program, and of the member of `sched_ext_ops` that it fills.
    pub name: String,
    /// The program may sleep.
    pub sleeps: bool,
    /// Instructions of the program.
    pub text: Vec<u8>,
    /// Offsets of instructions that need what a name stands for.
    pub names: Vec<(usize, String)>,
}

/// The programs of an object. None: it is no such object.
pub fn programs(object: &[u8]) -> Option<Vec<Program>> {
    let file = object::File::parse(object).ok()?;
    let of_section = |section: object::Section<'_, '_>| {
        let (kind, name) = section.name().ok()?.split_once('/')?;
        let sleeps = match kind {
            "struct_ops" => false,
            "struct_ops.s" => true,
            _ => return None,
        };
        let names = section.relocations().map(|(offset, relocation)| {
            let RelocationTarget::Symbol(symbol) = relocation.target() else { return None };
            Some((offset as usize, file.symbol_by_index(symbol).ok()?.name().ok()?.to_owned()))
        });
        let text = section.data().ok()?.to_vec();
        Some(Program { name: name.to_owned(), sleeps, text, names: names.collect::<Option<_>>()? })
    };
    Some(file.sections().filter_map(of_section).collect())
}

/// Meaning of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A map's descriptor.
    Map(i32),
    /// A function of the kernel, by the number of its type.
    Function(u32),
    /// A number.
    Constant(u64),
}

/// `BPF_PSEUDO_MAP_FD` and `BPF_PSEUDO_KFUNC_CALL` (include/uapi/linux/bpf.h).
const OF_MAP: u8 = 1;
const OF_FUNCTION: u8 = 2;

impl Program {
    /// Fills in what names stand for. Errors: the first name that stands for nothing.
    pub fn fill(&mut self, meaning: impl Fn(&str) -> Option<Meaning>) -> Result<(), String> {
        for (offset, name) in &self.names {
            let of = meaning(name).ok_or_else(|| name.clone())?;
            let place = self.text.get_mut(*offset..).filter(|rest| rest.len() >= INSTRUCTION);
            let place = place.ok_or_else(|| name.clone())?;
            let (source, low, high) = match of {
                Meaning::Map(map) => (Some(OF_MAP), map as u32, 0),
                Meaning::Function(id) => (Some(OF_FUNCTION), id, 0),
                Meaning::Constant(value) => (None, value as u32, (value >> 32) as u32),
            };
            if let Some(source) = source {
                place[1] = place[1] & 0x0f | source << 4;
            }
            place[4..8].copy_from_slice(&low.to_le_bytes());
            if !matches!(of, Meaning::Function(_)) {
                // The second half of a load of 64 bits.
                let second = place.get_mut(12..16).ok_or_else(|| name.clone())?;
                second.copy_from_slice(&high.to_le_bytes());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn names_are_filled_in_where_they_are_used() {
        let names = vec![(0, "map".to_owned()), (16, "call".to_owned()), (24, "offset".to_owned())];
        let mut program = Program { name: "init".into(), sleeps: true, text: vec![0; 40], names };
        program.text[1] = 0x03;
        program.text[17] = 0xf0;
        let meaning = |name: &str| match name {
            "map" => Some(Meaning::Map(7)),
            "call" => Some(Meaning::Function(0x1234)),
            "offset" => Some(Meaning::Constant(0x5_0000_0009)),
            _ => None,
        };
        program.fill(meaning).unwrap();
        assert_eq!((program.text[1], program.text[4], program.text[17]), (0x13, 7, 0x20));
        assert_eq!((&program.text[20..24], &program.text[28..29]), (&[0x34, 0x12, 0, 0][..], &[9][..]));
        assert_eq!(program.text[36], 5);
        program.names = vec![(0, "nothing".into())];
        assert_eq!(program.fill(meaning), Err("nothing".into()));
        program.names = vec![(36, "map".into())];
        assert_eq!(program.fill(meaning), Err("map".into()));
    }
}
