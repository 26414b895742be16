//! The observation as flat tables (Parquet), for DuckDB, Polars and their like.

use super::{ObserveError, Outcome};
use crate::bpf::{BpfSession, LockEvent};
use nearmiss_record::observed::{Lock, Observed};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::collections::HashMap;
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

/// Every lock wait and poll, when they were asked for one by one.
#[derive(Clone, Debug, Default)]
pub struct Log {
    locks: Table,
    polls: Table,
}

/// A column of a table.
#[derive(Clone, Debug)]
enum Column {
    Number(Vec<i64>),
    Text(Vec<String>),
}

/// A table under construction.
#[derive(Clone, Debug, Default)]
struct Table {
    columns: Vec<(&'static str, Column)>,
}

impl Table {
    fn number(&mut self, name: &'static str, values: impl Iterator<Item = u64>) {
        let values = values.map(|v| i64::try_from(v).unwrap_or(i64::MAX)).collect();
        self.columns.push((name, Column::Number(values)));
    }

    fn text(&mut self, name: &'static str, values: impl Iterator<Item = String>) {
        self.columns.push((name, Column::Text(values.collect())));
    }

    fn write(&self, path: &Path) -> Result<(), ObserveError> {
        let failed = |why: String| ObserveError::Table { path: path.to_owned(), why };
        let temporary = path.with_extension(format!("part-{}", std::process::id()));
        self.write_to(&temporary).map_err(failed)?;
        fs::rename(&temporary, path).map_err(|e| failed(e.to_string()))
    }

    fn write_to(&self, path: &Path) -> Result<(), String> {
        let fields = self.columns.iter().map(|(name, column)| {
            let builder = match column {
                Column::Number(_) => Type::primitive_type_builder(name, Physical::INT64),
                Column::Text(_) => Type::primitive_type_builder(name, Physical::BYTE_ARRAY)
                    .with_logical_type(Some(LogicalType::String)),
            };
            builder.with_repetition(Repetition::REQUIRED).build().map(Arc::new)
        });
        let fields = fields.collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())?;
        let schema = Type::group_type_builder("nearmiss").with_fields(fields).build().map_err(|e| e.to_string())?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let file = File::create(path).map_err(|e| e.to_string())?;
        let mut writer =
            SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties)).map_err(|e| e.to_string())?;
        let mut group = writer.next_row_group().map_err(|e| e.to_string())?;
        for (_, column) in &self.columns {
            let Some(mut out) = group.next_column().map_err(|e| e.to_string())? else { break };
            match column {
                Column::Number(values) => out.typed::<Int64Type>().write_batch(values, None, None),
                Column::Text(values) => {
                    let values: Vec<ByteArray> = values.iter().map(|v| ByteArray::from(v.as_str())).collect();
                    out.typed::<ByteArrayType>().write_batch(&values, None, None)
                }
            }
            .map_err(|e| e.to_string())?;
            out.close().map_err(|e| e.to_string())?;
        }
        group.close().map_err(|e| e.to_string())?;
        writer.close().map(drop).map_err(|e| e.to_string())
    }
}

impl Log {
    /// `locks`: the rows that give the logged locks their names.
    pub(crate) fn of(bpf: &BpfSession, locks: &[Lock], started_ns: u64) -> Log {
        let (lock_waits, polls) = bpf.log();
        let mut log = Log::default();
        if !lock_waits.is_empty() {
            let names: HashMap<(u64, i32), &str> =
                locks.iter().map(|l| ((l.address, l.process.unwrap_or(0)), l.name.as_str())).collect();
            let kinds: Vec<String> = lock_waits.iter().map(|e| crate::bpf::lock_kind(e.flags)).collect();
            let process = |e: &LockEvent, kind: &str| if kind.starts_with("futex") { e.tgid as i32 } else { 0 };
            let named = lock_waits.iter().zip(&kinds).map(|(e, kind)| names.get(&(e.address, process(e, kind))));
            let t = &mut log.locks;
            t.text("name", named.map(|name| name.map_or_else(String::new, |n| (*n).to_owned())));
            t.number("end_ns", lock_waits.iter().map(|e| e.end_ns.saturating_sub(started_ns)));
            t.number("wait_ns", lock_waits.iter().map(|e| e.wait_ns));
            t.text("address", lock_waits.iter().map(|e| format!("{:#x}", e.address)));
            t.text("kind", kinds.into_iter());
            t.number("process", lock_waits.iter().map(|e| e.tgid.into()));
            t.number("thread", lock_waits.iter().map(|e| e.tid.into()));
            t.number("cpu", lock_waits.iter().map(|e| e.cpu.into()));
        }
        if !polls.is_empty() {
            let t = &mut log.polls;
            t.number("enter_ns", polls.iter().map(|e| e.enter_ns.saturating_sub(started_ns)));
            t.number("exit_ns", polls.iter().map(|e| e.exit_ns.saturating_sub(started_ns)));
            t.number("since_last_ns", polls.iter().map(|e| e.interval_ns));
            t.number("blocked_ns", polls.iter().map(|e| e.blocked_ns));
            t.number("on_cpu_ns", polls.iter().map(|e| e.on_cpu_ns));
            t.text("call", polls.iter().map(|e| crate::bpf::poll_call(e.kind).to_owned()));
            t.number("asked", polls.iter().map(|e| e.asked.into()));
            t.number("events", polls.iter().map(|e| u64::try_from(e.returned).unwrap_or(0)));
            t.number("failed", polls.iter().map(|e| u64::from(e.returned < 0)));
            t.number("process", polls.iter().map(|e| e.tgid.into()));
            t.number("thread", polls.iter().map(|e| e.tid.into()));
            t.number("cpu", polls.iter().map(|e| e.cpu.into()));
        }
        log
    }
}

