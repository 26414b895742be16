//! Callgrind's format, for KCachegrind and `callgrind_annotate`.
//!
//! Figures are modelled. The cost of a call with all it calls is known for stall cycles only, from the call stacks that
//! missed: the other events of a call are zero.

use crate::levels::level;
use crate::load::Report;
use crate::name::plain;
use crate::number::percent_of;
use nearmiss_record::model::{LineRow, Tally};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;

const EVENTS: [(&str, &str); 11] = [
    ("Ir", "Instructions"),
    ("Dr", "Data loads"),
    ("Dw", "Data stores"),
    ("I1mr", "L1 fetch misses"),
    ("D1mr", "L1 load misses"),
    ("D1mw", "L1 store misses"),
    ("ILmr", "Last-level fetch misses"),
    ("DLmr", "Last-level load misses"),
    ("DLmw", "Last-level store misses"),
    ("Cycles", "Modelled cycles"),
    ("Stall", "Modelled cycles waiting"),
];
type Costs = [u64; EVENTS.len()];

fn costs(tally: &Tally) -> Costs {
    let (first, last) = (level(tally, 0), level(tally, tally.levels.len().saturating_sub(1)));
    let sum = |classes: &[u64]| classes.iter().fold(0u64, |a, b| a.saturating_add(*b));
    [
        tally.instructions,
        tally.loads,
        tally.stores,
        sum(&first.fetch_misses),
        sum(&first.load_misses),
        sum(&first.store_misses),
        sum(&last.fetch_misses),
        sum(&last.load_misses),
        sum(&last.store_misses),
        tally.cycles,
        tally.stall_cycles,
    ]
}

/// Names are written once, then by number: no name can then be taken for syntax.
#[derive(Default)]
struct Names(HashMap<String, usize>);

impl Names {
    fn write(&mut self, name: &str) -> String {
        let name = plain(name);
        let next = self.0.len() + 1;
        match self.0.get(&name) {
            Some(id) => format!("({id})"),
            None => {
                let text = format!("({next}) {name}");
                self.0.insert(name, next);
                text
            }
        }
    }
}

struct Function<'a> {
    name: &'a str,
    module: &'a str,
    own: Costs,
    lines: Vec<&'a LineRow>,
    calls: BTreeMap<usize, u64>,
}

impl Function<'_> {
    fn file(&self) -> &str {
        self.lines.first().map_or("???", |l| l.file.as_str())
    }
}

/// The profile as text.
pub fn render(report: &Report) -> String {
    let functions = functions(report);
    let (mut objects, mut files, mut names) = (Names::default(), Names::default(), Names::default());
    let mut out = head(report, &functions);
    for function in &functions {
        let ob = objects.write(function.module);
        let fl = files.write(function.file());
        let fnn = names.write(function.name);
        // Writing to a String cannot fail.
        let _ = write!(out, "\nob={ob}\nfl={fl}\nfn={fnn}\n");
        let mut rest = function.own;
        for line in &function.lines {
            let own = costs(&line.tally);
            for (r, c) in rest.iter_mut().zip(own) {
                *r -= c;
            }
            if line.file != function.file() {
                let _ = writeln!(out, "fi={}", files.write(&line.file));
            }
            write_costs(&mut out, line.line, &own);
            if line.file != function.file() {
                let _ = writeln!(out, "fe={}", files.write(function.file()));
            }
        }
        if rest.iter().any(|c| *c > 0) {
            write_costs(&mut out, 0, &rest);
        }
        for (callee, stall_cycles) in &function.calls {
            let callee = &functions[*callee];
            let mut inclusive = [0; EVENTS.len()];
            inclusive[EVENTS.len() - 1] = *stall_cycles;
            // Once: readers take the line after a call count of nothing for the caller's own cost.
            let _ = write!(
                out,
                "cob={}\ncfi={}\ncfn={}\ncalls=1 0\n",
                objects.write(callee.module),
                files.write(callee.file()),
                names.write(callee.name)
            );
            write_costs(&mut out, 0, &inclusive);
        }
    }
    out
}

