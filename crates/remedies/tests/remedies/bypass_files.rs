//! Files leave nothing in the page cache, what others cached stays, and programs see no difference.
#![allow(clippy::unwrap_used)]

use crate::probes;
use nearmiss_remedies::bypass::files::{Eyes, Options, Report, apply};
use nearmiss_workload::Workload;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const PAGE: usize = 4096;
const MIB: usize = 1 << 20;

/// Makes a directory for one test, which a drop removes.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn build(output: &str, sources: &[&str], flags: &[&str]) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("files-probes");
    fs::create_dir_all(&directory).unwrap();
    let native = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../native/preload/files");
    let output = directory.join(output);
    let mut command = Command::new("cc");
    command.args(["-O1", "-g", "-Wall", "-Wextra", "-o"]).arg(&output).args(flags);
    assert!(command.args(sources.iter().map(|source| native.join(source))).status().unwrap().success());
    output
}

fn random_operations() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build("random", &["tests/random.c"], &[]))
}

/// Runs a command to its end; its output and its process number.
fn run(workload: Workload) -> (String, i32) {
    let (text, pid, finished) = probes::run(workload);
    assert!(finished.status.success(), "{text}{:?}", finished.status);
    (text, pid)
}

fn under(workload: Workload, options: &Options) -> (String, Report) {
    let (workload, files) = apply(workload, options).unwrap();
    let (text, pid) = run(workload);
    (text, files.report(pid).unwrap())
}

fn shell(script: &str) -> Workload {
    Workload::new(["sh", "-c", script])
}

/// Pages of a file in the page cache, and of those the ones that the disk has not written; `None` before Linux 6.5.
fn cached(path: &Path, from: usize, bytes: usize) -> Option<(u64, u64)> {
    const CACHESTAT: libc::c_long = 451;
    let file = File::open(path).unwrap();
    let range = [from as u64, bytes as u64];
    let mut counts = [0u64; 5];
    // SAFETY: both structures are laid out as the call requires: two words in, five words out.
    let failed = unsafe { libc::syscall(CACHESTAT, file.as_raw_fd(), range.as_ptr(), counts.as_mut_ptr(), 0) };
    (failed == 0).then_some((counts[0], counts[1] + counts[2]))
}

/// Pages in the page cache once the kernel has written all there is to write.
fn settled(path: &Path) -> u64 {
    let begin = Instant::now();
    loop {
        let (pages, unwritten) = cached(path, 0, 0).unwrap();
        if (unwritten == 0 && pages == 0) || begin.elapsed() > Duration::from_secs(10) {
            return pages;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A file of bytes that do not repeat, with no page cached.
fn cold_file(path: &Path, bytes: usize) {
    let mut file = File::create(path).unwrap();
    let words = (0..bytes as u64 / 8).flat_map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    file.write_all(&words.collect::<Vec<u8>>()).unwrap();
    file.sync_all().unwrap();
    // SAFETY: a number of a descriptor that is open.
    assert_eq!(unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) }, 0);
}

/// Brings a part of a file into the page cache, and nothing beside it.
fn warm(path: &Path, from: usize, bytes: usize) {
    let file = File::open(path).unwrap();
    // SAFETY: as above; no page is read ahead.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_RANDOM) };
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut vec![0; bytes], from as u64).unwrap();
}

/// Whether this directory's file system has a page cache that can be looked at and be dropped.
fn can_look(directory: &Path) -> bool {
    let file = directory.join("looked-at");
    cold_file(&file, PAGE);
    let cold = cached(&file, 0, 0);
    warm(&file, 0, PAGE);
    let can = cold == Some((0, 0)) && cached(&file, 0, 0) == Some((1, 0));
    if !can {
        println!("skipped: of files in {} the kernel does not show what is cached", directory.display());
    }
    can
}

