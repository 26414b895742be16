//! valgrind and the sanitizers find nothing wrong in the preloaded libraries, nor do the
//! libraries keep the sanitizers from finding what is wrong in the program.
#![allow(clippy::unwrap_used)]

use crate::probes::{self, colored, default_options, run};
use nearmiss_workload::{Stdio, Workload};

fn has(program: &str) -> bool {
    Workload::new([program]).program().is_ok()
}

#[test]
fn valgrind_finds_nothing() {
    if !has("valgrind") {
        println!("skipped: valgrind is not installed");
        return;
    }
    // The second way valgrind leaves our malloc in place and checks what it does with the
    // C library's, which valgrind replaces.
    for ours in ["*", "somalloc=nouserintercepts"] {
        for name in ["early", "loader"] {
            let valgrind = ["valgrind", "-q", "--error-exitcode=9", "--leak-check=full"];
            let option = (ours != "*").then(|| format!("--soname-synonyms={ours}"));
            let argv = valgrind.iter().map(|a| (*a).to_owned()).chain(option);
            let program = probes::directory().join(name).display().to_string();
            let (_, _, report) = colored(Workload::new(argv.chain([program])), &default_options());
            // valgrind starts the program in its own process.
            assert!(report.stacks.is_some_and(|s| s.programs >= 2), "{name}");
            let blocks = report.blocks.unwrap();
            // In valgrind's heap no block begins where another's end puts it.
            assert!(ours == "*" || blocks.left > 0, "{name}: {blocks:?}");
            assert_eq!(blocks.colored, 0);
        }
    }
}

#[test]
fn sanitized_programs_run_as_before_and_keep_their_own_blocks() {
    let flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    // Not the one that forks: the sanitizer's own allocator may be locked in the child.
    for name in ["blocks", "early"] {
        let sanitized = probes::variant(&format!("{name}.c"), &format!("{name}-asan"), &flags);
        let workload = Workload::new([sanitized])
            .env("ASAN_OPTIONS", "allocator_may_return_null=1:detect_stack_use_after_return=1")
            .stderr(Stdio::Null);
        let (_, _, report) = colored(workload, &default_options());
        let blocks = report.blocks.unwrap();
        assert_eq!((blocks.programs_with_own_malloc, blocks.colored), (1, 0), "{name}");
    }
}

#[test]
fn the_address_sanitizer_still_finds_an_overflow_of_a_block() {
    let overflow = probes::variant("overflow.c", "overflow-asan", &["-fsanitize=address"]);
    let (workload, coloring) =
        nearmiss_remedies::color::apply::apply(Workload::new([overflow]), &default_options()).unwrap();
    let (_, pid, finished) = run(workload.stderr(Stdio::Null));
    assert!(!finished.status.success());
    assert!(coloring.report(pid).is_ok());
}
