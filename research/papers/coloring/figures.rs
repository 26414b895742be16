//! The paper's own figures, with where it has them. Pages are those of the journal's reprint, sections as printed.

/// Second-level sizes of the first machine, in KB, with the model's machine.
pub const SIZES: [(u64, &str); 3] =
    [(256, "pentium-pro-4way-256k"), (512, "pentium-pro-4way-512k"), (1024, "pentium-pro-4way-1m")];

/// Colors of the paper's kernel (section 4.1).
pub const COLORS: u32 = 32;

/// Section 4.2, figure 6: L2 miss ratio inside the walk, standard: "almost 100%".
pub const STANDARD_MISS_PERCENT: f64 = 100.0;

/// Section 4.2, figure 6: the same with 32 colors; at 256 KB "only 17% less".
pub const COLORED_MISS_PERCENT: [f64; 3] = [83.0, 35.8, 8.2];

/// Section 4.2, figure 7: change of bus transactions on colored lines; at 256 KB "slightly more".
pub const COLORED_LINES_CHANGE_PERCENT: [Option<f64>; 3] = [None, Some(-33.3), Some(-73.0)];

/// Section 4.2, figure 6: change of requests a second; at 256 KB "only a slight gain".
pub const REQUESTS_CHANGE_PERCENT: [Option<f64>; 3] = [None, Some(23.1), Some(42.3)];

/// Section 4.3, equation 2: least colors for `processes` and a second level of `kilobytes`.
pub fn least_colors(processes: u64, kilobytes: u64) -> u64 {
    processes.div_ceil((kilobytes / 8).max(1))
}

/// CPUs of table 3.
pub const TABLE_3_CPUS: [usize; 3] = [2, 4, 8];

/// Table 3: run-queue lock contended, in percent, by [`TABLE_3_CPUS`].
#[derive(Clone, Copy, Debug)]
pub struct Contended {
    /// Standard kernel.
    pub standard: [f64; 3],
    /// Colored kernel.
    pub colored: [f64; 3],
}

/// WebBench (table 3).
pub const WEB_CONTENDED: Contended = Contended { standard: [9.2, 19.7, 45.6], colored: [2.3, 6.0, 23.4] };

/// Chat (table 3).
pub const CHAT_CONTENDED: Contended = Contended { standard: [33.0, 51.9, 85.8], colored: [23.6, 48.3, 69.7] };

/// Section 5.2, figure 9: requests/s of WebBench, colored against standard, at 8 CPUs.
pub const WEB_GAIN_PERCENT: f64 = 23.3;

/// Section 5.2, figure 10: throughput of Chat, colored against standard, at 6 CPUs.
pub const CHAT_GAIN_PERCENT: f64 = 89.6;
