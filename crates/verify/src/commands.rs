use crate::loads::has_printed_figures;
use crate::under_load::{self, Failed, UnderLoad};
use crate::{Error, Metric, Plan, Printed, Probe, Reading, Sample, Side, SideCommand, Source, Verdict, compare, start};
use nearmiss_analysis::{Acts, Engaged};
use nearmiss_record::verdict::{Sides, Start};
use nearmiss_workload::{Finished, Running, ServingError, Stdio, Suspended, Workload};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Runs the two sides' commands and takes their figures.
///
/// The commands' output is kept, one pair of files a run, up to a number of runs that fills no disk.
pub struct Commands {
    without: SideCommand,
    with: SideCommand,
    prepare: Option<Workload>,
    beside: Option<Workload>,
    metric: Metric,
    also_printed: Vec<Printed>,
    load: Option<UnderLoad>,
    /// Figures to read from the load's output, known after the first output.
    reading: Option<Reading>,
    may_miss_children: bool,
    probe: Option<Box<dyn Probe>>,
    output: PathBuf,
    run_limit: Duration,
    runs: usize,
    begun: Instant,
    start: Option<Start>,
    last_engaged: Option<Engaged>,
    acted: bool,
    stop: Arc<AtomicBool>,
    on_progress: Box<dyn Fn(usize)>,
}

/// Number of runs that keep their output.
const RUNS_KEPT: usize = 200;
/// Interval at which a wait for a command checks for a request to stop.
const LOOK: Duration = Duration::from_millis(100);
/// Time that a command may take to end after the request.
const GRACE: Duration = Duration::from_secs(2);
/// Grace period while the user waits for our end.
const SHORT_GRACE: Duration = Duration::from_millis(100);

impl Commands {
    /// Makes the comparison of two sides. Output goes to files in an existing directory.
    pub fn new(without: SideCommand, with: SideCommand, output: impl Into<PathBuf>) -> Self {
        Commands {
            without,
            with,
            prepare: None,
            beside: None,
            metric: Metric::default(),
            also_printed: Vec::new(),
            load: None,
            reading: None,
            may_miss_children: false,
            probe: None,
            output: output.into(),
            run_limit: Duration::from_secs(600),
            runs: 0,
            begun: Instant::now(),
            start: None,
            last_engaged: None,
            acted: false,
            stop: Arc::default(),
            on_progress: Box::new(|_| ()),
        }
    }

    /// The metric of the verdict, which may have to be found in the output.
    pub fn metric(mut self, metric: Metric) -> Self {
        self.metric = metric;
        self
    }

    /// More figures that each run prints; without a load.
    pub fn also_printed(mut self, printed: Vec<Printed>) -> Self {
        self.also_printed = printed;
        self
    }

    /// The sides are servers, and the load runs against each.
    pub fn under_load(mut self, load: UnderLoad) -> Self {
        self.load = Some(load);
        self
    }

    /// A command that runs to its end before each run; nothing of it is measured.
    pub fn prepare(mut self, prepare: Workload) -> Self {
        self.prepare = Some(prepare);
        self
    }

    /// Adds a neighbour that runs beside each run; its wall time is a metric.
    pub fn beside(mut self, neighbour: Workload) -> Self {
        self.beside = Some(neighbour);
        self
    }

    /// Adds figures that a probe takes.
    pub fn probe(mut self, probe: Box<dyn Probe>) -> Self {
        self.probe = Some(probe);
        self
    }

    /// Ends the comparison after the run under way, once this is true.
    pub fn stop(mut self, stop: Arc<AtomicBool>) -> Self {
        self.stop = stop;
        self
    }

    /// Reports the number of ended runs, before each run.
    pub fn on_progress(mut self, on_progress: Box<dyn Fn(usize)>) -> Self {
        self.on_progress = on_progress;
        self
    }

    /// The longest that one run may take.
    pub fn run_limit(mut self, limit: Duration) -> Self {
        self.run_limit = limit;
        self
    }

    /// Measures what the remedy's start takes, on a program that does nothing without and with it.
    pub fn measure_start(&mut self, without: SideCommand, with: SideCommand) -> Result<(), Error> {
        self.start = Some(start::measure(without, with)?);
        Ok(())
    }

    /// Runs the whole comparison; the plan's metric must be this one's.
    pub fn compare(mut self, plan: &Plan) -> Result<Verdict, Error> {
        self.begun = Instant::now();
        let compared = compare(plan, &mut self);
        for engagement in [self.without.engagement.take(), self.with.engagement.take()].into_iter().flatten() {
            engagement.end()?;
        }
        let mut verdict = compared?;
        verdict.engaged = self.last_engaged.take().map(|engaged| engaged.text);
        verdict.sides = Sides { without: self.without.name, with: self.with.name };
        if let Some(reading) = &self.reading {
            verdict.notes = under_load::notes(reading, &verdict, self.may_miss_children);
        }
        Ok(verdict)
    }

