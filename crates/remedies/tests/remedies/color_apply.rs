//! Coloring from outside colors what it states, keeps every promise of what it wraps, reports exactly what it did,
//! refuses where it cannot engage, and leaves nothing behind.
#![allow(clippy::unwrap_used)]

use crate::probes::{self, colored, default_options, probe, run};
use nearmiss_analysis::{Applied, CannotEngage, wrap};
use nearmiss_remedies::color::apply::{Options, apply};
use nearmiss_remedies::color::step;
use nearmiss_workload::Workload;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A workload that prints only how many lines within the page the beginnings of 64 blocks use.
fn blocks_of(bytes: &str) -> Workload {
    Workload::new([probes::directory().join("blocks").as_os_str(), bytes.as_ref()])
}

#[test]
fn large_blocks_begin_on_as_many_lines_as_there_are_colors() {
    assert_eq!(run(blocks_of("4194304")).0, "lines 1\n");
    for colors in [2, 8, 32, 64] {
        let (text, _, report) = colored(blocks_of("4194304"), &Options { colors, ..default_options() });
        assert_eq!(text, format!("lines {colors}\n"));
        // Block by block to the next color; behind the last color, over the rest of a page to the first one. 16 bytes lie
        // between two blocks anyway.
        let step = step(colors.into());
        let ahead = (0..64).map(|n| match n * step % u64::from(colors) + step {
            next if next < u64::from(colors) => step * 64,
            _ => 4096 - (u64::from(colors) - step) * 64,
        });
        let blocks = report.blocks.unwrap();
        assert_eq!((blocks.colored, blocks.added_bytes), (64, ahead.map(|bytes| bytes - 16).sum()));
        assert_eq!((blocks.programs, blocks.left, blocks.programs_with_own_malloc), (1, 0, 0));
    }
}

#[test]
fn blocks_too_large_for_the_heap_take_turns_on_seven_lines() {
    assert_eq!(run(blocks_of("9000000")).0, "lines 1\n");
    for (colors, lines) in [(2, 2), (32, 7), (1024, 7)] {
        let (text, _, report) = colored(blocks_of("9000000"), &Options { colors, ..default_options() });
        assert_eq!(text, format!("lines {lines}\n"));
        // The mapping's beginning, and half a page behind it, a quarter, and so on.
        let added: u64 = (0..64).map(|n| n % lines).filter(|place| *place > 0).map(|place| 4096 >> place).sum();
        let blocks = report.blocks.unwrap();
        assert_eq!((blocks.colored, blocks.added_bytes, blocks.left), (64, added, 0));
    }
}

#[test]
fn every_promise_of_malloc_is_kept() {
    let (text, _, report) = colored(probe("blocks"), &default_options());
    assert_eq!(text, "lines 32\n");
    assert!(report.blocks.unwrap().colored > 10_000);
    // With one color nothing is placed.
    let (text, _, report) = colored(probe("blocks"), &Options { colors: 1, ..default_options() });
    assert_eq!((text.as_str(), report.blocks.unwrap().colored), ("lines 1\n", 0));
}

#[test]
fn threads_start_on_colored_stacks_and_end_as_ever() {
    assert_eq!(run(probe("stacks")).0, "lines 1 1\n");
    let (text, _, report) = colored(probe("stacks"), &default_options());
    assert_eq!(text, "lines 32 32\n");
    let stacks = report.stacks.unwrap();
    // 64 + 64 at once, two that unwind, 128 small ones, one detached, one with a backtrace. Those that the system does not
    // start count nowhere, and the child that overflows its stack counts too.
    assert_eq!((stacks.colored, stacks.left), (64 + 64 + 2 + 128 + 1 + 1 + 1, 0));
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
        if name == "stress" {
            // Forked children are the same program; five of them execute it anew.
            assert_eq!(blocks.programs, 1 + 5);
        }
    }
}

#[test]
fn allocators_that_the_program_brings_are_left_alone() {
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
            let (_, _, report) = colored(workload, &default_options());
            let blocks = report.blocks.unwrap();
            assert_eq!((blocks.programs_with_own_malloc, blocks.colored), (1, 0), "{name} {how}");
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
    assert_eq!(blocks.colored, 8);
}

#[test]
fn earlier_preloads_stay_in_place() {
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
        println!("skipped: no bash, which can close descriptors by number");
        return;
    };
    let (_, _, report) = colored(Workload::new(["bash", "-c", script]), &default_options());
    // bash, and in one process env and true; the other true was started without anything.
    let stacks = report.stacks.unwrap();
    assert_eq!(stacks.programs, 1 + 2 + 1, "bash, env, true, env");
}

#[test]
fn programs_of_nearmiss_color_h_receive_the_colors() {
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
    // A command that runs without the library after all is distinguished from one that ran with it.
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

/// Returns, for each size of stack: how far below its top a thread begins at most, and on how many lines.
fn depths(text: &str) -> Vec<(usize, usize, u32)> {
    let row = |line: &str| {
        let mut words = line.split(' ').map(|word| word.parse::<usize>().unwrap());
        let mut next = || words.next().unwrap();
        (next(), next(), u32::try_from(next()).unwrap())
    };
    text.lines().map(row).collect()
}

#[test]
fn no_thread_loses_more_than_a_32nd_of_its_stack() {
    let depth = probes::variant("depth.c", "depth", &[]);
    let argv = || [depth.to_str().unwrap(), "0", "32768", "65536", "1048576", "8388608"];
    let plain = depths(&run(Workload::new(argv())).0);
    for colors in [32, 1024] {
        let (text, _, report) = colored(Workload::new(argv()), &Options { colors, ..default_options() });
        let mut threads = 1..;
        for ((bytes, least, _), (_, most, lines)) in plain.iter().zip(depths(&text)) {
            assert!(most - least <= bytes / 32, "{colors} colors, a stack of {bytes}: {} lost", most - least);
            // The trampoline's frame is part of the share; the rest is for whole lines.
            let fit = (*bytes as u64 / 32 - 128) / 64 + 1;
            let color = |n: u64| n * step(colors.into()) % u64::from(colors) % fit;
            let places: BTreeSet<u64> = threads.by_ref().take(256).map(|n| color(n) % 64).collect();
            assert_eq!(lines as usize, places.len(), "{colors} colors, a stack of {bytes}");
        }
        assert_eq!(report.stacks.unwrap().colored, 5 * 256);
    }
}
