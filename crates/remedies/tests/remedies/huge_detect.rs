//! Walks to small pages are counted exactly by the memory that they lead to, large pages save them, and memory that has
//! a file, or that lies in large pages already, is no finding.
#![allow(clippy::unwrap_used)]

use crate::script::{BASE, LARGE, PAGE, SMALL, Script, machine, scattered};
use nearmiss_analysis::{Case, PageFaults, RehearsalRequest, Value};
use nearmiss_record::figures::Cell;
use nearmiss_record::finding::Finding;
use nearmiss_record::machine::Machine;
use nearmiss_record::rehearsal::Rehearsal;
use nearmiss_remedies::huge::REMEDY;

/// Frames of large pages.
fn in_order(page: u64) -> u64 {
    4 * SMALL + page
}

fn found(script: &Script) -> Vec<Finding> {
    let place = tempfile::tempdir().unwrap();
    let case = script.case(place.path());
    (REMEDY.detect)(&case).unwrap().iter().map(|suspicion| suspicion.finding(&case).unwrap()).collect()
}

fn line<'a>(finding: &'a Finding, label: &str) -> &'a str {
    &finding.evidence.lines.iter().find(|line| line.label == label).unwrap().text
}

/// Eight blocks of 2 MiB, all pages of them twice.
fn walked(path: &str, frame: fn(u64) -> u64) -> Script {
    let script = Script::begin().maps(BASE, 8 * LARGE, path);
    script.reads(0..8 * SMALL, frame).reads(0..8 * SMALL, frame)
}

#[test]
fn each_walk_to_anonymous_memory_is_counted_and_large_pages_save_it() {
    let findings = found(&walked("//anon", scattered));
    let [finding] = findings.as_slice() else { panic!("{findings:#?}") };
    // 4,096 pages in turn stay in neither level.
    let counted = "8,192 look-ups of data missed the first level of translation, 8,192 walked the page table";
    assert!(line(finding, "Walks").starts_with(counted), "{}", line(finding, "Walks"));
    assert_eq!(line(finding, "Memory"), "8 pages of 2 MiB: 16 MiB, all of which the recording touched.");
    assert_eq!(line(finding, "Objects"), "`anonymous mapping`: 100% of the walks, to 16 MiB in 4,096 pages.");
    let prediction = &finding.prediction;
    assert!(prediction.gain > 0.2 && prediction.gain <= finding.evidence.most_gain, "{prediction:?}");
    assert!(prediction.low <= prediction.gain && prediction.placements.len() >= 2, "{prediction:?}");
    let apply = finding.apply.as_ref().unwrap();
    assert_eq!(apply[..4], ["nearmiss", "apply", "huge", "--"]);
}

#[test]
fn a_rehearsal_has_all_memory_and_numbered_objects() {
    let place = tempfile::tempdir().unwrap();
    let case = walked("//anon", scattered).case(place.path());
    let suspicions = (REMEDY.detect)(&case).unwrap();
    let rehearse =
        |values: Vec<Value>| suspicions[0].rehearse(&case, &RehearsalRequest { values, ..RehearsalRequest::default() });
    let table = rehearse(vec![Value::Name("all".to_owned()), Value::Number(1)]).unwrap().table;
    let names: Vec<_> = table.rows.iter().map(|row| row[0].clone()).collect();
    assert_eq!(names, ["as it was", "all", "1: anonymous mapping"].map(Cell::text));
    // It is the one object there is.
    assert_eq!(table.rows[1][1..], table.rows[2][1..]);
    assert_eq!(table.rows[1][1..4], [Cell::Count(8), Cell::Bytes(8 * LARGE), Cell::Bytes(8 * LARGE)]);
    let refused = rehearse(vec![Value::Number(2)]).unwrap_err().to_string();
    assert_eq!(refused, "--objects 2: walks lead to 1 object, numbered from 1");
}

#[test]
fn files_small_mappings_and_memory_in_large_pages_are_no_finding() {
    assert!(found(&walked("/srv/table", scattered)).is_empty(), "a file");
    assert!(found(&walked("[stack]", scattered)).is_empty(), "a stack");
    assert!(found(&walked("//anon", in_order)).is_empty(), "large pages as recorded");
    let script = Script::begin().maps(BASE + PAGE, LARGE, "//anon");
    let script = script.reads(1..SMALL, scattered).reads(1..SMALL, scattered);
    assert!(found(&script).is_empty(), "no whole block of 2 MiB");
}

