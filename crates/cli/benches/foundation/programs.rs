//! Measured programs: three subjects, three programs of Debian, and one with two threads.

use std::fmt::Write;
use std::path::Path;

/// A command to measure.
pub struct Program {
    pub name: &'static str,
    pub argv: Vec<String>,
    /// Floating point is emulated in software under TCG: printed, but not part of the mean.
    pub floating: bool,
    /// More for `GLIBC_TUNABLES`.
    pub tunables: &'static str,
}

/// Tunables for equal libc routines under nearmiss and cachegrind: no instruction set that one of the two lacks or
/// prices otherwise.
pub const TUNABLES: &str = "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX2,-ERMS,-FSRM:\
    glibc.cpu.x86_data_cache_size=32768:glibc.cpu.x86_shared_cache_size=8388608:\
    glibc.cpu.x86_non_temporal_threshold=6291456";

/// sqlite3 grows a sorted run by `mremap`, which valgrind does in place and Linux by moving a mebibyte: its 16,448 lines
/// then miss at their new address in the one and hit in the other.
const NO_MREMAP: &str = ":glibc.malloc.mmap_threshold=1073741824";

/// Every program; the inputs are those of [`write_inputs`], in the working directory.
pub fn all() -> Vec<Program> {
    let subject = |name: &str| format!("{}/../../target/subjects/{name}", env!("CARGO_MANIFEST_DIR"));
    let program = |name, argv: &[&str], floating| Program {
        name,
        argv: argv.iter().map(|a| (*a).to_owned()).collect(),
        floating,
        tunables: "",
    };
    vec![
        program("pointer-chase", &[&subject("pointer-chase")], false),
        program("matmul, integer", &[&subject("matmul"), "--n", "200", "--integer"], false),
        program("matmul, double", &[&subject("matmul"), "--n", "200"], true),
        program("aligned-tasks", &[&subject("aligned-tasks"), "--visits", "4000000"], false),
        program("sort", &["sort", "-S", "20M", "--parallel=1", "-o", "/dev/null", "words"], false),
        program("gzip", &["gzip", "-kfc", "words"], false),
        Program { tunables: NO_MREMAP, ..program("sqlite3", &["sqlite3", ":memory:", SQL], false) },
        program("two threads", &[&subject("false-sharing"), "--padded", "--times", "8000000"], false),
    ]
}

const SQL: &str = "create table t(a integer primary key, b text); \
    with recursive c(x) as (select 1 union all select x+1 from c where x<60000) \
    insert into t select x, hex(x*2654435761%4294967296) from c; \
    create index i on t(b); select count(*), max(b) from t where b > '8'; \
    select substr(b,1,2), count(*) from t group by 1 order by 2 desc limit 3;";

/// Inputs that are the same everywhere.
pub fn write_inputs(directory: &Path) -> std::io::Result<()> {
    let mut words = String::new();
    let mut seed = 1u64;
    for _ in 0..60_000 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let _ = writeln!(words, "{:016x}{:06x}", seed, seed >> 40);
    }
    std::fs::write(directory.join("words"), words)
}
