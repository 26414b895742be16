//! The runs under `fixtures/` are what the builder makes: other crates' tests read them.
//! `NEARMISS_BLESS=1 cargo test -p nearmiss-report --test report fixtures` writes them anew.

#![allow(clippy::unwrap_used)]

use crate::support;
use nearmiss_record::observed::{FILE, Observed};
use nearmiss_record::run::{MANIFEST, MODEL, Manifest, RunDir};
use std::path::Path;

#[test]
fn fixtures_are_those_of_the_builder() {
    let builders = [
        ("run-queue", support::run_queue()),
        ("run-queue-colored", support::run_queue_colored()),
        ("healthy", support::healthy()),
    ];
    for (name, builder) in builders {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name);
        if std::env::var_os("NEARMISS_BLESS").is_some() {
            std::fs::create_dir_all(&path).unwrap();
            std::fs::write(path.join(MANIFEST), "{}").unwrap();
            let run = RunDir::open(&path).unwrap();
            run.write_json(MANIFEST, &builder.manifest).unwrap();
            run.write_json(MODEL, &builder.model).unwrap();
        }
        let report = nearmiss_report::load::Report::load(&RunDir::open(&path).unwrap()).unwrap();
        assert!(report.manifest == builder.manifest && report.model == builder.model, "{name}: bless the fixtures");
        assert!(nearmiss_report::sums::discrepancies(&report.model).is_empty());
    }
}

#[test]
fn observed_fixtures_are_those_of_the_builder() {
    let builders = [("server-locked", support::server::locked()), ("server-lock-free", support::server::lock_free())];
    for (name, (manifest, observed)) in builders {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name);
        if std::env::var_os("NEARMISS_BLESS").is_some() {
            std::fs::create_dir_all(&path).unwrap();
            std::fs::write(path.join(MANIFEST), "{}").unwrap();
            let run = RunDir::open(&path).unwrap();
            run.write_json(MANIFEST, &manifest).unwrap();
            run.write_json(FILE, &observed).unwrap();
        }
        let run = RunDir::open(&path).unwrap();
        let kept = (run.read_json::<Manifest>(MANIFEST).unwrap(), run.read_json::<Observed>(FILE).unwrap());
        assert!(kept == (manifest, observed), "{name}: bless the fixtures");
    }
}
