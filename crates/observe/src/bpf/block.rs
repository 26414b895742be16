//! Block requests by device, operation and submitter, and the devices' queues.

use super::layout::{IoKey, IoStat, LOG2_SLOTS, QueueCell, name, trimmed};
use super::{BpfError, refused};
use aya::Ebpf;
use aya::maps::{HashMap, PerCpuHashMap};
use nearmiss_record::observed::{BlockIo, Queue};
use std::fs;

pub fn rows(ebpf: &Ebpf) -> Result<Vec<BlockIo>, BpfError> {
    let map = ebpf.map("io_stats").ok_or(BpfError::NotBuilt)?;
    let stats: PerCpuHashMap<_, IoKey, IoStat> = PerCpuHashMap::try_from(map).map_err(|e| refused("io_stats", &e))?;
    let mut rows: Vec<BlockIo> = stats.iter().flatten().map(|(key, cells)| row(&key, cells.iter())).collect();
    rows.sort_by(|a, b| (&a.device, b.bytes, b.count, &a.operation).cmp(&(&b.device, a.bytes, a.count, &b.operation)));
    Ok(rows)
}

fn row<'a>(key: &IoKey, cells: impl Iterator<Item = &'a IoStat>) -> BlockIo {
    let mut row = BlockIo {
        device: device(key.device),
        operation: operation(key.operation),
        process: key.tgid as i32,
        name: name(&key.comm),
        min_ns: u64::MAX,
        ..BlockIo::default()
    };
    let (mut queue, mut in_device) = ([0u32; LOG2_SLOTS], [0u32; LOG2_SLOTS]);
    for cell in cells.filter(|c| c.count > 0) {
        row.count += cell.count;
        row.bytes += cell.bytes;
        row.errors += cell.errors;
        row.queue_ns += cell.queue_ns;
        row.device_ns += cell.device_ns;
        row.max_ns = row.max_ns.max(cell.max_ns);
        row.min_ns = row.min_ns.min(!cell.inverse_min_ns);
        for (sum, n) in queue.iter_mut().zip(cell.log2_queue_ns) {
            *sum += n;
        }
        for (sum, n) in in_device.iter_mut().zip(cell.log2_device_ns) {
            *sum += n;
        }
    }
    row.log2_queue_ns = trimmed(&queue);
    row.log2_device_ns = trimmed(&in_device);
    row
}

pub fn queues(ebpf: &Ebpf) -> Result<Vec<Queue>, BpfError> {
    let map = ebpf.map("queues").ok_or(BpfError::NotBuilt)?;
    let cells: HashMap<_, u32, QueueCell> = HashMap::try_from(map).map_err(|e| refused("queues", &e))?;
    let mut rows: Vec<Queue> = cells
        .iter()
        .flatten()
        .map(|(id, cell)| Queue {
            device: device(id),
            requests: cell.samples,
            seen: cell.sum,
            max: cell.max,
            busy_ns: cell.busy_ns,
            weighted_ns: cell.weighted_ns,
            log2_length: trimmed(&cell.log2_length),
        })
        .collect();
    rows.sort_by(|a, b| a.device.cmp(&b.device));
    Ok(rows)
}

/// Requests in flight on all devices.
pub fn in_flight(ebpf: &Ebpf) -> u64 {
    let Some(map) = ebpf.map("queues") else { return 0 };
    let Ok(cells) = HashMap::<_, u32, QueueCell>::try_from(map) else { return 0 };
    cells.iter().flatten().map(|(_, cell)| cell.in_flight).sum()
}

fn device(id: u32) -> String {
    let (major, minor) = (id >> 20, id & 0xf_ffff);
    let link = fs::read_link(format!("/sys/dev/block/{major}:{minor}")).ok();
    let name = link.as_ref().and_then(|l| l.file_name()).map(|n| n.to_string_lossy().into_owned());
    name.unwrap_or_else(|| format!("{major}:{minor}"))
}

fn operation(code: u32) -> String {
    match code {
        0 => "read",
        1 => "write",
        2 => "flush",
        3 => "discard",
        5 => "secure-erase",
        9 => "write-zeroes",
        34 | 35 => "driver",
        _ => return format!("op {code}"),
    }
    .to_owned()
}
