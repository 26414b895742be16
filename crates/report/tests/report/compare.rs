//! Two runs side by side: every figure exact, every sum whole, harmless with any names.

#![allow(clippy::unwrap_used)]

use crate::support;
use crate::support::chromium::visit;
use nearmiss_record::comparison::{ComparedTable, Figures, RunComparison, UNATTRIBUTED};
use nearmiss_record::model::ModelRecord;
use nearmiss_record::observed::{FILE, Observed};
use nearmiss_record::run::{MANIFEST, MODEL, Manifest, RunDir, RunKind, VERDICT};
use nearmiss_report::compare::{compare, html, text};
use std::slice::from_ref;
use tempfile::TempDir;

fn traced(builder: support::Builder) -> (TempDir, RunDir) {
    let (directory, run) = run(&builder.manifest);
    run.write_json::<ModelRecord>(MODEL, &builder.model).unwrap();
    (directory, run)
}

fn observed((manifest, observed): (Manifest, Observed)) -> (TempDir, RunDir) {
    let (directory, run) = run(&manifest);
    run.write_json(FILE, &observed).unwrap();
    (directory, run)
}

fn run(manifest: &Manifest) -> (TempDir, RunDir) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join(MANIFEST), "{}").unwrap();
    let run = RunDir::open(directory.path()).unwrap();
    run.write_json(MANIFEST, manifest).unwrap();
    (directory, run)
}

/// The comparison, its directories called `A` and `B`.
fn compared(before: &RunDir, after: &RunDir) -> RunComparison {
    let mut comparison = compare(from_ref(before), from_ref(after)).unwrap();
    (comparison.before[0].path, comparison.after[0].path) = ("A".into(), "B".into());
    comparison
}

fn queues() -> RunComparison {
    let (before, after) = (traced(support::run_queue()), traced(support::run_queue_colored()));
    compared(&before.1, &after.1)
}

fn servers() -> RunComparison {
    let (before, after) = (observed(support::server::locked()), observed(support::server::lock_free()));
    compared(&before.1, &after.1)
}

fn table<'a>(comparison: &'a RunComparison, name: &str) -> &'a ComparedTable {
    comparison.tables.iter().find(|t| t.name == name).unwrap_or_else(|| panic!("no table {name}"))
}

/// A row's name and detail, and its first figure.
fn leads(table: &ComparedTable) -> Vec<(&str, &str, (u64, u64, i64))> {
    let lead = |f: Figures| (f.before, f.after, f.difference);
    table.rows.iter().map(|r| (r.name.as_str(), r.detail.as_str(), lead(r.figures[0]))).collect()
}

#[test]
fn functions_that_changed_most_come_first_and_modules_of_two_builds_are_one_row() {
    let comparison = queues();
    let functions = table(&comparison, "functions");
    let rows = leads(functions);
    // 6 tasks × (400,000 or 40,000 conflict misses × 46 + 30,000 × 250 + 9,000 × 90 cycles).
    assert_eq!(rows[0], ("schedule", "[kernel]", (160_260_000, 60_900_000, -99_360_000)));
    // 6 tasks × 700 or 2,700 misses × 14 cycles.
    assert_eq!(rows[1], ("memcpy", "libc.so.6", (58_800, 226_800, 168_000)));
    assert!(rows.contains(&("serve", "aligned-tasks → aligned-tasks-2", (0, 0, 0))), "{rows:?}");
    assert_eq!(rows.last().unwrap(), &(UNATTRIBUTED, "", (0, 0, 0)), "kept, and last");
    assert_eq!(rows.len(), 9);
}

