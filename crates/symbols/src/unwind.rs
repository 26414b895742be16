//! Begins and ends of functions, from the tables for unwinding: all that is left of a stripped program's functions.

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, EndianSlice, LittleEndian as Little, Register, UnwindContext,
    UnwindSection,
};
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection};

type Frames<'a> = EhFrame<EndianSlice<'a, Little>>;

fn frames<'a>(parsed: &ElfFile64<'a, LittleEndian>) -> Option<(Frames<'a>, BaseAddresses)> {
    let section = parsed.section_by_name(".eh_frame")?;
    let address = |name: &str| parsed.section_by_name(name).map_or(0, |s| s.address());
    let bases =
        BaseAddresses::default().set_eh_frame(section.address()).set_text(address(".text")).set_got(address(".got"));
    Some((EhFrame::new(section.data().ok()?, Little), bases))
}

/// Returns the register and the distance that the canonical frame address has from it, for the code at `address`.
pub(super) fn frame_address(parsed: &ElfFile64<'_, LittleEndian>, address: u64) -> Option<(Register, i64)> {
    let (frames, bases) = frames(parsed)?;
    let mut context = UnwindContext::new();
    let row = frames.unwind_info_for_address(&bases, &mut context, address, EhFrame::cie_from_offset).ok()?;
    match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => Some((*register, *offset)),
        CfaRule::Expression(_) => None,
    }
}

/// `(start, bytes)` of every function, by start.
pub(super) fn extents(parsed: &ElfFile64<'_, LittleEndian>) -> Vec<(u64, u64)> {
    let Some((frames, bases)) = frames(parsed) else { return Vec::new() };
    let mut entries = frames.entries(&bases);
    let mut extents = Vec::new();
    // An unreadable entry ends the walk: the entries so far stand.
    while let Ok(Some(entry)) = entries.next() {
        if let CieOrFde::Fde(partial) = entry
            && let Ok(fde) = partial.parse(EhFrame::cie_from_offset)
            && fde.len() > 0
        {
            extents.push((fde.initial_address(), fde.len()));
        }
    }
    extents.sort_unstable();
    extents
}
