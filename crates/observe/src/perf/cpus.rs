//! Which CPUs there are.

use std::fs;

/// CPUs online, by number; by `/proc/stat` where a container hides `/sys`.
pub fn online_cpus() -> Vec<u32> {
    let listed = fs::read_to_string("/sys/devices/system/cpu/online").map(|list| in_list(&list)).unwrap_or_default();
    if !listed.is_empty() {
        return listed;
    }
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let found: Vec<u32> = stat.lines().filter_map(|l| l.strip_prefix("cpu")?.split(' ').next()?.parse().ok()).collect();
    if found.is_empty() { vec![0] } else { found }
}

fn in_list(list: &str) -> Vec<u32> {
    let mut cpus = Vec::new();
    for range in list.trim().split(',') {
        let (low, high) = range.split_once('-').unwrap_or((range, range));
        if let (Ok(low), Ok(high)) = (low.parse::<u32>(), high.parse::<u32>()) {
            cpus.extend(low..=high);
        }
    }
    cpus
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read() {
        assert_eq!(in_list("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(in_list(""), Vec::<u32>::new());
    }
}