#[test]
fn a_copy_leaves_nothing_and_what_was_cached_stays() {
    let place = directory();
    if !can_look(place.path()) {
        return;
    }
    let (source, target, idle) = (place.path().join("source"), place.path().join("target"), place.path().join("idle"));
    cold_file(&source, 24 * MIB);
    cold_file(&idle, 9 * MIB + 104);
    warm(&idle, 0, 9 * MIB + 104);
    // A part of the source is cached too, with borders that no window and no request shares.
    warm(&source, 5 * MIB + 3 * PAGE, MIB);
    let script = format!("cd {} && cp source target && cat idle > /dev/null", place.path().display());
    let (_, report) = under(shell(&script), &Options::default());
    let (first, pages) = (5 * MIB + 3 * PAGE, (MIB / PAGE) as u64);
    assert_eq!((cached(&source, 0, 0), cached(&source, first, MIB)), (Some((pages, 0)), Some((pages, 0))), "{report}");
    assert_eq!(settled(&target), 0, "{report}");
    // The kernel may reclaim a few pages meanwhile; a window that is given back has more than a twentieth.
    let (idle_pages, dirty) = cached(&idle, 0, 0).unwrap();
    assert!(idle_pages >= (9 * MIB / PAGE) as u64 * 19 / 20 && dirty == 0, "{idle_pages} {dirty} {report}");
    assert!(fs::read(&source).unwrap() == fs::read(&target).unwrap());
    assert_eq!((report.copies, report.files), (1, 3), "{report}");
    assert_eq!(report.dontcache_bytes + report.window_bytes, (2 * 24 + 9) * MIB as u64 + 104, "{report}");
    assert_eq!(report.kept_bytes, ((MIB / PAGE + 9 * MIB / PAGE + 1) * PAGE) as u64, "{report}");
}

#[test]
fn each_page_cached_before_stays_and_no_other() {
    let place = directory();
    if !can_look(place.path()) {
        return;
    }
    let file = place.path().join("file");
    let warmed = [(0, 1), (1023, 2), (1500, 1), (1502, 3), (2047, 1)];
    for eyes in [Eyes::Best, Eyes::Mincore] {
        for command in ["cat file", "dd if=file bs=4k", "tail -n +1 file", "dd if=file bs=4M"] {
            cold_file(&file, 12 * MIB);
            warmed.iter().for_each(|(page, pages)| warm(&file, page * PAGE, pages * PAGE));
            let script = format!("cd {} && {command} > /dev/null 2>&1", place.path().display());
            let options = Options { eyes, ..Options::default() };
            let (_, report) = under(shell(&script), &options);
            assert_eq!(cached(&file, 0, 0), Some((8, 0)), "{command}: {report}");
            for (page, pages) in warmed {
                assert_eq!(cached(&file, page * PAGE, pages * PAGE), Some((pages as u64, 0)), "{command}");
            }
            assert_eq!((report.kept_bytes, report.window_bytes), (8 * PAGE as u64, 12 * MIB as u64), "{command}");
        }
    }
}

#[test]
fn writes_leave_nothing_by_any_way() {
    let place = directory();
    if !can_look(place.path()) {
        return;
    }
    let file = place.path().join("file");
    for command in [
        "dd if=/dev/zero of=file bs=4k count=3000",
        "dd if=/dev/zero of=file bs=100000 count=100",
        "dd if=/dev/zero of=file bs=3000 count=3000 oflag=append conv=notrunc",
        "echo a short line > file",
        "for i in 1 2 3 4 5 6 7; do echo a line; done > file",
        "seq 300000 | sort -r -o file",
    ] {
        let script = format!("cd {} && rm -f file && {{ {command}; }} 2> /dev/null", place.path().display());
        let (_, report) = under(shell(&script), &Options::default());
        assert_eq!(settled(&file), 0, "{command}: {report}");
        assert!(
            report.dontcache_bytes + report.window_bytes >= fs::metadata(&file).unwrap().len(),
            "{command}: {report}"
        );
    }
}

#[test]
fn a_file_overwritten_in_place_leaves_nothing() {
    let place = directory();
    if !can_look(place.path()) {
        return;
    }
    let file = place.path().join("file");
    for command in ["dd if=/dev/zero of=file conv=notrunc bs=1M", "dd if=/dev/zero of=file conv=notrunc bs=64k seek=3"]
    {
        cold_file(&file, 24 * MIB);
        let script = format!("cd {} && {command} count=24 2> /dev/null", place.path().display());
        let (_, report) = under(shell(&script), &Options::default());
        assert_eq!(settled(&file), 0, "{command}: {report}");
        assert_eq!((report.left.used_bytes, report.left.unwritten_bytes), (0, 0), "{command}: {report}");
    }
    // A part that was cached before stays, and is what it was overwritten with.
    cold_file(&file, 8 * MIB);
    warm(&file, MIB, MIB);
    let script =
        format!("cd {} && dd if=/dev/zero of=file conv=notrunc bs=1M count=8 2> /dev/null", place.path().display());
    let (_, report) = under(shell(&script), &Options::default());
    let begin = Instant::now();
    while cached(&file, 0, 0).is_some_and(|(_, unwritten)| unwritten > 0) && begin.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let pages = (MIB / PAGE) as u64;
    assert_eq!((cached(&file, 0, 0), cached(&file, MIB, MIB)), (Some((pages, 0)), Some((pages, 0))), "{report}");
    assert_eq!(report.kept_bytes, MIB as u64, "{report}");
    assert!(fs::read(&file).unwrap().iter().all(|byte| *byte == 0));
}

