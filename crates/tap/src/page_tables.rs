//! From the guest kernel's addresses to physical ones: its two fixed mappings, and its page tables.

/// Virtual address of physical 0 in the kernel's direct map, without address randomisation
/// (Documentation/arch/x86/x86_64/mm.rst).
pub(super) const DIRECT_MAP: u64 = 0xffff_8880_0000_0000;
/// Virtual address of physical 0 in the mapping of the kernel's image (the same document).
pub(super) const KERNEL_MAP: u64 = 0xffff_ffff_8000_0000;
const PRESENT: u64 = 1;
const LARGE: u64 = 1 << 7;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

/// Physical address of a virtual one, through four levels of page tables; `word` reads guest-physical memory.
pub(super) fn walk(word: &dyn Fn(u64) -> Option<u64>, top_table: u64, virtual_address: u64) -> Option<u64> {
    let mut table = top_table;
    for level in (0..4).rev() {
        let shift = 12 + 9 * level;
        let entry = word(table + 8 * (virtual_address >> shift & 511))?;
        if entry & PRESENT == 0 {
            return None;
        }
        if level == 0 || entry & LARGE != 0 {
            let inside = (1u64 << shift) - 1;
            return Some((entry & ADDRESS & !inside) + (virtual_address & inside));
        }
        table = entry & ADDRESS;
    }
    None
}
