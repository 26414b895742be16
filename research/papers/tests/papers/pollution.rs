//! The replica of the write path: by hand, by its own rules, and all its figures, pinned.
#![allow(clippy::unwrap_used)]

use nearmiss_papers::pacing::plan::Scale;
use nearmiss_papers::pollution::function::Function;
use nearmiss_papers::pollution::path::SHARED_LINES;
use nearmiss_papers::pollution::replica::{Copies, Counts, Load};
use nearmiss_papers::pollution::{MACHINE, WORK, hand};
use nearmiss_papers::{machine, paper, parallel, text};
use std::path::Path;

const ONE: Load = Load { cpus: 1, piped: false, copies: Copies::Cached, work: WORK, blame: false };

fn run(loads: &[Load]) -> Vec<Counts> {
    let machine = machine(MACHINE).unwrap();
    parallel::simulate_all(loads, &|| (), |load| load.run(&machine)).unwrap()
}

fn each(counts: &Counts, function: Function) -> f64 {
    counts.each(counts.of(function).misses)
}

fn locks(counts: &Counts) -> f64 {
    each(counts, Function::Lock) + each(counts, Function::LockIrq)
}

/// Tables (b) and (c) of the paper; (a) is measured.
#[test]
fn the_pollution_papers_modelled_figures_are_these() {
    let pollution = paper("pollution").unwrap();
    for table in ["b", "c"] {
        let record = pollution.run(Some(table), Scale::Small, Path::new(""), &|_, _| ()).unwrap();
        insta::assert_snapshot!(format!("the_pollution_papers_figures_{table}"), text::render(&record));
        for picture in &record.pictures {
            assert!(picture.svg.starts_with("<svg") && picture.svg.ends_with("</svg>"), "{}", picture.file);
            assert!(!picture.svg.contains("NaN") && !picture.svg.contains("inf"), "{}", picture.file);
        }
    }
}

#[test]
fn a_copy_misses_every_line_of_its_page_and_a_bypassing_one_none() {
    let counts = run(&[ONE, Load { copies: Copies::ChosenBypass, ..ONE }]);
    // A line or two of the user's buffer, which was pushed out.
    assert_eq!(counts.iter().map(|c| each(c, Function::Copy).round()).collect::<Vec<_>>(), [64.0, 0.0]);
    assert!(counts.iter().all(|c| locks(c) == 0.0), "nobody takes them");
    let bus = counts[1].bus;
    assert_eq!((bus.nt_full, bus.nt_partial), (64 * counts[1].records, 0), "whole lines");
}

/// Lines live until as many others came: the pool's misses follow, with the copy's 64 lines a record and without.
#[test]
fn the_cost_of_the_copy_to_others_is_as_by_hand() {
    let lines = machine(MACHINE).unwrap().data_cache(3).unwrap().size.0 / 64;
    for counts in run(&[ONE, Load { copies: Copies::EveryBypasses, ..ONE }]) {
        let by_hand = hand::other_misses(WORK, lines, hand::fresh_lines(&counts));
        let modelled = each(&counts, Function::Other);
        assert!((modelled - by_hand).abs() < 1.5, "{modelled} against {by_hand}");
    }
}

#[test]
fn a_reader_misses_what_went_around_and_chosen_sites_leave_it_alone() {
    let piped = Load { piped: true, ..ONE };
    let of = |copies| Load { copies, ..piped };
    let counts = run(&[piped, of(Copies::EveryBypasses), of(Copies::ChosenBypass)]);
    let read: Vec<_> = counts.iter().map(|c| each(c, Function::CopyOut)).collect();
    assert_eq!(read, [0.0, 64.0, 0.0]);
    assert_eq!(counts[2].bus.nt_full * 2, counts[1].bus.nt_full);
}

#[test]
fn every_copy_is_the_chosen_one_where_there_is_no_other() {
    let counts = run(&[Copies::EveryBypasses, Copies::ChosenBypass].map(|copies| Load { copies, ..ONE }));
    assert_eq!(counts[0], counts[1]);
}

#[test]
fn with_two_cpus_locks_move_between_them() {
    let two = &run(&[Load { cpus: 2, ..ONE }])[0];
    let moved = locks(two);
    assert!(moved > 1.0 && moved <= SHARED_LINES as f64, "{moved}");
    assert!(two.bus.read_local_modified > 0);
}
