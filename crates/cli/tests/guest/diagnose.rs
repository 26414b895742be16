//! `nearmiss diagnose` and `rehearse` on subjects with a known illness, and on programs without.

#![allow(clippy::unwrap_used)]

use crate::diagnosing::in_user_mode;
use crate::guest_slots::for_a_guest;
use crate::subjects::subject;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Fixed figures, for any machine that the test runs on: 8 ways of 4 KiB at the first level.
const MACHINE: &str = "zen3-milan";

struct DiagnosedRuns(tempfile::TempDir);

impl DiagnosedRuns {
    fn new() -> Self {
        DiagnosedRuns(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn nearmiss(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_nearmiss")).current_dir(self.path()).args(arguments).output().unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        self.json_and_progress(arguments).0
    }

    fn json_and_progress(&self, arguments: &[&str]) -> (Value, String) {
        let output = self.nearmiss(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {stderr}");
        let record = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{arguments:?}: {e}: {stderr}"));
        (record, stderr)
    }

    fn diagnose(&self, command: &[&str]) -> (Value, String) {
        self.json_and_progress(&[&in_user_mode(MACHINE, "1"), command].concat())
    }

    /// The only run: a command that is diagnosed runs in the guest and nowhere else.
    fn run(&self) -> PathBuf {
        let mut runs: Vec<_> = std::fs::read_dir(self.path().join("nearmiss-runs")).unwrap().collect();
        assert_eq!(runs.len(), 1);
        runs.remove(0).unwrap().path()
    }

    /// Bits of an address that chose the set of the recording's filter, and whether stores are recorded in their order.
    fn filter(&self) -> (u64, bool) {
        let manifest: Value =
            serde_json::from_slice(&std::fs::read(self.run().join("manifest.json")).unwrap()).unwrap();
        (manifest["filter"]["index_bits"].as_u64().unwrap(), manifest["filter"]["ordered_stores"] == true)
    }
}

/// The only finding worth showing.
fn only(findings: &Value) -> &Value {
    assert_eq!(findings["schema"], "nearmiss/findings/2");
    assert!(findings["healthy"].is_null(), "{}", findings["healthy"]);
    let list = findings["findings"].as_array().unwrap();
    assert_eq!(list.len(), 1, "{list:#?}");
    let finding = &list[0];
    let prediction = &finding["prediction"];
    // Two that agree are enough, and three that nearly do.
    assert!([2, 3, 5].contains(&prediction["placements"].as_array().unwrap().len()), "{prediction}");
    let [low, gain, high] = ["low", "gain", "high"].map(|name| prediction[name].as_f64().unwrap());
    assert!(low <= gain && gain <= high && gain >= 0.02, "{low} {gain} {high}");
    assert!(!finding["unless"].as_array().unwrap().is_empty());
    finding
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_else(|| panic!("{name}: {}", value[name]))
}

/// A cell of one of the finding's tables, without its unit.
fn cell<'a>(finding: &'a Value, title: &str, row: usize, column: &str) -> &'a Value {
    let tables = finding["evidence"]["tables"].as_array().unwrap();
    figure(tables.iter().find(|table| table["title"] == title).unwrap(), row, column)
}

fn figure<'a>(table: &'a Value, row: usize, column: &str) -> &'a Value {
    let at = table["columns"].as_array().unwrap().iter().position(|name| name == column).unwrap();
    table["rows"][row][at].as_object().unwrap().values().next().unwrap()
}

