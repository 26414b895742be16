//! Logs are read as they were written, and a log without the requested rows is refused by name.

#![allow(clippy::unwrap_used)]

use crate::support;
use nearmiss_record::logs::{
    Address, Cell, Column, IoTotals, Kind, LockTotals, LockWait, LogError, MOST_TEXT_BYTES, NamedSample, PollCall,
    PollTotals, Reader, Row, Stored, TaskTime, Writer, write,
};
use nearmiss_record::observed::{Event, Frame, Profile, Sample, Task};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;
use std::fmt::Debug;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn written<R: Row>(directory: &Path, rows: &[R]) -> PathBuf {
    let path = directory.join(R::FILE);
    let mut writer = Writer::create(&path).unwrap();
    rows.iter().for_each(|row| writer.push(row).unwrap());
    writer.finish().unwrap();
    path
}

fn read<R: Row>(path: &Path) -> Result<Vec<R>, LogError> {
    Reader::open(path)?.collect()
}

fn returns<R: Row + Debug + PartialEq>(cells: &[(Vec<i64>, Vec<String>)]) {
    let rows: Vec<R> = cells.iter().filter_map(|(numbers, texts)| support::row(numbers, texts)).collect();
    let directory = tempfile::tempdir().unwrap();
    let path = written(directory.path(), &rows);
    assert_eq!(Reader::<R>::open(&path).unwrap().rows(), rows.len() as u64);
    assert_eq!(read::<R>(&path).unwrap(), rows);
}

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![any::<i64>(), -1..3i64]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn rows_of_every_kind_return_exactly(
        cells in prop::collection::vec(
            (prop::collection::vec(number(), 1..20), prop::collection::vec(".{0,40}", 1..9)),
            0..60,
        )
    ) {
        returns::<PollCall>(&cells);
        returns::<LockWait>(&cells);
        returns::<PollTotals>(&cells);
        returns::<LockTotals>(&cells);
        returns::<IoTotals>(&cells);
        returns::<TaskTime>(&cells);
        returns::<NamedSample>(&cells);
    }
}

fn call(n: u64) -> PollCall {
    PollCall {
        enter_ns: 1_000 * n,
        exit_ns: 1_000 * n + n % 700,
        since_last_ns: 300,
        blocked_ns: n % 700,
        on_cpu_ns: n * n,
        call: ["poll", "epoll_wait"][(n % 2) as usize].to_owned(),
        asked: (n % 64) as u32,
        timeout_ns: [None, Some(0), Some(5_000_000)][(n % 3) as usize],
        events: (n % 5) as u32,
        again: [None, Some(0), Some((n % 5) as u32)][(n % 3) as usize],
        failed: n.is_multiple_of(5),
        process: 7,
        thread: 8 + (n % 9) as u32,
        cpu: (n % 4) as u32,
    }
}

#[test]
fn a_log_of_several_row_groups_returns_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let rows: Vec<PollCall> = (0..150_000).map(call).collect();
    let path = written(directory.path(), &rows);
    assert!(read::<PollCall>(&path).unwrap() == rows);
    let names: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["polls-log.parquet"], "nothing temporary stays");
}

#[test]
fn an_unfinished_log_leaves_nothing_and_a_file_that_is_no_log_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(&directory.path().join(PollCall::FILE)).unwrap();
    writer.push(&call(1)).unwrap();
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    drop(writer);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    let refused = read::<PollCall>(directory.path()).unwrap_err().to_string();
    assert_eq!(refused, format!("{}: not a regular file", directory.path().display()));
    let refused = write(Path::new("/no/such/folder"), [call(1)]).unwrap_err().to_string();
    assert!(refused.starts_with("/no/such/folder/polls-log.parquet: no such file or directory"), "{refused}");
}

#[test]
fn long_texts_are_cut_at_a_character_and_still_read() {
    let directory = tempfile::tempdir().unwrap();
    let long = TaskTime { name: format!("a{}", "é".repeat(MOST_TEXT_BYTES)), ..TaskTime::default() };
    let rows = read::<TaskTime>(&written(directory.path(), &vec![long; 40])).unwrap();
    assert_eq!(rows.len(), 40);
    assert!(rows.iter().all(|row| row.name.len() == MOST_TEXT_BYTES - 1 && row.name.ends_with('é')));
}