/// Writes `samples.parquet`, `locks.parquet`, `polls.parquet`, `io.parquet`, `sched.parquet`, and with a log
/// `locks-log.parquet` and `polls-log.parquet`, of the instruments that ran.
pub fn write_tables(directory: &Path, outcome: &Outcome) -> Result<(), ObserveError> {
    let observed = &outcome.observed;
    let ran = |name: &str| observed.instruments.iter().any(|i| i.name == name && i.on);
    let mut tables = vec![];
    if observed.profile.is_some() {
        tables.push(("samples.parquet", samples(observed)));
    }
    if ran("locks") {
        tables.push(("locks.parquet", locks(observed)));
    }
    if ran("polls") {
        tables.push(("polls.parquet", polls(observed)));
    }
    if ran("io") {
        tables.push(("io.parquet", io(observed)));
    }
    if ran("sched") {
        tables.push(("sched.parquet", sched(observed)));
    }
    if !outcome.log.locks.columns.is_empty() {
        tables.push(("locks-log.parquet", outcome.log.locks.clone()));
    }
    if !outcome.log.polls.columns.is_empty() {
        tables.push(("polls-log.parquet", outcome.log.polls.clone()));
    }
    for (name, table) in tables {
        table.write(&directory.join(name))?;
    }
    Ok(())
}

fn samples(observed: &Observed) -> Table {
    let mut t = Table::default();
    let Some(profile) = &observed.profile else { return t };
    let all = &profile.samples;
    let frame = |stack: u32| {
        let first = profile.stacks.get(stack as usize).and_then(|s| s.first());
        first.and_then(|f| profile.frames.get(*f as usize))
    };
    let thread = |i: u32| profile.threads.get(i as usize).cloned().unwrap_or_default();
    let folded: Vec<String> = profile
        .stacks
        .iter()
        .map(|s| {
            let names = s.iter().rev().filter_map(|f| profile.frames.get(*f as usize)).map(|f| f.function.as_str());
            names.collect::<Vec<_>>().join(";")
        })
        .collect();
    t.number("at_ns", all.iter().map(|s| s.at_ns));
    t.text(
        "event",
        all.iter().map(|s| profile.events.get(s.event as usize).map(|e| e.name.clone()).unwrap_or_default()),
    );
    t.number("weight", all.iter().map(|s| s.weight));
    t.number("cpu", all.iter().map(|s| s.cpu.into()));
    t.number("process", all.iter().map(|s| thread(s.thread).0.max(0) as u64));
    t.number("thread", all.iter().map(|s| thread(s.thread).1.max(0) as u64));
    t.text("name", all.iter().map(|s| thread(s.thread).2));
    t.text("function", all.iter().map(|s| frame(s.stack).map(|f| f.function.clone()).unwrap_or_default()));
    t.text("module", all.iter().map(|s| frame(s.stack).map(|f| f.module.clone()).unwrap_or_default()));
    t.text("line", all.iter().map(|s| frame(s.stack).map(|f| f.line.clone()).unwrap_or_default()));
    t.number("kernel", all.iter().map(|s| frame(s.stack).is_some_and(|f| f.kernel).into()));
    t.text("stack", all.iter().map(|s| folded.get(s.stack as usize).cloned().unwrap_or_default()));
    t
}