    /// Measures a side. A run that Ctrl-C ended, as it ends all that share the terminal, is no measure of its command.
    fn measure_unless_stopped(&mut self, side: Side) -> Result<Sample, Error> {
        (self.on_progress)(self.runs);
        let (ended, measured) = (self.runs, self.run_once(side));
        match self.stop.load(Ordering::Relaxed) {
            true => {
                let runs = ended + usize::from(measured.is_ok());
                Err(Error::Interrupted { runs })
            }
            false => measured,
        }
    }

    /// Runs one side once.
    fn run_once(&mut self, side: Side) -> Result<Sample, Error> {
        self.runs += 1;
        let run = Run { number: self.runs, side, stem: self.output.join(format!("{:03}-{side}", self.runs)) };
        self.prepare_for(&run)?;
        let (pid, mut sample) = self.timed(&run)?;
        if let Some(engagement) = &mut self.side_mut(side).engagement {
            let engaged = engagement.confirm(pid).map_err(|source| Error::NotEngaged { run: run.number, source })?;
            self.acted |= engaged.acts != Acts::Counted(0);
            self.last_engaged = Some(engaged);
        }
        self.add_printed(&run, &mut sample)?;
        if run.number > RUNS_KEPT {
            run.forget()?;
        }
        Ok(sample)
    }

    fn side(&self, side: Side) -> &SideCommand {
        match side {
            Side::Without => &self.without,
            Side::With => &self.with,
        }
    }

    fn side_mut(&mut self, side: Side) -> &mut SideCommand {
        match side {
            Side::Without => &mut self.without,
            Side::With => &mut self.with,
        }
    }

    fn prepare_for(&self, run: &Run) -> Result<(), Error> {
        let Some(prepare) = &self.prepare else { return Ok(()) };
        let output = run.file("-prepare.out");
        let running = quiet(prepare, &output)?.launch_suspended()?.resume()?;
        self.ended(run, running, "could not be prepared: its --prepare ", &output)?;
        Ok(())
    }

    /// The launched process, and its times with those of its neighbour.
    fn timed(&mut self, run: &Run) -> Result<(i32, Sample), Error> {
        let mut workload = self.side(run.side).workload.clone().stdin(Stdio::Null);
        if self.load.is_some() {
            workload = workload.whole_tree();
        }
        let workload = workload.stdout(create(&run.file(".out"))?).stderr(create(&run.file(".err"))?);
        let suspended = workload.launch_suspended()?;
        let pid = suspended.pid();
        if let Some(engagement) = &mut self.side_mut(run.side).engagement {
            engagement.started(pid)?;
        }
        if let Some(probe) = &mut self.probe {
            probe.attach(pid)?;
        }
        let beside = run.file("-beside.out");
        let neighbour = match &self.beside {
            Some(neighbour) => Some(quiet(neighbour, &beside)?.launch_suspended()?.resume()?),
            None => None,
        };
        let mut sample = match self.load.clone() {
            Some(load) => self.served(run, suspended, load)?,
            None => self.alone(run, suspended)?,
        };
        if let Some(neighbour) = neighbour {
            let finished = self.ended(run, neighbour, "had a neighbour that ", &beside)?;
            sample.insert("beside_wall_s".to_owned(), finished.wall_ns as f64 * 1e-9);
        }
        Ok((pid, sample))
    }

    fn alone(&mut self, run: &Run, suspended: Suspended) -> Result<Sample, Error> {
        let finished = self.ended(run, suspended.resume()?, "", &run.file(".err"))?;
        let mut sample = figures(&finished);
        if let Some(probe) = &mut self.probe {
            sample.extend(probe.read()?);
        }
        Ok(sample)
    }

    fn served(&mut self, run: &Run, suspended: Suspended, under: UnderLoad) -> Result<Sample, Error> {
        let mut load = under.load;
        load.limit = Some(self.run_limit);
        let output = [run.file("-load.out"), run.file("-load.err")];
        load.workload = load.workload.stdin(Stdio::Null).stdout(create(&output[0])?).stderr(create(&output[1])?);
        let has_printed = |status| text_of(&output[0]).is_ok_and(|output| has_printed_figures(status, &output));
        let measured = under_load::run(suspended, &load, &has_printed, self.probe.as_deref_mut(), &self.stop);
        let measured = measured.map_err(|failed| self.not_served(run, failed))?;
        self.may_miss_children |= measured.may_miss_children;
        Ok(measured.sample)
    }

    fn not_served(&self, run: &Run, failed: Failed) -> Error {
        let error = match failed {
            Failed::Probe(error) => return error,
            Failed::Serving(ServingError::Workload(error)) => return error.into(),
            Failed::Serving(taken @ ServingError::Taken(_)) => return Error::Parameters(taken.to_string()),
            Failed::Serving(error) => error,
        };
        let endings = match error {
            ServingError::LoadFailed(_) | ServingError::LoadTookTooLong(_) => ["-load.err", "-load.out"],
            _ => [".err", ".out"],
        };
        let outputs = endings.map(|ending| text_of(&run.file(ending)).unwrap_or_default());
        let how = format!("{error}; {}", under_load::last_words(outputs));
        let (side, output) = (self.side(run.side).name.clone(), run.file(endings[0]).display().to_string());
        Error::NotServed { run: run.number, side, how, output }
    }

