//! Facts about the guest's kernel that the plugin needs, from its symbols and types.

use super::agent_memory::FirstProcess;
use super::guest::{KernelDescription, PerfRing, memory_path, sealed};
use super::page_tables::{DIRECT_MAP, KERNEL_MAP};
use super::ring::PluginFacts;
use btf::btf::{Btf, Type};
use nearmiss_record::symbols::CLEARING;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::Path;

/// `perf_event_mmap_page::data_head` (include/uapi/linux/perf_event.h).
const DATA_HEAD_OFFSET: u64 = 1024;

/// A kernel without the symbols or types that the tap needs.
#[derive(Debug, thiserror::Error)]
#[error("the guest's kernel, {file}: {what}; name another kernel with --kernel")]
pub struct FactsError {
    file: &'static str,
    what: String,
}

/// Raised whenever [`KernelFacts`] changes: what an earlier nearmiss kept is then found out again.
const VERSION: u32 = 7;

/// Facts about a kernel, the same at each of its boots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelFacts {
    version: u32,
    /// Checksum of the symbols and types that these facts were found in.
    of: u32,
    /// Offsets of pid, tgid, comm and mm in `task_struct`.
    task_offsets: [u32; 4],
    /// Link address of per-CPU variables: 0, from Linux 6.15 on in the kernel's image.
    per_cpu_start: u64,
    /// Address of the per-CPU variable that holds the current task, as linked.
    current_task: u64,
    /// How to find the agent's memory.
    first_process: FirstProcess,
    /// Address of `__per_cpu_offset`.
    per_cpu_offsets: u64,
    timer_entry: u64,
    irq_text: (u64, u64),
    /// Entries of the functions that clear a page; 0: the kernel has none of that name.
    clearing: [u64; CLEARING.len()],
    /// How to find the use of a page; `None` for kernels that mark it in neither of the ways of [`PageMarks`].
    pub(super) pages: Option<PageFacts>,
    /// How to find the network devices; `None` for kernels that list them otherwise.
    pub(super) devices: Option<DeviceFacts>,
}

/// The list of the network devices of the first network namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DeviceFacts {
    /// Address of the list's head.
    pub(super) list: u64,
    /// Offset of the list's link in `struct net_device`.
    pub(super) link: u32,
}

/// Offsets in bytes, and values, of what the kernel notes about each page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PageFacts {
    /// Physical address of the kernel's top page table.
    pub(super) top_table: u64,
    /// In `struct page`.
    pub(super) mapping: u32,
    pub(super) compound_head: u32,
    pub(super) page_type: u32,
    pub(super) marks: PageMarks,
    /// In `struct slab`, which lies over `struct page`.
    pub(super) slab_cache: u32,
    /// In `struct kmem_cache`.
    pub(super) cache_name: u32,
    pub(super) cache_object_bytes: u32,
    pub(super) cache_stride: u32,
    pub(super) cache_users: u32,
}

/// How a kernel marks the pages of slabs, and page tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum PageMarks {
    /// The highest byte of `page_type` (from Linux 6.12 on).
    Types { slab: u8, table: u8 },
    /// A bit of `flags`, this many bytes into `struct page`, for slabs, and one of `page_type` that is clear for page
    /// tables (before 6.10).
    Flags { flags: u32, slab_bit: u8 },
}

impl KernelFacts {
    /// Finds the facts in `description`; keeps them as `facts.json` in the kernel's cache directory.
    pub fn of(description: &KernelDescription, directory: &Path) -> Result<Self, FactsError> {
        let kept = directory.join("facts.json");
        let of = checksum(description);
        let read = || serde_json::from_slice(&sealed::read(&kept)?).ok();
        if let Some(facts) = read().filter(|facts: &KernelFacts| facts.version == VERSION && facts.of == of) {
            return Ok(facts);
        }
        let facts = Self::derive(description, of)?;
        // A cache that cannot be written only costs the next run half a second.
        if let Ok(json) = serde_json::to_vec(&facts) {
            let _ = sealed::store(&kept, &json);
        }
        Ok(facts)
    }

