//! Structures of the kernel's that lie in its slabs, as its own types (BTF) declare them.

use super::facts::read_types;
use btf::btf::{Btf, FlattenedType, StructMember, Type};
use nearmiss_record::symbols::{KernelField, KernelPages, KernelStructure, PageUse};
use std::collections::{BTreeMap, HashMap};

/// Caches with names of their own, and the structures in them. Other caches have the name of their structure.
const BY_CACHE: [(&str, &str); 35] = [
    ("TCP", "tcp_sock"),
    ("TCPv6", "tcp6_sock"),
    ("UDP", "udp_sock"),
    ("UDPv6", "udp6_sock"),
    ("RAW", "raw_sock"),
    ("RAWv6", "raw6_sock"),
    ("UNIX", "unix_sock"),
    ("UNIX-STREAM", "unix_sock"),
    ("NETLINK", "netlink_sock"),
    ("PACKET", "packet_sock"),
    ("request_sock_TCP", "tcp_request_sock"),
    ("tw_sock_TCP", "tcp_timewait_sock"),
    ("skbuff_head_cache", "sk_buff"),
    ("skbuff_fclone_cache", "sk_buff_fclones"),
    ("sock_inode_cache", "socket_alloc"),
    ("ip_dst_cache", "rtable"),
    ("net_namespace", "net"),
    ("filp", "file"),
    ("files_cache", "files_struct"),
    ("fs_cache", "fs_struct"),
    ("inode_cache", "inode"),
    ("ext4_inode_cache", "ext4_inode_info"),
    ("shmem_inode_cache", "shmem_inode_info"),
    ("proc_inode_cache", "proc_inode"),
    ("bdev_cache", "bdev_inode"),
    ("mnt_cache", "mount"),
    ("signal_cache", "signal_struct"),
    ("sighand_cache", "sighand_struct"),
    ("cred_jar", "cred"),
    ("radix_tree_node", "xa_node"),
    ("kernfs_node_cache", "kernfs_node"),
    ("eventpoll_epi", "epitem"),
    ("eventpoll_pwq", "eppoll_entry"),
    ("fuse_inode", "fuse_inode"),
    ("vm_area_struct", "vm_area_struct"),
];
/// Structures within structures, at most.
const DEEPEST: u32 = 24;
/// Fields of a structure, at most; `task_struct` has some 600.
const MOST_FIELDS: usize = 1 << 12;

/// Structure of the network devices, which lie in caches of many kinds of objects.
const DEVICE: &str = "net_device";

/// Returns the structures of the slab caches in `pages`, and of network devices at `devices`, that the kernel's types
/// declare. A cache that others share holds
/// several, and one that is smaller than its structure holds another; both are left out.
pub(super) fn structures(btf: &[u8], pages: &KernelPages, devices: Vec<u64>) -> Vec<KernelStructure> {
    match read_types(btf) {
        Ok(types) => declared(&types, pages, devices),
        Err(_) => Vec::new(),
    }
}

fn declared(types: &Btf, pages: &KernelPages, devices: Vec<u64>) -> Vec<KernelStructure> {
    let by_name = by_name(types);
    let mut found: BTreeMap<&str, KernelStructure> = BTreeMap::new();
    for page_use in &pages.uses {
        let PageUse::Slab { cache, object_bytes, stride_bytes: 1.., is_shared: false } = page_use else { continue };
        let name = BY_CACHE.iter().find(|(of, _)| of == cache).map_or(cache.as_str(), |(_, structure)| structure);
        if let Some(known) = found.get_mut(name) {
            known.caches.push(cache.clone());
        } else if let Some(all) = by_name.get(name).filter(|all| all.bits.div_ceil(8) <= *object_bytes) {
            found.insert(name, KernelStructure { caches: vec![cache.clone()], ..declaration(types, name, all) });
        }
    }
    if let Some(all) = by_name.get(DEVICE).filter(|_| !devices.is_empty()) {
        found.insert(DEVICE, KernelStructure { places: devices, ..declaration(types, DEVICE, all) });
    }
    found.into_values().filter(|one| !one.fields.is_empty()).collect()
}

fn declaration(types: &Btf, name: &str, all: &FlattenedType) -> KernelStructure {
    let (bytes, fields) = (all.bits.div_ceil(8), Flattening { types }.fields(all));
    KernelStructure { name: name.to_owned(), bytes, fields, ..KernelStructure::default() }
}

/// The structures with names; the first of a name.
fn by_name(types: &Btf) -> HashMap<&str, &FlattenedType> {
    let mut by_name = HashMap::new();
    for one in types.get_types() {
        if let (Type::Struct(_) | Type::Union(_), Some(name)) = (&one.base_type, &one.name)
            && one.num_refs == 0
            && !name.is_empty()
        {
            by_name.entry(name.as_str()).or_insert(one);
        }
    }
    by_name
}