#[test]
fn pages_read_ahead_of_a_program_that_stops_go_too() {
    let place = directory();
    if !can_look(place.path()) {
        return;
    }
    let file = place.path().join("file");
    for command in ["head -c 3000000", "dd bs=9M count=1", "dd bs=4k count=300", "dd bs=1M count=5", "dd bs=8M count=2"]
    {
        cold_file(&file, 48 * MIB);
        let script = format!("cd {} && {command} < file > /dev/null 2>&1", place.path().display());
        let (_, report) = under(shell(&script), &Options::default());
        let stays = cached(&file, 0, 0).unwrap().0 * PAGE as u64;
        assert_eq!((stays, report.left.used_bytes), (0, 0), "{command}: {report}");
    }
}

/// Pages that the disk has not written yet cannot be dropped: they were there before, and stay.
#[test]
fn a_source_that_is_not_written_yet_is_kept_and_counted() {
    let place = directory();
    if !can_look(place.path()) {
        return;
    }
    let file = place.path().join("file");
    fs::write(&file, vec![7; 6 * MIB]).unwrap();
    let script = format!("cd {} && cat file > /dev/null", place.path().display());
    let (_, report) = under(shell(&script), &Options::default());
    assert_eq!((report.kept_bytes, report.given_back_bytes), (6 * MIB as u64, 0), "{report}");
    assert_eq!(cached(&file, 0, 0).map(|(pages, _)| pages), Some((6 * MIB / PAGE) as u64), "{report}");
}

/// The library of a killed program has no time to give anything back: nearmiss does, if the earlier pages are known.
#[test]
fn pages_of_a_killed_program_are_given_back_or_counted() {
    let place = directory();
    if !can_look(place.path()) {
        return;
    }
    let (source, target) = (place.path().join("source"), place.path().join("target"));
    let killed = |bytes: usize| {
        let perl = format!(
            "open F, \"<source\"; open T, \">target\"; for (1..{}) {{ sysread F, $_, 4096; syswrite T, $_ }} kill 9, $$",
            bytes / PAGE
        );
        shell(&format!("exec 2> /dev/null; cd {} && perl -e '{perl}'; true", place.path().display()))
    };
    cold_file(&source, 2 * MIB);
    let (_, report) = under(killed(2 * MIB), &Options::default());
    assert_eq!((cached(&source, 0, 0), settled(&target)), (Some((0, 0)), 0), "{report}");
    // The first write leaves nothing by itself.
    let all = report.after_kill_bytes + report.given_back_bytes;
    assert!((4 * MIB - PAGE..=4 * MIB).contains(&(all as usize)) && report.left.killed_bytes == 0, "{report}");
    assert!(report.after_kill_bytes > 0, "{report}");
    assert!(report.to_string().contains("of programs that were killed before they did it themselves"), "{report}");
    // If some of it was cached before, which part is no longer known.
    warm(&source, 480 * PAGE, PAGE);
    let (_, report) = under(killed(2 * MIB), &Options::default());
    let stays = cached(&source, 0, 0).unwrap().0 * PAGE as u64;
    assert_eq!((report.left.killed_bytes, settled(&target)), (stays, 0), "{report}");
    assert!(stays > 0, "{report}");
}

/// More than the library remembers, each of several requests, closed before the disk has them.
#[test]
fn many_small_files_leave_nothing_either() {
    const FILES: usize = 150;
    let place = directory();
    if !can_look(place.path()) {
        return;
    }
    cold_file(&place.path().join("whole"), FILES * 30_000);
    let script =
        format!("cd {} && split -a 3 -b 30000 whole part- && cp -r . ../$$ && rm -r ../$$", place.path().display());
    let (_, report) = under(shell(&script), &Options::default());
    let names = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().path());
    let parts: Vec<PathBuf> = names.filter(|path| path.to_string_lossy().contains("/part-")).collect();
    let left: u64 = parts.iter().map(|part| settled(part)).sum();
    assert_eq!((parts.len(), left), (FILES, 0), "{report}");
}

