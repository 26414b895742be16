//! Guests of several nodes: what tasks read on the bus, homes that the guest's kernel does not see, and a load apart.
#![allow(clippy::unwrap_used)]

use crate::guest_slots::for_a_guest;
use crate::subjects::subject;
use nearmiss_record::model::{BusTally, ModelRecord, TaskRow};
use std::path::Path;
use std::process::{Command, Output};

const MACHINE: [&str; 6] = ["-m", "pentium3-xeon-numa-2x2", "--memory", "1GiB", "--cpus", "4"];

/// Output of the command, and the model of its trace.
fn traced(place: &Path, options: &[&str], command: &[&str]) -> (Output, ModelRecord) {
    let file = place.join("model.json");
    let begin = ["trace", "--no-curve", "--no-stacks", "--no-heap", "--json", file.to_str().unwrap()];
    let mut nearmiss = Command::new(env!("CARGO_BIN_EXE_nearmiss"));
    nearmiss.current_dir(place).args(begin).args(MACHINE).args(options).arg("--").args(command);
    let output = nearmiss.output().unwrap();
    assert!(file.is_file(), "{}", text(&output.stderr));
    (output, serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn classes(bus: &BusTally) -> [u64; 4] {
    [bus.read_remote, bus.read_local_none, bus.read_local_shared, bus.read_local_modified]
}

fn sum(rows: impl Iterator<Item = [u64; 4]>) -> [u64; 4] {
    rows.fold([0; 4], |sum, row| std::array::from_fn(|class| sum[class] + row[class]))
}

/// Bus counts of a task, user mode and kernel.
fn of_task(task: &TaskRow) -> [u64; 4] {
    sum([&task.user.bus, &task.kernel.bus].map(classes).into_iter())
}

/// Bus counts of the command's tasks of this name.
fn named(model: &ModelRecord, name: &str) -> [u64; 4] {
    sum(model.tasks.iter().filter(|task| task.of_command && task.comm == name).map(of_task))
}

/// A small run of the program behind a line with the nodes that the kernel knows.
fn with_the_nodes_online(program: &str) -> [&str; 9] {
    let online = "cat /sys/devices/system/node/online; exec \"$@\"";
    ["sh", "-c", online, "sh", program, "--part", "256K", "--rounds", "2"]
}

#[test]
fn classes_of_tasks_and_of_cpus_sum_to_what_is_printed() {
    let Some(_guest) = for_a_guest() else { return };
    let place = tempfile::tempdir().unwrap();
    let (output, model) = traced(place.path(), &["--no-trace"], &with_the_nodes_online(&subject("wrong-homes")));
    assert_eq!(text(&output.stdout).lines().next(), Some("0-1"));
    let tasks = sum(model.tasks.iter().filter(|task| task.of_command).map(of_task));
    let others = sum(model.tasks.iter().filter(|task| !task.of_command).map(of_task));
    assert_eq!(tasks, classes(&model.totals.bus));
    assert_eq!(others, classes(&model.others.bus));
    assert_eq!(sum(model.cpus.iter().map(|cpu| classes(&cpu.bus))), tasks, "CPUs");
    // By node of the data: fetches are left out.
    let nodes = sum(model.nodes.iter().map(|node| classes(&node.bus)));
    assert!((0..4).all(|class| nodes[class] <= tasks[class]), "{nodes:?} {tasks:?}");
    assert!(tasks[0] > 1000 && tasks[1] > 1000, "{tasks:?}");
    let report = text(&output.stderr);
    let of_mode = |bus: fn(&TaskRow) -> &BusTally| {
        sum(model.tasks.iter().filter(|task| task.of_command).map(|task| classes(bus(task))))
    };
    let (user, kernel) = (of_mode(|task| &task.user.bus), of_mode(|task| &task.kernel.bus));
    assert!(user[0] > 0 && kernel[1] > 0, "{user:?} {kernel:?}");
    for (label, counts) in [("Bus ", tasks), ("  user ", user), ("  kernel ", kernel)] {
        assert_shares(&report, label, counts);
    }
}

/// The line of this label has the shares of the classes.
fn assert_shares(report: &str, label: &str, counts: [u64; 4]) {
    let line = report.lines().find(|line| line.starts_with(label) && line.contains("(r "));
    let line = line.unwrap_or_else(|| panic!("{report}"));
    for (class, name) in ["(r ", "l-n ", "l-s ", "l-m "].into_iter().enumerate() {
        let share = counts[class] as f64 * 100.0 / counts.iter().sum::<u64>() as f64;
        let printed = line.split(name).nth(1).and_then(|rest| rest.split(['%', ',', ')']).next());
        let printed = printed.unwrap_or_else(|| panic!("{line}")).replace('–', "0");
        let printed = printed.trim_start_matches('<').trim().parse::<f64>().unwrap_or_else(|_| panic!("{line}"));
        assert!((printed - share).abs() <= 0.1, "{name}{share} in {line}");
    }
}

#[test]
fn a_kernel_that_knows_one_node_has_homes_on_both() {
    let Some(_guest) = for_a_guest() else { return };
    let place = tempfile::tempdir().unwrap();
    let options = ["--no-trace", "--kernel-arg", "numa=off"];
    let (output, model) = traced(place.path(), &options, &with_the_nodes_online(&subject("wrong-homes")));
    assert_eq!(text(&output.stdout).lines().next(), Some("0"), "{}", text(&output.stderr));
    assert_eq!(model.nodes.len(), 2);
    // CPUs of both nodes read what the kernel, for which all memory is one, put anywhere.
    let [remote, local, ..] = named(&model, "wrong-homes");
    assert!(remote > 1000 && local > 1000, "{remote} and {local}");
}

#[test]
fn a_load_on_cpus_of_its_own_leaves_the_server_s_figures_apart() {
    let Some(_guest) = for_a_guest() else { return };
    let place = tempfile::tempdir().unwrap();
    // A copy of the program by another name, so that its tasks are distinguished.
    let server = subject("mixed-server");
    let client = place.path().join("mixed-client");
    std::fs::copy(&server, &client).unwrap();
    let load = format!(
        "for p in /proc/[0-9]*; do
            read name < $p/comm
            if [ \"$name\" = mixed-server ]; then grep Cpus_allowed_list $p/status; break; fi
        done
        grep Cpus_allowed_list /proc/self/status
        exec '{}' --ask --port 8085 --processes 2 --transactions 1 --file 64K",
        client.display()
    );
    std::fs::write(place.path().join("load.sh"), load).unwrap();
    let apart = ["--no-trace", "--clock", "instructions", "--client-cpus", "2"];
    let options = [&apart[..], &["--ready", "127.0.0.1:8085", "--load", "sh load.sh"]].concat();
    let command = [&server, "--port", "8085", "--processes", "2", "--file", "64K"];
    let (output, model) = traced(place.path(), &options, &command);
    let (out, report) = (text(&output.stdout), text(&output.stderr));
    let allowed: Vec<&str> = out.lines().filter_map(|line| line.strip_prefix("Cpus_allowed_list:\t")).collect();
    assert_eq!(allowed, ["0-3", "4-5"], "{out}{report}");
    let (server, load) = (named(&model, "mixed-server"), named(&model, "mixed-client"));
    assert!(server.iter().sum::<u64>() > 1000 && load.iter().sum::<u64>() > 1000, "{server:?} {load:?}\n{report}");
    // The machine's two nodes and one of the load's, where it alone runs.
    assert_eq!((model.nodes.len(), model.cpus.len()), (3, 6), "{report}");
    let of_load: u64 = model.cpus[4..].iter().map(|cpu| cpu.instructions).sum();
    let its = model.tasks.iter().filter(|task| task.comm == "mixed-client");
    let its: u64 = its.map(|task| task.user.instructions + task.kernel.instructions).sum();
    assert!(its <= of_load, "{its} of {of_load}");
    assert!(model.tasks.iter().all(|task| task.comm != "mixed-server" || task.of_command));
}
