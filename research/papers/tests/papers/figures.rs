//! All figures, pinned: the same on every machine and with any number of threads. One run, a minute or so.

use nearmiss_papers::pacing::plan::Scale;
use std::path::Path;

#[test]
fn the_coloring_papers_figures_are_these() {
    let record =
        nearmiss_papers::paper("coloring").unwrap().run(None, Scale::Small, Path::new(""), &|_, _| ()).unwrap();
    insta::assert_snapshot!(nearmiss_papers::text::render(&record));
    let files: Vec<_> = record.pictures.iter().map(|p| p.file.as_str()).collect();
    assert_eq!(files, ["figure-6.svg", "figure-7.svg", "figure-8.svg", "figure-9.svg", "figure-10.svg"]);
    for picture in &record.pictures {
        assert!(picture.svg.starts_with("<svg") && picture.svg.ends_with("</svg>"), "{}", picture.file);
        assert!(!picture.svg.contains("NaN") && !picture.svg.contains("inf"), "{}", picture.file);
    }
}
