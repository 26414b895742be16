use super::probe::Emulator;
use super::*;
use nearmiss_analysis::{Ability, Inability};
use nearmiss_observe::watch::Capability;
use std::collections::HashMap;

/// A machine made of files and answers.
struct Fake {
    files: HashMap<String, String>,
    emulator: Result<Emulator, String>,
    trial: Option<Result<String, String>>,
    kernel: Result<String, String>,
    plugin: bool,
    isa: &'static str,
    root: bool,
    namespaces: bool,
    snapshots: Result<(String, Option<&'static str>), String>,
    instruments: Vec<Capability>,
    remedies: Vec<(&'static str, Ability)>,
}

/// Makes the answers of instruments: name, why not, what to type.
fn instruments(answers: &[(&'static str, bool, &str, &str)]) -> Vec<Capability> {
    let capability = |(what, works, why_not, what_to_type): &(&'static str, bool, &str, &str)| Capability {
        what,
        works: *works,
        why_not: (*why_not).to_owned(),
        what_to_type: (*what_to_type).to_owned(),
    };
    answers.iter().map(capability).collect()
}

impl Probe for Fake {
    fn read(&self, path: &str) -> Option<String> {
        self.files.get(path).cloned()
    }
    fn exists(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }
    fn trial(&self) -> Option<Result<String, String>> {
        self.trial.clone()
    }
    fn emulator(&self) -> Result<Emulator, String> {
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
    fn namespaces(&self) -> bool {
        self.namespaces
    }
    fn may_freeze(&self) -> bool {
        self.root
    }
    fn snapshots(&self) -> Result<(String, Option<&'static str>), String> {
        self.snapshots.clone()
    }
    fn instruments(&self) -> Vec<Capability> {
        self.instruments.clone()
    }
    fn remedies(&self) -> Vec<(&'static str, Ability)> {
        self.remedies.clone()
    }
}

/// A server that has everything.
fn server() -> Fake {
    let files =
        [("/usr/lib/qemu/virtiofsd", ""), ("/proc/meminfo", "MemTotal:  24000000 kB\nMemAvailable:  20971520 kB")];
    Fake {
        files: files.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
        emulator: Ok(Emulator { found: "QEMU 7.2, /usr/bin/qemu-system-x86_64".into(), caution: None }),
        trial: Some(Ok("in 4.1 s, of them 3.3 s to boot (measured)".into())),
        kernel: Ok("6.12.117+deb12-cloud-amd64".into()),
        plugin: true,
        isa: "x86_64",
        root: true,
        namespaces: true,
        snapshots: Ok(("CRIU 4.2.1".into(), None)),
        instruments: instruments(&[("clock profile (--clock)", true, "", ""), ("lock waits (--locks)", true, "", "")]),
        remedies: vec![("pad", Ability { name: "preloaded libraries", state: Ok("tried on `true`".into()) })],
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
fn a_bare_machine_is_shown_commands_to_type() {
    let noexec = Inability { why: "no directory to map libraries from".into(), todo: "export TMPDIR=DIR".into() };
    let bare = Fake {
        files: HashMap::from([
            ("/proc/meminfo".to_owned(), "MemAvailable: 700000 kB".to_owned()),
            ("/proc/sys/user/max_user_namespaces".to_owned(), "0".to_owned()),
        ]),
        emulator: Err("qemu-system-x86_64 is not installed".into()),
        trial: Some(Err("must not be tried".into())),
        kernel: Err("no kernel in /home/u/.cache/nearmiss/kernel".into()),
        plugin: false,
        isa: "x86_64",
        root: false,
        namespaces: false,
        snapshots: Err("CRIU is missing".into()),
        instruments: instruments(&[
            ("clock profile (--clock)", false, "not allowed", "sysctl kernel.perf_event_paranoid=1"),
            ("lock waits (--locks)", false, "not allowed to load BPF programs", "run as root"),
            ("block I/O (--io)", false, "not allowed to load BPF programs", "run as root"),
        ]),
        remedies: vec![("pad", Ability { name: "preloaded libraries", state: Err(noexec) })],
    };
    insta::assert_snapshot!(Report::of(&bare).text(100));
}

#[test]
fn taking_one_thing_away_changes_its_row_alone() {
    let all = Report::of(&server());
    type Take = fn(&mut Fake);
    let caution = |f: &mut Fake| {
        f.emulator = Ok(Emulator { found: "QEMU 9.2".into(), caution: Some("it was never tested".into()) });
    };
    let cases: [(&str, Take, State); 10] = [
        ("snapshots (CRIU)", |f| f.snapshots = Err("CRIU is missing".into()), State::Missing),
        ("snapshots (CRIU)", |f| f.snapshots = Ok(("CRIU 4.1".into(), Some("no sockets"))), State::Limited),
        ("emulator", |f| f.emulator = Err("version 6".into()), State::Missing),
        ("file server", |f| drop(f.files.remove("/usr/lib/qemu/virtiofsd")), State::Missing),
        ("guest kernel", |f| f.kernel = Err("none".into()), State::Missing),
        ("instruction set", |f| f.isa = "aarch64", State::Missing),
        ("privilege", |f| f.namespaces = false, State::Missing),
        ("memory", |f| drop(f.files.remove("/proc/meminfo")), State::Limited),
        ("emulator", caution, State::Limited),
        ("a trace of `true`", |f| f.trial = Some(Err("setgroups() failed".into())), State::Missing),
    ];
    for (name, take, state) in cases {
        let mut fake = server();
        take(&mut fake);
        let report = Report::of(&fake);
        assert_eq!(row(&report, name).state, state, "{name}");
        assert!(!row(&report, name).todo.is_empty(), "{name}");
        // Without a part there is no trace to be tried.
        let tried = |r: &Row| r.name == "a trace of `true`";
        let none = state == State::Missing && !["a trace of `true`", "snapshots (CRIU)"].contains(&name);
        assert_eq!(report.rows.iter().any(tried), !none, "{name}");
        for other in all.rows.iter().filter(|r| r.name != name && !tried(r)) {
            assert_eq!(&row(&report, &other.name), other, "without {name}");
        }
    }
}

#[test]
fn the_answers_of_the_instruments_are_those_of_an_observation() {
    let mut user = server();
    user.root = false;
    user.instruments = instruments(&[
        ("clock profile (--clock)", true, "own processes only", "sysctl kernel.perf_event_paranoid=-1"),
        ("lock waits (--locks)", false, "not allowed", "run as root"),
    ]);
    let report = Report::of(&user);
    assert_eq!(row(&report, "privilege").state, State::Works);
    assert_eq!(row(&report, "clock profile (--clock)").state, State::Limited);
    assert_eq!(row(&report, "lock waits (--locks)").state, State::Missing);
    let observe = "observe: works here without lock waits; with limits: clock profile.";
    assert_eq!(report.summary[report.summary.len() - 2..], [observe, "apply: works here."]);
    assert!(report.text(100).contains("run as root   # snapshots (CRIU), lock waits (--locks)"));
}

#[test]
fn the_record_is_json_with_a_schema() {
    let value = serde_json::to_value(Report::of(&server())).expect("it serialises");
    assert_eq!(value["schema"], "nearmiss/doctor/1");
    assert_eq!(value["rows"][0]["state"], "works");
    assert_eq!(value["rows"].as_array().map(Vec::len), Some(14));
}

#[test]
fn a_containers_filter_and_a_kernel_that_refuses_have_rows_of_their_own() {
    let refused = |status: &str| {
        let mut fake = Fake { namespaces: false, ..server() };
        fake.files.insert("/proc/self/status".to_owned(), status.to_owned());
        row(&Report::of(&fake), "privilege")
    };
    let (filtered, plain) = (refused("Threads:\t1\nSeccomp:\t2\nSeccomp_filters:\t1"), refused("Seccomp:\t0"));
    assert!(filtered.found.contains("seccomp") && filtered.todo.contains("--cap-add SYS_ADMIN"), "{filtered:?}");
    assert!(!plain.found.contains("seccomp") && plain.todo.contains("root"), "{plain:?}");
}
