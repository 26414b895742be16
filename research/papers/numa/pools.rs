//! The kernel's memory allocator: one pool of each kind of object (2.4.0-test1), or the paper's, by node with caches by
//! CPU (section 3.1).
//!
//! A pool is a stack of free objects behind a lock: the last that was given back is the first to be given out, wherever
//! it lies and whoever had it. The paper's allocator has a pool for each node, which gets its memory from that node, and
//! for each CPU a cache without a lock. An object of another node goes back to its own pool. A pool that is
//! empty gets a page more.

use super::Kernel;
use super::chassis::Chassis;
use super::memory::{LINE_BYTES, Memory, PAGE_BYTES};
use nearmiss_record::reference::Kind;

/// Kinds of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// `sk_buff`.
    Head,
    /// Data of a full packet: `size-2048`.
    Packet,
    /// Data of a packet without any, and other small blocks: `size-256`.
    Small,
    /// `sock`.
    Socket,
    /// `file`, `dentry` and `inode` of a socket, taken as one.
    File,
}

/// How many kinds there are.
pub const CLASSES: usize = 5;

impl Class {
    /// Bytes.
    pub fn bytes(self) -> u64 {
        match self {
            Class::Head => 160,
            Class::Packet => 2048,
            Class::Small => 256,
            Class::Socket | Class::File => 832,
        }
    }

    /// Lines of it that a user of such an object writes.
    pub fn lines(self) -> u64 {
        match self {
            Class::Head => 5,
            Class::Packet => 4,
            Class::Small => 4,
            Class::Socket | Class::File => 26,
        }
    }
}

/// A block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// Kind of the object.
    pub class: Class,
    /// Address.
    pub address: u64,
}

/// Objects that a CPU's cache holds at most (assumed).
const CACHED: usize = 32;
/// Lines of a pool's own page: lock, list heads, counts.
const POOL_STRIDE: u64 = 4 * LINE_BYTES;
/// Offset of the pools' and the caches' own lines in their pages.
const CACHE_AT: u64 = 2048;
/// Page structures, 64 bytes each, in the kernel's data.
const PAGE_STRUCTURES: u64 = 1 << 20;

/// All objects that are free.
pub struct Pools {
    kernel: Kernel,
    nodes: usize,
    /// Free objects by kind, then node.
    free: Vec<Vec<Object>>,
    /// Cached objects by CPU, then kind.
    cached: Vec<Vec<Object>>,
    /// A page for each node's pools.
    pool_pages: Vec<u64>,
    /// A page for each CPU's caches.
    cache_pages: Vec<u64>,
}

impl Pools {
    /// None has an object.
    pub fn new(kernel: Kernel, chassis: &Chassis, memory: &mut Memory) -> Self {
        let (nodes, cpus) = (chassis.nodes(), chassis.cpus());
        Pools {
            kernel,
            nodes,
            free: vec![Vec::new(); CLASSES * nodes],
            cached: vec![Vec::new(); CLASSES * cpus],
            pool_pages: (0..nodes).map(|node| memory.page(node)).collect(),
            cache_pages: (0..cpus).map(|cpu| memory.page(chassis.node(cpu))).collect(),
        }
    }

    /// The lock of a pool: one guards all of them, and one all of a node (assumed).
    pub fn lock(&self, pool: usize) -> usize {
        pool % self.nodes
    }

    fn pool(&self, class: Class, node: usize) -> usize {
        let node = if self.kernel.by_node() { node } else { 0 };
        class as usize * self.nodes + node
    }

    /// Returns the pool that a CPU of a node allocates from; none: its own cache has one.
    pub fn allocation_pool(&self, class: Class, cpu: usize, node: usize) -> Option<usize> {
        let own = &self.cached[cpu * CLASSES + class as usize];
        (!self.kernel.by_node() || own.is_empty()).then(|| self.pool(class, node))
    }

    /// The pool that an object goes back to; none: the CPU's own cache takes it.
    pub fn free_pool(&self, object: Object, cpu: usize, node: usize, memory: &Memory) -> Option<usize> {
        let home = memory.node(object.address);
        let own = &self.cached[cpu * CLASSES + object.class as usize];
        let is_cached = self.kernel.by_node() && home == node && own.len() < CACHED;
        (!is_cached).then(|| self.pool(object.class, home))
    }

    /// Takes an object out of a CPU's cache, or under the lock out of a pool.
    pub fn allocate(&mut self, class: Class, cpu: usize, chassis: &mut Chassis, memory: &mut Memory) -> Object {
        let node = chassis.node(cpu);
        let own = &mut self.cached[cpu * CLASSES + class as usize];
        if let Some(object) = own.pop() {
            self.touch_cache(class, cpu, chassis);
            return object;
        }
        let pool = self.pool(class, node);
        self.touch_pool(pool, chassis);
        let object = self.free[pool].pop().unwrap_or_else(|| self.grow(class, pool, node, memory));
        chassis.touch(Kind::Store, object.address & !(PAGE_BYTES - 1));
        object
    }

    /// Gives an object to a CPU's cache, or under the lock to a pool.
    pub fn release(&mut self, object: Object, cpu: usize, chassis: &mut Chassis, memory: &Memory) {
        let page = object.address / PAGE_BYTES;
        chassis.touch(Kind::Load, PAGE_STRUCTURES + page % (1 << 15) * 64);
        match self.free_pool(object, cpu, chassis.node(cpu), memory) {
            None => {
                self.touch_cache(object.class, cpu, chassis);
                self.cached[cpu * CLASSES + object.class as usize].push(object);
            }
            Some(pool) => {
                self.touch_pool(pool, chassis);
                chassis.touch(Kind::Store, page * PAGE_BYTES);
                self.free[pool].push(object);
            }
        }
    }

    /// Cuts a new page of the node into objects, and takes the first.
    fn grow(&mut self, class: Class, pool: usize, node: usize, memory: &mut Memory) -> Object {
        // The page's first line is the slab's own.
        let first = memory.page(node) + LINE_BYTES;
        let each = class.bytes();
        let count = (PAGE_BYTES - LINE_BYTES) / each;
        self.free[pool].extend((1..count).map(|n| Object { class, address: first + n * each }));
        Object { class, address: first }
    }

    fn touch_cache(&self, class: Class, cpu: usize, chassis: &mut Chassis) {
        chassis.touch(Kind::Store, self.cache_pages[cpu] + CACHE_AT + class as u64 * LINE_BYTES);
    }

    fn touch_pool(&self, pool: usize, chassis: &mut Chassis) {
        let at = self.pool_pages[pool % self.nodes] + (pool / self.nodes) as u64 * POOL_STRIDE;
        chassis.touch(Kind::Store, at);
        chassis.touch(Kind::Store, at + LINE_BYTES);
    }
}