#[test]
fn files_left_alone_stay_cached_and_are_named() {
    let place = directory();
    if !can_look(place.path()) {
        return;
    }
    for name in ["a.tar", "b.txt"] {
        cold_file(&place.path().join(name), MIB);
    }
    let script = format!("cd {} && cat a.tar b.txt > /dev/null", place.path().display());
    let only = |only: &str| Options { only: Some(only.to_owned()), ..Options::default() };
    let (_, report) = under(shell(&script), &only("*.tar"));
    assert_eq!((report.files, report.window_bytes, report.left.unnamed_bytes), (1, MIB as u64, MIB as u64), "{report}");
    assert_eq!(settled(&place.path().join("a.tar")), 0);
    assert!(cached(&place.path().join("b.txt"), 0, 0).is_some_and(|(pages, _)| pages == 256));
    let (_, report) = under(shell(&script), &Options { eyes: Eyes::None, ..Options::default() });
    assert_eq!((report.window_bytes, report.left.unseen_bytes), (0, 2 * MIB as u64), "{report}");
    if Path::new("/dev/shm").is_dir() {
        let file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
        let (_, report) =
            under(shell(&format!("seq 1000 > {0}; cat {0} > /dev/null", file.path().display())), &Options::default());
        assert_eq!((report.files, report.left.memory_bytes), (0, 2 * 3893), "{report}");
    }
}

/// Compares runs of random operations, which print what each returned, its errno, the positions and a sum of the bytes.
fn equal_with_and_without(directory: &Path, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let probe = || {
            let words = [random_operations().as_os_str(), directory.as_os_str()];
            Workload::new(words.map(ToOwned::to_owned).into_iter().chain([seed.to_string().into(), "150".into()]))
        };
        let (without, _) = run(probe());
        for eyes in [Eyes::Best, Eyes::Mincore, Eyes::None] {
            let (with, report) = under(probe(), &Options { eyes, ..Options::default() });
            let differ = without.lines().zip(with.lines()).enumerate().find(|(_, (a, b))| a != b);
            assert!(without == with, "seed {seed}, {eyes:?}: {differ:?}\n{report}");
        }
    }
}

#[test]
fn random_operations_see_no_difference_on_this_file_system_and_in_memory() {
    equal_with_and_without(directory().path(), 1..5);
    if Path::new("/dev/shm").is_dir() {
        equal_with_and_without(tempfile::tempdir_in("/dev/shm").unwrap().path(), 5..7);
    }
}

/// Mounts live in a mount namespace that ends with the shell, and loop devices end with their mounts.
#[test]
fn random_operations_see_no_difference_on_ext4_and_on_an_overlay() {
    let place = directory();
    let image = place.path().join("image");
    File::create(&image).unwrap().set_len(64 * MIB as u64).unwrap();
    let made = Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image).stdout(std::process::Stdio::null()).status();
    if !made.is_ok_and(|status| status.success()) {
        println!("skipped: there is no mkfs.ext4");
        return;
    }
    let mount = format!(
        "cd {} && mkdir -p on low && mount -o loop image on && mkdir -p on/up on/work on/top && \
         mount -t overlay -o lowerdir=low,upperdir=on/up,workdir=on/work none on/top",
        place.path().display()
    );
    let inside = |rest: &str| Workload::new(["unshare", "-m", "sh", "-c", &format!("{mount} && {rest}")]);
    let tried = Command::new("unshare").args(["-m", "sh", "-c", &mount]).output();
    if !tried.is_ok_and(|output| output.status.success()) {
        println!("skipped: no right to mount loop devices and overlays");
        return;
    }
    for (at, seed) in [("on", 11), ("on", 12), ("on/top", 13), ("on/top", 14)] {
        let probe = format!("exec {} {at} {seed} 120", random_operations().display());
        let (without, _) = run(inside(&probe));
        let (with, report) = under(inside(&probe), &Options::default());
        assert!(without == with, "{at}: {report}");
        assert_eq!(report.refusing_files > 0, at == "on/top", "{at}: {report}");
    }
}

#[test]
fn patterns_name_files() {
    let (text, _) = run(Workload::new([build("glob", &["tests/glob.c", "glob.c"], &[])]));
    assert_eq!(text, "");
}

#[test]
fn programs_that_load_no_library_are_refused() {
    let refused =
        apply(Workload::new([build("random-static", &["tests/random.c"], &["-static"])]), &Options::default());
    let refused = refused.err().map(|error| error.to_string()).unwrap_or_default();
    let expected = "it is statically linked and loads no library; link it dynamically, or let the program drop its pages \
                    itself (posix_fadvise)";
    assert!(refused.ends_with(expected), "{refused}");
}
