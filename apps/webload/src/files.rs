//! `files`: the files of the static profile, for a server to serve from disk.

use crate::object::{Kind, Object};
use crate::outcome::{self, Outcome, Problem};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// Write the files of the static profile: DIRECTORY/files/0.dat and on; `web --profile static` checks their bytes
#[derive(clap::Args)]
#[command(after_help = "Example:
  nearmiss-webload files --objects 6000 /srv/www
  nearmiss-webload web --profile static --objects 6000 --phases top1 --rate 1000 --proxy 127.0.0.1:80")]
pub struct Arguments {
    /// How many files
    #[arg(long, value_name = "N", default_value_t = 6000)]
    objects: u32,
    /// The server's root
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
}

/// Runs the verb.
pub fn run(arguments: &Arguments) -> Result<Outcome, Problem> {
    let root = &arguments.directory;
    let cannot = |error: io::Error| {
        Problem::Input(format!("{}: cannot write the files ({error}); name a directory that you own", root.display()))
    };
    fs::create_dir_all(root.join("files")).map_err(cannot)?;
    let mut bytes = 0;
    for number in 0..arguments.objects {
        bytes += write(root, Object { kind: Kind::File, world: 0, number }).map_err(cannot)?;
    }
    let (objects, files) = (arguments.objects, root.join("files"));
    outcome::print(format_args!("{objects} files of {bytes} bytes in all in {}\n", files.display()))?;
    Ok(Outcome::Good)
}

/// Writes one file whole or not at all; its size.
fn write(root: &Path, object: Object) -> io::Result<u64> {
    let path = root.join(object.to_string().trim_start_matches('/'));
    let unfinished = path.with_extension("unfinished");
    let mut file = BufWriter::new(File::create(&unfinished)?);
    let mut piece = vec![0; 64 << 10];
    let size = object.size();
    for at in (0..size).step_by(piece.len()) {
        let length = piece.len().min((size - at) as usize);
        object.content().fill(at, &mut piece[..length]);
        file.write_all(&piece[..length])?;
    }
    file.into_inner()?;
    fs::rename(unfinished, path)?;
    Ok(size)
}
