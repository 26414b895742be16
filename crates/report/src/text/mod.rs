//! One page of text that a person can read at once.

mod head;
pub(crate) use head::policy;
mod tables;
pub(crate) use tables::kind_name;

use crate::load::Report;

/// How much, how wide.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Columns to fill, at least 60.
    pub width: usize,
    /// Rows of the longest table; the others show fewer.
    pub top: usize,
    /// Names are never cut, however long their lines: for what no terminal shows.
    pub whole_names: bool,
}

impl Default for Options {
    /// Fits a terminal of 80 columns and some 48 lines.
    fn default() -> Self {
        Options { width: 80, top: 5, whole_names: false }
    }
}

/// The page. It holds ANSI styles: strip them where no terminal reads it.
pub fn render(report: &Report, options: Options) -> String {
    let options = Options { width: options.width.clamp(60, 160), ..options };
    let mut page = Page { report, options, out: String::new() };
    page.head();
    page.cycles();
    page.misses();
    page.functions();
    page.objects();
    page.tasks();
    page.bus();
    page.translation();
    page.sharing();
    page.notes();
    page.out
}

struct Page<'a> {
    report: &'a Report,
    options: Options,
    out: String,
}

impl Page<'_> {
    fn line(&mut self, text: &str) {
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    /// A bold line, after an empty one.
    fn title(&mut self, text: &str) {
        let bold = anstyle::Style::new().bold();
        self.out.push_str(&format!("\n{bold}{}{bold:#}\n", text.trim_end()));
    }

    /// `Label  text`, wrapped and indented under itself.
    fn labelled(&mut self, label: &str, text: &str) {
        const LABEL: usize = 10;
        for (i, line) in crate::name::wrapped(text, self.options.width - LABEL).iter().enumerate() {
            self.line(&format!("{:LABEL$}{line}", if i == 0 { label } else { "" }));
        }
    }
}
