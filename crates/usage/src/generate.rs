//! Man pages and shell completions.

use clap::Command;
use clap_complete::Shell;
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Text that is generated from the definitions of the command line.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum GeneratedText {
    /// Print a shell's completions
    Completions {
        /// Which shell
        shell: Shell,
    },
    /// Print a man page, or write all of them
    Man {
        /// The verb, and what is below it [default: the program itself]
        #[arg(conflicts_with = "all")]
        path: Vec<String>,
        /// Write every page into this directory
        #[arg(long, value_name = "DIR")]
        all: Option<PathBuf>,
    },
}

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum NotGenerated {
    /// The command has no such verb.
    #[error("no page of `{name}`: `{above} --help` lists what there is")]
    NoVerb {
        /// The requested name.
        name: String,
        /// The command that was searched.
        above: String,
    },
    /// The page could not be written.
    #[error("{}: {error}; give a directory that exists and can be written", path.display())]
    NotWritten {
        /// Destination of the page.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
}

/// Generates `what` and returns the text to print; nothing where it writes files. `version` stands at the foot of the
/// pages.
pub fn generate(what: &GeneratedText, mut command: Command, version: &str) -> Result<String, NotGenerated> {
    command.build();
    match what {
        GeneratedText::Completions { shell } => {
            let (mut script, name) = (Vec::new(), command.get_name().to_owned());
            clap_complete::generate(*shell, &mut command, name, &mut script);
            Ok(String::from_utf8_lossy(&script).into_owned())
        }
        GeneratedText::Man { all: Some(directory), .. } => {
            write_all(&command, directory, version).map(|()| String::new())
        }
        GeneratedText::Man { path, all: None } => Ok(page(below(&command, path)?, version)),
    }
}

fn below<'a>(command: &'a Command, path: &[String]) -> Result<&'a Command, NotGenerated> {
    path.iter().try_fold(command, |command, name| {
        command.find_subcommand(name).ok_or_else(|| {
            let above = command.get_bin_name().unwrap_or(command.get_name()).to_owned();
            NotGenerated::NoVerb { name: name.clone(), above }
        })
    })
}

fn page(command: &Command, version: &str) -> String {
    let mut page = Vec::new();
    // Memory takes all that is written.
    let _whole = clap_mangen::Man::new(command.clone()).source(version).render(&mut page).is_ok();
    String::from_utf8_lossy(&page).into_owned()
}

/// `nearmiss.1`, `nearmiss-apply.1`, …: one page a command.
fn write_all(command: &Command, directory: &Path, version: &str) -> Result<(), NotGenerated> {
    let path = directory.join(format!("{}.1", command.get_display_name().unwrap_or(command.get_name())));
    write_whole(&path, directory, &page(command, version))
        .map_err(|error| NotGenerated::NotWritten { path: path.clone(), error })?;
    let mut subcommands = command.get_subcommands().filter(|below| below.get_name() != "help");
    subcommands.try_for_each(|below| write_all(below, directory, version))
}

fn write_whole(path: &Path, directory: &Path, text: &str) -> std::io::Result<()> {
    let mut file = tempfile::Builder::new().permissions(Permissions::from_mode(0o666)).tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.persist(path)?;
    Ok(())
}
