//! One cell: a temporary directory, the command, its figures, and the rename that makes it count.

use crate::case::{Cell, MatrixCase};
use crate::command::{self, Places};
use crate::ended::{ending, times};
use crate::figure::{self, Found};
use crate::file_system::{self, Mounted};
use crate::hotplug::{self, Offline};
use crate::placeholder::fill;
use crate::site::{Site, blank, keep};
use crate::spec::{Figure, Spec};
use crate::{Ended, Ending, Error, page_cache};
use nearmiss_record::units::Bytes;
use nearmiss_workload::{Finished, Running, Workload};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const OUTPUT: &str = "stdout";
const ERRORS: &str = "stderr";
/// Time that a command may take to end after the request.
const GRACE: Duration = Duration::from_secs(1);

/// Runs a cell. A failure in it is in the record; an error is the lab's own.
pub(crate) fn run(site: &Site<'_>, cell: Cell) -> Result<Ended, Error> {
    let begun = Instant::now();
    let case = site.case(cell);
    let room = site.temporary.join(site.name(cell));
    let places = make_places(site, case, &room)?;
    let mut ended = blank(site.spec, case, cell.repetition);
    let offline = take_offline(site, case)?;
    let measured = measure(site, case, &places, &mut ended);
    offline.map(Offline::end).transpose()?;
    if !(site.wanted)() {
        return Err(Error::NotWanted);
    }
    match measured {
        Ok(()) => {}
        Err(Wrong::Cell(how, why)) => (ended.how, ended.why) = (how, Some(why)),
        Err(Wrong::Lab(error)) => return Err(error),
    }
    ended.took_s = begun.elapsed().as_secs_f64();
    keep(site, &places.out, &ended)?;
    fs::remove_dir_all(&room).map_err(Error::io(&room))?;
    Ok(ended)
}

fn take_offline<'a>(site: &Site<'a>, case: &MatrixCase) -> Result<Option<Offline<'a>>, Error> {
    let cpus = command::cpus(site.spec, case)?.filter(|_| site.hotplug);
    cpus.map(|cpus| Offline::all_but(&cpus, Path::new(hotplug::CPUS), site.lab)).transpose()
}

fn make_places<'a>(site: &Site<'a>, case: &MatrixCase, room: &Path) -> Result<Places<'a>, Error> {
    let out = room.join("out");
    let directories: Vec<PathBuf> =
        (1..=case.workload(site.spec).directories).map(|number| room.join(format!("dir{number}"))).collect();
    for directory in directories.iter().chain([&out]) {
        fs::create_dir_all(directory).map_err(Error::io(directory))?;
    }
    Ok(Places { nearmiss: site.nearmiss, start: site.start, out, directories })
}

/// Why a cell has no figures, or why the lab cannot go on.
enum Wrong {
    Cell(Ending, String),
    Lab(Error),
}

impl From<Error> for Wrong {
    fn from(error: Error) -> Self {
        match error {
            Error::Launch(error) => Wrong::Cell(Ending::Failed, error.to_string()),
            error => Wrong::Lab(error),
        }
    }
}

/// Prepares and runs, and fills in what was measured, be it of a command that failed.
fn measure(site: &Site<'_>, case: &MatrixCase, places: &Places<'_>, ended: &mut Ended) -> Result<(), Wrong> {
    let limit = Duration::from_secs_f64(site.spec.timeout_s);
    let values = command::values(site.spec, case, places);
    let _mounted = mount(site, case, places, &values)?;
    if let Some(prepare) = command::prepare(site.spec, case, &values, places)? {
        let (finished, in_time) = run_command(prepare, &places.out.join("prepare"), limit)?;
        succeeded(&finished, in_time, limit, "`prepare` ")?;
    }
    if case.drops_caches(site.spec) {
        page_cache::drop_it()?;
    }
    let measured = command::measured(site.spec, case, &values, places)?;
    let (finished, in_time) = run_command(measured, &places.out, limit)?;
    (ended.exit, ended.signal) = ending(finished.status);
    ended.figures = times(&finished);
    let figures = read_figures(site.spec, case, places, &values, ended);
    succeeded(&finished, in_time, limit, "")?;
    figures.map_err(|why| Wrong::Cell(Ending::Incomplete, why))
}

/// Gives each directory a fresh file system, if the case has one.
fn mount(
    site: &Site<'_>,
    case: &MatrixCase,
    places: &Places<'_>,
    values: &BTreeMap<String, String>,
) -> Result<Vec<Mounted>, Wrong> {
    let Some(of) = case.file_system(site.spec) else { return Ok(Vec::new()) };
    let size = Bytes::parse(&fill(&of.size, values)).map_err(|error| Wrong::Cell(Ending::Failed, error))?;
    let limit = Duration::from_secs_f64(site.spec.timeout_s);
    let mount = |directory: &PathBuf| {
        let image = directory.with_extension("image");
        file_system::make_image(&image, size.0)?;
        let (finished, in_time) = run_command(command::mkfs(of, &image, values), &places.out.join("mkfs"), limit)?;
        succeeded(&finished, in_time, limit, &format!("`mkfs.{}` ", of.kind))?;
        let why =
            |error| Wrong::Cell(Ending::Failed, format!("{} on a loop device cannot be mounted: {error}", of.kind));
        Mounted::at(directory, &image, &of.kind, &of.mount).map_err(why)
    };
    places.directories.iter().map(mount).collect()
}

fn succeeded(finished: &Finished, in_time: bool, limit: Duration, who: &str) -> Result<(), Wrong> {
    match (in_time, finished.status.success()) {
        (true, true) => Ok(()),
        (true, false) => Err(Wrong::Cell(Ending::Failed, format!("{who}{}", finished.status.in_words()))),
        (false, _) => Err(Wrong::Cell(Ending::TimedOut, format!("{who}was killed after {} s", limit.as_secs_f64()))),
    }
}

/// Runs a command with its output in a directory; false: its time was over, and it was killed.
fn run_command(workload: Workload, output: &Path, limit: Duration) -> Result<(Finished, bool), Error> {
    fs::create_dir_all(output).map_err(Error::io(output))?;
    let file = |name| File::create(output.join(name)).map_err(Error::io(output.join(name)));
    let running = workload.stdout(file(OUTPUT)?).stderr(file(ERRORS)?).launch_suspended()?.resume()?;
    match running.wait_for(limit)? {
        Ok(finished) => Ok((finished, true)),
        Err(running) => Ok((Running::terminate(running, GRACE)?, false)),
    }
}

/// Errors: the figures that are missing, and why.
fn read_figures(
    spec: &Spec,
    case: &MatrixCase,
    places: &Places<'_>,
    values: &BTreeMap<String, String>,
    ended: &mut Ended,
) -> Result<(), String> {
    let mut missing = Vec::new();
    for (name, figure) in spec.figures(case.workload(spec)) {
        match read_figure(figure, places, values) {
            Ok(Found::Number(number)) => drop(ended.figures.insert(name.to_owned(), number)),
            Ok(Found::Words(words)) => drop(ended.words.insert(name.to_owned(), words)),
            Err(_) if figure.optional => {}
            Err(why) => missing.push(format!("{name}: {why}")),
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(missing.join("; ")) }
}

fn read_figure(figure: &Figure, places: &Places<'_>, values: &BTreeMap<String, String>) -> Result<Found, String> {
    let path = match &figure.file {
        Some(file) => places.start.join(fill(file, values)),
        None => places.out.join(OUTPUT),
    };
    let text = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    figure::find(figure, &String::from_utf8_lossy(&text))
}
