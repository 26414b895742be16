//! The user address spaces of a run as they are now: mappings, live heap blocks, thread stacks.

use super::objects::ObjectId;
use nearmiss_record::symbols::ModuleData;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// Addresses from here up without another mapping are the first thread's stack: the kernel reports that stack before it
/// moves it to its random place, at most 16 GiB and the stack limit below the top of user space.
const FIRST_STACK_FLOOR: u64 = 0x7fff_ffff_f000 - (16 << 30) - (64 << 20);
const USER_END: u64 = 1 << 47;

/// Contents of a mapping.
#[derive(Clone, Debug)]
pub(super) enum Content {
    /// One object.
    Object(ObjectId),
    /// A file with known variables; `bias` is the loader's addition to its addresses.
    Module { data: Arc<ModuleData>, bias: u64, rest: ObjectId },
}

/// A mapping; regions of a space do not overlap.
#[derive(Clone, Debug)]
pub(super) struct Region {
    pub start: u64,
    pub end: u64,
    pub content: Content,
}

/// A live heap block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub bytes: u64,
    pub object: ObjectId,
}

/// One process's memory. Forked spaces share until one of them changes.
#[derive(Clone, Debug, Default)]
pub(super) struct Space {
    regions: Rc<Vec<Region>>,
    blocks: Rc<BTreeMap<u64, Block>>,
    /// Tasks beyond the first one, as far as they are known.
    threads: u32,
    /// The first task has ended.
    first_ended: bool,
    /// The process has run another program since it was made.
    executed: bool,
}

/// Result of a lookup, with the range over which it holds.
#[derive(Clone, Debug)]
pub(super) enum Found<'a> {
    Block(u64, Block),
    Region(&'a Region),
    FirstStack,
    Nothing,
}

impl Space {
    /// Maps `region` over any earlier mappings.
    pub fn map(&mut self, region: Region) {
        if region.start >= region.end {
            return;
        }
        let regions = Rc::make_mut(&mut self.regions);
        let first = regions.partition_point(|r| r.end <= region.start);
        let last = regions.partition_point(|r| r.start < region.end);
        let mut pieces = Vec::with_capacity(3);
        if let Some(head) = regions[first..last].first().filter(|r| r.start < region.start) {
            pieces.push(Region { end: region.start, ..head.clone() });
        }
        let tail = regions[first..last].last().filter(|r| r.end > region.end);
        let tail = tail.map(|r| Region { start: region.end, ..r.clone() });
        pieces.push(region);
        pieces.extend(tail);
        regions.splice(first..last, pieces);
    }

    /// The region that holds `address`.
    pub fn region(&self, address: u64) -> Option<&Region> {
        let index = self.regions.partition_point(|r| r.end <= address);
        self.regions.get(index).filter(|r| r.start <= address)
    }

    /// The region that ends nearest below `address`, or at it.
    pub fn region_below(&self, address: u64) -> Option<&Region> {
        self.regions.partition_point(|r| r.end <= address).checked_sub(1).map(|i| &self.regions[i])
    }

    /// Lays these contents over those of the parent.
    fn over(self, parent: Space) -> Space {
        let mut space = Space { threads: self.threads, first_ended: false, executed: false, ..parent };
        self.regions.iter().for_each(|region| space.map(region.clone()));
        self.blocks.iter().for_each(|(address, block)| space.allocate(*address, *block));
        space
    }

    pub fn allocate(&mut self, address: u64, block: Block) {
        Rc::make_mut(&mut self.blocks).insert(address, block);
    }

    /// Takes the blocks out that have bytes of `address..address + bytes`; returns them with their addresses.
    pub fn clear(&mut self, address: u64, bytes: u64) -> Vec<(u64, Block)> {
        let end = address.saturating_add(bytes.max(1));
        let last = self.blocks.range(..end).rev();
        let reaches = |(start, block): &(&u64, &Block)| start.saturating_add(block.bytes) > address;
        let gone: Vec<(u64, Block)> = last.take_while(reaches).map(|(start, block)| (*start, *block)).collect();
        for (start, _) in &gone {
            self.free(*start);
        }
        gone
    }

    /// The block that began at `address`, if there was one.
    pub fn free(&mut self, address: u64) -> Option<Block> {
        self.blocks.contains_key(&address).then(|| Rc::make_mut(&mut self.blocks).remove(&address))?
    }

    pub fn find(&self, address: u64) -> Found<'_> {
        if let Some((start, block)) = self.blocks.range(..=address).next_back()
            && address - start < block.bytes
        {
            return Found::Block(*start, *block);
        }
        match self.region(address) {
            Some(region) => Found::Region(region),
            None if (FIRST_STACK_FLOOR..USER_END).contains(&address) => Found::FirstStack,
            None => Found::Nothing,
        }
    }
}

/// The spaces of all processes, by process id.
#[derive(Debug, Default)]
pub(super) struct Spaces {
    by_pid: FxHashMap<u32, Space>,
}

