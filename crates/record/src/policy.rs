//! A policy: what a replay of a trace may change of how a run uses a machine (design: one idea).
//!
//! The default is the run as recorded; each remedy changes one part. The design's part *wake* is not here: no
//! trace of references shows when a server looks again, so `pace` rehearses it on logs of waits.

use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

/// Placement of a recorded run on a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Readable")]
#[schemars(!from)]
pub struct Policy {
    /// Placement of objects.
    pub address: AddressPolicy,
    /// Stores that go through the caches.
    pub store: StorePolicy,
    /// CPU of a task, and its time.
    pub place: PlacePolicy,
    /// Node of a page.
    pub home: HomePolicy,
    /// Size of the pages of user mode.
    #[serde(skip_serializing_if = "PagePolicy::is_recorded")]
    pub pages: PagePolicy,
}

impl Policy {
    /// The run as recorded.
    pub const RECORDED: Policy = Policy {
        address: AddressPolicy::Recorded,
        store: StorePolicy::Recorded,
        place: PlacePolicy::Recorded,
        home: HomePolicy::Recorded,
        pages: PagePolicy::Recorded,
    };
}

/// A policy in the form of a record, of an older one too.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Readable {
    address: AddressPolicy,
    store: StorePolicy,
    place: PlacePolicy,
    home: HomePolicy,
    pages: PagePolicy,
    /// A part in older records, always as recorded.
    #[serde(rename = "wake")]
    _wake: IgnoredAny,
}

impl From<Readable> for Policy {
    fn from(Readable { address, store, place, home, pages, .. }: Readable) -> Self {
        Policy { address, store, place, home, pages }
    }
}

/// Placement of objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AddressPolicy {
    /// As recorded.
    #[default]
    Recorded,
    /// Addresses inside these virtual ranges move: an object of `align` bytes (a power of two) at base `b` is shifted up
    /// by `((b / align) % colors) * line` bytes.
    Color {
        /// Half-open virtual ranges, as recorded.
        ranges: Vec<(u64, u64)>,
        /// Alignment and spacing of the objects, a power of two.
        align: u64,
        /// Number of colors.
        colors: u32,
        /// Bytes a color.
        line: u32,
    },
    /// Whole objects move, each by its own number of bytes, as with an allocator that colors.
    Shift {
        /// Disjoint.
        objects: Vec<Shifted>,
    },
    /// Bytes of lines move to lines of their own for every reference, as in a layout that keeps the data of different
    /// CPUs apart.
    Apart {
        /// Disjoint.
        moved: Vec<Moved>,
        /// Bytes from one of the new lines to the next: a power of two, at least the machine's longest line.
        spacing: u64,
    },
    /// Every CPU has a copy of its own of these bytes, as if nothing had to pass between CPUs: no change of a program
    /// can save more on them.
    Copies {
        /// Half-open ranges of physical addresses, as recorded; disjoint.
        ranges: Vec<(u64, u64)>,
        /// Bytes from one copy of a range to the next: a power of two, at least the machine's longest line.
        spacing: u64,
    },
    /// The fields of elements take other places: in another order, or in arrays of their own.
    Fields {
        /// Kinds of elements; no address belongs to two of them.
        arrays: Vec<Rearranged>,
    },
}

/// Elements of one kind, with other places for their fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rearranged {
    /// Runs of elements, in the order of the new arrays.
    pub elements: Vec<Elements>,
    /// Bytes from one element to the next, as recorded.
    pub bytes: u64,
    /// Bytes behind the begin of a page at which each new array begins.
    pub begin: u64,
    /// The new arrays: bytes from one element to the next in each.
    pub parts: Vec<u64>,
    /// Disjoint. Bytes of no field stay where they were.
    pub fields: Vec<PlacedField>,
}

/// Elements one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Elements {
    /// Virtual address of the first one, as recorded.
    pub from: u64,
    /// Number of elements.
    pub count: u64,
}

/// A field and its new place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlacedField {
    /// First byte in the element, as recorded.
    pub from: u64,
    /// The byte behind its last one.
    pub to: u64,
    /// Index of the new array.
    pub part: u32,
    /// First byte in that array's element.
    pub at: u64,
}