#[test]
fn objects_and_classes_sum_to_the_totals_with_the_unattributed_row() {
    let comparison = queues();
    let objects = table(&comparison, "objects");
    assert_eq!(leads(objects)[0], ("task", "slab", (155_400_000, 56_040_000, -99_360_000)));
    assert_eq!(leads(objects).last().unwrap(), &(UNATTRIBUTED, "", (58_800, 226_800, 168_000)));
    let waited = table(&comparison, "totals").rows[1].figures[0];
    for name in ["functions", "objects"] {
        assert_eq!(table(&comparison, name).total.as_ref().unwrap()[0], waited, "{name}");
    }
    let levels = table(&comparison, "levels");
    for (index, row) in levels.rows.iter().enumerate() {
        let classes = table(&comparison, &format!("classes-l{}", index + 1));
        assert_eq!(classes.total.as_ref().unwrap()[0], row.figures[0], "{}", row.name);
    }
    let conflicts = leads(table(&comparison, "classes-l2"))[0];
    assert_eq!(conflicts, ("conflict", "", (2_580_000, 420_000, -2_160_000)));
    assert_eq!(levels.rows[2].figures[0], Figures::new(418_764, 418_764), "memory was read as often");
}

#[test]
fn locks_polls_and_samples_of_two_observations() {
    let comparison = servers();
    assert_eq!((comparison.kind, comparison.origin.as_str()), (RunKind::Observed, "measured"));
    let functions = table(&comparison, "functions-clock");
    let two = "server-1 → server-2";
    let expected =
        [("spin", "server-1", (190, 0, -190)), ("serve", two, (300, 310, 10)), (UNATTRIBUTED, "", (10, 10, 0))];
    assert_eq!(leads(functions), expected);
    assert_eq!(functions.total.as_ref().unwrap(), &[Figures::new(500, 320), Figures::new(1_000_000_000, 640_000_000)]);
    let locks = table(&comparison, "locks");
    assert_eq!(leads(locks), [("mutex, in enqueue", "futex", (400_000_000, 0, -400_000_000))]);
    assert_eq!(leads(table(&comparison, "polls")), [("worker", "epoll_wait", (3_900_000, 4_000_000, 100_000))]);
    assert_eq!(leads(table(&comparison, "io")), [("vda read", "worker", (20_000_000, 20_000_000, 0))]);
    assert!(comparison.notes.contains(&"Only A measured sched: not compared.".to_owned()), "{:?}", comparison.notes);
}

#[test]
fn differences_that_make_runs_less_comparable_are_noted() {
    let (_a, before) = traced(support::run_queue());
    let mut other = support::run_queue();
    other.model.machine.name = "other".into();
    other.model.only_user = true;
    let (_b, after) = traced(other);
    let notes = compared(&before, &after).notes;
    assert!(notes[1].starts_with("A was modelled on test-2cpu, B on other: "), "{notes:?}");
    assert_eq!(notes[2], "Only one of A and B was limited to the command's user mode.");
    assert_eq!(compared(&before, &before).notes, ["A and B are the same run: nothing can differ."]);

    let (mut manifest, timed) = support::server::locked();
    manifest.command.clear();
    let (_c, before) = observed((manifest, timed));
    let (_d, after) = observed(support::server::lock_free());
    let notes = compared(&before, &after).notes;
    assert!(notes.contains(&"A was observed for 2.00 s, B for 1.50 s: sums grow with time.".to_owned()), "{notes:?}");
}

#[test]
fn runs_of_different_kinds_are_refused() {
    let (_a, trace) = traced(support::run_queue());
    let (_b, observation) = observed(support::server::locked());
    let error = compare(from_ref(&trace), from_ref(&observation)).unwrap_err().to_string();
    assert!(
        error.contains("is a run of `nearmiss trace`, ") && error.contains("compare two runs of the same kind"),
        "{error}"
    );
    std::fs::write(trace.file(VERDICT), "{}").unwrap();
    let error = compare(&[observation], &[trace]).unwrap_err().to_string();
    assert!(error.contains("is a run of `nearmiss verify`, which has both sides in it"), "{error}");
}

