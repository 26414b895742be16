//! Variables in the frames of functions, from debug information (DWARF 5, sections 3.3.5 and 4.1).

use super::dwarf::{Bytes, Entry, InUnit, each_unit};
use super::unwind;
use gimli::{AttributeValue, Expression, Operation, Register, X86_64};
use object::LittleEndian;
use object::read::elf::ElfFile64;
use std::collections::BTreeMap;
use std::path::Path;

/// Distance of the frame pointer below the canonical frame address, where a function keeps one: the return address and
/// the caller's frame pointer lie between (System V ABI for AMD64, section 3.2.2).
const FRAME_POINTER_BELOW: i64 = 16;

/// A variable in a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Local {
    pub name: String,
    pub bytes: u64,
    /// Distance of its first byte from the canonical frame address (DWARF 5, section 6.4).
    pub offset: i64,
}

/// Returns the variables in the frames of the functions that hold these linked addresses, by address.
pub(super) fn locals(path: &Path, addresses: &[u64]) -> BTreeMap<u64, Vec<Local>> {
    let mut all = BTreeMap::new();
    each_unit(path, &mut |parsed, unit| unit.locals(parsed, addresses, &mut all)).unwrap_or_default();
    all
}

/// A function with a wanted address.
struct Frame {
    depth: isize,
    wanted: Vec<u64>,
    base: Option<Base>,
    locals: Vec<Local>,
}

/// Base of the variables of a function.
#[derive(Clone, Copy)]
enum Base {
    FrameAddress,
    Register(Register),
}

impl<'a> InUnit<'_, 'a> {
    fn locals(&self, parsed: &ElfFile64<'_, LittleEndian>, addresses: &[u64], all: &mut BTreeMap<u64, Vec<Local>>) {
        if self.wanted(self.dwarf.unit_ranges(self.unit).ok(), addresses).is_empty() {
            return;
        }
        let mut entries = self.unit.entries();
        let mut current: Option<Frame> = None;
        let mut done = |frame: Frame| frame.wanted.iter().for_each(|at| _ = all.insert(*at, frame.locals.clone()));
        while let Ok(Some(entry)) = entries.next_dfs() {
            if let Some(frame) = current.take_if(|frame| entry.depth() <= frame.depth) {
                done(frame);
            }
            match (&mut current, entry.tag()) {
                (None, gimli::DW_TAG_subprogram) => current = self.frame(entry, addresses),
                (Some(frame), gimli::DW_TAG_variable) => {
                    frame.locals.extend(self.local(parsed, entry, frame.base, &frame.wanted));
                }
                _ => {}
            }
        }
        current.into_iter().for_each(done);
    }

    /// Returns those of the addresses that lie in the ranges.
    fn wanted(&self, ranges: Option<gimli::RangeIter<Bytes<'a>>>, addresses: &[u64]) -> Vec<u64> {
        let (mut wanted, Some(mut ranges)) = (Vec::new(), ranges) else { return Vec::new() };
        while let Ok(Some(range)) = ranges.next() {
            wanted.extend(addresses.iter().filter(|at| (range.begin..range.end).contains(at)));
        }
        wanted
    }

    fn frame(&self, entry: &Entry<'a>, addresses: &[u64]) -> Option<Frame> {
        let wanted = self.wanted(self.dwarf.die_ranges(self.unit, entry).ok(), addresses);
        let base = || match self.first_operation(entry, gimli::DW_AT_frame_base)? {
            Operation::CallFrameCFA => Some(Base::FrameAddress),
            Operation::Register { register } => Some(Base::Register(register)),
            _ => None,
        };
        (!wanted.is_empty()).then(|| Frame { depth: entry.depth(), base: base(), wanted, locals: Vec::new() })
    }

    fn local(
        &self,
        parsed: &ElfFile64<'_, LittleEndian>,
        entry: &Entry<'a>,
        base: Option<Base>,
        wanted: &[u64],
    ) -> Option<Local> {
        let from_register = |register| from_frame_address(parsed, register, wanted);
        let offset = match (self.first_operation(entry, gimli::DW_AT_location)?, base) {
            (Operation::FrameOffset { offset }, Some(Base::FrameAddress)) => offset,
            (Operation::FrameOffset { offset }, Some(Base::Register(register))) => {
                from_register(register)?.checked_add(offset)?
            }
            (Operation::RegisterOffset { register, offset, .. }, _) => from_register(register)?.checked_add(offset)?,
            _ => return None,
        };
        let origin = match entry.attr_value(gimli::DW_AT_abstract_origin) {
            Some(AttributeValue::UnitRef(origin)) => self.entry(origin)?,
            _ => entry.clone(),
        };
        let bytes = self.typed(&origin).bytes;
        (bytes > 0).then(|| Some(Local { name: self.name(&origin)?, bytes, offset }))?
    }

    /// Returns the first operation of an expression, or of the first one of a list.
    fn first_operation(&self, entry: &Entry<'a>, attribute: gimli::DwAt) -> Option<Operation<Bytes<'a>>> {
        let value = entry.attr_value(attribute)?;
        let expression = match value {
            AttributeValue::Exprloc(expression) => expression,
            list => self.dwarf.attr_locations(self.unit, list).ok()??.next().ok()??.data,
        };
        let Expression(mut bytes) = expression;
        Operation::parse(&mut bytes, self.unit.encoding()).ok()
    }
}

/// Returns the distance of a register from the canonical frame address at the first of these addresses that knows one.
fn from_frame_address(parsed: &ElfFile64<'_, LittleEndian>, register: Register, addresses: &[u64]) -> Option<i64> {
    let known = |at: &u64| match unwind::frame_address(parsed, *at)? {
        (by, offset) if by == register => offset.checked_neg(),
        _ => None,
    };
    addresses.iter().find_map(known).or_else(|| (register == X86_64::RBP).then_some(-FRAME_POINTER_BELOW))
}
