//! Coloring from outside colors what it says, keeps every promise of what it wraps, reports
//! exactly what it did, refuses where it cannot engage, and leaves nothing behind.
#![allow(clippy::unwrap_used)]

mod probes;

use nearmiss_remedy::color::apply::{Options, apply};
use nearmiss_remedy::{Applied, CannotEngage, wrap};
use nearmiss_workload::Workload;
use probes::{colored, default_options, probe, run};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

#[test]
fn large_blocks_begin_on_as_many_lines_as_there_are_colors() {
    let (plain, ..) = run(Workload::new([probes::directory().join("blocks").as_os_str(), "lines".as_ref()]));
    assert_eq!(plain, "lines 1\n");
    for colors in [2, 8, 32, 64] {
        let workload = Workload::new([probes::directory().join("blocks").as_os_str(), "lines".as_ref()]);
        let (text, _, report) = colored(workload, &Options { colors, ..default_options() });
        assert_eq!(text, format!("lines {colors}\n"));
        // 64 blocks in turn; color 0 needs no shift.
        let rounds = u64::from(64 / colors);
        let blocks = report.blocks.unwrap();
        assert_eq!(blocks.colored, rounds * u64::from(colors - 1));
        assert_eq!(blocks.added_bytes, rounds * 64 * u64::from(colors * (colors - 1) / 2));
        assert_eq!((blocks.programs, blocks.left, blocks.programs_with_own_malloc), (1, 0, 0));
    }
}

#[test]
fn every_promise_of_malloc_is_kept() {
    let (text, _, report) = colored(probe("blocks"), &default_options());
    assert_eq!(text, "lines 32\n");
    assert!(report.blocks.unwrap().colored > 10_000);
    // With one color nothing is shifted.
    let (text, _, report) = colored(probe("blocks"), &Options { colors: 1, ..default_options() });
    assert_eq!((text.as_str(), report.blocks.unwrap().colored), ("lines 1\n", 0));
}

#[test]
fn threads_start_on_colored_stacks_and_end_as_ever() {
    assert_eq!(run(probe("stacks")).0, "lines 1 1\n");
    let (text, _, report) = colored(probe("stacks"), &default_options());
    assert_eq!(text, "lines 32 32\n");
    let stacks = report.stacks.unwrap();
    // 64 + 64 at once, two that unwind, one with a backtrace, one detached of the small
    // stacks at least; the small ones take what fits.
    assert!(stacks.colored > 64 + 64 + 2, "{stacks:?}");
    let (text, _, report) = colored(probe("stacks"), &Options { stacks: false, ..default_options() });
    assert_eq!((text.as_str(), report.stacks), ("lines 1 1\n", None));
}

#[test]
fn forks_signals_early_starts_and_dlopen_are_survived() {
    for name in ["stress", "early", "loader"] {
        assert!(run(probe(name)).2.status.success(), "{name} by itself");
        let (_, _, report) = colored(probe(name), &default_options());
        let blocks = report.blocks.unwrap();
        assert!(blocks.colored > 0, "{name}");
        assert_eq!(blocks.deepbind_dropped, u64::from(name == "loader"));
        if name == "stress" {
            // Forked children are the same program; five of them execute it anew.
            assert_eq!(blocks.programs, 1 + 5);
        }
    }
}

#[test]
fn allocators_that_the_program_brings_are_wrapped() {
    let libraries = Path::new("/usr/lib").join(format!("{}-linux-gnu", std::env::consts::ARCH));
    for name in ["libjemalloc.so.2", "libmimalloc.so.2", "libtcmalloc_minimal.so.4"] {
        let library = libraries.join(name);
        if !library.exists() {
            println!("skipped: {name} is not installed");
            continue;
        }
        let linked = probes::variant("blocks.c", name, &["-Wl,--no-as-needed", library.to_str().unwrap()]);
        let preloaded = probe("blocks").env("LD_PRELOAD", &library);
        for (how, workload) in [("linked", Workload::new([&linked])), ("preloaded", preloaded)] {
            let (text, _, report) = colored(workload, &default_options());
            let lines: u32 = text.trim().trim_start_matches("lines ").parse().unwrap();
            assert!(lines >= 24, "{name} {how}: {text}");
            assert!(report.blocks.unwrap().colored > 10_000, "{name} {how}");
        }
    }
}

#[test]
fn a_malloc_inside_the_program_is_reported_as_out_of_reach() {
    let own = probes::variant("own_malloc.c", "own_malloc", &["-rdynamic"]);
    let (_, _, report) = colored(Workload::new([own]), &default_options());
    let blocks = report.blocks.clone().unwrap();
    assert_eq!((blocks.programs, blocks.programs_with_own_malloc, blocks.colored), (1, 1, 0));
    assert!(report.to_string().contains("bring their own malloc"));
}

#[test]
fn a_program_at_a_fixed_address_is_not_taken_for_one_with_its_own_malloc() {
    let fixed = probes::variant("fixed.c", "fixed", &["-no-pie", "-fno-pie"]);
    let (_, _, report) = colored(Workload::new([fixed]), &default_options());
    let blocks = report.blocks.unwrap();
    assert_eq!((blocks.programs, blocks.programs_with_own_malloc), (1, 0));
    assert_eq!(blocks.colored, 7, "one of eight has color 0");
}