#[test]
fn first_touches_and_what_large_pages_waste_are_counted() {
    // Every 64th page of eight blocks, for the first time, then again and again.
    let mut script = Script::begin().maps(BASE, 8 * LARGE, "[heap]");
    for round in 0..9 {
        for page in (0..8 * SMALL).step_by(64) {
            let pages = page..page + 1;
            script = if round == 0 { script.first_touches(pages) } else { script.reads(pages, scattered) };
        }
        script = script.reads(8 * SMALL..9 * SMALL, scattered);
    }
    let findings = found(&script);
    let [finding] = findings.as_slice() else { panic!("{findings:#?}") };
    let memory = "8 pages of 2 MiB: 16 MiB, of which the recording did not touch 15.8 MiB.";
    assert_eq!(line(finding, "Memory"), memory);
    assert!(line(finding, "Faults").starts_with("64 pages were touched for the first time"), "{finding:#?}");
    assert!(finding.unless[0].ends_with("up to 15.8 MiB more than the recording touched"), "{:?}", finding.unless);
}

#[test]
fn the_machines_figure_of_a_first_touch_counts_on_both_sides_and_is_named() {
    let script = Script::begin().maps(BASE, 8 * LARGE, "[heap]").faults(0..8 * SMALL);
    let place = tempfile::tempdir().unwrap();
    let seen = |machine: &Machine, name: &str| {
        let directory = place.path().join(name);
        std::fs::create_dir(&directory).unwrap();
        let case = Case::from(script.traced_on(machine, &directory));
        let faults = PageFaults::of(&case.traced().unwrap().model);
        let suspicion = (REMEDY.detect)(&case).unwrap().remove(0);
        let table = suspicion.rehearse(&case, &RehearsalRequest::default()).unwrap();
        (faults, suspicion.finding(&case).unwrap(), suspicion.most_gain(), table)
    };
    let mut machine = machine();
    let cycles = |table: &Rehearsal| table.table.rows.iter().map(|row| row[5].clone()).collect::<Vec<_>>();
    let (faults, finding, most_gain, table) = seen(&machine, "modelled");
    assert_eq!((faults.one_by_one, faults.each_cycles, faults.beyond_model_cycles), (4096, 43, 0));
    // Eight large pages are cleared in the time of 4,096 small ones, which is all that they cost here.
    assert_eq!(cycles(&table), [Cell::Cycles(515_428), Cell::Cycles(515_428)]);
    assert!(finding.prediction.gain == 0.0 && (0.33..0.35).contains(&most_gain), "{most_gain}");
    assert!(finding.symptom.ends_with(" of the modelled cycles"), "{}", finding.symptom);

    machine.memory.first_touch_cycles = Some(50_000);
    let (faults, finding, most_gain, table) = seen(&machine, "measured");
    assert_eq!((faults.one_by_one, faults.each_cycles, faults.beyond_model_cycles), (4096, 43, 49_957));
    // 4,096 times 50,000 cycles less, and eight faults and what clears all of the pages more.
    let before = 515_428 + 4096 * 49_957;
    let after = before - 4096 * 50_000 + 8 * 49_957 + 175_378;
    assert_eq!(cycles(&table), [before, after].map(Cell::Cycles));
    let prediction = &finding.prediction;
    assert_eq!(prediction.modelled_cycles, before);
    assert!((prediction.gain - (1.0 - after as f64 / before as f64)).abs() < 1e-9, "{prediction:?}");
    assert!(prediction.high <= most_gain && most_gain < 1.0, "{most_gain}");
    assert_eq!(
        prediction.approximate,
        [
            "100% of that is page faults, by the CPU time of a first touch of a page, assumed on zen4-genoa: 50,000 cycles, 43 \
          of them modelled as the kernel's instructions"
        ]
    );
    assert!(table.basis.ends_with(", first touches by the machine's figure"), "{}", table.basis);
}
