//! Cells in guests: the kernel's parameters as an axis, and CPUs taken off line where that hurts nobody.

#![allow(clippy::unwrap_used)]

use crate::guest_slots::for_a_guest;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

fn lab(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nearmiss")).arg("lab").args(arguments).current_dir(directory).output().unwrap()
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn with_spec(text: &str) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("spec.toml"), text).unwrap();
    directory
}

/// `hot` runs a lab of its own in the guest: it is killed while a CPU is off line, its guardian brings the CPU back; it
/// is killed once more together with its guardian, and goes on.
const SPEC: &str = r#"
name = "guests"
repetitions = 1
timeout_s = 120
measure.online = { words = "online (.*)" }
measure.last = { words = "last argument (.*)", optional = true }
measure.written = { words = "(.*)", file = "{out}/written", optional = true }

[[workload]]
name = "print"
axes = ["kernel"]
command = """
echo online $(cat /sys/devices/system/cpu/online); echo last argument $(tr ' ' '\\n' < /proc/cmdline | tail -1)
echo here > {out}/written; echo > {dir1}/thrown-away"""

[[workload]]
name = "hot"
axes = ["place"]
command = """
cd {dir1}; all=/sys/devices/system/cpu/online
until_online() { until [ "$(cat $all)" = "$1" ]; do sleep 0.05; done; }
cat > inner.toml <<END
name = 'inner'
repetitions = 1
measure.online = { words = '(.*)' }
[[workload]]
name = 'wait'
command = 'cat /sys/devices/system/cpu/online; [ -e ready ] || sleep 1000'
[[axis]]
name = 'cpus'
level = [{ name = 'one', cpus = '0' }]
END
{nearmiss} lab run inner.toml --hotplug --out inner & lab=$!
until_online 0; kill -9 $lab; until_online 0-1
{nearmiss} lab resume inner & lab=$!
until_online 0; kill -9 $(pgrep nearmiss-guard) $lab
touch ready; {nearmiss} lab resume inner --json > record
grep -q '"online":"0"' record && [ ! -e inner/changed.json ] && echo online $(cat $all)"""

[[axis]]
name = "kernel"
level = [{ name = "one", guest = { cpus = 2, arguments = ["maxcpus=1"], memory = "1 GiB" } },
         { name = "two", guest = { cpus = 2, arguments = ["init_on_alloc=0"], memory = "1 GiB" } }]
[[axis]]
name = "place"
level = [{ name = "guest", guest = { cpus = 2, memory = "1 GiB" } }]
"#;

#[test]
fn the_guests_kernel_is_an_axis_and_offline_cpus_come_back_after_any_end_of_the_lab() {
    let Some(_guest) = for_a_guest() else { return };
    if !rustix::process::geteuid().is_root() {
        println!("skipped: CPUs are taken off line by root alone, in a guest too");
        return;
    }
    let directory = with_spec(SPEC);
    let run = lab(directory.path(), &["run", "spec.toml", "--out", "x", "--json"]);
    assert_eq!(run.status.code(), Some(0), "{}", errors(&run));
    let record: Value = serde_json::from_slice(&run.stdout).unwrap();
    let words = |cell: &str| {
        let ended = record["ended"].as_array().unwrap().iter().find(|ended| ended["cell"] == cell).unwrap();
        ["online", "last", "written"].map(|name| ended["words"][name].as_str().unwrap_or("–").to_owned())
    };
    assert_eq!(words("print,kernel=one,r1"), ["0", "maxcpus=1", "here"]);
    assert_eq!(words("print,kernel=two,r1"), ["0-1", "init_on_alloc=0", "here"]);
    assert_eq!(words("hot,place=guest,r1"), ["0-1", "–", "–"]);
    let left = fs::read_dir(directory.path().join("x/cells/print,kernel=one,r1")).unwrap();
    let mut left: Vec<_> = left.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    left.sort();
    assert_eq!(left, ["cell.json", "stderr", "stdout", "written"]);
    assert!(!directory.path().join("x/tmp").exists());
}

#[test]
fn an_impossible_guest_is_refused_before_anything_runs() {
    let Some(_guest) = for_a_guest() else { return };
    let spec = |level: &str| {
        format!(
            "name = 'g'\n[[workload]]\nname = 'w'\ncommand = 'ls {{dir1}}'\n\
             [[axis]]\nname = 'a'\nlevel = [{{ name = 'l', {level} }}]\n"
        )
    };
    for (level, status, why) in [
        (
            "guest = { arguments = ['rdinit=/bin/sh'] }",
            3,
            "w,a=l: kernel argument \"rdinit=/bin/sh\": is nearmiss's own",
        ),
        ("guest = { kernel = '1.2.3' }", 3, "1.2.3"),
        ("guest = { cpus = 65 }", 2, "a guest has 1 to 64 CPUs"),
        ("guest = { memory = 'much' }", 2, "guest.memory"),
        ("guest = { cpus = 2 }, cpus = '2'", 3, "CPU 2 is not in the guest, which has 2"),
        ("guest = {}, filesystem = { kind = 'ext4', size = '4 MiB' }", 3, "the guest's kernel has no loop devices"),
        ("guest = { colour = 'red' }", 2, "unknown field `colour`"),
    ] {
        let directory = with_spec(&spec(level));
        let run = lab(directory.path(), &["run", "spec.toml"]);
        let stderr = errors(&run);
        assert_eq!(run.status.code(), Some(status), "{stderr}");
        assert!(stderr.contains(why) && stderr.lines().count() == 1, "{why:?} is not in {stderr:?}");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