    fn derive(description: &KernelDescription, of: u32) -> Result<Self, FactsError> {
        let (kallsyms, btf) = ("its symbols", "its types");
        let error = |file, what| FactsError { file, what };
        let (symbols, sorted) = parse_kallsyms(&description.kallsyms);
        let symbol =
            |name: &str| symbols.get(name).copied().ok_or_else(|| error(kallsyms, format!("it has no `{name}`")));
        let types = read_types(&description.btf).map_err(|what| error(btf, what))?;
        let offset = |structure: &str, member: &str| {
            member_offset(&types, structure, member)
                .ok_or_else(|| error(btf, format!("it has no `{structure}::{member}`")))
        };
        let current_task = match symbol("pcpu_hot") {
            Ok(hot) => hot + u64::from(offset("pcpu_hot", "current_task")?),
            Err(_) => symbol("current_task")?,
        };
        let pages = || {
            let page = |member| member_offset(&types, "page", member);
            Some(PageFacts {
                top_table: symbols.get("init_top_pgt")?.wrapping_sub(KERNEL_MAP),
                mapping: page("mapping")?,
                compound_head: page("compound_head")?,
                page_type: page("page_type")?,
                marks: page_marks(&types)?,
                slab_cache: member_offset(&types, "slab", "slab_cache")?,
                cache_name: member_offset(&types, "kmem_cache", "name")?,
                cache_object_bytes: member_offset(&types, "kmem_cache", "object_size")?,
                cache_stride: member_offset(&types, "kmem_cache", "size")?,
                cache_users: member_offset(&types, "kmem_cache", "refcount")?,
            })
        };
        let devices = || {
            let head = member_offset(&types, "net", "dev_base_head")?;
            let list = symbols.get("init_net")?.wrapping_add(head.into());
            Some(DeviceFacts { list, link: member_offset(&types, "net_device", "dev_list")? })
        };
        let irq_start = symbol("irq_entries_start")?;
        let irq_end = sorted.iter().copied().find(|a| *a > irq_start).unwrap_or(irq_start);
        Ok(KernelFacts {
            version: VERSION,
            of,
            task_offsets: [
                offset("task_struct", "pid")?,
                offset("task_struct", "tgid")?,
                offset("task_struct", "comm")?,
                offset("task_struct", "mm")?,
            ],
            // An absolute symbol of kernels that link there at 0, which may not export it.
            per_cpu_start: symbol("__per_cpu_start").unwrap_or(0),
            current_task,
            first_process: FirstProcess {
                idle: symbol("init_task")?,
                tasks: offset("task_struct", "tasks")?,
                pid: offset("task_struct", "pid")?,
                mm: offset("task_struct", "mm")?,
                pgd: offset("mm_struct", "pgd")?,
            },
            per_cpu_offsets: symbol("__per_cpu_offset")?,
            timer_entry: symbol("asm_sysvec_apic_timer_interrupt")?,
            irq_text: (irq_start, irq_end),
            clearing: CLEARING.map(|name| symbols.get(name).copied().unwrap_or(0)),
            pages: pages(),
            devices: devices(),
        })
    }

    /// For a guest that has booted: `read` reads 8 bytes of guest-physical memory. Errors: what lies outside of it.
    pub fn of_boot(
        &self,
        cpus: u32,
        rings: &[PerfRing],
        read: impl Fn(u64) -> Option<u64>,
    ) -> Result<PluginFacts, &'static str> {
        let per_cpu_bases = (0..u64::from(cpus))
            .map(|cpu| read((self.per_cpu_offsets + 8 * cpu).wrapping_sub(KERNEL_MAP)))
            .map(|offset| Some(offset?.wrapping_add(self.per_cpu_start)))
            .collect::<Option<Vec<u64>>>()
            .ok_or("the guest's per-CPU areas lie outside its memory")?;
        let inside = self.current_task.wrapping_sub(self.per_cpu_start);
        let current_task = per_cpu_bases.iter().map(|base| base.wrapping_add(inside).wrapping_sub(DIRECT_MAP));
        let mut perf_rings = vec![(0, Vec::new()); cpus as usize];
        for ring in rings {
            if let Some(slot) = perf_rings.get_mut(ring.cpu as usize) {
                *slot =
                    self.perf_ring(ring, &read).ok_or("a perf ring of the agent lies outside the guest's memory")?;
            }
        }
        Ok(PluginFacts {
            task_offsets: self.task_offsets,
            direct_map_base: DIRECT_MAP,
            current_task: current_task.collect(),
            per_cpu_bases,
            timer_entry: self.timer_entry,
            irq_text: self.irq_text,
            clearing: self.clearing,
            perf_rings,
        })
    }

    /// Physical addresses of a ring's `data_head`, and of its data pages.
    fn perf_ring(&self, ring: &PerfRing, read: &dyn Fn(u64) -> Option<u64>) -> Option<(u64, Vec<u64>)> {
        let mut pages = self.first_process.physical_pages(ring.at, ring.pages, read)?;
        let data = pages.split_off(1);
        Some((pages.first()? + DATA_HEAD_OFFSET, data))
    }
}

