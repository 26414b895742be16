//! Names of kernel locks that have no symbol: by the structure of the waiter they lie in, and the kernel's own types.

use super::layout::LockPlace;
use aya::Ebpf;
use aya::maps::HashMap;
use btf::btf::{Btf, Type};
use std::collections::HashMap as StdMap;

/// The structures, in the order of `enum lock_owner`.
const OWNERS: [&str; 6] = ["mm_struct", "sighand_struct", "signal_struct", "files_struct", "task_struct", "rq"];

/// Locks by address.
#[derive(Default)]
pub struct Places {
    names: StdMap<u64, String>,
}

impl Places {
    /// Reads where the waiters found their locks to lie. Empty where that is unknown.
    pub fn read(ebpf: &Ebpf) -> Places {
        let mut places = Places::default();
        let Some(map) = ebpf.map("lock_places") else { return places };
        let Ok(map) = HashMap::<_, u64, LockPlace>::try_from(map) else { return places };
        let found: Vec<(u64, LockPlace)> = map.iter().flatten().collect();
        // The kernel's types take a while to read.
        let types = if found.is_empty() { None } else { Btf::from_file("/sys/kernel/btf/vmlinux").ok() };
        for (address, place) in found {
            let Some(owner) = OWNERS.get((place.owner as usize).wrapping_sub(1)) else { continue };
            let member = types.as_ref().and_then(|types| member(types, owner, place.offset));
            let name = member.map_or_else(|| format!("{owner}+{:#x}", place.offset), |m| format!("{owner}.{m}"));
            places.names.insert(address, name);
        }
        places
    }

    /// `mm_struct.mmap_lock`, for example; `None` where the waiter did not find it.
    pub fn name(&self, address: u64) -> Option<&str> {
        self.names.get(&address).map(String::as_str)
    }
}

/// The member of a structure that covers an offset; members without a name are looked into.
fn member(types: &Btf, structure: &str, offset_bytes: u32) -> Option<String> {
    within(types, &types.get_type_by_name(structure).ok()?.base_type, offset_bytes * 8)
}

fn within(types: &Btf, structure: &Type, offset_bits: u32) -> Option<String> {
    let (Type::Struct(s) | Type::Union(s)) = structure else { return None };
    s.members.iter().find_map(|m| {
        let of = types.get_type_by_id(m.type_id).ok()?;
        let inside = offset_bits.checked_sub(m.offset)?;
        if inside >= of.bits {
            return None;
        }
        match &m.name {
            Some(name) if !name.is_empty() => Some(name.clone()),
            _ => within(types, &of.base_type, inside),
        }
    })
}
