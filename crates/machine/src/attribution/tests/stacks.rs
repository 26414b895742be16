//! Variables on first threads' stacks.

use super::*;
use nearmiss_record::model::ObjectRow;
use nearmiss_record::symbols::StackVariable;

#[test]
fn pieces_of_the_first_stack_are_variables_of_the_functions_that_use_them() {
    let mut s = Stream::new();
    s.begin();
    // Something is known of the process's memory.
    s.control(0, Control::Heap { op: HeapOp::Alloc, address: 0x10000, size: 64, old: 0, alignment: 0 });
    let stack = 0x7ffd_0000_0000;
    // `grid` of f1 has two lines, where `buffer` of f2 lay in another call; f2 uses the second.
    s.miss(0, load(stack + 0x108, 0), missed(MissClass::Conflict, 2, 100));
    s.miss(0, load(stack + 0x140, 2), missed(MissClass::Conflict, 2, 50));
    s.miss(0, load(stack + 0x188, 0), missed(MissClass::FalseSharing, 1, 20));
    s.miss(0, load(stack + 0x1f8, 0), missed(MissClass::Conflict, 1, 10));
    let side = SideTables { insns: vec![Insn::default(); 4], ..SideTables::default() };
    let variable = |offset, bytes, name: &str, function: &str| StackVariable {
        start: stack + offset,
        bytes,
        name: name.into(),
        function: function.into(),
    };
    let mut symbols = names(6);
    symbols.stack =
        vec![variable(0x100, 0xc0, "grid", "f1"), variable(0x120, 0x60, "buffer", "f2"), variable(0x1f0, 8, "i", "f1")];
    let record = s.finish(&side, &symbols, 0);
    assert_sums(&record);
    let row = |row: &ObjectRow| (row.name.clone(), row.count, row.size_bytes, row.tally.stall_cycles);
    let rows: Vec<_> = record.objects.iter().filter(|one| one.kind == ObjectKind::Stack).map(row).collect();
    let named = |name: &str, bytes, cycles| (name.to_owned(), 1, Some(bytes), cycles);
    assert_eq!(rows, [named("f1::grid", 0xc0, 120), named("f2::buffer", 0x60, 50), named("f1::i", 8, 10)]);
    assert_eq!(record.shared_lines[0].object, "f1::grid+0x80");
}
