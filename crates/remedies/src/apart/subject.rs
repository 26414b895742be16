//! Shared lines of the same objects: what they cost, and the policies that take them apart.

use nearmiss_record::model::{LineSharing, ModelRecord, ObjectKind, SharedLineRow, Tenant};
use nearmiss_record::policy::{AddressPolicy, Moved};
use std::collections::{BTreeMap, BTreeSet};

/// True sharing dominates where so much of the command's cycles waits for it: every program that communicates has some.
/// Two threads of Python that pass a queue's items to each other have 11%, of the interpreter's lock.
pub const DOMINATES: f64 = 0.15;

/// Kind of the tenants of the lines, which decides who can take them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Separate blocks of `malloc`.
    Blocks,
    /// Fields or elements of one object.
    Fields,
    /// Separate variables.
    Variables,
}

/// Lines with tenants of the same objects.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Kind of the tenants.
    pub class: Class,
    /// Most misses first.
    pub lines: Vec<SharedLineRow>,
}

impl Class {
    /// `None` for lines of the kernel, and those of which nothing is known.
    pub fn of(line: &SharedLineRow) -> Option<Class> {
        let decided_by_programs = |tenant: &&Tenant| tenant.kind.is_some_and(ObjectKind::is_the_programs);
        let tenants: Vec<&Tenant> = line.tenants.iter().filter(decided_by_programs).collect();
        if tenants.is_empty() {
            return None;
        }
        let mut blocks: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
        for tenant in tenants.iter().filter(|tenant| is_block(tenant)) {
            blocks.entry(tenant.object_address).or_default().insert(tenant.group);
        }
        let objects: BTreeSet<u64> = tenants.iter().map(|tenant| tenant.object_address).collect();
        let only_blocks = tenants.iter().all(|tenant| tenant.kind == Some(ObjectKind::Heap));
        // Blocks that all have the same users gain nothing from being apart.
        let by_block = only_blocks && blocks.values().collect::<BTreeSet<_>>().len() > 1;
        Some(match objects.len() {
            _ if by_block => Class::Blocks,
            1 => Class::Fields,
            _ => Class::Variables,
        })
    }
}

/// Whether it lies in a block of `malloc`, not between blocks.
fn is_block(tenant: &Tenant) -> bool {
    tenant.kind == Some(ObjectKind::Heap) && tenant.object_bytes > 0
}

impl Subject {
    /// The lines of a run that programs decide on, by what lies on them.
    pub fn all(model: &ModelRecord) -> Vec<Subject> {
        let mut subjects: BTreeMap<(Class, Vec<&str>), Subject> = BTreeMap::new();
        for line in model.shared_lines.iter().filter(|line| line.stall_cycles > 0) {
            let Some(class) = Class::of(line) else { continue };
            let names: BTreeSet<&str> = line.tenants.iter().map(|tenant| tenant.object.as_str()).collect();
            // One remedy moves all blocks; what an author must change is one a name.
            let names = if class == Class::Blocks { Vec::new() } else { names.into_iter().collect() };
            let subject = subjects.entry((class, names)).or_insert(Subject { class, lines: Vec::new() });
            subject.lines.push(line.clone());
        }
        subjects.into_values().collect()
    }

    /// Cycles that the command waited for the lines to pass between CPUs.
    pub fn stall_cycles(&self) -> u64 {
        self.lines.iter().map(|line| line.stall_cycles).sum()
    }

    /// References of the command to the lines since they first moved: each may wait in some order.
    pub fn references(&self) -> u64 {
        self.lines.iter().map(|line| line.references.max(line.misses())).sum()
    }

