//! The tables: each shows its heaviest rows and one for all others, so that every column is whole.

use super::Page;
use crate::function_name::folded;
use crate::levels::{class_short, dominant, misses, references};
use crate::name::{cell, file_name, fitted, plain, right};
use crate::number::{bytes, counted, grouped, percent_of, scaled, shares_tenths, tenths};
use crate::ranking::Ranking;
use nearmiss_record::model::{BusTally, FunctionRow, LineSharing, MissClass, ObjectKind, ObjectRow, Tally, TaskRow};
use unicode_width::UnicodeWidthStr;

/// Columns of a share.
const SHARE: usize = 7;
/// Columns of a name that is not cut.
const WHOLE_NAME: usize = 10_000;
/// Columns of a share of a level's misses.
const LEVEL_SHARE: usize = 8;

impl Page<'_> {
    pub(super) fn misses(&mut self) {
        let levels = self.report.levels.clone();
        let per = if self.report.model.totals.instructions > 0 { "/1k ins" } else { "of refs" };
        let class_width = |class| 1 + class_short(class).len();
        let mut title = format!("{}{}{}", cell("Modelled misses", 15), right("count", 6), right(per, 8));
        for class in MissClass::ALL {
            title += &right(class_short(class), class_width(class));
        }
        self.title(&title);
        for level in &levels {
            let tally = crate::levels::level(&self.report.model.totals, level.index);
            let parts = MissClass::ALL.map(|c| tally.class(c));
            let size = level.size.map_or(String::new(), |s| s.to_string());
            let mut line = format!(
                "  {}{}{}",
                cell(&format!("{} {size}", level.name), 11),
                right(&scaled(tally.misses()), 8),
                right(&self.misses_per_kilo(tally.misses()), 8)
            );
            for ((class, part), share) in MissClass::ALL.into_iter().zip(parts).zip(shares_tenths(&parts)) {
                line += &right(&tenths(part, share), class_width(class));
            }
            self.line(&line);
        }
    }

    pub(super) fn functions(&mut self) {
        let rows = &self.report.model.functions;
        let ranking = Ranking::new(rows, self.options.top, |r: &FunctionRow| r.tally.clone());
        let label = |r: &FunctionRow| {
            let module = plain(file_name(&r.module));
            let room = self.name_width(true).saturating_sub(2 + module.width()).max(8);
            format!("{}  {module}", fitted(&folded(&r.name), room))
        };
        let labels: Vec<String> = ranking.shown.iter().map(|(r, _)| label(r)).collect();
        self.table("Functions, modelled share of", &labels, &ranking, "functions", true);
    }

    pub(super) fn objects(&mut self) {
        let rows = &self.report.model.objects;
        let ranking = Ranking::new(rows, self.options.top.saturating_sub(2).max(2), |r: &ObjectRow| r.tally.clone());
        let labels: Vec<String> = ranking.shown.iter().map(|(r, _)| object_label(r, self.name_width(false))).collect();
        self.table("Objects, modelled share of", &labels, &ranking, "objects", false);
    }

    /// A name within a sentence.
    pub(super) fn named(&self, name: &str, width: usize) -> String {
        fitted(name, if self.options.whole_names { WHOLE_NAME } else { width })
    }

    /// Columns that a name may take beside the shares.
    fn name_width(&self, with_cycles: bool) -> usize {
        if self.options.whole_names { WHOLE_NAME } else { self.column_width(with_cycles) }
    }

    /// Columns that names have beside the shares.
    fn column_width(&self, with_cycles: bool) -> usize {
        let shares = (1 + usize::from(with_cycles)) * SHARE + self.report.levels.len() * LEVEL_SHARE;
        self.options.width.saturating_sub(2 + shares + "  L1 conflict".len()).max(16)
    }

    fn table<T>(&mut self, title: &str, labels: &[String], ranking: &Ranking<'_, T>, noun: &str, with_cycles: bool) {
        let levels = self.report.levels.clone();
        let longest = labels.iter().map(|label| label.width()).max().unwrap_or(0);
        let width = self.column_width(with_cycles).max(longest);
        let mut head = cell(title, width + 2);
        let mut columns: Vec<(usize, Vec<u64>)> = Vec::new();
        if with_cycles {
            head += &right("cycles", SHARE);
            columns.push((SHARE, ranking.column(|t| t.cycles)));
        }
        head += &right("refs", SHARE);
        columns.push((SHARE, ranking.column(references)));
        for level in &levels {
            head += &right(&format!("{} miss", level.name), LEVEL_SHARE);
            columns.push((LEVEL_SHARE, ranking.column(|t| misses(t, level.index))));
        }
        head += "  mostly";
        let shares: Vec<Vec<u32>> = columns.iter().map(|(_, c)| shares_tenths(c)).collect();
        self.title(&head);
        let rest = format!("others ({} {noun})", grouped(ranking.rest_rows as u64));
        let labels = labels.iter().chain((ranking.rest_rows > 0).then_some(&rest));
        let tallies = ranking.shown.iter().map(|(_, t)| t).chain((ranking.rest_rows > 0).then_some(&ranking.rest));
        for (row, (label, tally)) in labels.zip(tallies).enumerate() {
            let mut line = format!("  {}", cell(label, width));
            for ((column_width, column), share) in columns.iter().zip(&shares) {
                line += &right(&tenths(column[row], share[row]), *column_width);
            }
            if let Some((level, class)) = dominant(tally, &levels) {
                line += &format!("  {} {}", levels[level].name, class_short(class));
            }
            self.line(&line);
        }
        if ranking.shown.is_empty() {
            self.line("  nothing recorded");
        }
    }

    pub(super) fn tasks(&mut self) {
        let whole = |r: &TaskRow| crate::sums::sum([&r.user, &r.kernel]);
        let tasks = crate::split::tasks(&self.report.model, true);
        let mut ranking = Ranking::new(&tasks, 2, whole);
        // A line of tasks shows who used the time: most cycles first.
        ranking.shown.sort_by_key(|(_, t)| std::cmp::Reverse(t.cycles));
        let cycles = ranking.column(|t| t.cycles);
        let shares = shares_tenths(&cycles);
        let mut parts: Vec<String> = ranking
            .shown
            .iter()
            .zip(cycles.iter().zip(&shares))
            .map(|((row, _), (part, share))| {
                format!("{} {} {}", self.named(&row.comm, 16), row.tid, tenths(*part, *share))
            })
            .collect();
        if let (Some(part), Some(share), true) = (cycles.last(), shares.last(), ranking.rest_rows > 0) {
            parts.push(format!("others ({}) {}", ranking.rest_rows, tenths(*part, *share)));
        }
        self.line("");
        if !parts.is_empty() {
            self.labelled("Tasks", &format!("by cycles: {}", parts.join(", ")));
            self.kernel_and_user(&ranking.total);
        }
    }

    fn kernel_and_user(&mut self, total: &Tally) {
        let kernel = crate::split::in_kernel(&self.report.model);
        let mut text = format!("{} of the cycles; misses", percent_of(kernel.cycles, total.cycles));
        for level in &self.report.levels {
            let share = percent_of(misses(&kernel, level.index), misses(total, level.index));
            text += &format!(" {} {share}", level.name);
        }
        text += &format!("; bus {}", percent_of(kernel.bus.transactions(), total.bus.transactions()));
        self.labelled("In kernel", &text);
    }

    pub(super) fn bus(&mut self) {
        let bus = self.report.model.totals.bus;
        let mut text = format!("{} = {}", scaled(bus.transactions()), reads_by_class(&bus));
        let others = [
            (bus.write_backs, "write-backs"),
            (bus.invalidations, "invalidations"),
            (bus.nt_full, "non-temporal lines"),
            (bus.nt_partial, "non-temporal parts"),
        ];
        for (count, name) in others.iter().filter(|(count, _)| *count > 0) {
            text += &format!(" + {} {name}", scaled(*count));
        }
        self.labelled("Bus", &text);
        let model = &self.report.model;
        if model.machine.memory.nodes > 1 && !model.only_user {
            let (user, kernel) = (crate::split::in_user(model).bus, crate::split::in_kernel(model).bus);
            self.labelled("  user", &reads_by_class(&user));
            self.labelled("  kernel", &reads_by_class(&kernel));
        }
    }

    pub(super) fn translation(&mut self) {
        let Some(translation) = self.report.model.translation.filter(|translation| translation.first_misses > 0) else {
            return;
        };
        let walks = translation.walks.saturating_add(translation.large_walks);
        let exactness = match self.report.manifest.filter.index_bits {
            0 => "",
            _ => "; approximate, as the trace's filter of several lines dropped look-ups of pages used shortly before",
        };
        let text = format!(
            "{} look-ups of data missed the first level, {} walked the page table ({} to pages of 2 MiB); of all that \
             ran{exactness}",
            scaled(translation.first_misses),
            scaled(walks),
            scaled(translation.large_walks)
        );
        self.labelled("Pages", &text);
    }

    pub(super) fn sharing(&mut self) {
        let lines = &self.report.model.shared_lines;
        let Some(first) = lines.iter().max_by_key(|l| l.true_sharing.saturating_add(l.false_sharing)) else { return };
        let total =
            lines.iter().fold(0u64, |sum, l| sum.saturating_add(l.true_sharing).saturating_add(l.false_sharing));
        self.labelled(
            "Sharing",
            &format!(
                "{} that moved most between CPUs: {} ({} order); first {}, {}{}",
                counted(lines.len() as u64, "line"),
                format_args!("{} misses", scaled(total)),
                self.report.model.order.word(),
                self.named(&first.object, 40),
                match (first.tenants.is_empty(), first.sharing()) {
                    (true, _) => format!("{} true, {} false", scaled(first.true_sharing), scaled(first.false_sharing)),
                    (_, LineSharing::False) => "shared falsely".to_owned(),
                    (_, LineSharing::True) => "shared truly".to_owned(),
                },
                first.functions.first().map_or(String::new(), |f| format!(", in {}", self.named(&folded(f), 30))),
            ),
        );
    }
}