/// A field on the way, in bits.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Leaf {
    name: String,
    from: u64,
    bits: u64,
    is_bit_field: bool,
}

struct Flattening<'a> {
    types: &'a Btf,
}

impl Flattening<'_> {
    fn fields(&self, structure: &FlattenedType) -> Vec<KernelField> {
        let mut leaves = self.leaves(structure, 0);
        leaves.retain(|leaf| leaf.from + leaf.bits <= u32::MAX.into());
        leaves.sort_by_key(|leaf| leaf.from);
        let mut fields: Vec<(KernelField, bool)> = Vec::new();
        for leaf in leaves {
            let (from, to) = ((leaf.from / 8) as u32, (leaf.from + leaf.bits).div_ceil(8) as u32);
            match fields.last_mut() {
                Some((last, true)) if leaf.is_bit_field && from < last.from + last.bytes => {
                    last.name = format!("{}|{}", last.name, leaf.name.rsplit('.').next().unwrap_or_default());
                    last.bytes = last.bytes.max(to - last.from);
                }
                Some((last, _)) if from < last.from + last.bytes => {}
                _ => fields.push((KernelField { name: leaf.name, from, bytes: to - from }, leaf.is_bit_field)),
            }
        }
        fields.into_iter().map(|(field, _)| field).collect()
    }

    /// Fields of a structure, without those of a union that others of its fields overlap.
    fn leaves(&self, structure: &FlattenedType, depth: u32) -> Vec<Leaf> {
        let (Type::Struct(declared) | Type::Union(declared)) = &structure.base_type else { return Vec::new() };
        let members = &declared.members;
        let mut parts: Vec<Vec<Leaf>> = members.iter().map(|member| self.member(member, depth)).collect();
        // The library reads unions as structures with all members at 0.
        if members.len() > 1 && members.iter().all(|member| member.offset == 0) {
            parts.sort_by_key(|leaves| std::cmp::Reverse(leaves.len()));
            parts = vec![parts.into_iter().reduce(with_gaps_filled).unwrap_or_default()];
        }
        let mut leaves: Vec<Leaf> = parts.into_iter().flatten().collect();
        leaves.truncate(MOST_FIELDS);
        leaves
    }

    fn member(&self, member: &StructMember, depth: u32) -> Vec<Leaf> {
        let Ok(of) = self.types.get_type_by_id(member.type_id) else { return Vec::new() };
        let name = member.name.as_deref().unwrap_or_default();
        let from = u64::from(member.offset);
        let bit_field = u64::from(member.bits.unwrap_or(0));
        let is_structure = of.num_refs == 0 && matches!(of.base_type, Type::Struct(_) | Type::Union(_));
        if is_structure && depth < DEEPEST {
            let inner = self.leaves(of, depth + 1).into_iter();
            return inner.map(|leaf| Leaf { name: joined(name, &leaf.name), from: from + leaf.from, ..leaf }).collect();
        }
        let bits = match (bit_field, of.num_refs) {
            (1.., _) => bit_field,
            (_, 1..) => 64,
            _ => u64::from(of.bits),
        };
        let leaf = Leaf { name: name.to_owned(), from, bits, is_bit_field: bit_field > 0 };
        if bits > 0 { vec![leaf] } else { Vec::new() }
    }
}

fn joined(outer: &str, inner: &str) -> String {
    match (outer, inner) {
        ("", inner) => inner.to_owned(),
        (outer, "") => outer.to_owned(),
        (outer, inner) => format!("{outer}.{inner}"),
    }
}

