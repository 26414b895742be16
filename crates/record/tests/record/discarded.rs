//! A run that is given up while another thread records it.
#![allow(clippy::unwrap_used)]

use nearmiss_record::run::RunDir;

#[test]
fn a_run_that_is_still_written_to_is_removed() {
    let parent = tempfile::tempdir().unwrap();
    for _ in 0..50 {
        let run = RunDir::create(parent.path(), "run").unwrap();
        let path = run.path().to_owned();
        let writer = std::thread::spawn(move || {
            (0..).take_while(|number| std::fs::write(path.join(format!("file-{number}")), "some").is_ok()).count()
        });
        while !run.file("file-3").exists() {}
        run.discard();
        assert!(!run.path().exists(), "files that were written meanwhile are left");
        assert!(writer.join().unwrap() > 3);
    }
}
