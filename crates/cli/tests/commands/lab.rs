//! `nearmiss lab` on real commands: the matrix, the journal, failures and time limits, tables, wrong input.

#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// Runs `nearmiss lab` in a directory.
fn lab(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nearmiss")).arg("lab").args(arguments).current_dir(directory).output().unwrap()
}

fn errors(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn record(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no record: {}", errors(output)))
}

fn with_spec(text: &str) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("spec.toml"), text).unwrap();
    directory
}

const NUMBERS: &str = r#"
name = "numbers"
repetitions = 6
set = { lines = "1000" }
scale.small = { set = { lines = "10" }, repetitions = 2 }
measure.bytes = { regex = "bytes ([0-9]+)", better = "higher", unit = "B" }

[[workload]]
name = "count"
prepare = "seq {lines} > {dir1}/in"
command = "wc -c < {dir1}/in | sed 's/^/bytes /'; echo \"$MODE\" > {out}/mode"
env = { MODE = "plain" }

[[workload]]
name = "twice"
axes = ["times"]
command = ["sh", "-c", "for i in $(seq {times}); do seq {lines}; done | wc -c | sed 's/^/bytes /'"]

[[axis]]
name = "mode"
level = [{ name = "plain" }, { name = "other", env = { MODE = "other" }, prefix = ["env", "LAB=1"] }]

[[axis]]
name = "times"
level = [{ name = "once", set = { times = "1" } }, { name = "thrice", set = { times = "3" } }]
"#;

