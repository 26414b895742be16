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
