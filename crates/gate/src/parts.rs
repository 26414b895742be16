//! Functions and objects of one recording, with what they did.

use nearmiss_record::baseline::{BaselinePart, Counts};
use nearmiss_record::gate::PartKind;
use nearmiss_record::model::{FunctionRow, LineRow, ModelRecord, ObjectKind, StackRow, Tally};
use std::collections::{BTreeMap, HashMap};

/// The last part of a path.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a function is the kernel's. The clock that it maps into each program is, too: how long a call takes there
/// depends on the moment, since it begins anew where a tick changes the time under it.
pub(crate) fn is_the_kernels(row: &FunctionRow) -> bool {
    row.kernel || row.module == "[vdso]"
}

/// All functions and objects of the command. `calls`: entries of functions, by name and module.
pub(crate) fn parts(model: &ModelRecord, calls: &BTreeMap<(String, String), u64>) -> Vec<BaselinePart> {
    let (lines, callers) = (hottest_lines(&model.lines), callers(&model.stacks));
    let functions = model.functions.iter().map(|row| {
        let (file, line) = lines.get(&(row.name.as_str(), row.module.as_str())).copied().unwrap_or(("", 0));
        let module = file_name(&row.module).to_owned();
        BaselinePart {
            kind: PartKind::Function,
            calls: calls.get(&(row.name.clone(), module.clone())).copied().unwrap_or(0),
            name: row.name.clone(),
            module,
            kernel: is_the_kernels(row),
            file: file.to_owned(),
            line,
            caller: callers.get(row.name.as_str()).copied().unwrap_or("").to_owned(),
            counts: counts(&row.tally),
        }
    });
    let objects = model.objects.iter().filter(|row| row.kind != ObjectKind::Unattributed).map(|row| BaselinePart {
        kind: PartKind::Object,
        name: row.name.clone(),
        module: kind_name(row.kind).to_owned(),
        kernel: false,
        file: String::new(),
        line: 0,
        caller: String::new(),
        calls: row.count,
        counts: Counts { instructions: 0, cycles: 0, ..counts(&row.tally) },
    });
    functions.chain(objects).collect()
}

fn counts(tally: &Tally) -> Counts {
    let class = |level: &nearmiss_record::model::LevelTally| {
        let all = level.load_misses.iter().zip(&level.store_misses).zip(&level.fetch_misses);
        let mut sums = [0; 6];
        sums.iter_mut().zip(all).for_each(|(sum, ((loads, stores), fetches))| *sum = loads + stores + fetches);
        sums
    };
    Counts {
        instructions: tally.instructions,
        loads: tally.loads,
        stores: tally.stores,
        misses: tally.levels.iter().map(class).collect(),
        cycles: tally.cycles,
    }
}

/// Returns the line with the most cycles, by function and module.
fn hottest_lines(lines: &[LineRow]) -> HashMap<(&str, &str), (&str, u32)> {
    let mut hottest: HashMap<(&str, &str), (&LineRow, u64)> = HashMap::new();
    for row in lines.iter().filter(|row| row.line != 0) {
        let known = hottest.entry((row.function.as_str(), row.module.as_str())).or_insert((row, row.tally.cycles));
        if row.tally.cycles > known.1 {
            *known = (row, row.tally.cycles);
        }
    }
    hottest.into_iter().map(|(function, (row, _))| (function, (row.file.as_str(), row.line))).collect()
}

/// Returns the caller under which a function took the most cycles, by function. A function that calls itself is no caller.
fn callers(stacks: &[StackRow]) -> HashMap<&str, &str> {
    let mut cycles: HashMap<(&str, &str), u64> = HashMap::new();
    for stack in stacks {
        if let Some((function, above)) = stack.frames.split_last()
            && let Some(caller) = above.iter().rev().find(|caller| *caller != function)
        {
            *cycles.entry((function.as_str(), caller.as_str())).or_default() += stack.cycles;
        }
    }
    let mut most: HashMap<&str, (&str, u64)> = HashMap::new();
    let mut all: Vec<_> = cycles.into_iter().collect();
    all.sort_unstable();
    for ((function, caller), cycles) in all {
        let known = most.entry(function).or_insert((caller, cycles));
        if cycles > known.1 {
            *known = (caller, cycles);
        }
    }
    most.into_iter().map(|(function, (caller, _))| (function, caller)).collect()
}

fn kind_name(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Heap => "heap",
        ObjectKind::Managed => "managed heap",
        ObjectKind::File => "mapped file",
        ObjectKind::Anonymous => "anonymous mapping",
        ObjectKind::Stack => "stack",
        ObjectKind::Global => "variable",
        ObjectKind::Slab => "slab",
        ObjectKind::PageCache => "page cache",
        ObjectKind::PageTable => "page table",
        ObjectKind::KernelStack => "kernel stack",
        ObjectKind::KernelData => "kernel variable",
        ObjectKind::KernelOther => "kernel memory",
        ObjectKind::Code => "code",
        ObjectKind::Unattributed => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(frames: &[&str], cycles: u64) -> StackRow {
        let frames = frames.iter().map(|name| (*name).to_owned()).collect();
        StackRow { frames, misses: Vec::new(), stall_cycles: 0, cycles }
    }

    #[test]
    fn the_caller_is_the_one_with_the_most_cycles() {
        let stacks = [
            stack(&["main", "load", "grow"], 10),
            stack(&["main", "insert", "grow"], 8),
            stack(&["main", "resize", "insert", "grow"], 7),
            stack(&["main", "walk", "walk"], 5),
            stack(&["main"], 100),
        ];
        assert_eq!(callers(&stacks), HashMap::from([("grow", "insert"), ("walk", "main")]));
    }

    #[test]
    fn the_hottest_line_stands_for_a_function() {
        let line = |line, cycles| LineRow {
            function: "grow".into(),
            module: "/p".into(),
            file: "table.c".into(),
            line,
            tally: Tally { cycles, ..Tally::default() },
        };
        let lines = [line(3, 10), line(0, 99), line(7, 40), line(9, 20)];
        assert_eq!(hottest_lines(&lines), HashMap::from([(("grow", "/p"), ("table.c", 7))]));
    }
}
