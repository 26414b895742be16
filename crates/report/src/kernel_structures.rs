//! Uses of the kernel's structures as text: a table a structure, its lines and the fields on them.

use crate::name::{cell, plain, right, wrapped};
use crate::number::{bytes, counted, grouped, percent_of};
use nearmiss_record::kernel_structures::{KernelFieldUse, KernelStructures, LineUse, StructureUse, Visits};
use nearmiss_record::words::listed;

/// Columns of a field's name, at most.
const NAME: usize = 44;
/// Fields of a line that are shown, and functions of a field.
const FIELDS: usize = 6;
const FUNCTIONS: usize = 2;

/// The page, for lines of `width` columns; the `top` structures with most references.
pub fn render(record: &KernelStructures, width: usize, top: usize) -> String {
    let mut page = Page { out: String::new(), width: width.max(60) };
    let during = if record.during.is_empty() {
        String::new()
    } else {
        let names: Vec<String> = record.during.iter().map(|name| format!("`{}`", plain(name))).collect();
        format!(" during calls of {}", listed(&names, "and"))
    };
    let head = format!(
        "Structures of the kernel {}, with every reference{during}, the most used first; counted",
        record.kernel
    );
    page.text(&head);
    for structure in record.structures.iter().take(top) {
        page.structure(structure);
    }
    match record.structures.len().saturating_sub(top) {
        0 if record.structures.is_empty() => page.text("No object of a known structure was used."),
        0 => {}
        more => page.text(&format!("\n{} with fewer references (--top, --json)", counted(more as u64, "structure"))),
    }
    page.out
}

struct Page {
    out: String,
    width: usize,
}

impl Page {
    fn text(&mut self, text: &str) {
        if text.starts_with('\n') {
            self.out.push('\n');
        }
        for line in wrapped(text, self.width) {
            self.line(&line);
        }
    }

    fn line(&mut self, line: &str) {
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }

    fn structure(&mut self, structure: &StructureUse) {
        let StructureUse { objects, reads, writes, lines, .. } = structure;
        let name = plain(&structure.structure);
        let size = bytes(structure.bytes.into());
        self.text(&format!(
            "\n`{name}`: {} of {size}, {} each; {} and {}",
            counted(*objects, "object"),
            counted((*lines).into(), "line"),
            counted(*reads, "read"),
            counted(*writes, "write"),
        ));
        structure.visits.iter().for_each(|visits| self.text(&visited(visits, *lines)));
        if !structure.begins_lines {
            self.text("Not every object begins with a line: lines are counted as if it did.");
        }
        self.table(structure);
    }

    fn table(&mut self, structure: &StructureUse) {
        let all: u64 = structure.visits.iter().map(|visits| visits.count).sum();
        let base = base(structure);
        let shown = |line: &LineUse| line.fields.iter().take(FIELDS).map(|field| short(&field.name, &base)).collect();
        let names: Vec<Vec<String>> = structure.by_line.iter().map(shown).collect();
        let width = names.iter().flatten().map(String::len).max().unwrap_or(0).clamp(5, NAME);
        let (line, visits) = (right("line", 6), right("visits", 8));
        let (reads, writes) = (right("reads", 9), right("writes", 9));
        self.line(&format!("{line}{visits}  {}{reads}{writes}  functions", cell("field", width)));
        for (line, names) in structure.by_line.iter().zip(&names) {
            let mut ahead = right(&line.line.to_string(), 6) + &right(&percent_of(line.visits, all), 8);
            for (field, name) in line.fields.iter().zip(names) {
                self.line(&format!("{ahead}  {}", row(name, width, field)));
                ahead = " ".repeat(14);
            }
            if let Some(rest) = rest(line, names.len()) {
                self.line(&format!("{ahead}  {}", row(&rest.name, width, &rest)));
            }
        }
    }
}

fn row(name: &str, width: usize, field: &KernelFieldUse) -> String {
    let functions: Vec<String> = field.functions.iter().take(FUNCTIONS).map(|one| plain(&one.function)).collect();
    let counts = right(&grouped(field.reads), 9) + &right(&grouped(field.writes), 9);
    format!("{}{counts}  {}", cell(name, width), functions.join(", "))
}

