//! Compiles the BPF programs. A machine without clang still builds nearmiss: the instruments that need them then report
//! that.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Leaves `observe.bpf.o` in the build's output directory: the compiled programs, or nothing.
fn main() {
    let sources = Path::new("../../native/bpf");
    println!("cargo::rerun-if-changed={}", sources.display());
    let Some(out) = env::var_os("OUT_DIR").map(PathBuf::from) else { return };
    let object = out.join("observe.bpf.o");
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    println!("cargo::rerun-if-env-changed=CLANG");
    let architecture = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let compiled = architecture == "x86_64"
        && Command::new(clang)
            .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror", "-D__TARGET_ARCH_x86"])
            .arg(format!("-I/usr/include/{architecture}-linux-gnu"))
            .arg("-c")
            .arg(sources.join("observe.bpf.c"))
            .arg("-o")
            .arg(&object)
            .status()
            .is_ok_and(|status| status.success());
    if !compiled {
        // A file that is not there: the next build tries again, when clang may have come.
        println!("cargo::rerun-if-changed={}", out.join("no-programs").display());
        println!(
            "cargo::warning=BPF programs not built (they need clang and libbpf-dev, on x86-64): observe will have no --locks, --polls, --io, --sched"
        );
        if let Err(e) = std::fs::write(&object, []) {
            println!("cargo::warning={}: {e}", object.display());
        }
    }
}
