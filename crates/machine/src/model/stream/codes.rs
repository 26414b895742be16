//! The code that a stream brings, for machines with cores that use it.

use crate::model::options::ModelOptions;
use nearmiss_code::{CodeMap, CoreTimes};
use nearmiss_record::machine::Machine;
use nearmiss_record::policy::{PlacePolicy, Policy};
use nearmiss_record::reference::{Control, ControlKind, Kind, Record};

/// Executions of an instruction before its code is analysed.
const EXECUTIONS_BEFORE_ANALYSIS: u32 = 16;

/// Returns an empty map, if the machine describes its cores. If tasks are placed anew, code comes in another order than
/// to other replays, and their findings do not hold.
pub(super) fn codes_of(machine: &Machine, policy: &Policy, options: &ModelOptions) -> Option<CodeMap> {
    let core = machine.core.as_ref()?;
    let times = CoreTimes {
        width: core.width,
        load_cycles: machine.latency.level_cycles.first().map_or(0.0, |cycles| *cycles as f32),
        forwarding_cycles: core.forwarding_cycles as f32,
    };
    let codes = CodeMap::patient(times, EXECUTIONS_BEFORE_ANALYSIS);
    Some(match &options.code {
        Some(known) if policy.place == PlacePolicy::Recorded => codes.sharing(known),
        _ => codes,
    })
}

/// Adds all code that a chunk brings.
pub(super) fn add_all(codes: &mut CodeMap, records: &[Record]) {
    let mut at = 0;
    while let Some(record) = records.get(at) {
        let payload = if record.kind() == Some(Kind::Control) { record.payload_records().unwrap_or(0) } else { 0 };
        let behind = records.get(at + 1..).and_then(|rest| rest.get(..payload));
        if record.control_kind() == Some(ControlKind::Code)
            && record.kind() == Some(Kind::Control)
            && let Some(Ok(Control::Code(block))) = behind.map(|payload| Control::decode(*record, payload))
        {
            codes.add(&block);
        }
        at = at.saturating_add(1).saturating_add(payload);
    }
}