/// The fields of one alternative of a union, and those of another that lie beside them.
fn with_gaps_filled(mut fields: Vec<Leaf>, others: Vec<Leaf>) -> Vec<Leaf> {
    let taken = fields.clone();
    let is_free =
        |one: &Leaf| taken.iter().all(|leaf| one.from + one.bits <= leaf.from || leaf.from + leaf.bits <= one.from);
    fields.extend(others.into_iter().filter(is_free));
    fields
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const INT: u32 = 1;
    const POINTER: u32 = 2;
    const STRUCT: u32 = 4;
    const UNION: u32 = 5;

    /// Types of a kernel as it sends them (Documentation/bpf/btf.rst).
    #[derive(Default)]
    struct Sent {
        types: Vec<u8>,
        strings: Vec<u8>,
    }

    impl Sent {
        fn word(&mut self, word: u32) {
            self.types.extend(word.to_le_bytes());
        }

        fn name(&mut self, name: &str) {
            let at = self.strings.len() as u32;
            self.strings.extend(name.bytes().chain([0]));
            self.word(at);
        }

        fn simple(&mut self, name: &str, kind: u32, size_or_type: u32, more: &[u32]) {
            self.name(name);
            self.word(kind << 24);
            self.word(size_or_type);
            more.iter().for_each(|word| self.word(*word));
        }

        /// Members: name, type, first bit, and bits of a bit field.
        fn structure(&mut self, name: &str, kind: u32, bytes: u32, members: &[(&str, u32, u32, u32)]) {
            let has_bits = u32::from(members.iter().any(|member| member.3 > 0));
            self.name(name);
            self.word(has_bits << 31 | kind << 24 | members.len() as u32);
            self.word(bytes);
            for (name, of, from, bits) in members {
                self.name(name);
                self.word(*of);
                self.word(bits << 24 | from);
            }
        }

        fn bytes(self) -> Vec<u8> {
            let (types, strings) = (self.types.len() as u32, self.strings.len() as u32);
            let head = [24, 0, types, types, strings].into_iter().flat_map(u32::to_le_bytes);
            [0x9f, 0xeb, 1, 0].into_iter().chain(head).chain(self.types).chain(self.strings).collect()
        }
    }

    fn types() -> Vec<u8> {
        let mut sent = Sent::default();
        sent.simple("int", INT, 4, &[32]);
        sent.structure("list_head", STRUCT, 16, &[("next", 3, 0, 0), ("prev", 3, 64, 0)]);
        sent.simple("", POINTER, 2, &[]);
        sent.simple("long", INT, 8, &[64]);
        sent.structure("", STRUCT, 8, &[("daddr", 1, 0, 0), ("saddr", 1, 32, 0)]);
        sent.structure("", UNION, 8, &[("pair", 4, 0, 0), ("", 5, 0, 0)]);
        let bits = [("", 6, 0, 0), ("queue", 2, 64, 0), ("a", 1, 192, 1), ("b", 1, 193, 3), ("c", 1, 224, 0)];
        sent.structure("sock", STRUCT, 32, &bits);
        sent.structure("tcp_sock", STRUCT, 40, &[("sk", 7, 0, 0), ("window", 1, 256, 0)]);
        sent.structure("loop", STRUCT, 8, &[("again", 9, 0, 0)]);
        sent.structure("net_device", STRUCT, 4, &[("flags", 1, 0, 0)]);
        sent.bytes()
    }

    fn slabs(caches: &[(&str, u32, bool)]) -> KernelPages {
        let slab = |(cache, object_bytes, is_shared): &(&str, u32, bool)| PageUse::Slab {
            cache: (*cache).to_owned(),
            object_bytes: *object_bytes,
            stride_bytes: 64,
            is_shared: *is_shared,
        };
        KernelPages { uses: caches.iter().map(slab).collect(), runs: Vec::new() }
    }

    fn without_the_loop() -> Vec<u8> {
        // The library refuses types that contain themselves.
        let mut types = types();
        let at = types.windows(4).rposition(|word| word == 9u32.to_le_bytes()).unwrap();
        types[at] = 1;
        types
    }

    #[test]
    fn fields_have_the_names_of_the_members_that_lead_to_them() {
        let found = structures(&without_the_loop(), &slabs(&[("TCP", 40, false)]), Vec::new());
        let fields: Vec<_> = found[0].fields.iter().map(|field| (&*field.name, field.from, field.bytes)).collect();
        let expected = [
            ("sk.daddr", 0, 4),
            ("sk.saddr", 4, 4),
            ("sk.queue.next", 8, 8),
            ("sk.queue.prev", 16, 8),
            ("sk.a|b", 24, 1),
            ("sk.c", 28, 4),
            ("window", 32, 4),
        ];
        assert_eq!(fields, expected);
        assert_eq!((found.len(), &*found[0].name, found[0].bytes), (1, "tcp_sock", 36));
    }

    #[test]
    fn a_cache_of_several_kinds_of_objects_has_no_structure() {
        let caches = [("TCP", 40, true), ("sock", 24, false), ("kmalloc-64", 64, false), ("list_head", 16, false)];
        let found = structures(&without_the_loop(), &slabs(&caches), Vec::new());
        assert_eq!(found.iter().map(|one| (&*one.name, one.fields.len())).collect::<Vec<_>>(), [("list_head", 2)]);
    }

    #[test]
    fn devices_have_their_places() {
        let found = structures(&without_the_loop(), &KernelPages::default(), vec![0x5_0000]);
        let fields = vec![KernelField { name: "flags".to_owned(), from: 0, bytes: 4 }];
        let (name, caches, places) = ("net_device".to_owned(), Vec::new(), vec![0x5_0000]);
        assert_eq!(found, [KernelStructure { name, caches, places, bytes: 4, fields }]);
    }

    #[test]
    fn damaged_types_have_no_structures() {
        let whole = without_the_loop();
        for length in 0..whole.len() {
            structures(&whole[..length], &slabs(&[("TCP", 40, false)]), Vec::new());
        }
        assert_eq!(structures(&types(), &slabs(&[("TCP", 40, false)]), Vec::new()), []);
    }
}
