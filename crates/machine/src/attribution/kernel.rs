//! The kernel's half of the address space (x86-64, four-level page tables, nokaslr).

use super::objects::{Key, ObjectId, Objects};
use nearmiss_record::symbols::{KERNEL_MODULE, KernelLayout, ModuleData};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

const DIRECT_MAP_BASE: u64 = 0xffff_8880_0000_0000;
const DIRECT_MAP_BYTES: u64 = 64 << 40;
const VMALLOC: Range<u64> = 0xffff_c900_0000_0000..0xffff_e900_0000_0000;
const PAGE_STRUCTS: Range<u64> = 0xffff_ea00_0000_0000..0xffff_eb00_0000_0000;
const CPU_ENTRY: Range<u64> = 0xffff_fe00_0000_0000..0xffff_fe80_0000_0000;
const IMAGE: Range<u64> = 0xffff_ffff_8000_0000..0xffff_ffff_a000_0000;
const MODULES: Range<u64> = 0xffff_ffff_a000_0000..0xffff_ffff_ff00_0000;
/// Size and alignment of a kernel stack.
const STACK_LOG2: u32 = 14;

/// Names kernel addresses.
#[derive(Debug, Default)]
pub(super) struct Kernel {
    layout: KernelLayout,
    data: Arc<ModuleData>,
    /// End of the per-CPU symbols; they are linked at 0.
    per_cpu_end: u64,
    variables: FxHashMap<u32, ObjectId>,
}

impl Kernel {
    pub fn new(layout: KernelLayout, data: Arc<ModuleData>) -> Self {
        let per_cpu = data.objects.iter().take_while(|o| o.vaddr < 1 << 32);
        let per_cpu_end = per_cpu.map(|o| o.vaddr.saturating_add(o.bytes)).max().unwrap_or(0);
        Kernel { layout, data, per_cpu_end, variables: FxHashMap::default() }
    }

    /// The object at `address`, which lies in physical page number `page`; and where the object begins.
    pub fn find(&mut self, objects: &mut Objects, address: u64, page: u64) -> (ObjectId, u64) {
        if let Some(base) = self.per_cpu_base(address) {
            return match self.data.object_at(address - base) {
                Some(index) => (self.variable(objects, index), base + self.data.objects[index].vaddr),
                None => (objects.intern(Key::KernelPart { name: "per-CPU memory" }), base),
            };
        }
        let direct = match self.layout.direct_map_base {
            0 => DIRECT_MAP_BASE,
            base => base,
        };
        if (direct..direct.saturating_add(DIRECT_MAP_BYTES)).contains(&address) {
            return (objects.intern(Key::KernelPage { page }), address & !0xfff);
        }
        if VMALLOC.contains(&address) {
            let area = address >> STACK_LOG2;
            return (objects.intern(Key::KernelArea { area }), area << STACK_LOG2);
        }
        if (IMAGE.contains(&address) || MODULES.contains(&address))
            && let Some(index) = self.data.object_at(address)
        {
            return (self.variable(objects, index), self.data.objects[index].vaddr);
        }
        let (name, start) = match address {
            a if PAGE_STRUCTS.contains(&a) => ("page descriptors (struct page)", PAGE_STRUCTS.start),
            a if CPU_ENTRY.contains(&a) => ("CPU entry area", CPU_ENTRY.start),
            a if IMAGE.contains(&a) => ("kernel image", IMAGE.start),
            a if MODULES.contains(&a) => ("kernel modules", MODULES.start),
            a => return (Objects::UNKNOWN, a),
        };
        (objects.intern(Key::KernelPart { name }), start)
    }

    fn per_cpu_base(&self, address: u64) -> Option<u64> {
        let end = self.per_cpu_end;
        self.layout.per_cpu_bases.iter().copied().find(|base| address.wrapping_sub(*base) < end)
    }

    fn variable(&mut self, objects: &mut Objects, index: usize) -> ObjectId {
        let key = || Key::Global { module: KERNEL_MODULE.to_owned(), index: index as u32 };
        *self.variables.entry(index as u32).or_insert_with(|| objects.intern(key()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearmiss_record::symbols::DataObject;

    #[test]
    fn addresses_belong_to_variables_pages_and_areas() {
        let object = |name: &str, vaddr, bytes| DataObject { name: name.into(), vaddr, bytes };
        let data = ModuleData {
            module: KERNEL_MODULE.into(),
            objects: vec![object("pcpu_hot", 0x100, 64), object("jiffies", 0xffff_ffff_8200_0000, 8)],
            ..ModuleData::default()
        };
        let layout = KernelLayout { direct_map_base: 0, per_cpu_bases: vec![0xffff_8880_1000_0000] };
        let (mut kernel, mut objects) = (Kernel::new(layout, Arc::new(data)), Objects::new(100));
        let mut key = |address: u64| {
            let (id, start) = kernel.find(&mut objects, address, 5);
            (objects.rows[id.0 as usize].key.clone(), address - start)
        };
        let variable = |index| Key::Global { module: KERNEL_MODULE.into(), index };
        assert_eq!(key(0xffff_8880_1000_0108), (variable(0), 8));
        assert_eq!(key(0xffff_8880_0000_5010), (Key::KernelPage { page: 5 }, 0x10));
        assert_eq!(key(0xffff_c900_0000_4010), (Key::KernelArea { area: 0xffff_c900_0000_4010 >> 14 }, 0x10));
        assert_eq!(key(0xffff_ffff_8200_0004), (variable(1), 4));
        assert_eq!(key(0xffff_ffff_8200_0008).0, Key::KernelPart { name: "kernel image" });
        assert_eq!(key(0xffff_f000_0000_0000).0, Key::Unknown);
    }
}
