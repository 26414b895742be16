use nearmiss_record::run::RunError;
use nearmiss_record::words;
use std::io;
use std::path::PathBuf;

/// Why a lab cannot begin, go on or be shown.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The specification makes no sense.
    #[error("{}{}: {message}", .file.display(), .line.map(|line| format!(":{line}")).unwrap_or_default())]
    Spec {
        /// The file.
        file: PathBuf,
        /// Line, if known.
        line: Option<usize>,
        /// The fault, and the right form.
        message: String,
    },
    /// The request does not fit the lab.
    #[error("{0}")]
    Request(String),
    /// This machine cannot do what the specification requires; the text names what would help.
    #[error("{0}")]
    CannotHere(String),
    /// Another process works on the lab.
    #[error("{}: another nearmiss works on this lab now; wait for it, or end it", .0.display())]
    Busy(PathBuf),
    /// A cell ran for a lab that is gone, or has given the cell to others.
    #[error("nobody waits for this cell any more")]
    NotWanted,
    /// No lab is there.
    #[error("{}: no lab is there; `nearmiss lab run SPEC` makes one, below ./nearmiss-labs", .0.display())]
    NoLab(PathBuf),
    /// The journal holds what no lab wrote.
    #[error(
        "{}:{line}: {source}; the line is damaged or another version's: take it out (`sed -i {line}d {}`), and `nearmiss lab \
         resume` has the cell from its directory again, or runs it again",
        .file.display(),
        .file.display()
    )]
    Journal {
        /// The file.
        file: PathBuf,
        /// Line of the fault.
        line: usize,
        /// The fault.
        source: serde_json::Error,
    },
    /// The description that a lab was begun with cannot be read any more.
    #[error(
        "{}: {source}; the file is damaged or of another version of nearmiss: begin a lab anew from the specification beside \
         it, `nearmiss lab run {} --out DIR`",
        .file.display(),
        .file.with_file_name("spec.toml").display()
    )]
    About {
        /// The file.
        file: PathBuf,
        /// The fault.
        source: serde_json::Error,
    },
    /// A file could not be read or written.
    #[error("{}: {}", .path.display(), words::io_error(.source))]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A record could not be written.
    #[error(transparent)]
    Record(#[from] RunError),
    /// A command could not be launched.
    #[error(transparent)]
    Launch(#[from] nearmiss_workload::Error),
}

impl Error {
    /// Makes an error of a system error about a file.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Error::Io { path, source }
    }
}
