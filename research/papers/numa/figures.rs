//! The paper's own figures, with their places in it. Figures 4 to 6 and 8 to 13 are pictures: only those of their
//! figures that its text gives are numbers here.

/// The paper's figures of a benchmark.
#[derive(Clone, Copy, Debug)]
pub struct Theirs {
    /// NUMA overhead of the base kernel and under M and P, in percent (section 4.1).
    pub overhead: [f64; 2],
    /// OS time saved by M and P on one node and on two, in percent (section 4.1).
    pub saved: [f64; 2],
    /// Node locality of NUMA, NUMA-M and NUMA-MP, in percent (table 3).
    pub locality: [f64; 3],
}

/// WebBench.
pub const WEB: Theirs = Theirs { overhead: [43.0, 28.0], saved: [10.0, 20.0], locality: [53.0, 56.0, 55.0] };

/// ServerBench.
pub const SERVER: Theirs = Theirs { overhead: [16.0, 6.0], saved: [3.0, 18.0], locality: [51.0, 51.0, 75.0] };

/// Change of remote reads, and of reads of lines that another CPU of the node had modified, by M, WebBench, in percent
/// ("about"; section 4.3).
pub const WEB_READS_CHANGE: f64 = -15.0;

/// Change of remote reads by P, ServerBench ("about half"; section 4.3).
pub const SERVER_REMOTE_CHANGE: f64 = -50.0;
