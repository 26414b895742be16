use super::*;
use std::collections::HashMap;

/// A machine made of files and answers.
struct Fake {
    files: HashMap<String, String>,
    emulator: Result<String, String>,
    kernel: Result<String, String>,
    plugin: bool,
    isa: &'static str,
    root: bool,
}

impl Probe for Fake {
    fn read(&self, path: &str) -> Option<String> {
        self.files.get(path).cloned()
    }
    fn exists(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }
    fn emulator(&self) -> Result<String, String> {
        self.emulator.clone()
    }
    fn kernel(&self) -> Result<String, String> {
        self.kernel.clone()
    }
    fn plugin(&self) -> bool {
        self.plugin
    }
    fn caches(&self) -> Result<String, String> {
        Ok("L1d 48 KiB, L1i 32 KiB, L2 1 MiB, L3 32 MiB".into())
    }
    fn isa(&self) -> &'static str {
        self.isa
    }
    fn root(&self) -> bool {
        self.root
    }
}

/// A server that has everything.
fn server() -> Fake {
    let files = [
        ("/usr/lib/qemu/virtiofsd", ""),
        ("/proc/meminfo", "MemTotal:  24000000 kB\nMemAvailable:  20971520 kB"),
        ("/proc/self/status", "CapEff:\t000001fffeffffff"),
        ("/proc/sys/kernel/perf_event_paranoid", "2"),
        ("/sys/bus/event_source/devices/cpu", ""),
        ("/sys/kernel/btf/vmlinux", ""),
        ("/sys/kernel/tracing/events/lock/contention_begin", ""),
    ];
    Fake {
        files: files.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
        emulator: Ok("QEMU 7.2, /usr/bin/qemu-system-x86_64".into()),
        kernel: Ok("6.12.117+deb12-cloud-amd64".into()),
        plugin: true,
        isa: "x86_64",
        root: true,
    }
}

fn row(report: &Report, name: &str) -> Row {
    report.rows.iter().find(|r| r.name == name).cloned().expect("a row of that name")
}

#[test]
fn a_machine_that_has_everything() {
    insta::assert_snapshot!(Report::of(&server()).text(100));
}

#[test]
fn a_bare_machine_is_told_what_to_type() {
    let bare = Fake {
        files: HashMap::from([
            ("/proc/meminfo".to_owned(), "MemAvailable: 700000 kB".to_owned()),
            ("/proc/sys/user/max_user_namespaces".to_owned(), "0".to_owned()),
            ("/proc/sys/kernel/perf_event_paranoid".to_owned(), "3".to_owned()),
        ]),
        emulator: Err("qemu-system-x86_64 is not installed".into()),
        kernel: Err("no kernel in /home/u/.cache/nearmiss/kernel".into()),
        plugin: false,
        isa: "x86_64",
        root: false,
    };
    insta::assert_snapshot!(Report::of(&bare).text(100));
}

#[test]
fn taking_one_thing_away_changes_its_row_alone() {
    let all = Report::of(&server());
    let cases: [(&str, fn(&mut Fake), State); 7] = [
        ("emulator", |f| f.emulator = Err("version 6".into()), State::Missing),
        ("file server", |f| drop(f.files.remove("/usr/lib/qemu/virtiofsd")), State::Missing),
        ("guest kernel", |f| f.kernel = Err("none".into()), State::Missing),
        ("hardware counters", |f| drop(f.files.remove("/sys/bus/event_source/devices/cpu")), State::Missing),
        ("BPF", |f| drop(f.files.remove("/sys/kernel/btf/vmlinux")), State::Missing),
        ("instruction set", |f| f.isa = "aarch64", State::Missing),
        ("memory", |f| drop(f.files.remove("/proc/meminfo")), State::Limited),
    ];
    for (name, take, state) in cases {
        let mut fake = server();
        take(&mut fake);
        let report = Report::of(&fake);
        assert_eq!(row(&report, name).state, state, "{name}");
        assert!(!row(&report, name).todo.is_empty(), "{name}");
        for other in all.rows.iter().filter(|r| r.name != name) {
            assert_eq!(&row(&report, other.name), other, "without {name}");
        }
    }
}

#[test]
fn rights_decide_what_can_be_observed() {
    let mut user = server();
    user.root = false;
    user.files.insert("/proc/self/status".into(), "CapEff:\t0000000000000000".into());
    let report = Report::of(&user);
    assert_eq!(row(&report, "privilege").state, State::Works);
    assert_eq!(row(&report, "sampling").state, State::Limited);
    assert_eq!(row(&report, "BPF").state, State::Missing);
    assert_eq!(report.summary.last().map(String::as_str), Some("observe: works without BPF on this machine."));
}

#[test]
fn the_record_is_json_with_a_schema() {
    let value = serde_json::to_value(Report::of(&server())).expect("it serialises");
    assert_eq!(value["schema"], "nearmiss/doctor/1");
    assert_eq!(value["rows"][0]["state"], "works");
    assert_eq!(value["rows"].as_array().map(Vec::len), Some(13));
}
