//! Pages allocated and reclaimed, by process.

use super::layout::{MemoryStat, name};
use super::{BpfError, refused};
use aya::Ebpf;
use aya::maps::PerCpuHashMap;
use nearmiss_record::observed::MemoryUse;

pub fn rows(ebpf: &Ebpf) -> Result<Vec<MemoryUse>, BpfError> {
    let map = ebpf.map("memory_stats").ok_or(BpfError::NotBuilt)?;
    let stats: PerCpuHashMap<_, u32, MemoryStat> =
        PerCpuHashMap::try_from(map).map_err(|e| refused("memory_stats", &e))?;
    let mut rows: Vec<MemoryUse> = stats.iter().flatten().map(|(process, cells)| row(process, cells.iter())).collect();
    rows.sort_by_key(|row| (std::cmp::Reverse(row.pages), row.process));
    Ok(rows)
}

fn row<'a>(process: u32, cells: impl Iterator<Item = &'a MemoryStat>) -> MemoryUse {
    let mut row = MemoryUse { process: process as i32, ..MemoryUse::default() };
    for cell in cells {
        if row.name.is_empty() {
            row.name = name(&cell.comm);
        }
        row.pages += cell.pages;
        row.allocations += cell.allocations;
        row.reclaims += cell.reclaims;
        row.reclaim_ns += cell.reclaim_ns;
        row.max_ns = row.max_ns.max(cell.max_ns);
        row.reclaimed += cell.reclaimed;
    }
    row
}