    /// Whether no line would have tenants of unlike users if the object that they all lie in began at a line.
    pub fn is_misaligned(&self, line_bytes: u64) -> bool {
        let Some(first) = self.parting().find_map(|line| line.tenants.first()) else { return false };
        let line_bytes = line_bytes.max(1);
        let mut users: BTreeMap<u64, [&[u32]; 2]> = BTreeMap::new();
        let mut tenants = self.parting().flat_map(|line| &line.tenants);
        self.class == Class::Fields
            && first.object_address % line_bytes != 0
            && tenants.all(|tenant| {
                let own = [tenant.writers.as_slice(), &tenant.readers];
                let last = tenant.offset + u64::from(tenant.bytes.max(1)) - 1;
                tenant.object_address == first.object_address
                    && tenant.offset / line_bytes == last / line_bytes
                    && *users.entry(tenant.offset / line_bytes).or_insert(own) == own
            })
    }

    /// Returns one row a line that the program knows: a line has several if its page moved in memory. Most misses
    /// first.
    pub fn lines_by_place(&self) -> Vec<&SharedLineRow> {
        let place = |line: &SharedLineRow| {
            let tenant = line.tenants.first();
            tenant.map(|tenant| (tenant.object_address + tenant.offset).saturating_sub(tenant.line_offset.into()))
        };
        let mut seen = BTreeSet::new();
        self.lines.iter().filter(|line| seen.insert(place(line))).collect()
    }

    /// Cycles of the lines with tenants that could be apart.
    pub fn apart_cycles(&self) -> u64 {
        self.parting().map(|line| line.stall_cycles).sum()
    }

    /// Returns those of [`Subject::lines_by_place`] that matter to a finding: where tenants can be apart, only their
    /// lines.
    pub fn lines_shared(&self, sharing: LineSharing) -> Vec<&SharedLineRow> {
        let all = self.lines_by_place();
        let alike: Vec<&SharedLineRow> = all.iter().copied().filter(|line| line.sharing() == sharing).collect();
        if alike.is_empty() { all } else { alike }
    }

    fn parting(&self) -> impl Iterator<Item = &SharedLineRow> {
        self.lines.iter().filter(|line| line.sharing() == LineSharing::False)
    }

    /// The policy that puts each tenant on a line of its own. Those of equal users stay together, as they are.
    pub fn apart(&self, spacing: u64) -> AddressPolicy {
        let mut moved = Vec::new();
        let mut next = 0;
        for line in self.parting() {
            let mut lines: BTreeMap<u64, Option<u32>> = BTreeMap::new();
            for tenant in &line.tenants {
                let own = if self.class == Class::Blocks { tenant.object_address } else { tenant.group.into() };
                let is_first = lines.is_empty();
                let place = *lines.entry(own).or_insert_with(|| {
                    // The first one stays.
                    next += u32::from(!is_first);
                    (!is_first).then(|| next - 1)
                });
                let from = line.line_paddr + u64::from(tenant.line_offset);
                let to = from + u64::from(tenant.bytes);
                moved.extend(place.map(|line| Moved { from, to, line }));
            }
        }
        if moved.is_empty() { AddressPolicy::Recorded } else { AddressPolicy::Apart { moved, spacing } }
    }

    /// The policy that gives each CPU a copy of every line of `line_bytes`.
    pub fn copies(&self, line_bytes: u64, spacing: u64) -> AddressPolicy {
        let ranges = self.lines.iter().map(|line| (line.line_paddr, line.line_paddr + line_bytes)).collect();
        AddressPolicy::Copies { ranges, spacing }
    }

