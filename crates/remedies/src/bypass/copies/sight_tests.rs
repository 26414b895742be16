//! Fate of written lines, on streams that are small enough to follow by hand.

use super::super::way::{CopyWay, Ways};
use super::{CopyCounts, Sight};
use nearmiss_machine::model::{Model, ModelOptions};
use nearmiss_record::abi::ChunkHeader;
use nearmiss_record::machine::Placement;
use nearmiss_record::policy::{CallSite, Order, Policy};
use nearmiss_record::reference::{ControlKind, Kind, Record};
use nearmiss_record::run;
use nearmiss_record::side::Context;
use nearmiss_record::symbols::{Function, Symbols};
use nearmiss_record::trace::TraceHeader;
use nearmiss_record::units::InsnId;
use rustc_hash::FxHashSet;

const LOADS: u32 = 2;
const STORES: u32 = 3;
const READS: u32 = 1;
const LINE: u64 = 64;
/// Far more than the caches of a Zen 3 hold.
const FAR_BYTES: u64 = 64 << 20;

fn control(kind: ControlKind, argument: u64, payload: usize) -> Vec<Record> {
    let mut records = vec![Record::control(kind, argument, 0, 0)];
    records.resize(1 + payload, Record::default());
    records
}

fn reference(kind: Kind, at: u64, insn: u32) -> Record {
    Record::reference(kind, at, 8, 0, InsnId(insn), at >> 12, 1)
}

/// A call of the copying routine: words from `from` to `to`.
fn copy(from: u64, to: u64, bytes: u64) -> Vec<Record> {
    let word = |at| [reference(Kind::Load, from + at, LOADS), reference(Kind::Store, to + at, STORES)];
    let words: Vec<Record> = (0..bytes / 8).flat_map(|word_at| word(word_at * 8)).collect();
    [control(ControlKind::Context, 1, 0), words, control(ControlKind::Context, 0, 0)].concat()
}

fn read(at: u64, bytes: u64) -> Vec<Record> {
    (0..bytes / LINE).map(|line| reference(Kind::Load, at + line * LINE, READS)).collect()
}

/// Returns the counts of the copies that `store` requests.
fn seen(stream: &[Vec<Record>]) -> CopyCounts {
    let function = |name: &str, module| Function { name: name.into(), module, ..Function::default() };
    let symbols = Symbols {
        modules: vec!["/usr/bin/p".into(), "/lib/libc.so.6".into()],
        functions: vec![function("", 0), function("store", 0), function("__memmove_avx_unaligned_erms", 1)],
        insns: vec![(0, 0, 0), (1, 0, 0), (2, 0, 0), (2, 0, 0)],
        ..Symbols::default()
    };
    let contexts = [Context::default(), Context { parent: 0, call: READS }];
    let ways = Ways { symbols: &symbols, contexts: &contexts };
    let machine = nearmiss_machine::describe::preset("zen3-milan").and_then(|preset| preset.machine().ok());
    let mut machine = nearmiss_machine::describe::cut(&machine.unwrap_or_else(|| panic!("a preset")), 1);
    machine.memory.placement = Placement::AsRecorded;
    let header =
        TraceHeader { cpus: 1, filter: run::Filter { contexts: true, ..Default::default() }, ..TraceHeader::default() };
    let (policy, options) = (Policy::default(), ModelOptions::of(&header, Order::Recorded));
    let inside = FxHashSet::default();
    let sight = Sight::new(ways, &inside, 1, LINE, machine.levels());
    let mut model = Model::new(&machine, &policy, &options, sight).unwrap_or_else(|why| panic!("{why}"));
    let switch =
        [vec![Record::control(ControlKind::Switch, 0x1000, 0, 50 | 50 << 32)], vec![Record::default(); 5]].concat();
    let begun = [switch, control(ControlKind::Mark, 1, 3)].concat();
    let records = [begun, stream.concat()].concat();
    let head = ChunkHeader { records: records.len() as u32, ..ChunkHeader::default() };
    model.chunk(&head, &records).unwrap_or_else(|why| panic!("{why}"));
    let sights = model.finish().unwrap_or_else(|why| panic!("{why}")).1.finish();
    let [(CopyWay::Called { call: READS, outer: 0 }, seen)] = &sights.ways[..] else { panic!("{:?}", sights.ways) };
    seen.clone()
}

#[test]
fn a_line_read_while_a_cache_has_it_is_read_soon() {
    let seen = seen(&[copy(0, 1 << 20, 4096), read(1 << 20, 4096), read(1 << 20, 4096)]);
    assert_eq!((seen.copies, seen.bytes, seen.target_lines, seen.source_lines), (1, 4096, 64, 64));
    assert_eq!((seen.read_soon, seen.read_late, seen.written_again_soon), (64, 0, 0));
    assert_eq!(seen.sites, [CallSite { context: 1, insn: STORES }]);
}

#[test]
fn a_line_fetched_from_memory_is_read_late() {
    let seen = seen(&[copy(0, 1 << 20, 4096), read(4 << 20, FAR_BYTES), read(1 << 20, 4096)]);
    assert_eq!((seen.read_soon, seen.read_late), (0, 64));
}

#[test]
fn lines_written_again_unread_were_or_were_not_in_a_cache() {
    let twice = seen(&[copy(0, 1 << 20, 4096), copy(0, 1 << 20, 4096)]);
    assert_eq!((twice.copies, twice.target_lines, twice.written_again_soon, twice.written_again_late), (2, 64, 64, 0));
    let later = seen(&[copy(0, 1 << 20, 4096), read(4 << 20, FAR_BYTES), copy(0, 1 << 20, 4096)]);
    assert_eq!((later.written_again_soon, later.written_again_late), (0, 64));
    let between = seen(&[copy(0, 1 << 20, 4096), read(1 << 20, 4096), copy(0, 1 << 20, 4096)]);
    assert_eq!((between.read_soon, between.written_again_soon), (64, 0), "it was read in between");
}