/// Returns an argument vector as a line for a shell.
fn line(finding: &Value, verb: &str) -> String {
    let words: Vec<&str> = finding[verb].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    words.join(" ")
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn aligned_tasks_are_named_with_their_sets_and_colors_and_rehearsed() {
    let Some(_guest) = for_a_guest() else { return };
    let place = DiagnosedRuns::new();
    let program = subject("aligned-tasks");
    let (findings, stderr) = place.diagnose(&[&program, "--objects", "64", "--visits", "150000"]);
    let finding = only(&findings);
    assert!(stderr.contains("recording again, to rehearse what changes addresses"), "{stderr}");
    assert!(stderr.contains("first look") && place.filter() == (0, true), "{stderr}");
    let symptom = text(finding, "symptom");
    assert!(symptom.contains("`walk`") && symptom.contains(" pieces, 8 KiB apart"), "{symptom}");
    // Under tree-PLRU a few of the 64 may always hit: it depends on what else lies in their set.
    let pieces = symptom.split(" pieces").next().and_then(|head| head.rsplit(' ').next()).unwrap();
    assert!((50..=66).contains(&pieces.parse::<u64>().unwrap()), "{symptom}");
    assert!(symptom.contains("on 1 of 64 sets at a time"), "{symptom}");
    let name = cell(finding, "objects", 0, "name").as_str().unwrap();
    assert!(name.contains("aligned-tasks.c") && name.contains("main"), "{name}");
    let level = |column: &str| cell(finding, "levels", 0, column);
    assert_eq!((level("cache"), number(level("ways"))), (&Value::from("L1d"), 8));
    assert!(level("verdict").as_str().unwrap().ends_with("every color reaches a set of its own"));
    assert!((60.0..=65.0).contains(&level("lines a set").as_f64().unwrap()), "{}", level("lines a set"));
    // 64 lines, 8 ways, one set a color; what else is in use may require twice as many.
    let treatment = text(finding, "treatment");
    let requires = |colors: u64| treatment.contains(&format!("equation 2 requires {colors} at least"));
    assert!(requires(8) || requires(16), "{treatment}");
    let colors: u64 = treatment.split(' ').next().unwrap().parse().unwrap();
    assert!(colors == 8 || colors == 16, "{treatment}");
    assert_eq!(finding["prediction"]["function"]["name"], "walk");
    // Nearly all of the walk's misses go: of a dependent walk, most of the time.
    assert!(finding["prediction"]["function"]["dependent_gain"].as_f64().unwrap() > 0.6);
    assert_eq!(finding["reach"], "outside", "it was built with nearmiss-color.h");
    let command = format!("{program} --objects 64 --visits 150000");
    assert_eq!(line(finding, "apply"), format!("nearmiss apply color --colors {colors} -- {command}"));
    assert_eq!(line(finding, "verify"), format!("nearmiss verify color --colors {colors} -- {command}"));

    // The command's output is in the run, not in the findings.
    let run = place.run();
    assert!(std::fs::read_to_string(run.join("command.out")).unwrap().contains("ns_per_visit"));
    let mut kept: Value = serde_json::from_slice(&std::fs::read(run.join("findings.json")).unwrap()).unwrap();
    assert!(kept.as_object_mut().unwrap().remove("checksum").is_some());
    assert_eq!(kept, findings);

    let run = run.to_str().unwrap();
    let rehearsed = place.json(&["rehearse", "color", run, "--json", "--colors", "4,16"]);
    assert_eq!(rehearsed["schema"], "nearmiss/rehearsals/2");
    let table = &rehearsed["tables"][0];
    assert!(text(table, "basis").contains("; exact: "), "{table}");
    let of = |row: usize, column: &str| number(figure(&table["table"], row, column));
    assert_eq!([0, 1, 2].map(|row| of(row, "colors")), [1, 4, 16]);
    assert_eq!(table["table"]["rows"].as_array().unwrap().len(), 3);
    let misses = |row: usize| of(row, "L1 misses");
    // Too few colors: 16 lines still pass through 8 ways in turn, so most of them miss.
    assert!(misses(1) > 100_000, "{} {}", misses(0), misses(1));
    assert!(misses(0) > 120_000 && misses(2) < 20_000, "{} {}", misses(0), misses(2));
    assert!(of(2, "cycles") < of(0, "cycles"));
    assert_eq!(of(2, "memory"), pieces.parse::<u64>().unwrap() * 15 * 64 / 2);

    let words = place.nearmiss(&["diagnose", run]);
    let words = String::from_utf8(words.stdout).unwrap();
    for word in ["Modelled", "Predicted", "page placements", "overlap", "Unless", "Apply", "Verify"] {
        assert!(words.contains(word), "{word}: {words}");
    }
}

/// The start of a long command is followed and not recorded: what is allocated there has call sites.
#[test]
fn a_long_command_is_judged_behind_its_start() {
    let Some(_guest) = for_a_guest() else { return };
    let place = DiagnosedRuns::new();
    let words = ["diagnose", "--within", "60s", "--json", "-m", MACHINE, "--cpus", "1", "--memory", "1GiB", "--"];
    let command = [&subject("aligned-tasks"), "--objects", "64", "--visits", "100000000000"];
    let findings = place.json(&[&words[..], &command].concat());
    let finding = only(&findings);
    assert_eq!(finding["remedy"], "color", "{findings:#}");
    let notes = findings["notes"].to_string();
    let ahead = notes.split_once(" in the guest behind its first ").and_then(|(_, text)| text.split(' ').next());
    // A machine on which a boot takes most of the time leaves less than the program's own start takes, or nothing.
    let ahead_s: f64 = ahead.map_or(0.0, |seconds| seconds.parse().unwrap());
    let is_followed = ahead_s >= 0.5;
    let symptom = text(finding, "symptom");
    assert!(!is_followed || symptom.contains("of `anonymous mapping from aligned-tasks.c:"), "{ahead_s} s: {symptom}");
}

#[test]
fn colliding_stacks_and_blocks_are_remedied_from_outside() {
    let Some(_guest) = for_a_guest() else { return };
    let program = subject("equal-stacks");
    let (stacks, _) = DiagnosedRuns::new().diagnose(&[&program, "--threads", "64", "--rounds", "1500"]);
    let finding = only(&stacks);
    assert!(text(finding, "symptom").contains("64 thread stacks"), "{}", finding["symptom"]);
    assert!(line(finding, "apply").contains(" --stacks -- "), "{}", finding["apply"]);
    assert_eq!(cell(finding, "functions", 0, "name"), "look_around");
    // Four lines a stack: as many colors as stacks leave some sets to each.
    assert!(finding["prediction"]["function"]["gain"].as_f64().unwrap() > 0.5, "{}", finding["treatment"]);

    // Readers of crowded stacks also wait for stores to the same offsets: that is no second fault.
    let place = DiagnosedRuns::new();
    let begin = ["diagnose", "--within", "0", "--json", "-m", "xeon-icelake-sp", "--memory", "1GiB", "--"];
    let both = place.json(&[&begin[..], &[&program, "--threads", "64", "--rounds", "1500"]].concat());
    assert!(text(only(&both), "symptom").contains("thread stacks that crowd"), "{both}");

    let program = subject("lock-step");
    let (blocks, _) = DiagnosedRuns::new().diagnose(&[&program, "--elements", "16384", "--rounds", "1"]);
    let finding = only(&blocks);
    assert!(text(finding, "symptom").contains(" malloc blocks of `lock-step.c"), "{}", finding["symptom"]);
    assert!(line(finding, "apply").contains(" --blocks 131072 -- "), "{}", finding["apply"]);
}

#[test]
fn loads_behind_stores_of_their_page_offset_are_found() {
    let Some(_guest) = for_a_guest() else { return };
    let program = subject("running-sums");
    let begin = in_user_mode("xeon-icelake-sp", "1");
    let place = DiagnosedRuns::new();
    let findings = place.json(&[&begin[..], &[&program, "--rounds", "100"]].concat());
    let finding = only(&findings);
    assert!(text(finding, "symptom").contains("wait for a store to the same offset"), "{}", finding["symptom"]);
    assert!(line(finding, "apply").contains(" --colors 16 --blocks 16384 -- "), "{}", finding["apply"]);
    assert_eq!(cell(finding, "functions", 0, "name"), "add_up");
    // But for the first of each page, all of 100 × 2,048 loads.
    let loads = number(cell(finding, "functions", 0, "loads that wait"));
    assert!((195_000..=204_800).contains(&loads), "{loads}");
    // Nothing is left of it where the blocks lie far apart.
    let gain = finding["prediction"]["function"]["gain"].as_f64().unwrap();
    assert!((0.45..0.65).contains(&gain), "{gain}");

    // A machine that is not known to compare offsets has no finding.
    let elsewhere = place.json(&["diagnose", "--json", "-m", "zen4-genoa"]);
    assert!(elsewhere["findings"].as_array().unwrap().is_empty(), "{elsewhere}");
}

#[test]
fn objects_that_nobody_outside_may_move_are_found_with_the_reason() {
    let Some(_guest) = for_a_guest() else { return };
    for (name, arguments, objects, why, change) in [
        ("mmap-buffers", ["--elements", "2048", "--rounds", "6"], "16 KiB apart", "mmap promises", "nearmiss-color.h"),
        ("matrix-rows", ["--columns", "512", "--rounds", "6"], "4 KiB apart", "parts of one object", "pad each row"),
    ] {
        let program = subject(name);
        let (findings, _) = DiagnosedRuns::new().diagnose(&[&[program.as_str()], arguments.as_slice()].concat());
        let finding = only(&findings);
        assert!(text(finding, "symptom").contains(objects), "{}", finding["symptom"]);
        let inside = &finding["reach"]["inside"];
        assert!(text(inside, "why").contains(why) && text(inside, "change").contains(change), "{inside}");
        assert!(finding["apply"].is_null() && finding["verify"].is_null());
        let advice = findings["advice"].to_string();
        assert_eq!(advice.contains("the inner loop steps by 4 KiB"), name == "matrix-rows", "{advice}");
    }
}

#[test]
fn fields_that_lie_far_apart_are_found_with_the_declaration_that_puts_them_together() {
    let Some(_guest) = for_a_guest() else { return };
    let program = subject("far-fields");
    let place = DiagnosedRuns::new();
    let (findings, stderr) = place.diagnose(&[&program, "--nodes", "8000", "--rounds", "10"]);
    assert!(stderr.contains("recording again, to rehearse what changes addresses, fields, stores"), "{stderr}");
    let of_layout = |findings: &Value| {
        let list = findings["findings"].as_array().unwrap().clone();
        list.into_iter().find(|finding| finding["remedy"] == "layout")
    };
    let finding = of_layout(&findings).unwrap();
    let symptom = text(&finding, "symptom");
    assert!(symptom.contains("`struct node` of `far-fields.c:"), "{symptom}");
    assert!(symptom.contains("8,000 elements of 256 B, of which a visit uses "), "{symptom}");
    // Each node's key and link are read once a round, and written once.
    let read = |row| number(cell(&finding, "fields", row, "reads"));
    let names = [0, 2].map(|row| cell(&finding, "fields", row, "member").as_str().unwrap().to_owned());
    assert_eq!((names, read(0), read(2)), (["key".to_owned(), "next".to_owned()], 80_000, 80_000));
    let lines: Vec<&str> =
        finding["evidence"]["lines"].as_array().unwrap().iter().map(|line| text(line, "text")).collect();
    for declared in ["uint64_t key; /* at 0 */", "struct node *next; /* at 8, was at 248 */"] {
        assert!(lines.contains(&declared), "{lines:#?}");
    }
    let gain = finding["prediction"]["gain"].as_f64().unwrap();
    assert!((0.25..0.95).contains(&gain) && finding["apply"].is_null(), "{gain}");

    let run = place.run();
    let run = run.to_str().unwrap();
    let rehearsed = place.json(&["rehearse", "layout", run, "--json", "--changes", "order,split"]);
    let table = &rehearsed["tables"][0]["table"];
    let changes = [0, 1, 2].map(|row| figure(table, row, "changes").as_str().unwrap().to_owned());
    assert_eq!(changes, ["as it was", "order", "split"]);
    let refused = place.nearmiss(&["apply", "layout", "--", "true"]);
    let stderr = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(125) && stderr.contains("by its author"), "{stderr}");

    let (cured, _) = DiagnosedRuns::new().diagnose(&[&program, "--nodes", "8000", "--rounds", "10", "--apart"]);
    assert!(of_layout(&cured).is_none(), "{cured:#}");
}