fn locks(observed: &Observed) -> Table {
    let rows = &observed.locks;
    let mut t = Table::default();
    t.text("address", rows.iter().map(|r| format!("{:#x}", r.address)));
    t.text("kind", rows.iter().map(|r| r.kind.clone()));
    t.text("name", rows.iter().map(|r| r.name.clone()));
    t.number("process", rows.iter().map(|r| r.process.unwrap_or(0).max(0) as u64));
    t.text("caller", rows.iter().map(|r| r.stack.first().map(|f| f.function.clone()).unwrap_or_default()));
    t.text("line", rows.iter().map(|r| r.stack.first().map(|f| f.line.clone()).unwrap_or_default()));
    t.number("waits", rows.iter().map(|r| r.count));
    t.number("acquisitions", rows.iter().map(|r| r.acquisitions));
    t.number("total_ns", rows.iter().map(|r| r.total_ns));
    t.number("min_ns", rows.iter().map(|r| r.min_ns));
    t.number("max_ns", rows.iter().map(|r| r.max_ns));
    t
}

fn polls(observed: &Observed) -> Table {
    let rows = &observed.polls;
    let mut t = Table::default();
    t.text("call", rows.iter().map(|r| r.call.clone()));
    t.number("process", rows.iter().map(|r| r.process.max(0) as u64));
    t.number("thread", rows.iter().map(|r| r.thread.max(0) as u64));
    t.text("name", rows.iter().map(|r| r.name.clone()));
    t.number("calls", rows.iter().map(|r| r.calls));
    t.number("asked", rows.iter().map(|r| r.asked));
    t.number("watched", rows.iter().map(|r| r.watched));
    t.number("events", rows.iter().map(|r| r.events));
    t.number("with_events", rows.iter().map(|r| r.with_events));
    t.number("empty", rows.iter().map(|r| r.empty));
    t.number("failed", rows.iter().map(|r| r.failed));
    t.number("zero_timeout", rows.iter().map(|r| r.zero_timeout));
    t.number("blocked_ns", rows.iter().map(|r| r.blocked_ns));
    t.number("on_cpu_ns", rows.iter().map(|r| r.on_cpu_ns));
    t.number("interval_ns", rows.iter().map(|r| r.interval_ns));
    t.number("span_ns", rows.iter().map(|r| r.span_ns));
    t.number("last_cpu", rows.iter().map(|r| r.last_cpu.into()));
    t.number("cpu_changes", rows.iter().map(|r| r.cpu_changes));
    t
}

fn io(observed: &Observed) -> Table {
    let rows = &observed.io;
    let mut t = Table::default();
    t.text("device", rows.iter().map(|r| r.device.clone()));
    t.text("operation", rows.iter().map(|r| r.operation.clone()));
    t.number("process", rows.iter().map(|r| r.process.max(0) as u64));
    t.text("name", rows.iter().map(|r| r.name.clone()));
    t.number("requests", rows.iter().map(|r| r.count));
    t.number("bytes", rows.iter().map(|r| r.bytes));
    t.number("errors", rows.iter().map(|r| r.errors));
    t.number("queue_ns", rows.iter().map(|r| r.queue_ns));
    t.number("device_ns", rows.iter().map(|r| r.device_ns));
    t.number("min_ns", rows.iter().map(|r| r.min_ns));
    t.number("max_ns", rows.iter().map(|r| r.max_ns));
    t
}

/// One row for each task and reason; the reason `on CPU` has the running time.
fn sched(observed: &Observed) -> Table {
    let mut rows: Vec<(&nearmiss_record::observed::Task, String, u64, u64)> = Vec::new();
    for task in &observed.tasks {
        rows.push((task, "on CPU".to_owned(), task.cpu_ns, task.runs));
        rows.push((task, "waiting for a CPU".to_owned(), task.wait_ns, task.runs));
        rows.extend(task.off.iter().map(|(reason, ns, count)| (task, format!("off: {reason}"), *ns, *count)));
    }
    let mut t = Table::default();
    t.number("process", rows.iter().map(|r| r.0.process.max(0) as u64));
    t.number("thread", rows.iter().map(|r| r.0.thread.max(0) as u64));
    t.text("name", rows.iter().map(|r| r.0.name.clone()));
    t.text("what", rows.iter().map(|r| r.1.clone()));
    t.number("ns", rows.iter().map(|r| r.2));
    t.number("times", rows.iter().map(|r| r.3));
    t.number("migrations", rows.iter().map(|r| r.0.migrations));
    t
}