    /// Least and most bytes of the blocks.
    pub fn block_bytes(&self) -> (u64, u64) {
        let sizes =
            || self.parting().flat_map(|line| &line.tenants).filter(|tenant| is_block(tenant)).map(|t| t.object_bytes);
        (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(kind: ObjectKind, address: u64, line_offset: u32, group: u32) -> Tenant {
        Tenant {
            object: "x".into(),
            kind: Some(kind),
            object_address: address,
            object_bytes: 16,
            line_offset,
            bytes: 8,
            group,
            ..Tenant::default()
        }
    }

    fn line(tenants: Vec<Tenant>) -> SharedLineRow {
        SharedLineRow {
            line_paddr: 0x1000,
            false_sharing: 10,
            needless: 10,
            stall_cycles: 5,
            tenants,
            ..Default::default()
        }
    }

    #[test]
    fn blocks_are_distinguished_from_fields_and_variables_and_the_kernels_lines_are_left_out() {
        use ObjectKind::{Global, Heap, Slab};
        let class = |tenants| Class::of(&line(tenants));
        assert_eq!(class(vec![tenant(Heap, 1, 0, 0), tenant(Heap, 2, 16, 1)]), Some(Class::Blocks));
        assert_eq!(class(vec![tenant(Heap, 1, 0, 0), tenant(Heap, 1, 8, 1)]), Some(Class::Fields));
        // Two blocks, each of which both threads use: whole blocks apart change nothing.
        let alike = [(1, 0, 0), (1, 8, 1), (2, 16, 0), (2, 24, 1)].map(|(a, o, g)| tenant(Heap, a, o, g));
        assert_eq!(class(alike.to_vec()), Some(Class::Variables));
        assert_eq!(class(vec![tenant(Global, 1, 0, 0), tenant(Heap, 2, 16, 1)]), Some(Class::Variables));
        assert_eq!(class(vec![tenant(Slab, 1, 0, 0), tenant(Slab, 1, 8, 1)]), None);
        assert_eq!(class(Vec::new()), None);
    }

    #[test]
    fn tenants_of_equal_users_move_together_and_the_first_stay() {
        use ObjectKind::Global;
        let tenants =
            [(0, 0), (8, 1), (16, 0), (24, 2), (32, 1)].map(|(offset, group)| tenant(Global, 1, offset, group));
        let mut lines = vec![line(tenants.to_vec()), line(tenants[..2].to_vec())];
        lines[1].line_paddr = 0x2000;
        let subject = Subject { class: Class::Fields, lines };
        let AddressPolicy::Apart { moved, spacing } = subject.apart(64) else { panic!("nothing moves") };
        let moved: Vec<_> = moved.iter().map(|m| (m.from, m.to, m.line)).collect();
        assert_eq!(moved, [(0x1008, 0x1010, 0), (0x1018, 0x1020, 1), (0x1020, 0x1028, 0), (0x2008, 0x2010, 2)]);
        assert_eq!(spacing, 64);
    }

    #[test]
    fn an_object_is_misaligned_if_its_own_lines_would_have_like_users() {
        let of = |address: u64, tenants: &[(u64, u32, u32)]| {
            let tenant = |&(offset, bytes, user): &(u64, u32, u32)| Tenant {
                offset,
                bytes,
                writers: vec![user],
                ..tenant(ObjectKind::Heap, address, ((address + offset) % 64) as u32, user)
            };
            let tenants = tenants.iter().map(tenant).collect();
            Subject { class: Class::Fields, lines: vec![line(tenants)] }.is_misaligned(64)
        };
        // Elements of 64 bytes from 16 on: the end of one thread's and the begin of another's lie on a line.
        assert!(of(0x1010, &[(48, 16, 1), (64, 8, 2), (80, 16, 2)]));
        assert!(!of(0x1000, &[(48, 16, 1), (64, 8, 2)]), "it begins at a line");
        assert!(!of(0x1010, &[(48, 8, 1), (56, 8, 2)]), "elements of 8 bytes share lines wherever they begin");
        assert!(!of(0x1010, &[(48, 32, 1), (80, 8, 2)]), "what one thread uses reaches over its line");
    }

    #[test]
    fn a_line_that_is_shared_truly_stays_whole() {
        use ObjectKind::Global;
        let mut lock = line(vec![tenant(Global, 1, 0, 0), tenant(Global, 1, 16, 1)]);
        lock.needless = 5;
        let subject = Subject { class: Class::Fields, lines: vec![lock] };
        assert_eq!(
            (subject.apart(64), subject.apart_cycles(), subject.stall_cycles()),
            (AddressPolicy::Recorded, 0, 5)
        );
    }
}