#[test]
fn programs_without_the_illness_have_no_finding() {
    let Some(_guest) = for_a_guest() else { return };
    let place = DiagnosedRuns::new();
    let words = place.path().join("words.txt");
    let mut state = 1u64;
    let lines = (0..6000).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!("{state:016x}\n")
    });
    std::fs::write(&words, lines.collect::<String>()).unwrap();
    let words = words.to_str().unwrap();
    let query = "with recursive n(i) as (select 1 union all select i+1 from n where i<8000) select sum(i*i) from n";
    let (healthy, chase) = (subject("healthy"), subject("pointer-chase"));
    let commands: [&[&str]; 5] = [
        &[&healthy, "--passes", "200"],
        &[&chase, "--steps", "200000"],
        &["sort", "-o", "/dev/null", words],
        &["gzip", "-c", words],
        &["sqlite3", ":memory:", query],
    ];
    for command in commands {
        if command[0] == "sqlite3" && Command::new("sqlite3").arg("-version").output().is_err() {
            eprintln!("skipped: sqlite3 is not installed");
            continue;
        }
        let place = DiagnosedRuns::new();
        let (findings, stderr) = place.diagnose(command);
        if command[0] == chase {
            // Each node is a line, of which the walk uses a word.
            assert_eq!(only(&findings)["remedy"], "layout");
            continue;
        }
        assert_eq!(findings["findings"].as_array().unwrap().len(), 0, "{command:?}: {:#}", findings["findings"]);
        // A program may wait for what it is: then the heaviest waits that something could save are named.
        let calm = findings["healthy"].as_str().or(findings["unexplained"]["why"].as_str());
        assert!(calm.unwrap().contains("(modelled) waits for caches and memory"), "{command:?}");
        let waits = findings["unexplained"]["waits"].as_array().map_or(0, Vec::len);
        let named = if findings["healthy"].is_null() { 1..=3 } else { 0..=0 };
        assert!(named.contains(&waits), "{command:?}: {waits}");
        if command[0] == healthy {
            // Recorded whole only where that could matter.
            assert!(!stderr.contains("recording again"), "{stderr}");
            assert!(matches!(place.filter(), (1.., false)), "{:?}", place.filter());
        }
    }
}

