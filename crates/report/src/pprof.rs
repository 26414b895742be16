//! The profile format of `pprof` (gzipped protocol buffer, `profile.proto` of google/pprof).

use crate::levels::misses;
use crate::load::Report;
use crate::name::plain;
use flate2::{Compression, write::GzEncoder};
use nearmiss_record::model::StackRow;
use prost::Message;
use std::collections::HashMap;
use std::io::{self, Write};

#[derive(Clone, PartialEq, Message)]
struct Profile {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "10")]
    duration_nanos: i64,
    #[prost(int64, repeated, tag = "13")]
    comment: Vec<i64>,
    #[prost(int64, tag = "14")]
    default_sample_type: i64,
}

#[derive(Clone, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    kind: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct Mapping {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "5")]
    filename: i64,
    #[prost(bool, tag = "7")]
    has_functions: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, tag = "2")]
    mapping_id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "3")]
    system_name: i64,
}

/// The profile: one value for stall cycles and one for each level's misses, by call stack; what has no call stack is a
/// function of its own, so that the sums are the run's.
///
/// Errors: none but those of memory; the compressor's.
pub fn render(report: &Report) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&profile(report).encode_to_vec())?;
    encoder.finish()
}

/// A profile of measured stacks: one value for each (kind, unit), of which the first is the default.
pub(crate) fn of_stacks<'a>(
    program: &str,
    duration_ns: u64,
    kinds: &[(String, &str)],
    stacks: impl Iterator<Item = (Vec<&'a str>, Vec<u64>)>,
) -> io::Result<Vec<u8>> {
    let mut table =
        Table { profile: Profile { string_table: vec![String::new()], ..Profile::default() }, ..Table::default() };
    for (kind, unit) in kinds {
        let kind = ValueType { kind: table.string(kind), unit: table.string(unit) };
        table.profile.sample_type.push(kind);
    }
    table.profile.default_sample_type = table.profile.sample_type.first().map_or(0, |kind| kind.kind);
    let filename = table.string(program);
    table.profile.mapping.push(Mapping { id: 1, filename, has_functions: true });
    table.profile.duration_nanos = i64::try_from(duration_ns).unwrap_or(i64::MAX);
    let comment = table.string("Measured by nearmiss.");
    table.profile.comment.push(comment);
    for (frames, values) in stacks {
        table.sample(frames.into_iter(), &values);
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&table.profile.encode_to_vec())?;
    encoder.finish()
}

fn profile(report: &Report) -> Profile {
    let model = &report.model;
    // The table's first string is empty, by the format.
    let mut table =
        Table { profile: Profile { string_table: vec![String::new()], ..Profile::default() }, ..Table::default() };
    let value_type =
        |table: &mut Table, kind: &str, unit: &str| ValueType { kind: table.string(kind), unit: table.string(unit) };
    let stall = value_type(&mut table, "stall_cycles", "cycles");
    table.profile.default_sample_type = stall.kind;
    table.profile.sample_type.push(stall);
    for level in &report.levels {
        let kind = value_type(&mut table, &format!("{}_misses", level.name), "count");
        table.profile.sample_type.push(kind);
    }
    let filename = table.string(report.manifest.command.first().map_or("", String::as_str));
    table.profile.mapping.push(Mapping { id: 1, filename, has_functions: true });
    table.profile.duration_nanos = i64::try_from(report.manifest.window_ns).unwrap_or(i64::MAX);
    let comment = format!("Modelled by nearmiss on {}; the duration was measured.", model.machine.name);
    let comment = table.string(&comment);
    table.profile.comment.push(comment);

    let whole: Vec<u64> = std::iter::once(model.totals.stall_cycles)
        .chain(report.levels.iter().map(|l| misses(&model.totals, l.index)))
        .collect();
    let mut rest = whole.clone();
    let values = |row: &StackRow| -> Vec<u64> {
        std::iter::once(row.stall_cycles)
            .chain((0..report.levels.len()).map(|i| row.misses.get(i).copied().unwrap_or(0)))
            .collect()
    };
    let by_function: Vec<StackRow>;
    let stacks = if model.stacks.is_empty() {
        by_function = model
            .functions
            .iter()
            .map(|f| StackRow {
                frames: vec![f.name.clone()],
                misses: report.levels.iter().map(|l| misses(&f.tally, l.index)).collect(),
                stall_cycles: f.tally.stall_cycles,
                cycles: f.tally.cycles,
            })
            .collect();
        &by_function
    } else {
        &model.stacks
    };
    for row in stacks {
        let values = values(row);
        for (left, value) in rest.iter_mut().zip(&values) {
            *left = left.saturating_sub(*value);
        }
        table.sample(row.frames.iter().rev().map(String::as_str), &values);
    }
    if rest.iter().any(|left| *left > 0) {
        table.sample(["[no call stack known]"].into_iter(), &rest);
    }
    table.profile
}

#[derive(Default)]
struct Table {
    profile: Profile,
    strings: HashMap<String, i64>,
    functions: HashMap<i64, u64>,
}

impl Table {
    fn string(&mut self, text: &str) -> i64 {
        let text = plain(text);
        if text.is_empty() {
            return 0;
        }
        let next = self.profile.string_table.len() as i64;
        *self.strings.entry(text).or_insert_with_key(|text| {
            self.profile.string_table.push(text.clone());
            next
        })
    }

    /// The one location of a function; both have the same number.
    fn location(&mut self, name: &str) -> u64 {
        let name = self.string(name);
        let id = self.profile.function.len() as u64 + 1;
        if let Some(known) = self.functions.get(&name) {
            return *known;
        }
        self.functions.insert(name, id);
        self.profile.function.push(Function { id, name, system_name: name });
        self.profile.location.push(Location { id, mapping_id: 1, line: vec![Line { function_id: id }] });
        id
    }

    fn sample<'a>(&mut self, frames_innermost_first: impl Iterator<Item = &'a str>, values: &[u64]) {
        if values.iter().all(|v| *v == 0) {
            return;
        }
        let location_id = frames_innermost_first.map(|frame| self.location(frame)).collect();
        let value = values.iter().map(|v| i64::try_from(*v).unwrap_or(i64::MAX)).collect();
        self.profile.sample.push(Sample { location_id, value });
    }
}