    /// Adds the figures that the run, or its load, printed.
    fn add_printed(&mut self, run: &Run, sample: &mut Sample) -> Result<(), Error> {
        let side = self.side(run.side).name.clone();
        let of = if self.load.is_some() { "-load.out" } else { ".out" };
        let output = run.file(of).display().to_string();
        let missing =
            |why: String| Error::NoMetric { run: run.number, side: side.clone(), why, output: output.clone() };
        if self.load.is_some() {
            let output = text_of(&run.file("-load.err"))? + &text_of(&run.file("-load.out"))?;
            return under_load::add_printed(sample, self.reading(&output)?, &output).map_err(missing);
        }
        let of_metric = if let Metric::Printed(printed) = &self.metric { Some(printed) } else { None };
        let wanted: Vec<&Printed> = of_metric.into_iter().chain(&self.also_printed).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let output = text_of(&run.file(".err"))? + &text_of(&run.file(".out"))?;
        for printed in wanted {
            sample.insert(printed.name.clone(), printed.find(&output).map_err(missing)?);
        }
        Ok(())
    }

    /// Returns the figures to read from the load's output, as the first output decides.
    fn reading(&mut self, output: &str) -> Result<&Reading, Error> {
        let reading = match self.reading.take() {
            Some(reading) => reading,
            None => {
                let requested = self.load.as_ref().map(|under| under.reading.clone()).unwrap_or_default();
                Reading::of(&requested, output)?
            }
        };
        Ok(self.reading.insert(reading))
    }

    fn ended(&self, run: &Run, running: Running, prefix: &str, output: &Path) -> Result<Finished, Error> {
        self.finish(running).and_then(successful).map_err(|how| Error::RunFailed {
            run: run.number,
            side: self.side(run.side).name.clone(),
            how: format!("{prefix}{how}"),
            output: output.display().to_string(),
        })
    }

    /// Waits for its end: until the run's limit, or until a request to stop.
    fn finish(&self, mut running: Running) -> Result<Finished, String> {
        let limit = Instant::now() + self.run_limit;
        loop {
            running = match running.wait_for(LOOK).map_err(|e| format!("was lost: {e}"))? {
                Ok(finished) => return Ok(finished),
                Err(running) => running,
            };
            let (why, grace) = if self.stop.load(Ordering::Relaxed) {
                ("was interrupted".to_owned(), SHORT_GRACE)
            } else if Instant::now() >= limit {
                (format!("took more than {} s", self.run_limit.as_secs()), GRACE)
            } else {
                continue;
            };
            return Err(match running.terminate(grace) {
                Ok(_) => format!("{why} and was stopped"),
                Err(e) => format!("{why} and could not be stopped: {e}"),
            });
        }
    }
}

impl Source for Commands {
    fn measure(&mut self, side: Side) -> Result<Sample, Error> {
        self.measure_unless_stopped(side)
    }

    fn elapsed(&mut self) -> Duration {
        self.begun.elapsed()
    }

    fn has_acted(&self) -> bool {
        self.last_engaged.is_none() || self.acted
    }

    fn start(&self) -> Option<Start> {
        self.start.clone()
    }

    fn planned(&self, plan: &Plan) -> Plan {
        self.reading.as_ref().map_or_else(|| plan.clone(), |reading| under_load::plan(plan, reading))
    }
}

/// One run of a side.
struct Run {
    number: usize,
    side: Side,
    /// Common beginning of the names of its files.
    stem: PathBuf,
}

impl Run {
    fn file(&self, ending: &str) -> PathBuf {
        let mut name = self.stem.clone().into_os_string();
        name.push(ending);
        name.into()
    }

    /// Removes its output.
    fn forget(&self) -> Result<(), Error> {
        for path in
            [".out", ".err", "-load.out", "-load.err", "-prepare.out", "-beside.out"].map(|ending| self.file(ending))
        {
            match fs::remove_file(&path) {
                Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::Output { path, source });
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Sends a command's output to one file.
fn quiet(workload: &Workload, output: &Path) -> Result<Workload, Error> {
    let output = create(output)?;
    Ok(workload.clone().stdin(Stdio::Null).stdout(output.clone()).stderr(output))
}

fn create(path: &Path) -> Result<Stdio, Error> {
    File::create(path).map(Stdio::from).map_err(|source| Error::Output { path: path.to_owned(), source })
}

fn text_of(path: &Path) -> Result<String, Error> {
    let bytes = fs::read(path).map_err(|source| Error::Output { path: path.to_owned(), source })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn successful(finished: Finished) -> Result<Finished, String> {
    if finished.status.success() { Ok(finished) } else { Err(finished.status.in_words()) }
}

fn figures(finished: &Finished) -> Sample {
    let seconds = |ns: u64| ns as f64 * 1e-9;
    [
        (crate::WALL, seconds(finished.wall_ns)),
        (crate::CPU, seconds(finished.user_ns + finished.system_ns)),
        ("user_s", seconds(finished.user_ns)),
        ("system_s", seconds(finished.system_ns)),
        ("max_rss_bytes", finished.max_rss_bytes as f64),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}