/// A machine with fixed figures under the name of this one, so that the clock here may be set beside it.
fn preset_named_host(place: &DiagnosedRuns) -> String {
    let machines = Path::new(env!("CARGO_MANIFEST_DIR")).join("../machine/machines");
    let preset = std::fs::read_to_string(machines.join(format!("{MACHINE}.toml"))).unwrap();
    let file = place.path().join("here.toml");
    std::fs::write(&file, preset.replacen(&format!("name = \"{MACHINE}\""), "name = \"host\"", 1)).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn a_gain_is_a_share_of_the_time_that_the_command_takes_here() {
    let Some(_guest) = for_a_guest() else { return };
    let place = DiagnosedRuns::new();
    let (machine, program) = (preset_named_host(&place), subject("aligned-tasks"));
    let mut begin = in_user_mode(&machine, "1").to_vec();
    begin.insert(1, "--measure");
    let measured = place.json(&[&begin[..], &[&program, "--objects", "64", "--visits", "150000"]].concat());
    let run = place.run();
    let run = run.to_str().unwrap();
    let modelled = place.json(&["diagnose", "--json", run]);

    let clock = &measured["measured"];
    let cycles = number(&clock["cycles"]);
    assert_eq!((number(&clock["runs"]), clock["only_user"].as_bool()), (5, Some(true)));
    assert_eq!(cycles, (number(&clock["cpu_ns"]) as f64 * 2.45).round() as u64, "at 2,450 MHz");
    assert!(
        number(&clock["least_ns"]) <= number(&clock["cpu_ns"]) && number(&clock["cpu_ns"]) <= number(&clock["most_ns"])
    );
    assert!(modelled["measured"].is_null());

    let [by_clock, by_model] = [&measured, &modelled].map(|findings| &only(findings)["prediction"]);
    assert_eq!((number(&by_clock["measured_cycles"]), text(by_clock, "of")), (cycles, "the measured cycles"));
    assert_eq!((by_model["measured_cycles"].as_u64(), text(by_model, "of")), (None, "the cycles"));
    assert_eq!(by_clock["modelled_cycles"], by_model["modelled_cycles"]);
    let saved = by_model["gain"].as_f64().unwrap() * number(&by_model["modelled_cycles"]) as f64;
    let gain = by_clock["gain"].as_f64().unwrap();
    let share = (saved / cycles as f64).min(1.0);
    // A share of cycles that the model is far from is a figure of one digit.
    let ratio = number(&by_model["modelled_cycles"]) as f64 / cycles as f64;
    let share = if (0.5..=2.0).contains(&ratio) || share < 0.1 { share } else { (share * 10.0).round() / 10.0 };
    assert!((gain - share).abs() < 1e-9, "{gain} {saved} {cycles}");
    assert!(by_model["approximate"].to_string().contains("experiments/cycles/zen5.txt"), "{by_model}");
    assert!(!by_clock["approximate"].to_string().contains("experiments/cycles/zen5.txt"), "{by_clock}");

    let refused = place.nearmiss(&["diagnose", run, "--measure", "-m", MACHINE]);
    let stderr = String::from_utf8(refused.stderr).unwrap();
    assert_eq!((refused.status.code(), refused.stdout.len()), (Some(2), 0), "{stderr}");
    assert!(
        stderr.ends_with("is modelled on zen3-milan, and no clock here measures its time; add -m host\n"),
        "{stderr}"
    );
}

#[test]
fn bad_input_is_one_line() {
    let place = DiagnosedRuns::new();
    for arguments in [
        ["diagnose", "none"].as_slice(),
        &["diagnose"],
        &["rehearse", "color", "none"],
        &["rehearse", "color", "--colors", "0"],
        &["verify", "color", "--against", "none", "--", "true"],
        &["diagnose", "none", "--cpus", "2"],
        &["diagnose", "none", "--only", "user"],
    ] {
        let output = place.nearmiss(arguments);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("panicked"), "{stderr}");
    }
    // A run that was modelled and not kept cannot be rehearsed.
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/fixtures/healthy");
    let output = place.nearmiss(&["diagnose", fixture.to_str().unwrap()]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), stderr.lines().count()), (Some(2), 1), "{stderr}");
}
