//! Owners of the figures: the command, other tasks, idle CPUs, the timer.

use super::*;
use crate::describe::{cut, preset};
use crate::model::{Model, ModelOptions};
use nearmiss_record::abi::ChunkHeader;
use nearmiss_record::model::SetMap;
use nearmiss_record::reference::ControlKind;
use nearmiss_record::run::Filter;
use nearmiss_record::trace::TraceHeader;

#[test]
fn the_kernels_waits_are_on_behalf_of_where_user_mode_was() {
    let mut s = Stream::new();
    s.begin();
    s.control(0, Control::Context(2));
    s.hit(0, load(0x1000, 3));
    let kernel_miss = |s: &mut Stream, cycles| {
        s.miss(0, kernel(load(0xffff_8880_0000_2000, 6)), missed(MissClass::Capacity, 2, cycles));
    };
    kernel_miss(&mut s, 100);
    // Another task of nobody runs, and the first goes on inside its system call.
    s.switch(0, 30, 0, Usage::default());
    kernel_miss(&mut s, 1000);
    s.switch(0, 7, 7, Usage::default());
    kernel_miss(&mut s, 30);
    s.hit(0, load(0x1000, 4));
    kernel_miss(&mut s, 1);
    let side = SideTables {
        insns: vec![Insn::default(); 8],
        contexts: vec![Context::default(), Context { parent: 0, call: 2 }, Context { parent: 1, call: 1 }],
        ..SideTables::default()
    };
    let mut symbols = names(8);
    // Instruction 3 is a library's: its caller is instruction 1's function.
    symbols.modules.push("/lib/libc.so.6".into());
    let function = symbols.insns[3].0 as usize;
    symbols.functions[function].module = symbols.modules.len() as u32 - 1;
    let record = s.finish(&side, &symbols, 0);
    let callers: Vec<_> = record.callers.iter().map(|c| (c.function.as_str(), c.kernel_stall_cycles)).collect();
    assert_eq!(callers, [("f1", 130), ("f3", 1)]);
}

#[test]
fn two_tasks_a_tick_and_idle() {
    let mut s = Stream::new();
    s.begin();
    s.control(0, Control::Context(2));
    s.hit(0, load(0x1000, 0));
    s.miss(0, load(0x1000, 1), missed(MissClass::Conflict, 1, 10));
    s.control(0, Control::Irq(Some(true)));
    s.miss(0, kernel(load(0xffff_8880_0000_2000, 4)), missed(MissClass::Capacity, 2, 100));
    s.control(0, Control::Irq(None));
    let usage =
        Usage { user_loads: 30, user_instructions: 100, kernel_loads: 5, kernel_instructions: 20, ..Usage::default() };
    s.switch(0, 0, 0, usage);
    s.miss(0, kernel(load(0xffff_8880_0000_3000, 5)), missed(MissClass::Compulsory, 1, 10));
    s.control(0, Control::Irq(Some(false)));
    s.miss(0, kernel(load(0xffff_8880_0000_3000, 5)), missed(MissClass::Compulsory, 2, 100));
    let interrupted = Usage { kernel_loads: 1, kernel_instructions: 20, ..Usage::default() };
    s.switch(0, 30, 0, interrupted);
    s.miss(0, kernel(load(0xffff_8880_0000_3000, 5)), missed(MissClass::Compulsory, 2, 1000));
    s.switch(0, 0, 0, Usage { kernel_loads: 1, kernel_instructions: 10, ..Usage::default() });
    let insn = |executions, load_hits, flags| Insn { executions, run: 1, load_hits, flags, ..Insn::default() };
    let side = SideTables {
        insns: vec![insn(60, 30, 0), insn(40, 0, 0), insn(0, 0, 0), insn(0, 0, 0), insn(20, 4, 1), insn(30, 2, 1)],
        contexts: vec![Context::default(), Context { parent: 0, call: 2 }, Context { parent: 1, call: 1 }],
        ..SideTables::default()
    };
    let record = s.finish(&side, &names(6), 150);
    assert_sums(&record);
    // Kept: 2 user loads of the command; one of idle; one in its device interrupt and one of task 30, which are others'.
    // Dropped: 30 of instruction 0; 2 of instruction 5, by 20 of its instructions to 10.
    assert_eq!((record.totals.loads, record.idle.loads, record.ticks.loads), (2 + 30, 1 + 1, 1 + 4));
    assert_eq!((record.others.loads, record.others.stall_cycles), (2 + 1, 1100));
    let instructions = [&record.totals, &record.others, &record.idle, &record.ticks].map(|t| t.instructions);
    assert_eq!(instructions, [100, 20, 10, 20]);
    assert_eq!(record.totals.cycles, (100.0f64 * 0.7) as u64 + 10);
    assert_eq!(record.ticks.levels[1].class(MissClass::Capacity), 1);
    assert_eq!(record.idle.levels[0].class(MissClass::Compulsory), 1);
    let function = |name: &str| record.functions.iter().find(|f| f.name == name).unwrap().tally.clone();
    assert_eq!((function("f1").loads, function("f1").stall_cycles), (32, 10));
    assert!(record.functions.iter().all(|f| f.name != "f3"), "only others and idle ran it");
    assert_eq!((record.other_functions[0].name.as_str(), record.other_functions[0].tally.loads), ("f3", 3));
    let stack = &record.stacks.iter().find(|s| s.stall_cycles == 10).unwrap();
    assert_eq!((stack.frames.join(">"), &stack.misses), ("f2>f1>f1".into(), &vec![1, 0]));
    let task = |comm: &str| record.tasks.iter().find(|t| t.comm == comm).unwrap();
    assert_eq!((task("t7").user.loads, task("t7").user.instructions, task("t7").of_command), (32, 100, true));
    assert_eq!((task("t30").kernel.stall_cycles, task("t30").of_command), (1000, false));
    assert_eq!(task("[interrupts on idle CPUs]").kernel.loads, 1);
    assert_eq!(record.page_offsets.kernel.iter().sum::<u64>(), 0);
}

