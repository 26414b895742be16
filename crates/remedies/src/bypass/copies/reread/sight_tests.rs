//! Reads of lines past the caches, on streams that are small enough to follow by hand.

use super::*;
use nearmiss_machine::model::{Model, ModelOptions};
use nearmiss_record::abi::ChunkHeader;
use nearmiss_record::machine::Placement;
use nearmiss_record::policy::{Order, Policy};
use nearmiss_record::reference::{ControlKind, Record};
use nearmiss_record::run;
use nearmiss_record::side::Context;
use nearmiss_record::symbols::{Function, Symbols};
use nearmiss_record::trace::TraceHeader;
use nearmiss_record::units::InsnId;

const WRITES: u32 = 1;
/// Process and thread of the command.
const TASK: u64 = 50;
const LINE: u64 = 64;
/// Lines of the outermost cache, as the observer is given them.
const HELD: u64 = 100;

fn each(kind: Kind, lines: std::ops::Range<u64>) -> Vec<Record> {
    let words = |line: u64| (0..8).map(move |word| line * LINE + word * 8);
    let one = |at: u64| Record::reference(kind, at, 8, 0, InsnId(WRITES), at >> 12, 1);
    lines.flat_map(words).map(one).collect()
}

/// Returns the counts of the function `fill`, which writes past the caches.
fn seen(stream: &[Vec<Record>]) -> Option<StoresAround> {
    let function = |name: &str| Function { name: name.into(), ..Function::default() };
    let symbols = Symbols {
        modules: vec!["/usr/bin/p".into()],
        functions: vec![function(""), function("fill")],
        insns: vec![(0, 0, 0), (1, 0, 0)],
        ..Symbols::default()
    };
    let contexts = [Context::default()];
    let ways = Ways { symbols: &symbols, contexts: &contexts };
    let machine = nearmiss_machine::describe::preset("zen3-milan").and_then(|preset| preset.machine().ok());
    let mut machine = nearmiss_machine::describe::cut(&machine.unwrap_or_else(|| panic!("a preset")), 1);
    machine.memory.placement = Placement::AsRecorded;
    let header =
        TraceHeader { cpus: 1, filter: run::Filter { contexts: true, ..Default::default() }, ..TraceHeader::default() };
    let options = ModelOptions::of(&header, Order::Recorded);
    let observer = Rereads::new(ways, 1, LINE, HELD);
    let mut model = Model::new(&machine, &Policy::default(), &options, observer).unwrap_or_else(|why| panic!("{why}"));
    let mut records = vec![Record::control(ControlKind::Switch, 0x1000, 0, TASK | TASK << 32)];
    records.resize(6, Record::default());
    records.push(Record::control(ControlKind::Mark, 1, 0, 0));
    records.resize(10, Record::default());
    records.extend(stream.concat());
    let chunk = ChunkHeader { records: records.len() as u32, ..ChunkHeader::default() };
    model.chunk(&chunk, &records).unwrap_or_else(|why| panic!("{why}"));
    let (_, observer) = model.finish().unwrap_or_else(|why| panic!("{why}"));
    observer.finish().pop().map(|(_, seen)| seen)
}

#[test]
fn lines_that_are_read_while_a_cache_would_have_them_count_once() {
    let read = each(Kind::Load, 0..8);
    let found = seen(&[each(Kind::NtStore, 0..8), read.clone(), read]).unwrap_or_default();
    assert_eq!((found.bytes, found.lines, found.reread, found.between), (512, 8, 8, 28));
    assert!(found.stall_cycles > 0 && found.sites.len() == 1);
}

#[test]
fn lines_that_any_cache_would_have_lost_do_not_count() {
    let found = seen(&[each(Kind::NtStore, 0..HELD + 1), each(Kind::Load, 0..2)]).unwrap_or_default();
    // A hundred lines were written behind the first, and 99 behind the second.
    assert_eq!((found.lines, found.reread, found.between), (HELD + 1, 1, HELD - 1));
}

#[test]
fn lines_that_a_plain_store_wrote_since_are_its_own() {
    let found = seen(&[each(Kind::NtStore, 0..4), each(Kind::Store, 0..4), each(Kind::Load, 0..4)]).unwrap_or_default();
    assert_eq!(found.reread, 0);
    assert_eq!(seen(&[each(Kind::Store, 0..4), each(Kind::Load, 0..4)]), None);
}
