//! Which lines and instructions of a function are shown, and what the others add up to.

use crate::levels::references;
use crate::load::Report;
use nearmiss_record::model::{ByClass, FunctionRow, InstructionRow, MissClass, Tally};
use std::collections::BTreeMap;

/// A row of less than one in so many of the function's cycles, references and misses is not shown by itself.
const LEAST_PART: u64 = 200;
/// Instructions of lines of less than one in so many of the function's cycles are not shown.
const HOT_PART: u64 = 50;

/// Figures of each row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    pub cycles: u64,
    pub references: u64,
    /// Misses by level and class.
    pub levels: Vec<ByClass>,
}

impl From<&Tally> for Figures {
    fn from(tally: &Tally) -> Self {
        let classes = |index: usize| MissClass::ALL.map(|class| tally.levels[index].class(class));
        let levels = (0..tally.levels.len()).map(classes).collect();
        Figures { cycles: tally.cycles, references: references(tally), levels }
    }
}

impl Figures {
    pub fn misses(&self, level: usize) -> u64 {
        self.levels.get(level).map_or(0, |classes| classes.iter().sum())
    }

    fn add(&mut self, other: &Figures) {
        self.cycles += other.cycles;
        self.references += other.references;
        self.levels.resize(self.levels.len().max(other.levels.len()), ByClass::default());
        for (mine, theirs) in self.levels.iter_mut().flatten().zip(other.levels.iter().flatten()) {
            *mine += theirs;
        }
    }

    /// Returns what this has beyond `other`. Cycles are rounded table by table: a difference of one is none.
    fn beyond(&self, other: &Figures) -> Figures {
        let mut rest = self.clone();
        rest.cycles = rest.cycles.saturating_sub(other.cycles);
        rest.references = rest.references.saturating_sub(other.references);
        for (mine, theirs) in rest.levels.iter_mut().flatten().zip(other.levels.iter().flatten()) {
            *mine = mine.saturating_sub(*theirs);
        }
        rest
    }

    pub fn is_nothing(&self) -> bool {
        self.cycles == 0 && self.references == 0 && self.levels.iter().flatten().all(|misses| *misses == 0)
    }

    /// Whether this is at least one in `parts` of some figure of the whole. Misses count where the whole has many.
    fn matters(&self, whole: &Figures, parts: u64) -> bool {
        const MANY: u64 = 100;
        let pairs = (0..self.levels.len()).map(|level| (self.misses(level), whole.misses(level)));
        let pairs = pairs.filter(|(_, whole)| *whole >= MANY);
        let mut pairs = pairs.chain([(self.cycles, whole.cycles), (self.references, whole.references)]);
        pairs.any(|(part, whole)| part > 0 && part.saturating_mul(parts) >= whole)
    }
}

/// An instruction that is shown.
pub(crate) struct ShownInstruction<'a> {
    pub row: &'a InstructionRow,
    pub address: u64,
    pub figures: Figures,
}

/// A source line that is shown, with the instructions of it that are.
pub(crate) struct Line<'a> {
    pub number: u32,
    pub figures: Figures,
    pub instructions: Vec<ShownInstruction<'a>>,
}

/// The lines of one source file.
pub(crate) struct File<'a> {
    pub path: &'a str,
    pub lines: Vec<Line<'a>>,
    cycles: u64,
}

/// A function taken apart.
pub(crate) struct Annotated<'a> {
    pub function: &'a FunctionRow,
    pub whole: Figures,
    /// The file with the most cycles first, lines ascending.
    pub files: Vec<File<'a>>,
    /// Instructions of which no line is known, ascending.
    pub without_line: Vec<ShownInstruction<'a>>,
    /// Lines that are not shown: how many, and what they add up to.
    pub others: (usize, Figures),
    /// Figures of no known line.
    pub no_line: Figures,
    /// The record has instructions of this function.
    pub has_instructions: bool,
}

impl<'a> Annotated<'a> {
    pub fn of(report: &'a Report, function: &'a FunctionRow) -> Self {
        let of_function =
            |name: &str, module: &str| name == function.name && (module.is_empty() || module == function.module);
        let whole = Figures::from(&function.tally);
        let mut instructions = places(report, function);
        let has_instructions = !instructions.is_empty();
        let mut without_line = instructions.remove(&("", 0)).unwrap_or_default();
        without_line.retain(|place| place.figures.matters(&whole, LEAST_PART));
        let mut files: BTreeMap<&str, File<'a>> = BTreeMap::new();
        let (mut known, mut others) = (Figures::default(), (0, Figures::default()));
        for row in
            report.model.lines.iter().filter(|row| of_function(&row.function, &row.module) && !row.file.is_empty())
        {
            let figures = Figures::from(&row.tally);
            known.add(&figures);
            if !figures.matters(&whole, LEAST_PART) {
                others.0 += 1;
                others.1.add(&figures);
                continue;
            }
            let mut instructions = instructions.remove(&(row.file.as_str(), row.line)).unwrap_or_default();
            instructions.retain(|place| figures.matters(&whole, HOT_PART) && place.figures.matters(&whole, LEAST_PART));
            let file = files.entry(&row.file).or_insert_with(|| File { path: &row.file, lines: Vec::new(), cycles: 0 });
            file.cycles += figures.cycles;
            file.lines.push(Line { number: row.line, figures, instructions });
        }
        let mut files: Vec<_> = files.into_values().collect();
        files.iter_mut().for_each(|file| file.lines.sort_by_key(|line| line.number));
        files.sort_by_key(|file| std::cmp::Reverse(file.cycles));
        let no_line = whole.beyond(&known);
        Annotated { function, whole, files, without_line, others, no_line, has_instructions }
    }
}

/// The instructions of a function by source line, ascending.
fn places<'a>(report: &'a Report, function: &FunctionRow) -> BTreeMap<(&'a str, u32), Vec<ShownInstruction<'a>>> {
    let mut places: BTreeMap<(&str, u32), Vec<ShownInstruction<'_>>> = BTreeMap::new();
    for row in &report.model.instructions {
        let Some(address) = row.address.filter(|_| row.function == function.name && row.module == function.module)
        else {
            continue;
        };
        let place = ShownInstruction { row, address, figures: Figures::from(&row.tally) };
        places.entry((row.file.as_str(), row.line)).or_default().push(place);
    }
    places.values_mut().for_each(|places| places.sort_by_key(|place| place.address));
    places
}
