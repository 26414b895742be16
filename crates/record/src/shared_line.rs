//! A line that moves between CPUs, and its contents.

use crate::object_kind::ObjectKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A line that moves between CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SharedLineRow {
    /// Physical address of the line.
    pub line_paddr: u64,
    /// Object that the line belongs to, with the line's offset.
    pub object: String,
    /// Coherence misses, true sharing.
    pub true_sharing: u64,
    /// Coherence misses, false sharing.
    pub false_sharing: u64,
    /// Functions that missed on the line, most first.
    pub functions: Vec<String>,
    /// Coherence misses after which the CPU used no byte that another CPU had written before it lost the line again:
    /// with each tenant on a line of its own these would not have been.
    #[serde(default)]
    pub needless: u64,
    /// Cycles that the command waited for this line to pass between CPUs, invalidations included.
    #[serde(default)]
    pub stall_cycles: u64,
    /// References of the command to it since it first moved between CPUs; none in older records.
    #[serde(default)]
    pub references: u64,
    /// Contents of the line, in the order of the bytes; none if a record is older than tenants.
    #[serde(default)]
    pub tenants: Vec<Tenant>,
}

/// Kind of sharing of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LineSharing {
    /// Data of different tasks lies on one line: apart, most of the misses would not be.
    False,
    /// Tasks use the same bytes: apart, most of the misses would stay.
    True,
}

impl SharedLineRow {
    /// Misses of both classes.
    pub fn misses(&self) -> u64 {
        self.true_sharing.saturating_add(self.false_sharing)
    }

    /// Returns the kind of sharing: by who uses which bytes, not by who misses first. A lock alone on its line is
    /// shared truly.
    ///
    /// If a task loses the line to writes of bytes that it never uses, a quarter of needless misses is enough: the rest
    /// may be a lock that shares the line. If all tenants have the same users, such as the parts of a lock, a CPU may
    /// lose the line between two of its steps, and it takes three quarters.
    pub fn sharing(&self) -> LineSharing {
        let groups = self.tenants.iter().map(|tenant| tenant.group).max().map_or(0, |last| last + 1);
        let (needless, of_four) = match groups {
            // A record that is older than tenants.
            0 => (self.false_sharing, 2),
            1 => return LineSharing::True,
            _ if self.disturbs_strangers() => (self.needless, 1),
            _ => (self.needless, 3),
        };
        let is_false = needless.saturating_mul(4) > self.misses().saturating_mul(of_four);
        if is_false { LineSharing::False } else { LineSharing::True }
    }

    /// Whether a task that uses one tenant does not use another one, which is written.
    fn disturbs_strangers(&self) -> bool {
        let written = || self.tenants.iter().filter(|tenant| !tenant.writers.is_empty());
        self.tenants.iter().any(|tenant| {
            let mut users = tenant.users();
            users.any(|user| written().any(|other| other.users().all(|known| known != user)))
        })
    }
}

/// Bytes of a shared line that the same tasks write and the same tasks read, since the line first moved between CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tenant {
    /// The variable, heap block or mapping that they belong to, as in the object table.
    pub object: String,
    /// Kind of memory; none if it is unknown.
    pub kind: Option<ObjectKind>,
    /// Virtual address of the object's first byte, which identifies objects of one name.
    pub object_address: u64,
    /// Bytes of the object.
    pub object_bytes: u64,
    /// Offset of the first byte in the object.
    pub offset: u64,
    /// Offset of the first byte in the line.
    pub line_offset: u32,
    /// From the first byte that was used to the last.
    pub bytes: u32,
    /// Tenants of one number may share a line: they have the same writers and the same readers, or one task alone uses
    /// them all.
    pub group: u32,
    /// Thread ids that wrote the bytes.
    pub writers: Vec<u32>,
    /// Thread ids that read the bytes.
    pub readers: Vec<u32>,
    /// Code that writes the bytes, as `file.c:12 function`; most accesses first.
    pub written_at: Vec<String>,
    /// Code that reads the bytes.
    pub read_at: Vec<String>,
}

impl Tenant {
    /// Returns the thread ids that write or read the bytes, some of them twice.
    pub fn users(&self) -> impl Iterator<Item = u32> {
        self.writers.iter().chain(&self.readers).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(true_sharing: u64, false_sharing: u64, needless: u64, tenants: &[(&[u32], &[u32])]) -> SharedLineRow {
        let tenant = |(group, (writers, readers)): (usize, &(&[u32], &[u32]))| Tenant {
            group: group as u32,
            writers: writers.to_vec(),
            readers: readers.to_vec(),
            ..Tenant::default()
        };
        let tenants = tenants.iter().enumerate().map(tenant).collect();
        SharedLineRow { true_sharing, false_sharing, needless, tenants, ..SharedLineRow::default() }
    }

    #[test]
    fn who_uses_which_bytes_decides_and_not_who_misses_first() {
        // A lock alone on its line: its state, and its kind, which is never written and which every task reads first.
        let lock: &[(&[u32], &[u32])] = &[(&[1, 2], &[1, 2]), (&[], &[1, 2])];
        assert_eq!(row(10, 90, 0, lock).sharing(), LineSharing::True);
        assert_eq!(row(10, 90, 50, lock).sharing(), LineSharing::True);
        assert_eq!(row(0, 100, 76, lock).sharing(), LineSharing::False, "what is mostly read beside what is written");
        assert_eq!(row(0, 100, 100, &lock[..1]).sharing(), LineSharing::True, "nothing to take apart");
        let counters: &[(&[u32], &[u32])] = &[(&[1], &[1]), (&[2], &[2])];
        assert_eq!(row(0, 100, 26, counters).sharing(), LineSharing::False);
        assert_eq!(row(0, 100, 25, counters).sharing(), LineSharing::True);
        let flag_and_counter: &[(&[u32], &[u32])] = &[(&[], &[1, 2]), (&[2], &[2])];
        assert_eq!(row(0, 100, 26, flag_and_counter).sharing(), LineSharing::False);
        assert_eq!(row(40, 60, 0, &[]).sharing(), LineSharing::False, "an old record knows no tenants");
    }
}
