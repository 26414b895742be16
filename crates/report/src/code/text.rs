//! Annotated functions as text.

use super::view::{Annotated, Figures, File, Line, ShownInstruction};
use crate::function_name::folded;
use crate::levels::class_name;
use crate::load::Report;
use crate::name::{fitted, plain, right};
use crate::number::{counted, percent_of, scaled};
use crate::texts::Texts;
use nearmiss_record::model::{FunctionRow, MissClass};

/// How wide.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Columns of the terminal; `None`: lines are as long as they are.
    pub width: Option<usize>,
}

const SHARE: usize = 8;
const COUNT: usize = 9;
/// Source lines without figures that are shown between two with figures, as the context of both.
const CONTEXT: u32 = 3;

/// The functions, each with its lines and instructions.
pub fn render(report: &Report, functions: &[&FunctionRow], options: Options) -> String {
    let mut page = Page { report, options, out: String::new() };
    for function in functions {
        page.function(&Annotated::of(report, function));
    }
    if functions.is_empty() {
        page.line("No function has modelled cycles.".to_owned());
    }
    page.out
}

struct Page<'a> {
    report: &'a Report,
    options: Options,
    out: String,
}

impl Page<'_> {
    fn texts(&self) -> &Texts {
        &self.report.texts
    }

    fn line(&mut self, text: String) {
        let text = text.trim_end();
        self.out.push_str(&self.options.width.map_or_else(|| text.to_owned(), |width| fitted(text, width)));
        self.out.push('\n');
    }

    fn function(&mut self, annotated: &Annotated<'_>) {
        let (function, whole) = (annotated.function, &annotated.whole);
        let bold = anstyle::Style::new().bold();
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        let name = folded(&plain(&function.name));
        self.out.push_str(&format!("{bold}{name}{bold:#}  {}\n", plain(&function.module)));
        let share = percent_of(whole.cycles, self.report.model.totals.cycles);
        self.line(format!(
            "modelled: {} cycles, {share} of the run's; shares are of the function's",
            scaled(whole.cycles)
        ));
        if let Some(why) = self.missing(annotated) {
            self.line(why);
        }
        let mut head = right("cycles", SHARE) + &right("refs", COUNT);
        for level in &self.report.levels {
            head += &right(&format!("{} miss", level.name), COUNT);
        }
        self.line(head);
        annotated.files.iter().for_each(|file| self.file(annotated, file));
        for place in &annotated.without_line {
            self.place(whole, place);
        }
        let (count, others) = &annotated.others;
        if *count > 0 {
            let lines = counted(*count as u64, "other line");
            self.row(whole, others, &lines);
        }
        if !annotated.no_line.is_nothing() {
            self.row(whole, &annotated.no_line, "no source line known");
        }
        self.row(whole, whole, "the whole function");
    }

    /// Returns why there are no instructions, or not all.
    fn missing(&self, annotated: &Annotated<'_>) -> Option<String> {
        let function = annotated.function;
        if function.kernel {
            return Some("The kernel's code is not kept: addresses alone.".to_owned());
        }
        if !annotated.has_instructions {
            return Some(if self.report.model.instructions.is_empty() {
                "The run has no figures of instructions: it was recorded by an older nearmiss.".to_owned()
            } else {
                "Instructions are kept of the functions with the most cycles alone.".to_owned()
            });
        }
        self.texts().without_code.get(&function.module).map(|why| plain(why))
    }

    fn file(&mut self, annotated: &Annotated<'_>, file: &File<'_>) {
        let remark = self.texts().remark(file.path).map_or(String::new(), |remark| format!("  ({remark})"));
        self.line(format!("{}{remark}", plain(file.path)));
        let mut before: Option<u32> = None;
        for line in &file.lines {
            if let Some(before) = before {
                self.between(file.path, before + 1, line.number);
            }
            self.source_line(annotated, file.path, line);
            before = Some(line.number);
        }
    }

    /// The lines in between, where they are few; else a mark.
    fn between(&mut self, path: &str, from: u32, until: u32) {
        if from >= until {
            return;
        }
        let texts: Vec<_> = (from..until.min(from + CONTEXT)).map(|n| (n, self.texts().line(path, n))).collect();
        if until - from > CONTEXT || texts.iter().any(|(_, text)| text.is_none()) {
            return self.line(self.indent() + "⋮");
        }
        for (number, text) in texts {
            self.line(format!("{}{number:>5}  {}", self.indent(), text.unwrap_or_default()));
        }
    }

    fn source_line(&mut self, annotated: &Annotated<'_>, path: &str, line: &Line<'_>) {
        let text = self.texts().line(path, line.number).unwrap_or_default();
        self.row(&annotated.whole, &line.figures, &format!("{:>5}  {text}", line.number));
        self.classes(&line.figures);
        for place in &line.instructions {
            self.place(&annotated.whole, place);
            if line.instructions.len() > 1 {
                self.classes(&place.figures);
            }
        }
    }

    fn place(&mut self, whole: &Figures, place: &ShownInstruction<'_>) {
        let text = self.texts().instruction(&place.row.module, place.address);
        self.row(whole, &place.figures, &format!("       {:x}  {text}", place.address));
    }

    fn row(&mut self, whole: &Figures, figures: &Figures, what: &str) {
        let mut row =
            right(&percent_of(figures.cycles, whole.cycles), SHARE) + &right(&scaled(figures.references), COUNT);
        for level in &self.report.levels {
            row += &right(&scaled(figures.misses(level.index)), COUNT);
        }
        self.line(format!("{row}  {what}"));
    }

    fn classes(&mut self, figures: &Figures) {
        if let Some(classes) = classes(self.report, figures) {
            self.line(format!("{}       {classes}", self.indent()));
        }
    }

    fn indent(&self) -> String {
        " ".repeat(SHARE + COUNT * (1 + self.report.levels.len()) + 2)
    }
}

/// The misses of each level by class, most first; `None`: there are none.
fn classes(report: &Report, figures: &Figures) -> Option<String> {
    let of_level = |level: &crate::levels::Level| {
        let misses = figures.levels.get(level.index).copied().unwrap_or_default();
        let mut classes: Vec<(u64, &str)> = misses.into_iter().zip(MissClass::ALL.map(class_name)).collect();
        classes.retain(|(misses, _)| *misses > 0);
        classes.sort_by_key(|(misses, _)| std::cmp::Reverse(*misses));
        let parts: Vec<String> = classes.iter().map(|(misses, class)| format!("{class} {}", scaled(*misses))).collect();
        (!parts.is_empty()).then(|| format!("{} {}", level.name, parts.join(", ")))
    };
    let levels: Vec<String> = report.levels.iter().filter_map(of_level).collect();
    (!levels.is_empty()).then(|| levels.join("; "))
}