/// Bytes that move to a line of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Moved {
    /// First physical address, as recorded.
    pub from: u64,
    /// The address behind the last byte; not beyond the `spacing` bytes that the first one lies in.
    pub to: u64,
    /// Number of the new line. The bytes keep their offset in the line; bytes that move to one line share it.
    pub line: u32,
}

/// One object that moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shifted {
    /// First virtual address, as recorded.
    pub from: u64,
    /// The address behind its last byte.
    pub to: u64,
    /// Bytes by which it moves; stacks move down.
    pub by: i64,
}

/// Stores that go through the caches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StorePolicy {
    /// All that were recorded as such.
    #[default]
    Recorded,
    /// The plain stores of these call sites become non-temporal.
    NonTemporal {
        /// In any order.
        sites: Vec<CallSite>,
    },
    /// The non-temporal stores of these call sites become plain.
    Plain {
        /// In any order.
        sites: Vec<CallSite>,
    },
}

/// An instruction as one caller reaches it: one `memcpy` serves many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct CallSite {
    /// Calling context of the trace.
    pub context: u32,
    /// Instruction id of the trace.
    pub insn: u32,
}

/// CPU of a task, and its time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlacePolicy {
    /// As recorded.
    #[default]
    Recorded,
    /// The listed tasks run on their CPUs, all CPUs at the same time; other tasks do not run.
    Tasks {
        /// No task twice.
        tasks: Vec<Placed>,
        /// Instructions that a CPU executes before the next one has its turn; at least 1.
        window_instructions: u64,
    },
    /// The listed tasks run on their CPUs, in the order in which everything was recorded; other tasks do not run.
    InOrder {
        /// No task twice.
        tasks: Vec<Bound>,
    },
}

/// A task and the CPU that it is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bound {
    /// Thread id, as recorded.
    pub pid: u32,
    /// Hardware thread of the machine; none: wherever the task ran when recorded.
    pub cpu: Option<u32>,
}

/// A task and its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Placed {
    /// Thread id, as recorded.
    pub pid: u32,
    /// Hardware thread of the machine.
    pub cpu: u32,
}

/// Node of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HomePolicy {
    /// The node of the memory that the page was recorded in.
    #[default]
    Recorded,
    /// The first rule that any reference to the page fits; where none does, as recorded.
    Rules(Vec<HomeRule>),
}

impl HomePolicy {
    /// One rule for every page.
    pub fn everywhere(home: Home) -> Self {
        HomePolicy::Rules(vec![HomeRule { pages: None, task: None, home }])
    }
}

/// A rule for the home of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HomeRule {
    /// Half-open range of virtual addresses, as recorded; none: every page, the kernel's included.
    pub pages: Option<(u64, u64)>,
    /// Thread id of the task that touches the page, as recorded; none: any task.
    pub task: Option<u32>,
    /// Node of the pages.
    pub home: Home,
}

/// A node for a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Home {
    /// The node of the memory that the page was recorded in.
    Recorded,
    /// The node of this number.
    Node(u32),
    /// The node of the CPU that touches the page first.
    FirstTouch,
    /// Page by page round robin.
    Interleave,
    /// The node of the CPU that allocated the heap block there: a pool a node. Fits heap blocks alone.
    Pool,
}

/// Size of the pages of user mode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PagePolicy {
    /// As recorded.
    #[default]
    Recorded,
    /// Memory in these ranges lies in pages of 2 MiB, numbered by address space and virtual address.
    Large {
        /// Half-open ranges of virtual addresses.
        ranges: Vec<(u64, u64)>,
    },
}

impl PagePolicy {
    /// Whether all pages are as recorded.
    pub fn is_recorded(&self) -> bool {
        *self == PagePolicy::Recorded
    }
}

/// Order in which the model handles the records of several CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// As they were executed, vCPU slice by vCPU slice: causal; its sharing is a lower bound.
    #[default]
    Recorded,
    /// The slices of a round taken as simultaneous and merged by modelled cycles.
    Modelled,
}

impl Order {
    /// Name of the order, in texts and on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Order::Recorded => "recorded",
            Order::Modelled => "modelled",
        }
    }

    /// Bound that figures of sharing in this order are; none: they are no bound.
    pub fn sharing_bound(self) -> Option<&'static str> {
        match self {
            Order::Recorded => Some("a lower bound"),
            Order::Modelled => None,
        }
    }
}
