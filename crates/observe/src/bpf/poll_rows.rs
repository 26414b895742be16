//! Counts of each thread's poll calls by the BPF programs.

use super::layout::PollStat;
use super::{BpfError, refused};
use aya::Ebpf;
use aya::maps::Array;

/// Every row in use: they are used in order.
pub fn in_use(ebpf: &Ebpf) -> Result<Vec<PollStat>, BpfError> {
    let map = ebpf.map("poll_stats").ok_or(BpfError::NotBuilt)?;
    let rows: Array<_, PollStat> = Array::try_from(map).map_err(|e| refused("poll_stats", &e))?;
    Ok((0..rows.len()).map_while(|row| rows.get(&row, 0).ok().filter(|stat| stat.tid != 0)).collect())
}