#[test]
fn several_runs_a_side_separate_noise_from_difference() {
    let with = |more_cycles: u64, colored: bool| {
        let mut builder = if colored { support::run_queue_colored() } else { support::run_queue() };
        builder.model.totals.cycles += more_cycles;
        builder.model.totals.instructions += more_cycles;
        traced(builder)
    };
    let sides = [false, true].map(|colored| [0, 5_000, 10_000].map(|more| with(more, colored)));
    let [before, after] = sides.each_ref().map(|side| side.each_ref().map(|(_, run)| run.clone()));
    let comparison = compare(&before, &after).unwrap();
    let totals = table(&comparison, "totals");
    let of = |name: &str| totals.rows.iter().find(|row| row.name == name).unwrap().figures[0];
    // A variance of 25 million on both sides: 8.610 × √(25 million × 2 / 3).
    assert_eq!((of("cycles").noise, of("instructions").noise), (Some(35_152), Some(35_152)));
    assert_eq!(of("instructions").difference, 12_000);
    let text = page(&comparison, 100, 3);
    let line = |name: &str| text.lines().find(|line| line.trim_start().starts_with(name)).unwrap().to_owned();
    assert!(line("cycles ").ends_with("better") && line("instructions ").ends_with("noise"), "{text}");
    assert!(text.starts_with("A1 ") && text.contains("\nB3 "), "{text}");
    let twice = compare(&[before[0].clone(), before[0].clone()], from_ref(&after[0])).unwrap();
    assert_eq!(twice.notes[0], "A1 and A2 are the same run: the noise looks smaller than it is.");
    assert!(twice.notes[1].starts_with("Figures are means of 2 and 1 runs."), "{:?}", twice.notes);
}

fn page(comparison: &RunComparison, width: usize, top: usize) -> String {
    anstream::adapter::strip_str(&text(comparison, width, top)).to_string()
}

#[test]
fn two_traces_as_text() {
    let text = page(&queues(), 80, 3);
    assert!(text.lines().all(|line| unicode_width::UnicodeWidthStr::width(line) <= 80), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn two_observations_as_text() {
    insta::assert_snapshot!(page(&servers(), 100, 5));
}

const HOSTILE: &str = "</code></style><script>document.title='owned'</script>\" onmouseover=\"owned()' \u{202e}<!--";

#[test]
fn no_name_becomes_markup_or_steers_a_terminal() {
    let mut builder = support::run_queue();
    builder.model.functions[0].name = HOSTILE.into();
    builder.model.functions[1].module = HOSTILE.into();
    builder.model.machine.name = HOSTILE.into();
    builder.manifest.command = vec![HOSTILE.into(), "\x1b[2J".into()];
    builder.manifest.started = HOSTILE.into();
    builder.manifest.cut = Some(HOSTILE.into());
    let (_a, before) = traced(builder);
    let (_b, after) = traced(support::run_queue());
    let mut comparison = compared(&before, &after);
    comparison.after[0].path = HOSTILE.into();
    comparison.tables[0].name = HOSTILE.into();
    let page = html(&comparison);
    assert_eq!((page.matches("<script>").count(), page.matches("</style>").count()), (1, 1), "the page's own");
    for harm in ["<!--", "\u{202e}", "\" onmouseover=\"owned()", " src=", "http:"] {
        assert!(!page.contains(harm), "{harm:?}");
    }
    assert!(page.contains("default-src 'none'"));
    let text = anstream::adapter::strip_str(&text(&comparison, 80, 5)).to_string();
    assert!(!text.contains('\x1b') && !text.contains('\u{202e}'));
}

/// Sorts every table by every column, and leaves in the title what a reader would complain about.
const READER: &str = r##"<script>
for (const button of document.querySelectorAll("thead button")) { button.click(); button.click(); }
const last = document.querySelector("#functions tfoot").lastElementChild.cells[0].textContent;
const wide = document.documentElement.scrollWidth > innerWidth ? "wider than the window" : "fits";
document.title = [last, document.querySelectorAll("section").length, wide].join("|");
</script>"##;

#[test]
fn a_browser_has_nothing_to_complain_about() {
    let page = html(&queues()).replace("</body>", &format!("{READER}</body>"));
    let Some(visit) = visit(&page, 800) else { return };
    assert!(visit.console.is_empty(), "{:#?}", visit.console);
    assert!(visit.dom.contains("<title>total|9|fits</title>"), "{}", &visit.dom[..600]);
}