/// Fields of a line that are not shown, as one.
fn rest(line: &LineUse, shown: usize) -> Option<KernelFieldUse> {
    let hidden = line.fields.get(shown..).filter(|hidden| !hidden.is_empty())?;
    Some(KernelFieldUse {
        name: format!("others ({})", counted(hidden.len() as u64, "field")),
        reads: hidden.iter().map(|field| field.reads).sum(),
        writes: hidden.iter().map(|field| field.writes).sum(),
        ..KernelFieldUse::default()
    })
}

fn visited(visits: &Visits, lines: u32) -> String {
    let of = match &visits.during {
        Some(name) => format!("one object during a call of `{}`", plain(name)),
        None => "one object during a stay in the kernel".to_owned(),
    };
    format!(
        "A visit ({of}) uses {} of its {}: the median of {}, which use {} to {}.",
        visits.median_lines,
        counted(lines.into(), "line"),
        counted(visits.count, "visit"),
        visits.fewest_lines,
        visits.most_lines
    )
}

/// Members that lead to the structure's first field: those of the structures that this one extends.
fn base(structure: &StructureUse) -> Vec<String> {
    let first = structure.by_line.first().and_then(|line| line.fields.iter().min_by_key(|field| field.from));
    let mut path: Vec<String> = first.map_or(Vec::new(), |field| field.name.split('.').map(str::to_owned).collect());
    path.pop();
    path
}

/// The name without the members of `base` that it begins with.
fn short(name: &str, base: &[String]) -> String {
    let same = name.split('.').zip(base).take_while(|(member, base)| member == base).count();
    plain(&name.split('.').skip(same).collect::<Vec<_>>().join("."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearmiss_record::kernel_structures::{FunctionUse, LineSet};

    fn field(name: &str, from: u32, reads: u64, writes: u64, function: &str) -> KernelFieldUse {
        let functions = vec![FunctionUse { function: function.into(), reads, writes }];
        KernelFieldUse { name: name.into(), from, bytes: 8, reads, writes, functions }
    }

    #[test]
    fn fields_stand_by_their_lines() {
        let state = field("inet_conn.sk.state", 0, 1200, 0, "tcp_v4_rcv");
        let inner = field("inet_conn.icsk_rto", 8, 3, 4, "tcp_ack");
        let window = field("window", 64, 10, 2, "tcp_ack");
        let line = |line, visits, fields| LineUse { line, reads: 0, writes: 0, visits, fields };
        let visits = Visits {
            during: Some("tcp_v4_rcv".into()),
            count: 100,
            median_lines: 2,
            fewest_lines: 1,
            most_lines: 2,
            sets: vec![LineSet { lines: vec![0, 1], visits: 75 }],
        };
        let structure = StructureUse {
            structure: "tcp_sock".into(),
            caches: vec!["TCP".into()],
            bytes: 2328,
            lines: 37,
            begins_lines: true,
            objects: 2,
            reads: 1213,
            writes: 6,
            visits: vec![visits],
            by_line: vec![line(0, 100, vec![state, inner]), line(1, 75, vec![window])],
        };
        let record = KernelStructures {
            kernel: "6.12".into(),
            during: vec!["tcp_v4_rcv".into()],
            structures: vec![structure.clone(), structure],
            ..KernelStructures::default()
        };
        let expected = "\
Structures of the kernel 6.12, with every reference during calls of
`tcp_v4_rcv`, the most used first; counted

`tcp_sock`: 2 objects of 2.3 KiB, 37 lines each; 1,213 reads and 6 writes
A visit (one object during a call of `tcp_v4_rcv`) uses 2 of its 37 lines: the
median of 100 visits, which use 1 to 2.
  line  visits  field       reads   writes  functions
     0  100.0%  state       1,200        0  tcp_v4_rcv
                icsk_rto        3        4  tcp_ack
     1   75.0%  window         10        2  tcp_ack

1 structure with fewer references (--top, --json)
";
        assert_eq!(render(&record, 80, 1), expected);
    }
}