impl Spaces {
    pub fn get(&self, pid: u32) -> Option<&Space> {
        self.by_pid.get(&pid)
    }

    pub fn space(&mut self, pid: u32) -> &mut Space {
        self.by_pid.entry(pid).or_default()
    }

    /// `pid` runs a new program.
    pub fn exec(&mut self, pid: u32) {
        let space = self.space(pid);
        *space = Space { executed: true, ..Space::default() };
    }

    /// A process was made, or a task of it. Another CPU may have reported already what the process did since.
    pub fn fork(&mut self, pid: u32, parent: u32) {
        if pid == parent {
            self.space(pid).threads += 1;
            return;
        }
        let inherited = self.get(parent).cloned().unwrap_or_default();
        let space = match self.by_pid.remove(&pid) {
            Some(own) if own.executed => own,
            Some(own) => own.over(inherited),
            None => Space { threads: 0, first_ended: false, executed: false, ..inherited },
        };
        self.by_pid.insert(pid, space);
    }

    /// A task ended. Its process may have begun before the recording, or made tasks in a pause of it: the memory is there
    /// until its first task has ended, and all others that are known.
    pub fn exit(&mut self, pid: u32, task: u32) {
        let Some(space) = self.by_pid.get_mut(&pid) else { return };
        space.first_ended |= task == pid;
        space.threads = space.threads.saturating_sub(u32::from(task != pid));
        if space.first_ended && space.threads == 0 {
            self.by_pid.remove(&pid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(start: u64, end: u64, object: u32) -> Region {
        Region { start, end, content: Content::Object(ObjectId(object)) }
    }

    fn shape(space: &Space) -> Vec<(u64, u64, u32)> {
        let object = |r: &Region| match r.content {
            Content::Object(id) => id.0,
            Content::Module { rest, .. } => rest.0,
        };
        space.regions.iter().map(|r| (r.start, r.end, object(r))).collect()
    }

    #[test]
    fn a_new_mapping_replaces_what_it_covers() {
        let mut space = Space::default();
        space.map(region(0, 100, 1));
        space.map(region(40, 60, 2));
        assert_eq!(shape(&space), [(0, 40, 1), (40, 60, 2), (60, 100, 1)]);
        space.map(region(30, 70, 3));
        assert_eq!(shape(&space), [(0, 30, 1), (30, 70, 3), (70, 100, 1)]);
        space.map(region(200, 210, 4));
        space.map(region(0, 300, 5));
        assert_eq!(shape(&space), [(0, 300, 5)]);
    }

    #[test]
    fn a_child_keeps_what_its_parent_gives_back() {
        let mut spaces = Spaces::default();
        spaces.fork(1, 0);
        spaces.space(1).allocate(0x100, Block { bytes: 16, object: ObjectId(7) });
        spaces.fork(2, 1);
        spaces.space(1).free(0x100);
        let found = |spaces: &Spaces, pid| matches!(spaces.get(pid).unwrap().find(0x10f), Found::Block(0x100, _));
        assert!(!found(&spaces, 1) && found(&spaces, 2));
        assert!(matches!(spaces.get(2).unwrap().find(0x110), Found::Nothing));
        spaces.exit(2, 2);
        assert!(spaces.get(2).is_none());
    }

    #[test]
    fn memory_is_there_until_the_last_known_task_has_ended() {
        let mut spaces = Spaces::default();
        // A process that was there before the recording, and a thread of it that nobody saw begin.
        spaces.space(7).map(region(0, 100, 1));
        spaces.exit(7, 9);
        spaces.fork(7, 7);
        spaces.exit(7, 8);
        assert_eq!(shape(spaces.get(7).unwrap()), [(0, 100, 1)]);
        spaces.fork(7, 7);
        spaces.exit(7, 7);
        assert!(spaces.get(7).is_some(), "the first task need not be the last");
        spaces.exit(7, 10);
        assert!(spaces.get(7).is_none());
    }

    #[test]
    fn a_fork_that_is_reported_late_leaves_what_the_child_did_since() {
        let mut spaces = Spaces::default();
        spaces.space(1).map(region(0, 100, 1));
        spaces.space(2).map(region(40, 60, 2));
        spaces.exec(3);
        spaces.space(3).map(region(200, 300, 3));
        spaces.fork(2, 1);
        spaces.fork(3, 1);
        assert_eq!(shape(spaces.get(2).unwrap()), [(0, 40, 1), (40, 60, 2), (60, 100, 1)]);
        assert_eq!(shape(spaces.get(3).unwrap()), [(200, 300, 3)]);
    }

    #[test]
    fn unmapped_memory_near_the_top_is_the_first_stack() {
        assert!(matches!(Space::default().find(0x7ffd_0000_0000), Found::FirstStack));
        assert!(matches!(Space::default().find(0x7f00_0000_0000), Found::Nothing));
    }
}