/// Names the kind of memory, for people.
pub(crate) fn kind_name(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Heap => "heap",
        ObjectKind::Managed => "managed",
        ObjectKind::File => "file",
        ObjectKind::Anonymous => "anon",
        ObjectKind::Stack => "stack",
        ObjectKind::Global => "global",
        ObjectKind::Slab => "slab",
        ObjectKind::PageCache => "page cache",
        ObjectKind::PageTable => "page table",
        ObjectKind::KernelStack => "kernel stack",
        ObjectKind::KernelData => "kernel data",
        ObjectKind::KernelOther => "kernel other",
        ObjectKind::Code => "code",
        ObjectKind::Unattributed => "unattributed",
    }
}

fn object_label(row: &ObjectRow, width: usize) -> String {
    let size = match (row.count, row.size_bytes) {
        (0 | 1, None) => String::new(),
        (0 | 1, Some(size)) => format!(" {}", bytes(size)),
        (n, None) => format!(" {}×", grouped(n)),
        (n, Some(size)) => format!(" {}× {}", grouped(n), bytes(size)),
    };
    let kind = kind_name(row.kind);
    let name = if row.name.starts_with('/') { file_name(&row.name) } else { &row.name };
    if name == kind {
        return format!("{kind}{size}");
    }
    let name_width = width.saturating_sub(kind.width() + 1 + size.width()).max(8);
    format!("{kind} {}{size}", fitted(name, name_width))
}

/// `419 k reads (r 20.0%, l-n 80.0%, l-s –, l-m –)`.
fn reads_by_class(bus: &BusTally) -> String {
    let reads = [bus.read_remote, bus.read_local_none, bus.read_local_shared, bus.read_local_modified];
    let shares = shares_tenths(&reads);
    let share = |i: usize| tenths(reads[i], shares[i]);
    format!("{} reads (r {}, l-n {}, l-s {}, l-m {})", scaled(bus.reads()), share(0), share(1), share(2), share(3))
}
