//! Functions line by line and instruction by instruction.

#![allow(clippy::unwrap_used)]

use crate::support;
use nearmiss_record::model::{InstructionRow, LineRow, MissClass, Tally};
use nearmiss_report::code::{Options, Source, hottest, named, render};
use nearmiss_report::html;
use nearmiss_report::load::Report;

const MODULE: &str = "/usr/bin/prog";
const NAME: &str = "ns::Pool<int>::walk(int*)";

/// 900 misses of one load in line 12, 100 hits in line 13, ten instructions of no known line.
fn annotated() -> support::Builder {
    let mut b = support::Builder::new(&["prog"], &[(1, 32 << 10, 8), (2, 512 << 10, 8)]);
    b.function(NAME, MODULE).function("clear_page", "[kernel]").function("main", MODULE);
    b.object(nearmiss_record::model::ObjectKind::Heap, "heap", 1, Some(64), None).task(100, "prog");
    let event = support::Event { function: NAME, ..support::Event::default() };
    b.event(support::Event { count: 900, missed: &[MissClass::Conflict], sets: &[3], ..event.clone() });
    let missed = b.model.functions[0].tally.clone();
    b.event(support::Event { count: 100, ..event });
    b.work(NAME, 100, 0, 10).work("main", 100, 0, 90).work("clear_page", 100, 0, 99_000);
    let hits = Tally {
        instructions: 100,
        loads: 100,
        line_accesses: 100,
        cycles: 100,
        levels: vec![Default::default(); 2],
        ..Tally::default()
    };
    let file = "src/pool.h".to_owned();
    for (line, tally) in [(12, &missed), (13, &hits)] {
        let (function, module, tally) = (NAME.to_owned(), MODULE.to_owned(), tally.clone());
        b.model.lines.push(LineRow { function, module, file: file.clone(), line, tally });
    }
    let mut instruction = |address, file: &str, line, tally: &Tally| {
        let (function, module, file) = (NAME.to_owned(), MODULE.to_owned(), file.to_owned());
        b.model.instructions.push(InstructionRow {
            function,
            module,
            address,
            file,
            line,
            tally: tally.clone(),
            chained_cycles: 0,
            columns: None,
        });
    };
    instruction(Some(0x1180), &file, 12, &missed);
    instruction(Some(0x1184), &file, 13, &hits);
    instruction(None, "", 0, &Tally { instructions: 10, cycles: 10, ..Tally::default() });
    b
}

fn with_texts() -> Report {
    let mut report = annotated().report();
    let lines = (1..=13).map(|n| format!("\tline {n};")).collect();
    report.texts.sources.insert("src/pool.h".into(), Source { lines, is_newer: true });
    report.texts.instructions.insert((MODULE.into(), 0x1180), "mov rax, [rdi]".into());
    report
}

fn text(report: &Report, name: &str, width: Option<usize>) -> String {
    anstream::adapter::strip_str(&render(report, &named(report, name).unwrap(), Options { width })).to_string()
}

#[test]
fn a_function_line_by_line() {
    let expected = "\
ns::Pool<…>::walk(…)  /usr/bin/prog
modelled: 13,610 cycles, 12.1% of the run's; shares are of the function's
  cycles     refs  L1 miss  L2 miss
src/pool.h  (changed after the program was built: lines may be off)
   99.2%      900      900        0     12      line 12;
                                            L1 conflict 900
   99.2%      900      900        0         1180  mov rax, [rdi]
    0.7%      100        0        0     13      line 13;
    0.7%      100        0        0         1184  –
    0.1%        0        0        0  no source line known
  100.0%    1,000      900        0  the whole function
";
    assert_eq!(text(&with_texts(), "walk", None), expected);
}

#[test]
fn texts_that_cannot_be_read_are_named() {
    let mut report = annotated().report();
    let plain = text(&report, "ns::Pool::walk", None);
    assert!(plain.contains("src/pool.h  (not to be read here)\n") && plain.contains("1180  –\n"), "{plain}");
    report.texts.without_code.insert(MODULE.into(), "prog was built anew since the run: addresses alone.".into());
    assert!(text(&report, "walk", None).contains("built anew since the run"));
    assert!(text(&report, "clear_page", None).contains("The kernel's code is not kept"));
    assert!(text(&report, "main", None).contains("of the functions with the most cycles alone"));
    report.model.instructions.clear();
    assert!(text(&report, "walk", None).contains("recorded by an older nearmiss"));
    assert_eq!(named(&report, "wlak").unwrap_err(), format!("no function `wlak`; near it: `{NAME}`"));
}

#[test]
fn lines_fit_the_terminal() {
    use unicode_width::UnicodeWidthStr;
    let text = text(&with_texts(), "walk", Some(60));
    assert!(text.lines().all(|line| line.width() <= 60), "{text}");
}

#[test]
fn user_code_is_shown_before_the_kernel_s() {
    let report = annotated().report();
    let names: Vec<&str> = hottest(&report, 3).iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, [NAME, "main"]);
}

#[test]
fn the_page_has_the_code_and_no_name_becomes_markup() {
    let mut report = with_texts();
    let hostile = "<script>owned()</script>\u{1b}[2J";
    report.texts.instructions.insert((MODULE.into(), 0x1180), hostile.into());
    report.texts.sources.get_mut("src/pool.h").unwrap().lines[11] = hostile.into();
    let page = html::render(&report, html::Options::default());
    assert!(page.contains("id=\"code\"") && page.contains("ns::Pool&lt;…&gt;::walk(…)"));
    assert!(page.contains("&lt;script&gt;owned()") && !page.contains("<script>owned") && !page.contains('\u{1b}'));
}
