//! Shared lines with the names of their contents.

use super::Attribution;
use super::data_tables::{Namer, Title};
use super::names::Names;
use super::objects::{Key, ObjectId};
use super::sharing::{BY_CPU, Piece, SharedLine, Use};
use nearmiss_record::model::{SharedLineRow, Tenant};
use nearmiss_record::symbols::StackVariable;
use std::collections::{BTreeMap, BTreeSet};

/// Most rows of the table.
const MAX_SHARED_LINES: usize = 1000;
/// Most places in the code of a tenant.
const MAX_SITES: usize = 4;
/// Divisor for rare users: a task that uses bytes less often than this part of another one's uses, and waits for them
/// less than this part of the line's waits, is not one of their users: threads that begin, end and add up once would
/// make all bytes look alike.
const RARE: u64 = 64;

/// Lines with the most coherence misses.
pub(super) fn shared_lines(attribution: &Attribution, names: &Names<'_>) -> Vec<SharedLineRow> {
    let mut lines: Vec<(&u64, &SharedLine)> = attribution.sharing.lines.iter().collect();
    lines.sort_by_key(|(paddr, line)| (std::cmp::Reverse(line.misses()), **paddr));
    lines.truncate(MAX_SHARED_LINES);
    let tables = Tables {
        attribution,
        names,
        namer: Namer::new(&attribution.tracker.objects.rows, &attribution.user_pages, names),
    };
    lines.into_iter().map(|(paddr, line)| tables.row(*paddr, line)).collect()
}

struct Tables<'a> {
    attribution: &'a Attribution,
    names: &'a Names<'a>,
    namer: Namer<'a>,
}

/// Writers and readers of a byte: thread ids.
type Users = [BTreeSet<u32>; 2];

/// Returns the users of bytes that may share a line: the same writers and readers, or one task alone.
fn together(users: &Users) -> Users {
    let [writers, readers] = users;
    let all: BTreeSet<u32> = writers.union(readers).copied().collect();
    if all.len() == 1 { [all.clone(), all] } else { users.clone() }
}

/// Neighbouring bytes of one piece with the same users.
struct Run {
    piece: Option<usize>,
    users: Users,
    /// First and last.
    bytes: (u32, u32),
}

impl Run {
    fn mask(&self) -> u128 {
        (u128::MAX >> (127 - (self.bytes.1 - self.bytes.0))) << self.bytes.0
    }
}