#[test]
fn cells_keep_what_they_can_and_refuse_the_rest() {
    assert_eq!(u64::MAX.store(), Stored::Number(i64::MAX));
    assert_eq!(Address(0x7f00).store(), Stored::Text("0x7f00".into()));
    let refused = |stored: Stored<'_>| Address::load(stored).unwrap_err();
    assert_eq!(refused(Stored::Text("0x+7".into())), "is no address as in 0x7f00");
    assert_eq!(refused(Stored::Text("7f00".into())), "is no address as in 0x7f00");
    assert_eq!(u64::load(Stored::Number(-1)).unwrap_err(), "is -1, expected no number below 0");
    assert_eq!(
        u32::load(Stored::Number(1 << 32)).unwrap_err(),
        "is 4294967296, expected a number from 0 to 4294967295"
    );
    assert_eq!(bool::load(Stored::Number(2)).unwrap_err(), "is 2, expected 0 or 1");
    assert_eq!(Option::<u64>::load(Stored::Number(-2)).unwrap_err(), "is -2, expected no number below -1");
    assert_eq!(Option::<u64>::load(Stored::Number(-1)), Ok(None));
    assert_eq!(
        Option::<u32>::load(Stored::Number(1 << 32)).unwrap_err(),
        "is 4294967296, expected a number from -1 to 4294967295"
    );
    assert_eq!([None, Some(7)].map(|n: Option<u32>| Option::<u32>::load(n.store()).unwrap()), [None, Some(7)]);
}

/// A file of one row with these columns: numbers are 5, or as given; texts are `x`.
fn file(directory: &Path, columns: &str, schema: Option<&str>, number: i64) -> PathBuf {
    let message = Arc::new(parse_message_type(&format!("message m {{ {columns} }}")).unwrap());
    let entries = schema.map(|value| vec![KeyValue::new("nearmiss.schema".to_owned(), value.to_owned())]);
    let properties = Arc::new(WriterProperties::builder().set_key_value_metadata(entries).build());
    let path = directory.join("file.parquet");
    let mut out = SerializedFileWriter::new(File::create(&path).unwrap(), message, properties).unwrap();
    let mut group = out.next_row_group().unwrap();
    while let Some(mut column) = group.next_column().unwrap() {
        use parquet::column::writer::ColumnWriter::*;
        match column.untyped() {
            Int32ColumnWriter(_) => column.typed::<Int32Type>().write_batch(&[5], Some(&[1]), None),
            Int64ColumnWriter(_) => column.typed::<Int64Type>().write_batch(&[number], Some(&[1]), None),
            _ => column.typed::<ByteArrayType>().write_batch(&[ByteArray::from("x")], Some(&[1]), None),
        }
        .unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    out.close().unwrap();
    path
}

/// The columns of these rows, one of them replaced.
fn columns_of<R: Row>(replaced: &str, by: &str) -> String {
    let column = |column: &Column| match (column.name, column.kind) {
        (name, _) if name == replaced => by.to_owned(),
        (name, Kind::Text) => format!("required binary {name} (UTF8);"),
        (name, Kind::Number) => format!("required int64 {name};"),
    };
    R::COLUMNS.iter().map(column).collect()
}

/// The columns of [`TaskTime`], one of them replaced.
fn columns(replaced: &str, by: &str) -> String {
    columns_of::<TaskTime>(replaced, by)
}

#[test]
fn a_log_of_before_a_column_is_read_without_it() {
    let directory = tempfile::tempdir().unwrap();
    let ours = Some("nearmiss/polls-log/1");
    let read = |columns: &str, number| read::<PollCall>(&file(directory.path(), columns, ours, number));
    let old = read(&columns_of::<PollCall>("again", ""), 0).unwrap();
    assert_eq!((old.len(), old[0].again, old[0].failed), (1, None, false));
    let new = read(&columns_of::<PollCall>("", ""), 0).unwrap();
    assert_eq!((new.len(), new[0].again), (1, Some(0)));
    let wrong = read(&columns_of::<PollCall>("again", "required binary again;"), 1).unwrap_err().to_string();
    assert!(wrong.contains("has a column `again` that does not keep 64-bit integers"), "{wrong}");
    let none = read(&columns_of::<PollCall>("events", ""), 1).unwrap_err().to_string();
    assert!(none.contains("has no column `events`"), "{none}");
}

#[test]
fn a_file_that_is_no_log_of_these_rows_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let outcome = |columns: &str, schema: Option<&str>, number: i64| {
        let path = file(directory.path(), columns, schema, number);
        let rows = read::<TaskTime>(&path).map_err(|e| e.to_string());
        rows.map_err(|message| message.strip_prefix(&format!("{}: ", path.display())).unwrap().to_owned())
    };
    let ours = Some("nearmiss/sched/1");
    let damaged = |what: &str| Err(format!("{what}; the file is damaged: observe again"));
    assert_eq!(outcome(&columns("", ""), ours, 5).unwrap()[0].ns, 5);
    assert_eq!(outcome(&columns("", ""), None, 5).unwrap()[0].ns, 5);
    let other = "schema `nearmiss/sched/2`, this nearmiss reads `nearmiss/sched/1`: observe again".to_owned();
    assert_eq!(outcome(&columns("", ""), Some("nearmiss/sched/2"), 5), Err(other));
    assert_eq!(outcome(&columns("ns", ""), ours, 5), damaged("has no column `ns`"));
    let old = "names no schema and has no column `ns`, so an earlier nearmiss wrote it; this one reads \
               `nearmiss/sched/1`: observe again";
    assert_eq!(outcome(&columns("ns", ""), None, 5), Err(old.to_owned()));
    let added = columns("ns", "required int64 ns; required int64 more;");
    assert_eq!(outcome(&added, ours, 5), damaged("has an unknown column `more`"));
    let wrong = damaged("has a column `ns` that does not keep 64-bit integers");
    assert_eq!(outcome(&columns("ns", "required int32 ns;"), ours, 5), wrong);
    assert_eq!(outcome(&columns("ns", "required binary ns;"), ours, 5), wrong);
    assert_eq!(
        outcome(&columns("what", "required int64 what;"), ours, 5),
        damaged("has a column `what` that does not keep text")
    );
    assert_eq!(outcome(&columns("ns", "optional int64 ns;"), ours, 5), damaged("has a column `ns` that may be null"));
    assert_eq!(
        outcome(&columns("ns", "required group g { required int64 ns; }"), ours, 5),
        damaged("has columns of columns")
    );
    let negative = damaged("row 1, column `process`: is -5, expected a number from 0 to 4294967295");
    assert_eq!(outcome(&columns("", ""), ours, -5), negative);
}