#[test]
fn every_cell_runs_once_under_its_conditions_and_leaves_its_artifacts() {
    let directory = with_spec(NUMBERS);
    let run = lab(directory.path(), &["run", "spec.toml", "--json"]);
    assert_eq!(run.status.code(), Some(0), "{}", errors(&run));
    let place = directory.path().join("nearmiss-labs/numbers");
    let mut cells: Vec<String> =
        fs::read_dir(place.join("cells")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    cells.sort();
    // 2 cases of `count`, which `times` does not change, and 2 of `twice`, which takes `times` alone.
    let names = ["count,mode=other", "count,mode=plain", "twice,times=once", "twice,times=thrice"];
    let expected: Vec<String> = names.iter().flat_map(|name| (1..=6).map(move |n| format!("{name},r{n}"))).collect();
    assert_eq!(cells, expected);
    let journal = fs::read_to_string(place.join("journal.jsonl")).unwrap();
    let lines: Vec<Value> = journal.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // Round by round, and in no round in the order of the specification for all of them.
    let round = |n: usize| lines[4 * n..4 * n + 4].iter().map(|l| l["cell"].as_str().unwrap()).collect::<Vec<_>>();
    for n in 0..6 {
        assert!(round(n).iter().all(|cell| cell.ends_with(&format!(",r{}", n + 1))));
    }
    let order = |n| round(n).iter().map(|cell| cell.split(",r").next().unwrap().to_owned()).collect::<Vec<_>>();
    assert!((1..6).any(|n| order(n) != order(0)));
    let mode = |cell: &str| fs::read_to_string(place.join("cells").join(cell).join("mode")).unwrap();
    assert_eq!((mode("count,mode=plain,r1"), mode("count,mode=other,r6")), ("plain\n".into(), "other\n".into()));
    let bytes = |cell: &str| lines.iter().find(|l| l["cell"] == cell).unwrap()["figures"]["bytes"].as_f64().unwrap();
    // 9 numbers of one digit, 90 of two, 900 of three, one of four; and a line end each.
    let once = f64::from(9 + 2 * 90 + 3 * 900 + 4 + 1000);
    assert_eq!((bytes("count,mode=other,r3"), bytes("twice,times=thrice,r2")), (once, 3.0 * once));
    assert!(!place.join("tmp").exists());
    // Nothing is left to be done.
    let again = lab(directory.path(), &["resume", "--json"]);
    assert_eq!((again.status.code(), record(&again)), (Some(0), record(&run)));
}

#[test]
fn the_seed_decides_the_order_and_the_scale_the_size() {
    let order = |seed: &str| {
        let directory = with_spec(NUMBERS);
        let run = lab(directory.path(), &["run", "spec.toml", "--scale", "small", "--seed", seed, "--out", "x"]);
        assert_eq!(run.status.code(), Some(0), "{}", errors(&run));
        let journal = fs::read_to_string(directory.path().join("x/journal.jsonl")).unwrap();
        let lines: Vec<Value> = journal.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(lines.iter().filter(|l| l["workload"] == "count").all(|l| l["figures"]["bytes"] == 21.0));
        lines.iter().map(|line| line["cell"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let one = order("1");
    assert_eq!((one.len(), &one), (8, &order("1")));
    assert_ne!(one, order("2"));
}

#[test]
fn any_axis_is_rows_or_columns_and_ratios_are_formed_round_by_round() {
    let directory = with_spec(NUMBERS);
    assert_eq!(lab(directory.path(), &["run", "spec.toml"]).status.code(), Some(0));
    let show = |arguments: &[&str]| lab(directory.path(), &[&["show"], arguments].concat());
    let shown = record(&show(&["--columns", "times", "--only", "workload=twice", "--figure", "bytes", "--json"]));
    assert_eq!((&shown["kind"], &shown["columns"]), (&"measured".into(), &serde_json::json!(["once", "thrice"])));
    let entry = &shown["metrics"][0]["rows"][0]["entries"][1];
    assert_eq!((&entry["runs"], &entry["summary"]["median"]), (&6.into(), &11679.0.into()));
    let ratio = &entry["against_first"];
    let near = |value: &Value| (value.as_f64().unwrap() - 3.0).abs() < 1e-9;
    assert!(near(&ratio["ratio"]) && near(&ratio["interval"][0]) && near(&ratio["interval"][1]), "{ratio}");
    let text =
        String::from_utf8(show(&["--rows", "times", "--columns", "workload", "--figure", "bytes"]).stdout).unwrap();
    assert!(text.contains("Measured bytes in B by workload: median, least–largest"), "{text}");
    // `count` comes twice, by mode: cases are never mixed in one entry.
    assert!(
        text.contains("once    –      3893") || text.contains("once") && text.matches("3893").count() >= 3,
        "{text}"
    );
    for (arguments, why) in [
        (["--columns", "colour"], "axis colour: the lab has workload, mode, times"),
        (["--only", "times=often"], "level often: axis times has once, thrice"),
        (["--figure", "speed"], "figure speed: the lab has wall_s, cpu_s, bytes, user_s, system_s"),
    ] {
        let shown = show(&arguments);
        assert_eq!((shown.status.code(), errors(&shown)), (Some(2), format!("nearmiss: {why}\n")));
    }
}

#[test]
fn a_page_and_a_table_for_other_tools_have_every_figure() {
    let directory = with_spec(NUMBERS);
    assert_eq!(lab(directory.path(), &["run", "spec.toml", "--scale", "small"]).status.code(), Some(0));
    let shown = lab(directory.path(), &["show", "--columns", "times", "--html", "--parquet", "cells.parquet"]);
    assert_eq!(shown.status.code(), Some(0), "{}", errors(&shown));
    assert_eq!(String::from_utf8(shown.stdout).unwrap(), "cells.parquet\nnearmiss-labs/numbers/lab.html\n");
    let page = fs::read_to_string(directory.path().join("nearmiss-labs/numbers/lab.html")).unwrap();
    // A picture for each of the three figures, and the figures themselves.
    assert_eq!(page.matches("data:image/svg+xml,").count(), 3);
    assert!(page.contains("Measured bytes in B by times") && page.contains("<td>63.00 ×3.000</td>"), "{page}");
    let table = fs::read(directory.path().join("cells.parquet")).unwrap();
    assert!(table.starts_with(b"PAR1") && table.ends_with(b"PAR1"));
}

#[test]
fn any_verb_is_a_cell_and_a_level_may_fill_in_another_levels_prefix() {
    let directory = with_spec(
        "name = 'verbs'\nrepetitions = 1\nmeasure.ways = { json = '/machine/cache/1/ways', file = '{out}/machine' }\n\
         [[workload]]\nname = 'show'\ncommand = ['true']\n\
         [[axis]]\nname = 'verb'\nlevel = [{ name = 'machine', prefix = ['sh', '-c', '{nearmiss} machine show {machine} --json > {out}/machine && exec \"$@\"', 'sh'] }]\n\
         [[axis]]\nname = 'machine'\nlevel = [{ name = 'pentium', set = { machine = 'pentium-pro-4way-512k' } }, { name = 'xeon', set = { machine = 'xeon-mp-4way-l3' } }]\n",
    );
    let run = lab(directory.path(), &["run", "spec.toml", "--json"]);
    assert_eq!(run.status.code(), Some(0), "{}", errors(&run));
    let ways = |index: usize| record(&run)["metrics"][2]["rows"][0]["entries"][index]["summary"]["median"].clone();
    assert!(ways(0).is_number() && ways(1).is_number(), "{}", record(&run)["metrics"][2]);
}

/// A file system of 2 MiB that is full, then has room; the mount ends with the shell.
const FULL: &str = "mount -t tmpfs -o size=2m none full && cd full && cp ../spec.toml . &&
head -c 2m /dev/zero > filler; \"$0\" lab run spec.toml --out x; echo begun $?; truncate -s 1900000 filler
\"$0\" lab run spec.toml --out x; echo full $?; rm filler; \"$0\" lab resume x --json; echo resumed $?";

#[test]
fn a_full_disk_ends_the_lab_and_resume_goes_on() {
    if !can_mount() {
        return;
    }
    let directory = with_spec(
        "name = 'full'\nrepetitions = 1\n[[workload]]\nname = 'write'\n\
         command = 'head -c 200000 /dev/zero > {out}/a; echo done'\n\
         [[axis]]\nname = 'v'\nlevel = [{ name = 'a', env = { V = '1' } }, { name = 'b', env = { V = '2' } }]\n",
    );
    fs::create_dir(directory.path().join("full")).unwrap();
    let mut shell = Command::new("unshare");
    let shell = shell.args(["--mount", "sh", "-c", FULL, env!("CARGO_BIN_EXE_nearmiss")]).current_dir(directory.path());
    let ended = shell.output().unwrap();
    let (stderr, stdout) = (errors(&ended), String::from_utf8(ended.stdout).unwrap());
    assert!(
        stdout.contains("begun 2\n") && stdout.contains("full 2\n") && stdout.ends_with("resumed 0\n"),
        "{stdout}{stderr}"
    );
    assert!(stderr.contains("No space left on device"), "{stderr}");
    let record = stdout.lines().find(|line| line.starts_with('{')).unwrap();
    let record: Value = serde_json::from_str(record).unwrap();
    assert_eq!((&record["cells"], &record["not_done"]), (&2.into(), &0.into()));
}

const TROUBLE: &str = r#"
name = "trouble"
repetitions = 1
timeout_s = 0.5
[[workload]]
name = "hangs"
command = "if [ -e ready ]; then echo 1; else setsid sleep 1000 & wait; fi"
[[workload]]
name = "fails"
command = "[ -e ready ] || exit 3"
[[workload]]
name = "killed"
command = "[ -e ready ] || kill -9 $$"
[[workload]]
name = "silent"
command = "cat ready 2>/dev/null || true"
measure.speed = { json = "/speed" }
"#;

#[test]
fn cells_that_hang_or_fail_are_marked_and_run_again_on_request() {
    let directory = with_spec(TROUBLE);
    let run = lab(directory.path(), &["run", "spec.toml", "--json"]);
    assert_eq!(run.status.code(), Some(1), "{}", errors(&run));
    let ended = |output: &Output, workload: &str| -> (Value, Value) {
        let record = record(output);
        let cell =
            record["ended"].as_array().unwrap().iter().find(|cell| cell["workload"] == workload).unwrap().clone();
        (cell["how"].clone(), cell["why"].clone())
    };
    assert_eq!(ended(&run, "hangs"), ("timed-out".into(), "was killed after 0.5 s".into()));
    assert_eq!(ended(&run, "fails"), ("failed".into(), "exited with status 3".into()));
    assert_eq!(ended(&run, "killed"), ("failed".into(), "was killed by signal 9".into()));
    assert_eq!(ended(&run, "silent"), ("incomplete".into(), "speed: /speed: nothing is there".into()));
    assert!(errors(&run).contains("4 of 4 cells failed or lack figures"), "{}", errors(&run));
    // Also what left the command's process group is gone.
    let left = Command::new("pgrep").args(["-fx", "sleep 1000"]).output().unwrap();
    let here = |pid: &str| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(directory.path()));
    assert!(!String::from_utf8(left.stdout).unwrap().lines().any(here));
    // Only the requested cells run again.
    fs::write(directory.path().join("ready"), r#"{"speed": 7}"#).unwrap();
    assert_eq!(lab(directory.path(), &["resume", "--json"]).status.code(), Some(1));
    let retried = lab(directory.path(), &["resume", "--retry", "--json"]);
    assert_eq!(retried.status.code(), Some(0), "{}", errors(&retried));
    assert_eq!(ended(&retried, "hangs"), ("done".into(), Value::Null));
    assert_eq!(record(&retried)["not_done"], 0);
}

#[test]
fn wide_cases_are_marked_and_repeated_up_to_the_limit() {
    let directory = with_spec(
        "name = 'wide'\nrepetitions = 3\nspread = { metric = 'n', wide = 0.5, repetitions = 7 }\n\
         measure.n = { regex = '([0-9]+)' }\n\
         [[workload]]\nname = 'steady'\ncommand = ['echo', '5']\n\
         [[workload]]\nname = 'wild'\ncommand = 'echo x >> count; wc -l < count'\n",
    );
    let run = lab(directory.path(), &["run", "spec.toml", "--json"]);
    let rows = &record(&run)["metrics"][2]["rows"];
    assert_eq!((&rows[0]["entries"][0]["runs"], &rows[0]["entries"][0]["wide"]), (&3.into(), &false.into()));
    assert_eq!((&rows[1]["entries"][0]["runs"], &rows[1]["entries"][0]["wide"]), (&7.into(), &true.into()));
}

const PLACES: &str = r#"
name = "places"
repetitions = 1
measure.kind = { words = "(.*)" }
measure.absent = { regex = "no such ([0-9]+)", optional = true }
[[workload]]
name = "two"
directories = 2
command = "stat -f -c %T {dir1} && stat -f -c %b {dir2} && touch {dir2}/full && ls -A {dir1} && df -a | grep {dir1}"
[[workload]]
name = "none"
command = ["echo", "nothing"]
[[axis]]
name = "fs"
level = [{ name = "ext4", filesystem = { kind = "ext4", size = "{size}", mkfs = ["-m", "0"], mount = "nodiscard" } }]
[set]
size = "4 MiB"
"#;

fn can_mount() -> bool {
    let can = rustix::process::geteuid().is_root() && Path::new("/dev/loop-control").exists();
    if !can {
        println!("skipped: file systems on loop devices need root and /dev/loop-control");
    }
    can
}

#[test]
fn each_directory_is_a_fresh_file_system_that_nobody_else_sees() {
    if !can_mount() {
        return;
    }
    let directory = with_spec(PLACES);
    let run = lab(directory.path(), &["run", "spec.toml", "--out", "x", "--json"]);
    assert_eq!(run.status.code(), Some(0), "{}", errors(&run));
    // A workload without directories does not take the axis.
    let output = |cell: &str| fs::read_to_string(directory.path().join("x/cells").join(cell).join("stdout")).unwrap();
    assert_eq!(output("none,r1"), "nothing\n");
    let printed = output("two,fs=ext4,r1");
    let lines: Vec<&str> = printed.lines().collect();
    // Blocks of 1 KiB, less what the file system keeps for itself.
    let blocks: u32 = lines[1].parse().unwrap();
    assert!(lines[0] == "ext2/ext3" && (2000..4096).contains(&blocks) && lines[2] == "lost+found", "{printed}");
    assert!(lines[3].starts_with("/dev/loop"), "{printed}");
    let name = directory.path().display().to_string();
    assert!(!fs::read_to_string("/proc/mounts").unwrap().contains(&name));
    let small = lab(directory.path(), &["run", "spec.toml", "--out", "y", "--set", "size=8 K"]);
    assert_eq!(small.status.code(), Some(1));
    assert!(errors(&small).contains("two,fs=ext4,r1: `mkfs.ext4` exited with status 1"), "{}", errors(&small));
    let nonsense = lab(directory.path(), &["run", "spec.toml", "--out", "z", "--set", "size=large"]);
    assert_eq!(nonsense.status.code(), Some(2));
    assert!(errors(&nonsense).contains("filesystem.size"), "{}", errors(&nonsense));
}

#[test]
fn a_user_who_is_not_root_is_refused_before_anything_is_made() {
    if !can_mount() {
        return;
    }
    let directory = with_spec(PLACES);
    fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    // The user nobody may not reach the build's directory.
    let program = directory.path().join("nearmiss");
    fs::copy(env!("CARGO_BIN_EXE_nearmiss"), &program).unwrap();
    let mut nobody = Command::new("setpriv");
    nobody.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program).args(["lab", "run", "spec.toml"]);
    let run = nobody.current_dir(directory.path()).output().unwrap();
    let expected =
        "nearmiss: two,fs=ext4: file systems on loop devices need root: run it as root, or leave that level out\n";
    assert_eq!((run.status.code(), errors(&run)), (Some(3), expected.to_owned()));
}

#[test]
fn a_cell_may_begin_with_an_empty_page_cache() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: an empty page cache needs root");
        return;
    }
    // Not in memory: those pages would stay.
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let spec = "name = 'cold'\nrepetitions = 1\n\
                measure.pages = { regex = '([0-9]+)' }\n\
                [[workload]]\nname = 'read'\n\
                prepare = 'head -c 409600 /dev/zero > {dir1}/file'\n\
                command = ['fincore', '-n', '-o', 'PAGES', '{dir1}/file']\n\
                [[axis]]\nname = 'cache'\nlevel = [{ name = 'warm' }, { name = 'cold', drop_caches = true }]\n";
    fs::write(directory.path().join("spec.toml"), spec).unwrap();
    let run = lab(directory.path(), &["run", "spec.toml", "--json"]);
    assert_eq!(run.status.code(), Some(0), "{}", errors(&run));
    let pages = |column: usize| record(&run)["metrics"][2]["rows"][0]["entries"][column]["summary"]["median"].clone();
    assert_eq!((pages(0), pages(1)), (100.0.into(), 0.0.into()));
}

/// A sound specification with one thing changed.
fn changed(from: &str, to: &str) -> String {
    assert!(NUMBERS.contains(from), "{from}");
    NUMBERS.replacen(from, to, 1)
}

#[test]
fn wrong_specifications_are_refused_in_one_line_and_leave_nothing() {
    let cases = [
        (changed("repetitions = 6", "repeats = 6"), 2, "spec.toml:3: unknown field `repeats`, expected one of `name`"),
        (changed("unit = \"B\"", "units = \"B\""), 2, "spec.toml:6: unknown field `units`"),
        (changed("repetitions = 6", "repetitions = 0"), 2, "nothing would run"),
        (changed("{dir1}/in | sed", "{dir2}/in | sed"), 2, "{dir2} is not known; there are nearmiss, out, dir1"),
        (
            changed("$(seq {times})", "1"),
            2,
            "axis \"times\", level \"once\": sets times, but no workload's text has {times}",
        ),
        (changed("\"times\"]", "\"time\"]"), 2, "axes names \"time\"; the file has mode, times"),
        (changed("\"env\", \"LAB", "\"no-such-tool\", \"LAB"), 3, "no-such-tool: command not found"),
        (changed("env = { MODE = \"other\" }", "cpus = \"9999\""), 2, "CPU 9999 is beyond"),
        (changed("env = { MODE = \"other\" }", "cpus = \"1000\""), 3, "CPU 1000 is not among those"),
        (changed("([0-9]+)", "([0-9]+"), 2, "is not a regular expression"),
        (changed("name = \"once\"", "name = \"a b\""), 2, "names are made of letters"),
        (changed("name = \"twice\"", "name = \"count\""), 2, "workload \"count\" is there twice"),
    ];
    for (text, status, why) in cases {
        let directory = with_spec(&text);
        let run = lab(directory.path(), &["run", "spec.toml"]);
        let stderr = errors(&run);
        assert_eq!(run.status.code(), Some(status), "{stderr}");
        assert!(stderr.contains(why) && stderr.lines().count() == 1, "{why:?} is not in {stderr:?}");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}

#[test]
fn a_lab_that_is_not_there_or_is_busy_or_is_in_the_way_is_reported() {
    let directory = with_spec(
        "name = 'slow'\nrepetitions = 1\n[[workload]]\nname = 'slow'\ncommand = 'while [ ! -e go ]; do sleep 0.01; done'\n",
    );
    let none = lab(directory.path(), &["resume"]);
    assert!(none.status.code() == Some(2) && errors(&none).contains("no lab is there"), "{}", errors(&none));
    let mut running = Command::new(env!("CARGO_BIN_EXE_nearmiss"))
        .args(["lab", "run", "spec.toml", "--out", "a"])
        .current_dir(directory.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while !directory.path().join("a/tmp/slow,r1").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let busy = lab(directory.path(), &["resume", "a"]);
    assert!(busy.status.code() == Some(2) && errors(&busy).contains("works on this lab now"), "{}", errors(&busy));
    // Showing is allowed meanwhile.
    assert_eq!(record(&lab(directory.path(), &["show", "a", "--json"]))["cells"], 0);
    let taken = lab(directory.path(), &["run", "spec.toml", "--out", "a"]);
    assert!(taken.status.code() == Some(2) && errors(&taken).contains("is there already"), "{}", errors(&taken));
    fs::write(directory.path().join("go"), "").unwrap();
    assert!(running.wait().unwrap().success());
    fs::write(directory.path().join("a/lab.json"), "{}").unwrap();
    let damaged = lab(directory.path(), &["show", "a"]);
    let stderr = errors(&damaged);
    assert!(damaged.status.code() == Some(2) && stderr.contains("nearmiss lab run a/spec.toml --out DIR"), "{stderr}");
}