fn head(report: &Report, functions: &[Function<'_>]) -> String {
    let (manifest, model) = (&report.manifest, &report.model);
    let mut totals = [0u64; EVENTS.len()];
    for function in functions {
        for (total, cost) in totals.iter_mut().zip(function.own) {
            *total = total.saturating_add(cost);
        }
    }
    let known: u64 =
        functions.iter().flat_map(|f| f.lines.iter()).fold(0, |a: u64, l| a.saturating_add(l.tally.stall_cycles));
    let mut out = String::from("# callgrind format\nversion: 1\n");
    let _ = writeln!(out, "creator: nearmiss {}", plain(&manifest.nearmiss));
    let _ = writeln!(out, "cmd: {}", plain(&manifest.command.join(" ")));
    let _ = writeln!(out, "desc: Modelled on: {}", plain(&model.machine.name));
    let _ = writeln!(
        out,
        "desc: Source lines: known for {} of the stall cycles",
        percent_of(known, model.totals.stall_cycles)
    );
    let _ = writeln!(out, "desc: Calls: with callees, stall cycles only; how often is not known and stands as once");
    let _ = writeln!(out, "positions: line");
    for (event, name) in EVENTS {
        let _ = writeln!(out, "event: {event} : {name}");
    }
    let _ = writeln!(out, "events: {}", EVENTS.map(|e| e.0).join(" "));
    let _ = writeln!(out, "summary: {}", totals.map(|t| t.to_string()).join(" "));
    out
}

fn write_costs(out: &mut String, line: u32, costs: &Costs) {
    let _ = writeln!(out, "{line} {}", costs.map(|c| c.to_string()).join(" "));
}

fn functions(report: &Report) -> Vec<Function<'_>> {
    let model = &report.model;
    let mut functions: Vec<Function<'_>> = Vec::new();
    let mut by_name: HashMap<&str, usize> = HashMap::new();
    let mut ambiguous: HashSet<&str> = HashSet::new();
    for row in &model.functions {
        if by_name.contains_key(row.name.as_str()) {
            ambiguous.insert(&row.name);
        } else {
            by_name.insert(&row.name, functions.len());
        }
        functions.push(Function {
            name: &row.name,
            module: &row.module,
            own: costs(&row.tally),
            lines: vec![],
            calls: BTreeMap::new(),
        });
    }
    for line in model.lines.iter().filter(|l| !l.file.is_empty()) {
        if let Some(index) = by_name.get(line.function.as_str()).filter(|_| !ambiguous.contains(line.function.as_str()))
        {
            functions[*index].lines.push(line);
        }
    }
    for function in &mut functions {
        keep_lines_that_fit(function);
    }
    for row in &model.stacks {
        let mut seen = HashSet::new();
        let frames: Vec<usize> = row
            .frames
            .iter()
            .map(|frame| {
                *by_name.entry(frame).or_insert_with(|| {
                    functions.push(Function {
                        name: frame,
                        module: "[unknown]",
                        own: [0; EVENTS.len()],
                        lines: vec![],
                        calls: BTreeMap::new(),
                    });
                    functions.len() - 1
                })
            })
            .collect();
        for edge in frames.windows(2) {
            // A recursion passes an edge several times; what it waits for, it waits for once.
            if seen.insert((edge[0], edge[1])) {
                let cost = functions[edge[0]].calls.entry(edge[1]).or_default();
                *cost = cost.saturating_add(row.stall_cycles);
            }
        }
    }
    functions
}

/// Leaves out lines with more than their function has: its own row is the one that adds up.
fn keep_lines_that_fit(function: &mut Function<'_>) {
    let mut sum = [0u64; EVENTS.len()];
    for line in &function.lines {
        for (s, c) in sum.iter_mut().zip(costs(&line.tally)) {
            *s = s.saturating_add(c);
        }
    }
    if sum.iter().zip(function.own).any(|(s, own)| *s > own) {
        function.lines.clear();
    }
}