#[test]
fn a_row_that_contradicts_itself_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let refusal =
        |row: PollCall| read::<PollCall>(&written(directory.path(), &[call(1), row])).unwrap_err().to_string();
    let backwards = refusal(PollCall { enter_ns: 5, exit_ns: 4, ..PollCall::default() });
    assert!(backwards.ends_with("row 2: the call returns before it is entered; the file is damaged: observe again"));
    let more = refusal(PollCall { events: 1, again: Some(2), ..PollCall::default() });
    assert!(more.contains("row 2: more events are left over than the call returns"), "{more}");
    let both = refusal(PollCall { failed: true, events: 1, ..PollCall::default() });
    assert!(both.contains("row 2: the call fails and returns events"), "{both}");
}

#[test]
fn tables_are_made_of_the_record() {
    let task = Task {
        process: 7,
        thread: -1,
        name: "t".into(),
        cpu_ns: 10,
        wait_ns: 20,
        runs: 3,
        migrations: 2,
        off: vec![("futex".into(), 30, 4)],
        ..Task::default()
    };
    let row = |what: &str, ns, times| TaskTime {
        process: 7,
        thread: 0,
        name: "t".into(),
        what: what.into(),
        ns,
        times,
        migrations: 2,
    };
    let expected = [row("on CPU", 10, 3), row("waiting for a CPU", 20, 3), row("off: futex", 30, 4)];
    assert_eq!(TaskTime::rows(&task).collect::<Vec<_>>(), expected);

    let frame = |function: &str| Frame { function: function.into(), line: "a.c:1".into(), ..Frame::default() };
    let profile = Profile {
        events: vec![Event { name: "cpu-clock".into(), ..Event::default() }],
        frames: vec![frame("leaf"), frame("main")],
        stacks: vec![vec![0, 1]],
        threads: vec![(7, 8, "w".into())],
        samples: vec![Sample { at_ns: 5, weight: 9, cpu: 1, ..Sample::default() }],
    };
    let expected = NamedSample {
        at_ns: 5,
        event: "cpu-clock".into(),
        weight: 9,
        cpu: 1,
        process: 7,
        thread: 8,
        name: "w".into(),
        function: "leaf".into(),
        line: "a.c:1".into(),
        stack: "main;leaf".into(),
        ..NamedSample::default()
    };
    assert_eq!(NamedSample::rows(&profile).collect::<Vec<_>>(), [expected]);
}
