//! Every record with a schema: one line each, and those of the remedies.

use super::format::Format;
use crate::{Remedies, doctor, machine};
use nearmiss_analysis::{AppliedRecord, Remedy};
use nearmiss_record::{
    baseline, comparison, counts, finding, gate, kernel_structures, model, observed, rehearsal, run, verdict,
};
use nearmiss_report::json as report;
use schemars::JsonSchema;

macro_rules! record {
    ($name:literal, $schema:expr, $type:ty, $place:literal) => {
        Format { name: $name.to_owned(), schema: $schema, place: $place.to_owned(), definition: <$type>::json_schema }
    };
}

/// All formats, in the order of a run's stages; then what each remedy did.
pub fn formats(remedies: Remedies) -> Vec<Format> {
    let mut formats = vec![
        record!("doctor", doctor::SCHEMA, doctor::Report, "doctor --json"),
        record!("machine", machine::SCHEMA, machine::Described<'static>, "machine show --json, machine host --json"),
        record!("machines", machine::SCHEMA_OF_ALL, machine::Machines, "machine list --json"),
        record!("manifest", run::SCHEMA, run::Manifest, "manifest.json of every run"),
        record!("model", model::SCHEMA, model::ModelRecord, "model.json of a traced run"),
        record!("counts", counts::SCHEMA, counts::CountsRecord, "trace --counts --json FILE"),
        record!("observe", observed::SCHEMA, observed::Observed, "report --json, observe.json of an observed run"),
        Format {
            name: "report".to_owned(),
            schema: report::SCHEMA,
            place: "report --json of a traced run".to_owned(),
            definition: report::schema,
        },
        record!(
            "kernel-structures",
            kernel_structures::SCHEMA,
            kernel_structures::KernelStructures,
            "report --kernel-structures --json"
        ),
        record!("comparison", comparison::SCHEMA, comparison::RunComparison, "report --compare --json"),
        record!("findings", finding::SCHEMA, finding::Findings, "diagnose --json, findings.json"),
        record!("rehearsals", rehearsal::SCHEMA, rehearsal::Rehearsals, "rehearse --json, rehearsals.json"),
        record!("verdict", verdict::SCHEMA, verdict::Verdict, "verify --json, report --json, verdict.json"),
        record!("gate", gate::SCHEMA, gate::GateRecord, "gate --json"),
        record!("baseline", baseline::SCHEMA, baseline::Baseline, "gate --write"),
        record!("lab", nearmiss_lab::SCHEMA, nearmiss_lab::Show, "lab run, resume and show --json"),
    ];
    formats.extend(remedies.iter().flat_map(|remedy| remedy.records.iter().map(|record| applied(remedy, record))));
    formats
}

fn applied(remedy: &Remedy, record: &AppliedRecord) -> Format {
    Format {
        name: record.schema.split('/').nth(1).unwrap_or(record.schema).to_owned(),
        schema: record.schema,
        place: format!("apply {} --json", remedy.name),
        definition: record.definition,
    }
}
