//! Variables in frames of first threads' stacks: from the calls that made the frames, and debug information.
//!
//! A call stores its return address right below the canonical frame address of the function that it calls (System V ABI
//! for AMD64, section 3.2.2). That function has the calls that follow in its context, or is a direct call's target.

use super::elf::Elf;
use super::locals::locals;
use nearmiss_record::side::Context;
use nearmiss_record::symbols::StackVariable;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

/// The first threads' stacks lie here: at most 16 GiB and the stack limit below the top of user space.
const FIRST_STACKS: std::ops::Range<u64> = 0x7ff0_0000_0000..1 << 47;
/// Bytes of a return address.
const RETURN_ADDRESS: u64 = 8;
/// Most calling contexts that are looked at.
const MOST_CONTEXTS: usize = 1 << 16;

/// A run's calls.
pub(super) struct Calls<'a> {
    contexts: &'a [Context],
    /// By context, the address that its call stored the return address at.
    slots: &'a [u64],
    /// Instructions that called.
    insns: HashSet<u32>,
}

/// Frames by the linked address of code in their function: canonical frame addresses.
type Frames = BTreeMap<u64, BTreeSet<u64>>;

impl<'a> Calls<'a> {
    pub(super) fn new(contexts: &'a [Context], slots: &'a [u64]) -> Self {
        Calls { contexts, slots, insns: contexts.iter().map(|node| node.call).collect() }
    }

    /// Canonical frame address of the function that the call of this context entered, on a first thread's stack.
    fn frame_address(&self, context: u32) -> Option<u64> {
        let slot = *self.slots.get(context as usize)?;
        FIRST_STACKS.contains(&slot).then_some(slot + RETURN_ADDRESS)
    }

    /// Returns the frames of the functions in one file: of those that made calls, and of those that direct calls of the
    /// file entered. `placed`: the linked addresses of the file's instructions, with their ids.
    fn frames(&self, elf: &Elf, placed: &[(u64, u32)]) -> Frames {
        let calls = placed.iter().filter(|(_, id)| self.insns.contains(id));
        let addresses: HashMap<u32, u64> = calls.map(|&(address, id)| (id, address)).collect();
        let mut frames = Frames::new();
        for (id, node) in (0u32..).zip(self.contexts).skip(1).take(MOST_CONTEXTS) {
            let Some(at) = addresses.get(&node.call) else { continue };
            if let Some(own) =
                self.frame_address(node.parent).filter(|_| self.enters(elf, &addresses, node.parent, *at))
            {
                frames.entry(*at).or_default().insert(own);
            }
            if let (Some(target), Some(entered)) = (elf.call_target(*at), self.frame_address(id)) {
                frames.entry(target).or_default().insert(entered);
            }
        }
        frames
    }

    /// Whether the call of a context can have entered the function that holds `at`. A call in another file, or by a
    /// pointer, can.
    fn enters(&self, elf: &Elf, addresses: &HashMap<u32, u64>, context: u32, at: u64) -> bool {
        let call = self.contexts.get(context as usize).and_then(|node| addresses.get(&node.call));
        let target = call.and_then(|call| elf.call_target(*call));
        target.is_none_or(|target| elf.extent(target) == elf.extent(at))
    }

    /// Variables of one file's functions in their frames.
    pub(super) fn variables(&self, path: &str, elf: &Elf, placed: &[(u64, u32)]) -> BTreeSet<StackVariable> {
        if !elf.has_debug_info() {
            return BTreeSet::new();
        }
        let frames = self.frames(elf, placed);
        let code: Vec<u64> = frames.keys().copied().collect();
        let known = locals(Path::new(path), &code);
        let base = path.rsplit('/').next().unwrap_or(path);
        let mut variables = BTreeSet::new();
        for (at, locals) in &known {
            let function = elf.name(base, *at);
            for (local, frame) in locals.iter().flat_map(|local| frames[at].iter().map(move |frame| (local, frame))) {
                let start = frame.wrapping_add_signed(local.offset);
                let (name, function) = (local.name.clone(), function.clone());
                variables.insert(StackVariable { start, bytes: local.bytes, name, function });
            }
        }
        variables
    }
}