fn checksum(description: &KernelDescription) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(description.kallsyms.as_bytes());
    sum.update(&description.btf);
    sum.finalize()
}

fn page_marks(types: &Btf) -> Option<PageMarks> {
    if let Some(slab) = enumerator(types, "pagetype", "PGTY_slab") {
        return Some(PageMarks::Types { slab, table: enumerator(types, "pagetype", "PGTY_table")? });
    }
    let slab_bit = enumerator(types, "pageflags", "PG_slab").filter(|bit| *bit < 64)?;
    Some(PageMarks::Flags { flags: member_offset(types, "page", "flags")?, slab_bit })
}

/// The library reads files alone.
pub(super) fn read_types(btf: &[u8]) -> Result<Btf, String> {
    let (_open, path) = memory_path("nearmiss-btf", btf).map_err(|error| error.to_string())?;
    Btf::from_file(path).map_err(|error| error.to_string())
}

/// Addresses by name (the first of each), and all addresses of the kernel's image in order.
fn parse_kallsyms(text: &str) -> (HashMap<&str, u64>, Vec<u64>) {
    let mut by_name = HashMap::new();
    let mut sorted = Vec::new();
    for line in text.lines() {
        let mut fields = line.split_whitespace();
        if let (Some(address), Some(_), Some(name)) = (fields.next(), fields.next(), fields.next())
            && let Ok(address) = u64::from_str_radix(address, 16)
        {
            by_name.entry(name).or_insert(address);
            sorted.push(address);
        }
    }
    sorted.sort_unstable();
    (by_name, sorted)
}

/// Bytes from a structure's start to a member of it or of an unnamed structure or union in it.
fn member_offset(types: &Btf, structure: &str, member: &str) -> Option<u32> {
    fn find(types: &Btf, base: &Type, member: &str) -> Option<u32> {
        let (Type::Struct(s) | Type::Union(s)) = base else {
            return None;
        };
        s.members.iter().find_map(|m| match m.name.as_deref() {
            Some(name) if !name.is_empty() => (name == member).then_some(m.offset),
            _ => Some(m.offset + find(types, &types.get_type_by_id(m.type_id).ok()?.base_type, member)?),
        })
    }
    Some(find(types, &types.get_type_by_name(structure).ok()?.base_type, member)? / 8)
}

fn enumerator(types: &Btf, enumeration: &str, name: &str) -> Option<u8> {
    match &types.get_type_by_name(enumeration).ok()?.base_type {
        Type::Enum32(e) | Type::Enum64(e) => {
            u8::try_from(e.entries.iter().find(|e| e.name.as_deref() == Some(name))?.value).ok()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn per_cpu_addresses_become_physical() {
        let at_zero = KernelFacts {
            version: VERSION,
            of: 0,
            task_offsets: [1, 2, 3, 4],
            per_cpu_start: 0,
            current_task: 0x34940,
            first_process: FirstProcess { idle: KERNEL_MAP, tasks: 0, pid: 0, mm: 0, pgd: 0 },
            per_cpu_offsets: KERNEL_MAP + 0x1000,
            timer_entry: 5,
            irq_text: (6, 7),
            clearing: [8, 0, 9],
            pages: None,
            devices: None,
        };
        let start = KERNEL_MAP + 0x20_0000;
        let in_the_image = KernelFacts { per_cpu_start: start, current_task: start + 0x34940, ..at_zero.clone() };
        for (facts, linked_at) in [(at_zero, 0), (in_the_image, start)] {
            let read = |at| match at {
                0x1000 => Some((DIRECT_MAP + 0x7000_0000u64).wrapping_sub(linked_at)),
                0x1008 => Some((DIRECT_MAP + 0x7100_0000u64).wrapping_sub(linked_at)),
                _ => None,
            };
            let found = facts.of_boot(2, &[], read).unwrap();
            assert_eq!(found.current_task, vec![0x7003_4940, 0x7103_4940]);
            assert_eq!(found.per_cpu_bases, vec![DIRECT_MAP + 0x7000_0000, DIRECT_MAP + 0x7100_0000]);
            let ring = PerfRing { cpu: 1, at: 0x5000, pages: 2 };
            assert!(facts.of_boot(2, &[ring], read).unwrap_err().contains("perf ring"));
        }
    }
}