impl Tables<'_> {
    fn row(&self, paddr: u64, line: &SharedLine) -> SharedLineRow {
        let functions = self.names.most_of(line.waiting.iter().map(|(insn, waits)| (insn, waits)));
        let rows = &self.attribution.tasks.rows;
        let rows_of_objects = &self.attribution.tracker.objects.rows;
        let of_command = |task: u32| rows.get(task as usize).is_some_and(|row| row.of_command);
        let key = &rows_of_objects[line.object.0 as usize].key;
        let offset = match (key, self.namer.variable_of(key)) {
            (Key::StackPiece { address }, Some(variable)) => address.saturating_sub(variable.start),
            _ => line.offset,
        };
        SharedLineRow {
            line_paddr: paddr,
            object: format!("{}+{offset:#x}", self.title(line.object).name),
            true_sharing: line.true_sharing,
            false_sharing: line.false_sharing,
            functions: functions.into_iter().map(|(name, _)| name).collect(),
            needless: line.needless,
            stall_cycles: line.waits.iter().filter(|(task, _)| of_command(*task)).map(|(_, cycles)| cycles).sum(),
            references: line.uses.iter().filter(|one| of_command(one.party)).map(|one| one.times).sum(),
            tenants: self.tenants(line),
        }
    }

    fn title(&self, object: ObjectId) -> Title {
        self.namer.title(&self.attribution.tracker.objects.rows[object.0 as usize].key)
    }

    /// Thread and process id of a task's row.
    fn thread(&self, task: u32) -> Option<(u32, u32)> {
        let rows = &self.attribution.tasks.rows;
        let row = rows.get(task as usize)?;
        let known = row.same_as.map_or(row, |other| &rows[other as usize]);
        known.identity.map(|identity| (identity.tid, identity.pid))
    }

    /// Returns the id of a party: its thread id. Tasks beyond those kept apart go by a CPU, which no thread is.
    fn party(&self, party: u32) -> u32 {
        if party >= BY_CPU { party } else { self.thread(party).map_or(0, |(tid, _)| tid) }
    }

    fn tenants(&self, line: &SharedLine) -> Vec<Tenant> {
        let mut groups: BTreeMap<Users, u32> = BTreeMap::new();
        let mut tenants = Vec::new();
        for run in self.runs(line) {
            let next = groups.len() as u32;
            let group = *groups.entry(together(&run.users)).or_insert(next);
            tenants.push(self.tenant(line, run, group));
        }
        tenants
    }

    /// Unused bytes lie in the run around them, or in none.
    fn runs(&self, line: &SharedLine) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for byte in 0..self.attribution.options.line_bytes {
            let users = self.users(line, byte);
            if users.iter().all(BTreeSet::is_empty) {
                continue;
            }
            let piece = line.pieces.iter().position(|piece| piece.bytes >> byte & 1 != 0);
            match runs.last_mut() {
                Some(last) if last.piece == piece && last.users == users => last.bytes.1 = byte,
                _ => runs.push(Run { piece, users, bytes: (byte, byte) }),
            }
        }
        runs
    }

    fn users(&self, line: &SharedLine, byte: u32) -> Users {
        let mut parties: [BTreeMap<u32, (u64, u64)>; 2] = Default::default();
        for u in line.uses.iter().filter(|u| u.bytes >> byte & 1 != 0) {
            let party = parties[usize::from(!u.stores)].entry(self.party(u.party)).or_default();
            *party = (party.0 + u.times, party.1 + u.waits);
        }
        let waits: u64 = line.uses.iter().map(|u| u.waits).sum();
        let often = line.uses.iter().map(|u| u.times).max().unwrap_or(0);
        let uses = |(times, waits_here): &(u64, u64)| times * RARE >= often.max(1) || waits_here * RARE >= waits.max(1);
        parties.map(|by| by.into_iter().filter(|(_, used)| uses(used)).map(|(party, _)| party).collect())
    }

    fn tenant(&self, line: &SharedLine, run: Run, group: u32) -> Tenant {
        let mask = run.mask();
        let piece = run.piece.map(|piece| &line.pieces[piece]);
        let object = piece.map_or(line.object, |piece| piece.object);
        let first = run.bytes.0;
        let variable = self.stack_variable(object, piece, first);
        let title = variable.map_or_else(|| self.title(object), |known| Namer::on_first_stack(Some(known)));
        // The allocator's own bytes between blocks belong to no object.
        let is_object = self.attribution.tracker.objects.rows[object.0 as usize].key != Key::Break;
        let extent = |known: &StackVariable| (known.start, known.start.saturating_add(known.bytes));
        let extent = variable.map(extent).or(piece.map(|piece| piece.extent));
        let [written_at, read_at] = [true, false].map(|stores| self.sites(line, mask, stores, &run.users));
        let [writers, readers] = run.users.map(|users| users.into_iter().collect());
        Tenant {
            object: title.name,
            kind: Some(title.kind),
            object_address: extent.map_or(0, |(start, _)| start),
            object_bytes: extent.filter(|_| is_object).map_or(0, |(start, end)| end - start),
            offset: match (piece, extent) {
                (Some(piece), Some((start, _))) => (piece.line + u64::from(first)).saturating_sub(start),
                _ => line.offset + u64::from(first),
            },
            line_offset: first,
            bytes: run.bytes.1 - first + 1,
            group,
            writers,
            readers,
            written_at,
            read_at,
        }
    }

    /// The variable on a first thread's stack that has a byte of the line.
    fn stack_variable(&self, object: ObjectId, piece: Option<&Piece>, byte: u32) -> Option<&StackVariable> {
        let is_of_stack =
            matches!(self.attribution.tracker.objects.rows[object.0 as usize].key, Key::StackPiece { .. });
        self.namer.stack_variable(piece.filter(|_| is_of_stack)?.line + u64::from(byte))
    }

    /// Places in the code where these users store to the bytes, or load them, most frequent first.
    fn sites(&self, line: &SharedLine, bytes: u128, stores: bool, users: &Users) -> Vec<String> {
        let mut times: BTreeMap<String, u64> = BTreeMap::new();
        let counts = |u: &&Use| {
            u.stores == stores && u.bytes & bytes != 0 && users[usize::from(!stores)].contains(&self.party(u.party))
        };
        for u in line.uses.iter().filter(counts) {
            u.insns.iter().for_each(|(insn, count)| *times.entry(self.names.site(*insn)).or_default() += count);
        }
        let mut sites: Vec<(String, u64)> = times.into_iter().collect();
        sites.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        sites.truncate(MAX_SITES);
        sites.into_iter().map(|(site, _)| site).collect()
    }
}
