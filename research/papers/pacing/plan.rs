//! Measurements: accelerators by engine and pace, with kept connections and without, at rising rates.

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// One rate for a second: whether everything works.
    Trial,
    /// Seconds a cell, for two CPUs that do everything.
    Small,
    /// Longer cells, more rates, the paper's working set.
    Paper,
}

impl Scale {
    /// Returns the scale as typed.
    pub fn option(self) -> &'static str {
        match self {
            Scale::Trial => "--scale trial",
            Scale::Small => "--scale small",
            Scale::Paper => "--scale paper",
        }
    }
}

/// How an accelerator waits for events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// The paper's interval 0: timeout 0 and a yield (section 5.2.1).
    Busy,
    /// A call that blocks, as is usual.
    Blocking,
    /// Milliseconds from return to call.
    Interval(u32),
    /// The longest interval within a budget of 5 ms.
    Auto,
}

impl Pace {
    /// Returns the pace in the syntax of the accelerator's configuration.
    pub fn setting(self) -> String {
        match self {
            Pace::Busy => "busy".to_owned(),
            Pace::Blocking => "off".to_owned(),
            Pace::Interval(ms) => format!("{ms}ms"),
            Pace::Auto => "auto".to_owned(),
        }
    }

    /// Returns the pace in the words of a table.
    pub fn name(self) -> String {
        match self {
            Pace::Busy => "interval 0".to_owned(),
            Pace::Blocking => "blocking".to_owned(),
            Pace::Interval(ms) => format!("{ms} ms"),
            Pace::Auto => "auto, 5 ms".to_owned(),
        }
    }
}

/// One accelerator under the whole range of rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject {
    /// `poll` or `epoll`.
    pub engine: &'static str,
    /// How the accelerator waits.
    pub pace: Pace,
    /// Connections are kept.
    pub keep_alive: bool,
}

/// Everything that is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Requests a second, rising.
    pub rates: &'static [u32],
    /// Measured time of a cell.
    pub seconds: u32,
    /// Sockets that are held open where connections are kept.
    pub sockets: u32,
    /// Working set, in the syntax of the load.
    pub working_set: &'static str,
    /// The cache's memory: three quarters of it, as in the paper.
    pub memory: &'static str,
    /// Requests a second while the cache fills.
    pub fill_rate: u32,
}

impl Plan {
    /// Returns the plan of a scale.
    pub fn of(scale: Scale) -> Self {
        match scale {
            Scale::Trial => {
                Plan { rates: &[200], seconds: 1, sockets: 100, working_set: "24MB", memory: "18MiB", fill_rate: 1500 }
            }
            Scale::Small => Plan {
                rates: &[500, 1000, 2000, 4000],
                seconds: 5,
                sockets: 7000,
                working_set: "64MB",
                memory: "48MiB",
                fill_rate: 1500,
            },
            Scale::Paper => Plan {
                rates: &[500, 1000, 1500, 2000, 4000, 8000],
                seconds: 60,
                sockets: 7000,
                working_set: "1GB",
                memory: "768MiB",
                fill_rate: 1500,
            },
        }
    }
}

const OFF: [Pace; 5] = [Pace::Busy, Pace::Blocking, Pace::Interval(5), Pace::Interval(10), Pace::Interval(20)];
const ON: [Pace; 6] =
    [Pace::Busy, Pace::Blocking, Pace::Interval(5), Pace::Interval(10), Pace::Interval(20), Pace::Interval(40)];
const TODAY: [Pace; 3] = [Pace::Blocking, Pace::Interval(5), Pace::Auto];

/// The accelerators of one group of tables.
pub fn subjects(group: Group) -> Vec<Subject> {
    let (engine, paces, keep_alive) = match group {
        Group::Closing => ("poll", &OFF[..], false),
        Group::Keeping => ("poll", &ON[..], true),
        Group::Today => ("epoll", &TODAY[..], true),
    };
    paces.iter().map(|pace| Subject { engine, pace: *pace, keep_alive }).collect()
}

/// Accelerators that are measured together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// `poll`, a connection a request: figures 5 and 7.
    Closing,
    /// `poll`, kept connections: figures 6 and 8.
    Keeping,
    /// `epoll`, kept connections: not in the paper.
    Today,
}
