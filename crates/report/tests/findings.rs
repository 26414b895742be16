//! Findings and rehearsals as people read them.

use nearmiss_record::finding::*;
use nearmiss_record::rehearsal::{Rehearsal, RehearsalRow, Rehearsals};
use nearmiss_report::{findings, rehearsals};

fn finding(reach: Reach) -> Finding {
    let outside = reach == Reach::Outside;
    Finding {
        remedy: "color".into(),
        symptom: "81% of L1d data misses in `walk` are conflict misses of 64 malloc blocks that fall on 1 of 64 sets at a time".into(),
        cause: "Large blocks are mapped, so they all begin at the same offset of their pages: about 64 lines compete for each set, which holds 8.".into(),
        evidence: Evidence {
            objects: vec![ObjectEvidence {
                name: "a.c:32 main".into(),
                allocated_at: vec!["main".into()],
                count: 64,
                size_bytes: Some(1 << 17),
                miss_share: 0.81,
            }],
            levels: vec![LevelEvidence {
                cache: "L1d".into(),
                sets: 1,
                of_sets: 64,
                ways: 8,
                lines_a_set: 63.6,
                conflict_misses: 299_654,
                miss_share: 0.81,
                verdict: "its index lies within the page: every color reaches a set of its own".into(),
                helps: true,
            }],
            functions: vec![("walk".into(), 299_654)],
            cycles_share: 0.077,
        },
        treatment: "8 colors of 64 bytes, 14 KiB of memory".into(),
        reach,
        prediction: Prediction {
            gain: 0.077,
            low: 0.07,
            high: 0.081,
            placements: vec![1, 2, 3, 4, 5],
            overlap: 0.6,
            function: Some(FunctionGain {
                name: "walk".into(),
                gain: 0.63,
                cycles_before: 2_374_395,
                cycles_after: 878_526,
                dependent_gain: 0.8,
            }),
            approximate: vec!["approximate at the first level".into()],
        },
        unless: vec!["the machine hides more of each miss than the 60% assumed (overlap)".into()],
        apply: outside.then(|| "nearmiss apply color --colors 8 --blocks 131072 -- ./a".into()),
        verify: outside.then(|| "nearmiss verify color --colors 8 --blocks 131072 -- ./a".into()),
    }
}

fn page(list: Vec<Finding>, healthy: Option<&str>) -> String {
    let findings = Findings {
        schema: SCHEMA.into(),
        machine: "zen3-milan".into(),
        command: vec!["./a".into()],
        findings: list,
        healthy: healthy.map(str::to_owned),
        notes: Vec::new(),
    };
    findings::render(&findings, 80)
}

#[test]
fn a_finding_has_all_that_is_to_be_said() {
    let inside = Reach::Inside { why: "it is a promise".into(), change: "pad each row".into() };
    insta::assert_snapshot!(page(vec![finding(Reach::Outside), finding(inside)], None));
}

#[test]
fn a_healthy_program_is_told_so() {
    insta::assert_snapshot!(page(Vec::new(), Some("3.1% of the modelled cycles wait for caches and memory.")));
}

#[test]
fn a_rehearsal_is_a_table() {
    let row = |parameter, misses, cycles| RehearsalRow {
        parameter,
        misses: vec![misses, 70_000],
        transactions_on_objects: misses / 2,
        transactions_elsewhere: 12_345,
        cycles,
        cycles_low: cycles - 10,
        cycles_high: cycles + 10,
        memory_bytes: (parameter - 1) * 2048,
    };
    let table = Rehearsal {
        remedy: "color".into(),
        subject: "64 malloc blocks".into(),
        levels: vec!["L1".into(), "L2".into()],
        placements: vec![1, 2, 3, 4, 5],
        overlap: 0.6,
        exactness: "exact: the trace was made with the one-line filter".into(),
        rows: vec![row(1, 299_654, 2_000_000), row(8, 654, 1_000_000)],
    };
    let record = Rehearsals { machine: "zen3-milan".into(), tables: vec![table], ..Rehearsals::default() };
    insta::assert_snapshot!(rehearsals::render(&record));
    assert!(rehearsals::render(&Rehearsals::default()).starts_with("nothing to rehearse"));
}
