//! Code that frees, resizes or measures blocks without going through the preloaded malloc takes every block of the
//! remedies, and no remedy makes a system call of its own where blocks are handed out.
#![allow(clippy::unwrap_used)]

use crate::probes::{self, colored, default_options, run};
use nearmiss_remedies::{apart, color};
use nearmiss_workload::Workload;

const SIZES: [&str; 8] = ["24", "100", "4096", "8192", "200000", "1048576", "9000000", "41943040"];

fn from_a_page_on() -> color::apply::Options {
    color::apply::Options { block_bytes: Some(4096), ..default_options() }
}

/// Runs a command with its blocks of up to a megabyte on lines of their own; how many were moved.
fn on_own_lines(workload: Workload) -> u64 {
    let options = apart::apply::Options { line_bytes: 64, sizes: (1, 1 << 20) };
    let (workload, engagement) = apart::apply::apply(workload, &options).unwrap();
    let (text, pid, finished) = run(workload);
    assert!(finished.status.success(), "{:?}: {text}", finished.status);
    engagement.report(pid).unwrap().moved
}

#[test]
fn functions_found_through_a_handle_take_every_block() {
    let probe = probes::variant("handles.c", "handles", &[]);
    for way in ["free", "__libc_free", "realloc", "usable"] {
        let command = || Workload::new([probe.to_str().unwrap(), way].into_iter().chain(SIZES));
        let (_, _, report) = colored(command(), &from_a_page_on());
        // Four rounds of six sizes, by malloc, calloc (but of the two largest), reallocarray, and strdup, which takes two.
        let blocks = report.blocks.unwrap();
        assert!(blocks.colored > 4 * (6 * 5 - 2), "{way}: {blocks:?}");
        assert_eq!(blocks.left, 4 * 2, "{way}");
        assert!(on_own_lines(command()) > 4 * 6 * 5, "{way}");
    }
}

#[test]
fn python_frees_what_libc_made_through_a_handle_of_libc() {
    let script = "import ctypes, ctypes.util\n\
        libc = ctypes.CDLL('libc.so.6')\n\
        for name in 'getcwd', 'malloc', 'calloc', 'realloc': getattr(libc, name).restype = ctypes.c_void_p\n\
        made = lambda n: (libc.getcwd(None, n), libc.malloc(n), libc.calloc(1, n))\n\
        for n in (4096, 8192, 300000, 3 << 20, 9 << 20):\n\
        \tfor block in [block for _ in range(20) for block in made(n)]:\n\
        \t\tlibc.free(ctypes.c_void_p(libc.realloc(ctypes.c_void_p(block), ctypes.c_size_t(n + 5000))))\n\
        print('done')";
    let Ok(_) = Workload::new(["python3"]).program() else {
        println!("skipped: no python3");
        return;
    };
    let command = || Workload::new(["python3", "-c", script]).env("PYTHONMALLOC", "malloc");
    let (text, _, report) = colored(command(), &from_a_page_on());
    assert_eq!(text, "done\n");
    // Made by getcwd, as what Python calls through its handle is none of ours.
    assert!(report.blocks.unwrap().colored >= 20 * 5);
    assert!(on_own_lines(command()) > 1000);
}

#[test]
fn no_block_costs_a_system_call_that_it_does_not_cost_plainly() {
    let strict = probes::variant("strict.c", "strict", &[]);
    assert_eq!(run(Workload::new([&strict])).0, "alive\n");
    let (text, _, report) = colored(Workload::new([&strict]), &from_a_page_on());
    assert_eq!((text.as_str(), report.blocks.unwrap().colored), ("alive\n", 8));
    // It ends without handing over what its threads counted.
    assert_eq!(on_own_lines(Workload::new([&strict])), 0);
}

#[test]
fn an_allocator_without_alignments_is_not_given_blocks_of_another() {
    let partial = probes::variant("partial.c", "libpartial.so", &["-shared", "-fPIC", "-fno-builtin"]);
    let early = || probes::probe("early").env("LD_PRELOAD", &partial);
    assert_eq!(on_own_lines(early()), 0);
    let (_, _, report) = colored(early(), &from_a_page_on());
    let blocks = report.blocks.unwrap();
    assert_eq!((blocks.programs_with_own_malloc, blocks.colored), (1, 0));
}
