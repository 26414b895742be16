//! A lab that is killed at random instants: each cell counts once, nothing is half-written, the result is that of an
//! unbroken lab, and no loop device, mount or process is left. `NEARMISS_LAB_KILLS` sets how often (12 unless it is
//! set; experiments/lab/kills.sh sets 200).

#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// 60 short cells: 5 values, by two places, by 6 repetitions.
const SPEC: &str = r#"
name = "kills"
repetitions = 6
measure.value = { regex = "value ([0-9]+)" }
measure.stored = { json = "/stored", file = "{out}/stored.json" }
[[workload]]
name = "store"
command = "echo $V > {dir1}/v && echo value $(cat {dir1}/v) && echo \"{\\\"stored\\\": $V}\" > {out}/stored.json; sleep 0.005 & wait"
[[axis]]
name = "v"
level = [
  { name = "a", env = { V = "1" } }, { name = "b", env = { V = "2" } }, { name = "c", env = { V = "3" } },
  { name = "d", env = { V = "4" } }, { name = "e", env = { V = "5" } },
]
[[axis]]
name = "place"
level = [{ name = "plain" }, { name = "other", OTHER }]
"#;

fn can_mount() -> bool {
    rustix::process::geteuid().is_root() && Path::new("/dev/loop-control").exists()
}

fn spec() -> String {
    let ext4 = r#"filesystem = { kind = "ext4", size = "2 MiB", mkfs = ["-O", "^has_journal"] }"#;
    SPEC.replace("OTHER", if can_mount() { ext4 } else { r#"env = { PLACE = "other" }"# })
}

fn start(directory: &Path, arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nearmiss"));
    let command = command.arg("lab").args(arguments).current_dir(directory);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Cells with their figures, in the order of the journal; times left out.
fn result(lab: &Path) -> Vec<(String, Value)> {
    let journal = fs::read_to_string(lab.join("journal.jsonl")).unwrap();
    let cells = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let summary = |cell: &Value| {
        serde_json::json!([
            cell["how"],
            cell["exit"],
            cell["figures"]["value"],
            cell["figures"]["stored"],
            cell["levels"]
        ])
    };
    cells.map(|cell| (cell["cell"].as_str().unwrap().to_owned(), summary(&cell))).collect()
}

/// All names below a directory, with the sizes of the files that every try of a cell writes alike.
fn files(directory: &Path, of: &Path, found: &mut BTreeMap<String, Option<u64>>) {
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let name = entry.path().strip_prefix(of).unwrap().display().to_string();
        if entry.path().is_dir() {
            found.insert(name, None);
            files(&entry.path(), of, found);
        } else {
            let alike = ["stdout", "stderr", "stored.json"].iter().any(|alike| name.ends_with(alike));
            found.insert(name, alike.then(|| entry.metadata().unwrap().len()));
        }
    }
}

fn all_files(lab: &Path) -> BTreeMap<String, Option<u64>> {
    let mut found = BTreeMap::new();
    files(lab, lab, &mut found);
    found
}

/// Returns what the kernel still has of a directory: devices, mounts, processes.
fn left_of(directory: &Path) -> Vec<String> {
    let name = directory.display().to_string();
    let loops = fs::read_dir("/sys/block").unwrap().flatten().map(|entry| entry.path().join("loop/backing_file"));
    let loops = loops.filter_map(|file| fs::read_to_string(file).ok()).filter(|image| image.contains(&name));
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mounts: Vec<String> = mounts.lines().filter(|line| line.contains(&name)).map(str::to_owned).collect();
    let processes = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let at = fs::read_link(entry.path().join("cwd")).ok()?;
        at.starts_with(directory).then(|| entry.path().display().to_string())
    });
    loops.chain(mounts).chain(processes).collect()
}

fn nothing_is_left(directory: &Path) {
    let begun = Instant::now();
    // A guardian kills, and the kernel takes mounts and devices away, a moment after the lab's end.
    while !left_of(directory).is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(20), "left: {:?}", left_of(directory));
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Numbers that look random (Knuth's MMIX generator), from a fixed seed.
struct Instants(u64);

impl Instants {
    fn below(&mut self, limit: Duration) -> Duration {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        limit.mul_f64((self.0 >> 11) as f64 / (1u64 << 53) as f64)
    }
}

/// Starts and kills a lab until it ends by itself or the kills are used up; then lets it end. How often it was killed.
fn killed(directory: &Path, name: &str, instants: &mut Instants, most: usize, longest: Duration) -> usize {
    let mut kills = 0;
    loop {
        let begun = directory.join(name).exists();
        let arguments: &[&str] = if begun { &["resume", name] } else { &["run", "spec.toml", "--out", name] };
        let mut child = start(directory, arguments);
        if kills < most {
            std::thread::sleep(instants.below(longest));
            child.kill().unwrap();
        }
        let output = child.wait_with_output().unwrap();
        if output.status.success() {
            return kills;
        }
        assert_eq!(output.status.code(), None, "{}", String::from_utf8_lossy(&output.stderr));
        kills += 1;
    }
}

#[test]
fn a_lab_that_is_killed_at_random_instants_ends_as_an_unbroken_one() {
    let wanted: usize = std::env::var("NEARMISS_LAB_KILLS").map_or(12, |kills| kills.parse().unwrap());
    if !can_mount() {
        println!("skipped in part: file systems on loop devices need root and /dev/loop-control");
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = &fs::canonicalize(directory.path()).unwrap();
    fs::write(directory.join("spec.toml"), spec()).unwrap();
    let begun = Instant::now();
    let unbroken = start(directory, &["run", "spec.toml", "--out", "unbroken"]).wait_with_output().unwrap();
    assert!(unbroken.status.success(), "{}", String::from_utf8_lossy(&unbroken.stderr));
    nothing_is_left(directory);
    let longest = begun.elapsed().mul_f64(2.0 / wanted.clamp(12, 40) as f64);
    let (expected, artifacts) = (result(&directory.join("unbroken")), all_files(&directory.join("unbroken")));
    assert_eq!(expected.len(), 60);
    let online = || fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    let cpus = online();
    let mut instants = Instants(1);
    let (mut kills, mut labs) = (0, 0);
    while kills < wanted {
        let name = format!("killed-{labs}");
        kills += killed(directory, &name, &mut instants, wanted - kills, longest);
        nothing_is_left(directory);
        let lab = directory.join(&name);
        assert_eq!((result(&lab), all_files(&lab)), (expected.clone(), artifacts.clone()), "{name}");
        labs += 1;
    }
    assert_eq!(online(), cpus);
    let mut there: Vec<_> =
        fs::read_dir(directory).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    there.retain(|name| !name.starts_with("killed-") || name.contains(".part-"));
    there.sort();
    assert_eq!(there, ["spec.toml", "unbroken"]);
    println!("{kills} kills of {labs} labs of 60 cells, each within {longest:.3?} of its start");
}
