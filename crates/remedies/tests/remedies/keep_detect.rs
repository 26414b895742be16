//! Pages that come back although as many were freed are counted exactly, within each limit, and a program that frees
//! nothing, or gets its freed memory back without the kernel, is no finding.
#![allow(clippy::unwrap_used)]

use crate::script::{BASE, PAGE, Script, machine};
use nearmiss_analysis::{Case, RehearsalRequest, Suspicions, Value};
use nearmiss_record::figures::Cell;
use nearmiss_remedies::keep::REMEDY;

const MAPPED: u64 = 4096 * PAGE;

fn script() -> Script {
    Script::begin().maps(BASE, MAPPED, "//anon")
}

/// Suspicions without regard to what the page faults take: a scripted kernel has no page faults.
fn suspicions(script: &Script) -> (tempfile::TempDir, Case, Suspicions) {
    let place = tempfile::tempdir().unwrap();
    let mut traced = script.traced_on(&machine(), place.path());
    traced.thorough = true;
    let case = Case::from(traced);
    let found = (REMEDY.detect)(&case).unwrap();
    (place, case, found)
}

/// Three rounds of a block of 100 pages, each of which the kernel clears anew.
fn rounds() -> Script {
    let mut script = script();
    for round in 0..3 {
        let start = round * 200;
        script = script.allocates(start..start + 100).first_touches(start..start + 100).frees(start);
    }
    script
}

#[test]
fn each_page_that_comes_back_is_counted() {
    let (_place, case, found) = suspicions(&rounds());
    let [keep] = found.as_slice() else { panic!("{} suspicions", found.len()) };
    let finding = keep.finding(&case).unwrap();
    let line = |label: &str| finding.evidence.lines.iter().find(|line| line.label == label).unwrap().text.clone();
    assert_eq!(
        line("Heap"),
        "the kernel gave out 300 pages of heap blocks; 200 of them although as many had been freed."
    );
    assert_eq!(line("Memory"), "up to 400 KiB of freed memory would stay with the program.");
    assert!(line("Objects").ends_with(": 100% of these pages."), "{}", line("Objects"));
    assert_eq!(finding.apply.unwrap()[..4], ["nearmiss", "apply", "keep", "--"]);
    assert!(finding.prediction.gain <= finding.evidence.most_gain);
}

#[test]
fn a_rehearsal_has_its_limits() {
    let (_place, case, found) = suspicions(&rounds());
    let values = vec![Value::Number(99 * PAGE), Value::Number(100 * PAGE)];
    let request = RehearsalRequest { values, ..RehearsalRequest::default() };
    let rows = found[0].rehearse(&case, &request).unwrap().table.rows;
    let counted: Vec<_> = rows.iter().map(|row| row[..3].to_vec()).collect();
    let bytes = |pages: u64| Cell::Bytes(pages * PAGE);
    assert_eq!(
        counted,
        [
            vec![Cell::text("as it was".to_owned()), Cell::Count(0), bytes(0)],
            vec![Cell::text("all".to_owned()), Cell::Count(200), bytes(100)],
            // A heap that gives back all above 99 pages has none of the 100 left.
            vec![bytes(99), Cell::Count(0), bytes(0)],
            vec![bytes(100), Cell::Count(200), bytes(100)],
        ]
    );
}

#[test]
fn memory_that_is_not_freed_or_comes_back_by_itself_is_no_finding() {
    let grows = script().allocates(0..100).first_touches(0..100).allocates(200..300).first_touches(200..300);
    assert!(suspicions(&grows).2.is_empty(), "nothing is freed");
    let reused = script().allocates(0..100).first_touches(0..100).frees(0).allocates(0..100);
    let reused = reused.reads(0..100, crate::script::scattered);
    assert!(suspicions(&reused).2.is_empty(), "the allocator kept it");
    let mapped = script().first_touches(0..100).first_touches(0..100);
    assert!(suspicions(&mapped).2.is_empty(), "no block of the allocator");
}

#[test]
fn reused_pages_are_spare_no_more() {
    // 100 pages are freed, 60 of them come back by themselves, and 100 are new: 40 of these could have been old.
    let script = script().allocates(0..100).first_touches(0..100).frees(0);
    let script = script.allocates(0..60).reads(0..60, crate::script::scattered);
    let (_place, case, found) = suspicions(&script.allocates(200..300).first_touches(200..300));
    let rows = found[0].rehearse(&case, &RehearsalRequest::default()).unwrap().table.rows;
    assert_eq!(rows[1][1], Cell::Count(40));
}

#[test]
fn pages_of_small_blocks_come_back_if_the_kernel_clears_them_again() {
    let script = script().allocates_lines(0..100).first_touches(0..100).reads(0..50, crate::script::scattered);
    assert!(suspicions(&script).2.is_empty(), "no page was given back");
    let (_place, case, found) = suspicions(&script.first_touches(20..90));
    let values = vec![Value::Number(99 * PAGE), Value::Number(100 * PAGE)];
    let request = RehearsalRequest { values, ..RehearsalRequest::default() };
    let rows = found[0].rehearse(&case, &request).unwrap().table.rows;
    let counted: Vec<_> = rows[1..].iter().map(|row| row[1..3].to_vec()).collect();
    let all = vec![Cell::Count(70), Cell::Bytes(70 * PAGE)];
    // A heap of 100 pages may have had all of them at its top, which is given back above 99.
    assert_eq!(counted, [all.clone(), vec![Cell::Count(0), Cell::Bytes(0)], all]);
}
