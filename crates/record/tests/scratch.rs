//! A directory for a while. Alone in its process, since what is unfinished is the whole process's.
#![allow(clippy::unwrap_used)]

use nearmiss_record::run::{Scratch, remove_unfinished};
use std::fs;

#[test]
fn a_directory_goes_with_its_work_or_with_the_process() {
    let place = tempfile::tempdir().unwrap();
    let count = || fs::read_dir(place.path()).unwrap().count();
    let scratch = Scratch::new(place.path(), ".work-").unwrap();
    fs::write(scratch.path().join("file"), "some").unwrap();
    assert_eq!(count(), 1);
    drop(scratch);
    assert_eq!(count(), 0);

    let scratch = Scratch::new(place.path(), ".work-").unwrap();
    fs::create_dir(scratch.path().join("more")).unwrap();
    remove_unfinished();
    assert_eq!(count(), 0);
    drop(scratch);
}
