//! All instructions seen, and which may run before which.

use crate::effects::Summary;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic};
use nearmiss_record::code::CodeBlock;
use nearmiss_record::units::InsnId;
use rustc_hash::FxHashMap;

/// An instruction's number in the graph.
pub(crate) type Node = u32;
/// No instruction.
pub(crate) const NONE: Node = u32::MAX;
/// A page with an unknown physical address.
const NO_PAGE: u64 = u64::MAX;
const PAGE_SHIFT: u32 = 12;
/// Lines of code of every x86-64 core.
const LINE_SHIFT: u32 = 6;
/// Ways to one instruction kept apart: the latest. A function called from more places is followed into these.
const MOST_WAYS: usize = 32;

/// One instruction at its place.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub instruction: Instruction,
    pub summary: Summary,
    /// The ids that records name the instruction by: one for each translation.
    pub ids: Vec<InsnId>,
    /// Instructions of its run from this one on: the tap counts them all when it enters the run.
    pub counted_ahead: u32,
    page: u64,
    /// The instruction before this one in its block.
    before: Node,
    /// More instructions than `before` may run before this one.
    pub joined: bool,
    /// Another instruction of the same virtual address, seen earlier.
    elder: Node,
    /// Other code took the instruction's place.
    gone: bool,
}

/// Reason why one instruction may run before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    /// The next one in memory.
    Falls,
    /// A branch.
    Jumps,
    /// A call, and this is where the called function begins.
    Enters,
    /// A call, and this is where it comes back to.
    Returns,
}

/// Instructions by address, with the ways between them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    placed: Vec<Placed>,
    /// The latest instruction of each virtual address.
    at: FxHashMap<u64, Node>,
    /// Last instructions of blocks by the address behind them.
    ends: FxHashMap<u64, Vec<Node>>,
    /// Direct branches and calls by their target.
    targets: FxHashMap<u64, Vec<Node>>,
    /// Node of each instruction id.
    named: Vec<Node>,
}

impl Graph {
    /// Adds the instructions of a block, up to the first that is none.
    pub(crate) fn add(&mut self, block: &CodeBlock<'_>) {
        let mut decoder = Decoder::with_ip(64, block.code, block.vaddr, DecoderOptions::NONE);
        let mut factory = InstructionInfoFactory::new();
        let mut named = block.named().peekable();
        let mut before = NONE;
        let mut nodes = Vec::new();
        while decoder.can_decode() {
            let offset = decoder.position();
            let instruction = decoder.decode();
            if instruction.is_invalid() {
                break;
            }
            let summary = Summary::of(&instruction, factory.info(&instruction));
            let node = self.place(instruction, summary, page_of(block, instruction.ip()));
            self.follow(before, node);
            while let Some((_, id)) = named.next_if(|&(at, _)| usize::from(at) <= offset) {
                self.name(node, id);
            }
            before = node;
            nodes.push(node);
        }
        self.count_ahead(&nodes);
        self.end(before);
    }

    /// Counts the instructions of each run of a block: those of one line. One that straddles lines begins a run of its
    /// own, which goes on in the second line (`native/tap/translate.c`). QEMU also translates parts of a block, for once:
    /// the longest run counts.
    fn count_ahead(&mut self, block: &[Node]) {
        let lines = |node: &Node| {
            let instruction = &self.get(*node).instruction;
            (instruction.ip() >> LINE_SHIFT, (instruction.next_ip() - 1) >> LINE_SHIFT)
        };
        let runs: Vec<u32> = block
            .chunk_by(|before, node| lines(node) == (lines(before).1, lines(before).1))
            .flat_map(|run| (1..=run.len() as u32).rev())
            .collect();
        for (node, ahead) in block.iter().zip(runs) {
            let placed = &mut self.placed[*node as usize];
            placed.counted_ahead = placed.counted_ahead.max(ahead);
        }
    }

    /// The instruction at its place: the known one if the bytes are the same.
    fn place(&mut self, instruction: Instruction, summary: Summary, page: u64) -> Node {
        let vaddr = instruction.ip();
        let latest = self.at.get(&vaddr).copied().unwrap_or(NONE);
        let same_page = |known: &Placed| known.page == page || known.page == NO_PAGE || page == NO_PAGE;
        let known = self.of_one_address(latest).find(|&node| same_page(self.get(node)) && !self.get(node).gone);
        if let Some(node) = known {
            let placed = &mut self.placed[node as usize];
            if placed.instruction == instruction && placed.instruction.len() == instruction.len() {
                placed.page = if page == NO_PAGE { placed.page } else { page };
                return node;
            }
            placed.gone = true;
        }
        let elder = if known == Some(latest) { self.get(latest).elder } else { latest };
        let node = self.placed.len() as Node;
        let joined = self.targets.contains_key(&vaddr) || self.ends.contains_key(&vaddr);
        self.placed.push(Placed {
            instruction,
            summary,
            ids: Vec::new(),
            counted_ahead: 1,
            page,
            before: NONE,
            joined,
            elder,
            gone: false,
        });
        self.at.insert(vaddr, node);
        node
    }