#[test]
fn what_is_preloaded_already_stays_in_place() {
    let frees = probes::directory().join("libfrees.so");
    let show = Workload::new(["sh", "-c", "echo $LD_PRELOAD; grep -c libfrees.so /proc/$$/maps"]);
    let (text, ..) = colored(show.env("LD_PRELOAD", &frees), &default_options());
    let (preload, mapped) = text.trim().split_once('\n').unwrap();
    assert!(preload.ends_with(frees.to_str().unwrap()) && preload.contains("nearmiss-color-blocks.so"));
    assert!(mapped.parse::<u32>().unwrap() > 0);
}

#[test]
fn children_are_counted_even_where_the_descriptor_was_closed() {
    let script = "fd=${NEARMISS_COLOR_PRELOAD#*fd=}; fd=${fd%%,*}; eval \"exec $fd>&-\"; env true; env -i true";
    let Ok(_) = Workload::new(["bash"]).program() else {
        println!("skipped: no bash, whose descriptors can be closed by number");
        return;
    };
    let (_, _, report) = colored(Workload::new(["bash", "-c", script]), &default_options());
    // bash, and in one process env and true; the other true was started without anything.
    let stacks = report.stacks.unwrap();
    assert_eq!(stacks.programs, 1 + 2 + 1, "bash, env, true, env");
}

#[test]
fn programs_of_nearmiss_color_h_are_told_the_colors() {
    let show = Workload::new(["sh", "-c", "echo $NEARMISS_COLOR"]);
    assert_eq!(colored(show, &Options { colors: 16, ..default_options() }).0, "16\n");
}

#[test]
fn nothing_persists() {
    let (workload, coloring) = apply(probe("early"), &default_options()).unwrap();
    let preload = workload.variable("LD_PRELOAD").unwrap().into_string().unwrap();
    let library = Path::new(preload.split(':').next().unwrap()).to_owned();
    assert!(library.exists());
    let (_, pid, _) = run(workload);
    assert!(coloring.report(pid).is_ok());
    drop(coloring);
    assert!(!library.exists() && !library.parent().unwrap().exists());
    assert_eq!(run(probe("stacks")).0, "lines 1 1\n");
}

#[test]
fn each_launch_is_confirmed_by_itself() {
    let (workload, coloring) = apply(probe("early"), &default_options()).unwrap();
    let (_, first, _) = run(workload.clone());
    assert!(coloring.report(first).is_ok());
    let error = coloring.report(first).unwrap_err();
    assert!(error.to_string().contains("stacks and blocks"), "{error}");
    let (_, second, _) = run(workload);
    assert_eq!(coloring.report(second).unwrap().blocks.unwrap().programs, 1);
}

#[test]
fn a_wrapped_command_ends_as_it_would_by_itself() {
    let code = |script: &str| {
        let (workload, coloring) = apply(Workload::new(["sh", "-c", script]), &default_options()).unwrap();
        let wrapped = wrap(Applied { workload, engagement: Box::new(coloring) }).unwrap();
        (wrapped.exit_code(), wrapped.engaged.is_ok())
    };
    assert_eq!(code("exit 7"), (7, true));
    assert_eq!(code("kill -15 $$"), (128 + 15, true));
    // A command that runs without the library after all is told from one that ran with it.
    let (workload, coloring) = apply(Workload::new(["true"]), &default_options()).unwrap();
    let workload = workload.env_remove("LD_PRELOAD");
    let wrapped = wrap(Applied { workload, engagement: Box::new(coloring) }).unwrap();
    assert_eq!((wrapped.exit_code(), wrapped.engaged.is_ok()), (125, false));
}

fn refusal(workload: Workload) -> String {
    match apply(workload, &default_options()) {
        Err(error @ CannotEngage::Program { .. }) => {
            assert_eq!(error.exit_code(), 125);
            error.to_string()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_program_that_would_ignore_the_library_is_refused_in_words() {
    assert!(refusal(probe("static")).contains("cannot engage in"));
    assert!(refusal(probe("static")).contains("because it is statically linked"));

    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("script");
    fs::write(&script, format!("#!{}\n", probes::directory().join("static").display())).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(refusal(Workload::new([&script])).contains("statically linked"));
    assert!(matches!(
        apply(Workload::new(["no-such-command"]), &default_options()),
        Err(e @ CannotEngage::Launch(_)) if e.exit_code() == 127
    ));

    match Workload::new(["go"]).program() {
        Ok(go) => assert!(refusal(Workload::new([go])).contains("it is a Go program")),
        Err(_) => println!("skipped: no Go program here"),
    }

    let other = directory.path().join("setuid");
    fs::copy(probes::directory().join("early"), &other).unwrap();
    if std::os::unix::fs::chown(&other, Some(65534), None).is_ok() {
        fs::set_permissions(&other, fs::Permissions::from_mode(0o4755)).unwrap();
        assert!(refusal(Workload::new([&other])).contains("setuid"));
    } else {
        println!("skipped: giving a program to another user takes root");
    }
}
