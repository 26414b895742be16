//! Accesses at a constant distance from one another.

use crate::graph::{Graph, Node};
use crate::times::body;
use iced_x86::{FlowControl, Instruction};

/// Bytes from the address of one access to that of another by the same registers; `None`: by others.
pub(crate) fn apart(one: &Instruction, other: &Instruction) -> Option<i64> {
    let place = |of: &Instruction| (of.segment_prefix(), of.memory_base(), of.memory_index(), of.memory_index_scale());
    let bytes = other.memory_displacement64().wrapping_sub(one.memory_displacement64()) as i64;
    (place(one) == place(other)).then_some(bytes)
}

/// Bytes from a store to the stores of the loop around it, the least and the greatest; `None`: it is no store, no loop is
/// known, the loop calls, or it stores at unknown distances.
pub(crate) fn stores(graph: &Graph, start: Node) -> Option<[i64; 2]> {
    let own = graph.get(start);
    let body = own.summary.writes_memory().then(|| body::around(graph, start)).filter(|body| body.turns)?;
    let placed = || body.nodes.iter().map(|&node| graph.get(node));
    let calls = |flow| matches!(flow, FlowControl::Call | FlowControl::IndirectCall | FlowControl::Interrupt);
    if placed().any(|placed| calls(placed.instruction.flow_control())) {
        return None;
    }
    let mut stores = placed().filter(|placed| placed.summary.writes_memory());
    stores.try_fold([0, 0], |[least, greatest], store| {
        let bytes = apart(&own.instruction, &store.instruction)?;
        Some([bytes.min(least), bytes.max(greatest)])
    })
}
