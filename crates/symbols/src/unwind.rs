//! Begins and ends of functions, from the tables for unwinding: all that is left of a stripped program's functions.

use gimli::{BaseAddresses, CieOrFde, EhFrame, LittleEndian as Little, UnwindSection};
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection};

/// `(start, bytes)` of every function, by start.
pub(super) fn extents(parsed: &ElfFile64<'_, LittleEndian>) -> Vec<(u64, u64)> {
    let Some(section) = parsed.section_by_name(".eh_frame") else { return Vec::new() };
    let Ok(bytes) = section.data() else { return Vec::new() };
    let address = |name: &str| parsed.section_by_name(name).map_or(0, |s| s.address());
    let bases =
        BaseAddresses::default().set_eh_frame(section.address()).set_text(address(".text")).set_got(address(".got"));
    let frames = EhFrame::new(bytes, Little);
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
