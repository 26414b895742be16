use super::super::super::memory_file;
use super::*;

const NODE: u64 = 8 << 20;

fn memory() -> Vec<(u64, OwnedFd)> {
    (0..2).map(|_| (NODE, memory_file::sized("node", NODE).unwrap())).collect()
}

fn put(memory: &[(u64, OwnedFd)], node: usize, at: u64, bytes: &[u8]) {
    duplicate(&memory[node].1).unwrap().write_all_at(bytes, at).unwrap();
}

fn content(memory: &[(u64, OwnedFd)]) -> Vec<Vec<u8>> {
    let read = |(bytes, file): &(u64, OwnedFd)| {
        let mut all = vec![0; *bytes as usize];
        duplicate(file).unwrap().read_exact_at(&mut all, 0).unwrap();
        all
    };
    memory.iter().map(read).collect()
}

fn kept(path: &Path, key: &str) -> Image {
    match open(path, key) {
        Kept::Image(image) => *image,
        _ => panic!("no image"),
    }
}

/// A guest of two nodes with some bytes here and there, in a file.
fn saved(place: &Path) -> (PathBuf, Vec<(u64, OwnedFd)>) {
    let (path, memory) = (place.join("a.guest"), memory());
    put(&memory, 0, 0, &[1]);
    put(&memory, 0, BLOCK, &vec![2; 5 * BLOCK as usize]);
    put(&memory, 0, NODE - 1, &[3]);
    put(&memory, 1, 3 * BLOCK + 77, &[4; 9]);
    put(&memory, 1, 40 * BLOCK, &[0; 9]);
    keep(nameless(place).unwrap(), &path, "the key", 5, b"the state", &memory).unwrap();
    (path, memory)
}

#[test]
fn a_guest_comes_back_as_it_was_saved() {
    let place = tempfile::tempdir().unwrap();
    let (path, before) = saved(place.path());
    let image = kept(&path, "the key");
    assert_eq!((image.boot(), image.state.as_slice()), (Duration::from_nanos(5), b"the state".as_slice()));
    assert_eq!(image.header.stretches, [(0, 0, 6 * BLOCK), (0, NODE - BLOCK, BLOCK), (1, 3 * BLOCK, BLOCK)]);
    let after = memory();
    image.fill(&after).unwrap();
    assert!(content(&before) == content(&after));
    assert!(matches!(open(&path, "another key"), Kept::Nothing));
    assert!(matches!(open(&place.path().join("none"), "the key"), Kept::Nothing));
    image.remove();
    assert!(matches!(open(&path, "the key"), Kept::Nothing));
}

#[test]
fn every_part_of_a_file_is_checked() {
    let place = tempfile::tempdir().unwrap();
    let (path, _) = saved(place.path());
    let whole = fs::read(&path).unwrap();
    let state_at = whole.windows(9).position(|bytes| bytes == b"the state").unwrap();
    for damaged in [0, 9, 13, 20, state_at] {
        let mut bytes = whole.clone();
        bytes[damaged] ^= 1;
        fs::write(&path, &bytes).unwrap();
        assert!(matches!(open(&path, "the key"), Kept::Damaged), "byte {damaged}");
    }
    for length in [0, 15, 100, state_at, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        assert!(matches!(open(&path, "the key"), Kept::Damaged), "{length} bytes");
    }
    let mut bytes = whole.clone();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert_eq!(kept(&path, "the key").fill(&memory()), Err("its checksum is wrong".into()));
}

#[test]
fn an_unfit_guest_is_remembered_until_its_key_changes() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("a.guest");
    keep_unfit(nameless(place.path()).unwrap(), &path, "the key", "too large").unwrap();
    assert!(matches!(open(&path, "the key"), Kept::Unfit));
    assert!(matches!(open(&path, "another key"), Kept::Nothing));
    let long_ago = SystemTime::now() - TRIED_AGAIN;
    File::options().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
    assert!(matches!(open(&path, "the key"), Kept::Nothing), "it is never tried again");
}

#[test]
fn the_image_used_longest_ago_makes_room() {
    let place = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = (0..4).map(|number| place.path().join(format!("{number}.guest"))).collect();
    for (number, path) in paths.iter().enumerate() {
        fs::write(path, [0; 100]).unwrap();
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs([30, 10, 40, 20][number]);
        File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    }
    make_room(place.path(), &paths[1], 250).unwrap();
    let left: Vec<bool> = paths.iter().map(|path| path.exists()).collect();
    assert_eq!(left, [false, true, true, false], "the newest stays, though its time is the earliest");
}

#[test]
fn a_file_that_is_given_up_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    drop(nameless(place.path()).unwrap());
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}