    /// The instructions of one virtual address, the latest first.
    fn of_one_address(&self, latest: Node) -> impl Iterator<Item = Node> + '_ {
        std::iter::successors((latest != NONE).then_some(latest), |&node| {
            Some(self.get(node).elder).filter(|&elder| elder != NONE)
        })
    }

    fn follow(&mut self, before: Node, node: Node) {
        let placed = &mut self.placed[node as usize];
        if before == NONE {
            placed.joined = true;
        } else {
            placed.joined |= placed.before != NONE && placed.before != before;
            placed.before = before;
        }
    }

    fn name(&mut self, node: Node, id: InsnId) {
        let index = id.0 as usize;
        if index >= self.named.len() {
            self.named.resize(index + 1, NONE);
        }
        let earlier = std::mem::replace(&mut self.named[index], node);
        if earlier != node {
            if let Some(placed) = self.placed.get_mut(earlier as usize) {
                placed.ids.retain(|&other| other != id);
            }
            self.placed[node as usize].ids.push(id);
        }
    }

    /// Notes where the last instruction of a block leads.
    fn end(&mut self, last: Node) {
        let Some(placed) = self.placed.get(last as usize) else { return };
        let instruction = placed.instruction;
        let flow = instruction.flow_control();
        if !matches!(flow, FlowControl::UnconditionalBranch | FlowControl::IndirectBranch | FlowControl::Return) {
            let next = instruction.next_ip();
            note(self.ends.entry(next).or_default(), last);
            self.join(next);
        }
        if let Some(target) = direct_target(&instruction) {
            note(self.targets.entry(target).or_default(), last);
            self.join(target);
        }
    }

    fn join(&mut self, vaddr: u64) {
        let latest = self.at.get(&vaddr).copied().unwrap_or(NONE);
        let nodes: Vec<_> = self.of_one_address(latest).collect();
        for node in nodes {
            self.placed[node as usize].joined = true;
        }
    }

    /// The instruction with this number, which the graph gave.
    pub(crate) fn get(&self, node: Node) -> &Placed {
        &self.placed[node as usize]
    }

    /// The instruction that records name by this id.
    pub(crate) fn named(&self, id: InsnId) -> Option<Node> {
        self.named.get(id.0 as usize).copied().filter(|&node| node != NONE)
    }

    /// The one instruction that runs before one that is not joined.
    pub(crate) fn before(&self, node: Node) -> Node {
        self.get(node).before
    }

    /// All that may run just before, and how.
    pub(crate) fn ways_to(&self, node: Node) -> Vec<(Node, Edge)> {
        let vaddr = self.get(node).instruction.ip();
        let mut ways: Vec<_> =
            Some(self.before(node)).filter(|&n| n != NONE).map(|n| (n, Edge::Falls)).into_iter().collect();
        let ends = self.ends.get(&vaddr).map_or(&[][..], |nodes| newest(nodes));
        ways.extend(ends.iter().map(|&end| (end, if self.calls(end) { Edge::Returns } else { Edge::Falls })));
        let targets = self.targets.get(&vaddr).map_or(&[][..], |nodes| newest(nodes));
        ways.extend(targets.iter().map(|&from| (from, if self.calls(from) { Edge::Enters } else { Edge::Jumps })));
        ways.retain(|&(from, _)| !self.get(from).gone);
        self.nearest(node, &mut ways);
        ways.sort_unstable_by_key(|&(from, way)| (from, way as u8));
        ways.dedup();
        ways
    }

    /// Keeps, of several processes' instructions at one virtual address, those on the page of `node`; else the latest.
    fn nearest(&self, node: Node, ways: &mut Vec<(Node, Edge)>) {
        let page = self.get(node).page;
        let all = ways.clone();
        let vaddr = |node: Node| self.get(node).instruction.ip();
        ways.retain(|&(from, _)| {
            let twins = || all.iter().map(|&(other, _)| other).filter(|&other| vaddr(other) == vaddr(from));
            let here = |node: Node| self.get(node).page == page;
            here(from) || !twins().any(|other| here(other) || other > from)
        });
    }

    /// The instruction at a virtual address, seen from `node`: on its page, else the latest.
    pub(crate) fn at(&self, vaddr: u64, node: Node) -> Option<Node> {
        let page = self.get(node).page;
        let latest = self.at.get(&vaddr).copied().unwrap_or(NONE);
        let there = || self.of_one_address(latest).filter(|&node| !self.get(node).gone);
        there().find(|&node| self.get(node).page == page).or_else(|| there().next())
    }

    /// Whether an instruction goes to another function and comes back.
    pub(crate) fn calls(&self, node: Node) -> bool {
        matches!(self.get(node).instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall)
    }

    /// Whether an instruction is a system call.
    pub(crate) fn calls_the_kernel(&self, node: Node) -> bool {
        matches!(self.get(node).instruction.mnemonic(), Mnemonic::Syscall | Mnemonic::Sysenter)
    }
}

/// The physical page of an instruction. Only that of the block's first page is known.
fn page_of(block: &CodeBlock<'_>, vaddr: u64) -> u64 {
    let first = block.paddr != u64::MAX && vaddr >> PAGE_SHIFT == block.vaddr >> PAGE_SHIFT;
    if first { block.paddr >> PAGE_SHIFT } else { NO_PAGE }
}

fn note(nodes: &mut Vec<Node>, node: Node) {
    if !newest(nodes).contains(&node) {
        nodes.push(node);
    }
}

fn newest(nodes: &[Node]) -> &[Node] {
    &nodes[nodes.len().saturating_sub(MOST_WAYS)..]
}

/// Returns the target of a branch or call, if the instruction contains it.
pub(crate) fn direct_target(instruction: &Instruction) -> Option<u64> {
    let near = instruction.op_count() > 0
        && matches!(
            instruction.flow_control(),
            FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch | FlowControl::Call
        );
    (near && instruction.op0_kind() == iced_x86::OpKind::NearBranch64).then(|| instruction.near_branch_target())
}