/// Kernel code that the command and others ran, from cold caches: kept references show too little of the command's
/// share.
#[test]
fn kernel_code_that_others_share_is_split_as_the_tasks_reported() {
    let mut s = Stream::new();
    s.begin();
    let shared = |page: u64| kernel(load(0xffff_8880_0000_0000 + page * 4096, 2));
    s.hit(0, shared(1));
    s.switch(0, 30, 0, Usage { kernel_loads: 900, kernel_instructions: 900, ..Usage::default() });
    (0..9).for_each(|page| s.hit(0, shared(page)));
    s.switch(0, 7, 0, Usage { kernel_loads: 100, kernel_instructions: 100, ..Usage::default() });
    let insn = Insn { executions: 1000, run: 1, load_hits: 1000, flags: INSN_KERNEL, ..Insn::default() };
    let side = SideTables { insns: vec![Insn::default(), Insn::default(), insn], ..SideTables::default() };
    let record = s.finish(&side, &names(4), 1000);
    assert_sums(&record);
    // Kept references alone would give the command a tenth.
    assert_eq!([&record.totals, &record.others].map(|t| t.instructions), [900, 100]);
    assert_eq!([&record.totals, &record.others].map(|t| t.loads), [900 + 1, 100 + 9]);
}

#[test]
fn strangers_on_another_cpu_leave_the_commands_figures_as_they_are() {
    let side = SideTables {
        insns: (0..6).map(|i| Insn { flags: u32::from(i > 3), ..Insn::default() }).collect(),
        ..SideTables::default()
    };
    let record = |strangers: bool| {
        let mut s = Stream::new();
        s.begin();
        s.fork(0, 8, 7);
        for step in 0..40u64 {
            s.switch(0, 7 + step as u32 % 2, 0, Usage { user_loads: step, ..Usage::default() });
            s.miss(0, load(0x1000 + step * 64, step as u32 % 4), missed(MissClass::Conflict, 1, 10));
            s.miss(0, kernel(load(0xffff_8880_0000_2000, 4)), missed(MissClass::Capacity, 2, 100));
            if strangers {
                s.switch(1, 30 + step as u32 % 3, 0, Usage { user_loads: 3, ..Usage::default() });
                s.miss(1, load(0x1000 + step * 64, step as u32 % 4), missed(MissClass::Conflict, 2, 70));
                s.miss(1, kernel(load(0xffff_8880_0000_2000, 5)), missed(MissClass::FalseSharing, 2, 900));
            }
        }
        s.finish(&side, &names(6), 0)
    };
    let (alone, mut among) = (record(false), record(true));
    assert_sums(&among);
    assert_eq!(alone.totals.stall_cycles, 40 * 110);
    assert_eq!(among.others.stall_cycles, 40 * 970);
    assert_eq!(among.other_functions.iter().map(|f| f.tally.stall_cycles).sum::<u64>(), 40 * 970);
    among.others = alone.others.clone();
    among.other_functions = alone.other_functions.clone();
    among.tasks.retain(|task| task.of_command || task.tid == 0);
    among.tasks.pop();
    let mut alone = alone;
    alone.tasks.pop();
    assert_eq!(among, alone);
}

