//! Compiles the preloaded libraries, which the crate embeds.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const LIBRARIES: [(&str, &[&str]); 10] = [
    ("color-stacks.so", &["color/stacks.c", "color/parameters.c", "kit/kit.c"]),
    ("color-blocks.so", &["color/blocks.c", "color/parameters.c", "kit/behind.c", "kit/owner.c", "kit/kit.c"]),
    ("apart.so", &["apart/apart.c", "kit/behind.c", "kit/owner.c", "kit/kit.c"]),
    (
        "bypass-copies.so",
        &[
            "bypass/copies.c",
            "bypass/sites.c",
            "bypass/places.c",
            "bypass/functions.c",
            "bypass/streams.c",
            "kit/kit.c",
        ],
    ),
    (
        "bypass-files.so",
        &[
            "files/start.c",
            "files/calls.c",
            "files/buffered.c",
            "files/copies.c",
            "files/descriptors.c",
            "files/request.c",
            "files/streams.c",
            "files/windows.c",
            "files/deferred.c",
            "files/cache.c",
            "files/glob.c",
            "files/real.c",
            "kit/rests.c",
            "kit/kit.c",
        ],
    ),
    ("huge.so", &["huge/huge.c", "huge/smaps.c", "kit/allocations.c", "kit/behind.c", "kit/calls.c", "kit/kit.c"]),
    ("keep.so", &["keep/keep.c", "kit/kit.c"]),
    (
        "local-homes.so",
        &["local/homes.c", "local/rules.c", "kit/allocations.c", "kit/behind.c", "kit/calls.c", "kit/kit.c"],
    ),
    ("local-tasks.so", &["local/tasks.c", "kit/kit.c"]),
    (
        "pace.so",
        &["pace/calls.c", "pace/number.c", "pace/nap.c", "pace/last.c", "pace/rules.c", "pace/real.c", "kit/kit.c"],
    ),
];

/// The scheduler of `apply pair --with sched-ext`: `pair.bpf.o`, or an empty file where clang is missing.
fn scheduler(native: &Path, out: &Path) -> std::io::Result<()> {
    let source = native.join("bpf/pair.bpf.c");
    let object = out.join("pair.bpf.o");
    println!("cargo::rerun-if-changed={}", source.display());
    println!("cargo::rerun-if-changed={}", native.join("bpf/pair.h").display());
    println!("cargo::rerun-if-env-changed=CLANG");
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let mut command = Command::new(clang);
    command.args(["-target", "bpf", "-mcpu=v3", "-O2", "-Wall", "-Werror", "-I/usr/include/x86_64-linux-gnu", "-c"]);
    let compiled = command.arg(source).arg("-o").arg(&object).status().is_ok_and(|status| status.success());
    if !compiled {
        // A file that is not there: the next build tries again, when clang may have come.
        println!("cargo::rerun-if-changed={}", out.join("no-scheduler").display());
        println!("cargo::warning=the scheduler of `apply pair` was not built (it needs clang and libbpf-dev)");
        std::fs::write(&object, [])?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let native = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../native");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    scheduler(&native, &out)?;
    println!("cargo::rerun-if-changed={}", native.join("preload").display());
    println!("cargo::rerun-if-changed={}", native.join("include/nearmiss-preload.h").display());
    for (library, sources) in LIBRARIES {
        // Built as C that is at ease before its process is: no builtin turns into a call of
        // what is being intercepted, and exceptions and cancellation pass through.
        let mut command = cc::Build::new().opt_level(2).debug(true).get_compiler().to_command();
        command.args(["-std=gnu11", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-builtin"]);
        command.args(["-fexceptions", "-fasynchronous-unwind-tables", "-foptimize-sibling-calls"]);
        command.args(["-ftls-model=initial-exec", "-Wall", "-Wextra", "-Wl,-z,now"]);
        // Every program that the command starts pays for the start: two mappings a library instead of four, nothing
        // made read-only afterwards, and none of the compiler's start files: the loader would look for their four
        // optional symbols everywhere (experiments/color-preload/start-up.py).
        command.args(["-nostartfiles", "-Wl,-z,noseparate-code", "-Wl,-z,norelro", "-Wl,--hash-style=gnu"]);
        // Who walks frames brings the walker along: one more library would be one more to load in every program.
        command.args(["-static-libgcc", "-Wl,--exclude-libs,ALL"]);
        command.arg("-I").arg(native.join("include")).arg("-o").arg(out.join(library));
        command.args(sources.iter().map(|source| native.join("preload").join(source)));
        let status = command.status().map_err(|e| format!("{:?}: {e}", command.get_program()))?;
        if !status.success() {
            return Err(format!("{library}: the C compiler failed ({status})").into());
        }
    }
    Ok(())
}
