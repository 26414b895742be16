//! Compiles the guest's init, the guardian and the TCG plugin, which the library embeds.

#[path = "build/bpf.rs"]
mod bpf;

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    bpf::compile();
    let native = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("../../native");
    let out = PathBuf::from(variable("OUT_DIR"));
    let include = native.join("include");
    println!("cargo::rerun-if-changed={}", include.display());
    println!("cargo::rerun-if-env-changed=CC");

    let static_program = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-static", "-s"];
    for (folder, program) in [("agent/init", "guest-init"), ("agent/guard", "guest-guard")] {
        if !compile(&native.join(folder), &include, &static_program, &out.join(program)) {
            panic!("native/{folder} could not be compiled: install gcc and libc6-dev, or set CC to a C compiler");
        }
    }

    let library = ["-std=gnu11", "-O3", "-Wall", "-Wextra", "-shared", "-fPIC"];
    let fileserver = out.join("fileserver-noatime.so");
    if !compile(&native.join("agent/fileserver"), &include, &library, &fileserver) {
        panic!("native/agent/fileserver could not be compiled");
    }

    println!("cargo::rustc-check-cfg=cfg(has_tap_plugin)");
    if compile(&native.join("tap"), &include, &library, &out.join("tap-plugin.so")) {
        println!("cargo::rustc-cfg=has_tap_plugin");
    } else {
        println!("cargo::warning=native/tap could not be compiled: this build cannot trace");
    }
}

/// Compiles every C file of a folder into one output; false where there is none, or the compiler
/// fails (what it says is in cargo's output).
fn compile(folder: &Path, include: &Path, flags: &[&str], output: &Path) -> bool {
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut sources: Vec<PathBuf> = folder
        .read_dir()
        .map(|entries| entries.filter_map(|entry| Some(entry.ok()?.path())).collect())
        .unwrap_or_default();
    sources.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
    sources.sort();
    if sources.is_empty() {
        return false;
    }
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".into());
    Command::new(&compiler)
        .args(flags)
        .arg("-I")
        .arg(include)
        .arg("-o")
        .arg(output)
        .args(&sources)
        .status()
        .is_ok_and(|status| status.success())
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}