#[test]
fn a_task_that_turns_out_to_be_the_commands_is_so_from_then_on() {
    let mut s = Stream::new();
    s.begin();
    s.switch(1, 51, 0x5000, Usage::default());
    s.miss(1, load(0x1000, 0), missed(MissClass::Conflict, 1, 10));
    s.fork(0, 51, 7);
    s.miss(1, load(0x1000, 0), missed(MissClass::Conflict, 1, 20));
    let record = s.finish(&SideTables::default(), &Symbols::default(), 0);
    assert_sums(&record);
    assert_eq!((record.totals.stall_cycles, record.others.stall_cycles), (20, 10));
    let of = |of_command| record.tasks.iter().find(|t| t.tid == 51 && t.of_command == of_command).unwrap();
    assert_eq!([true, false].map(|of_command| of(of_command).user.stall_cycles), [20, 10]);
}

#[test]
fn relatives_of_the_process_at_begin_belong_to_the_command() {
    let mut s = Stream::new();
    s.control(0, Control::Mark { number: 1, usage: Usage::default() });
    let comm = |pid: u32, misc: u16, name: &[u8; 8]| {
        let mut bytes = 3u32.to_le_bytes().to_vec();
        bytes.extend([misc.to_le_bytes(), 24u16.to_le_bytes()].concat());
        bytes.extend([pid.to_le_bytes(), pid.to_le_bytes()].concat());
        bytes.extend(name);
        bytes
    };
    s.control(0, Control::Maps(&comm(50, 1 << 13, b"sort\0\0\0\0")));
    s.fork(0, 51, 50);
    s.hit(0, load(0x1000, 0));
    for tid in [51, 60] {
        s.switch(0, tid, 0x5000, Usage::default());
        s.hit(0, load(0x1000, 0));
    }
    let record = s.finish(&SideTables::default(), &Symbols::default(), 0);
    assert_sums(&record);
    let of = |tid| record.tasks.iter().find(|t| t.tid == tid).map(|t| (t.comm.clone(), t.of_command, t.user.loads));
    assert_eq!(of(50), Some(("sort".into(), true, 1)));
    assert_eq!(of(51), Some(("t51".into(), true, 1)));
    assert_eq!(of(60), Some(("t60".into(), false, 1)));
}

/// A walk in few sets, and one in all, by records through the model.
fn walked(stranger: bool) -> (Vec<SetMap>, ModelRecord) {
    let machine = cut(&preset("zen3-milan").unwrap().machine().unwrap(), 1);
    let filter = Filter { line_log2: 6, fetches: true, ..Default::default() };
    let header = TraceHeader { cpus: 1, filter, ..Default::default() };
    let attribution = Attribution::new(Options::of(&machine, &header), Box::new(RecordedData::default()));
    let options = ModelOptions::of(&header, Default::default());
    let mut model = Model::new(&machine, &Default::default(), &options, attribution).unwrap();
    let group = |head, records: usize| {
        let mut group = vec![head];
        group.resize(records, Record::default());
        group
    };
    let switch = |tid: u64| group(Record::control(ControlKind::Switch, 0x1000 + tid, 0, tid | tid << 32), 6);
    let mut records = [switch(50), group(Record::control(ControlKind::Mark, 1, 0, 0), 4)].concat();
    let walk = |stride: u64, kind| {
        (0..3000).map(move |i| Record::reference(kind, i % 40 * stride, 8, 0, InsnId(1), (i % 40 * stride) >> 12, 1))
    };
    records.extend(walk(4096, Kind::Load).chain(walk(64, Kind::Store)).chain(walk(8256, Kind::Fetch)));
    if stranger {
        records.extend(switch(30));
        records.extend(walk(8192 + 256, Kind::Load));
    }
    let header = ChunkHeader { records: records.len() as u32, ..ChunkHeader::default() };
    model.chunk(&header, &records).unwrap();
    let (totals, attribution) = model.finish().unwrap();
    let run = ModelledRun {
        machine,
        policy: Default::default(),
        order: Default::default(),
        only_user: false,
        notes: Vec::new(),
        totals: totals.clone(),
        curve: None,
        side: &SideTables::default(),
        symbols: &Symbols::default(),
    };
    (totals.sets, attribution.into_record(run))
}

#[test]
fn pressure_on_sets_is_the_commands() {
    let (model, alone) = walked(false);
    assert!(alone.sets[0].conflict_misses[0] > 0 && alone.sets.len() == 3);
    assert_eq!(alone.sets, model);
    let (model, among) = walked(true);
    assert!(among.others.levels[0].misses() > 0);
    for ((whole, own), before) in model.iter().zip(&among.sets).zip(&alone.sets) {
        assert_eq!((&own.misses, &own.conflict_misses), (&before.misses, &before.conflict_misses));
        assert_eq!(own.lines, whole.lines);
    }
    assert_ne!(model[0].misses, alone.sets[0].misses);
}
