//! The kernel's symbols, from the text of `/proc/kallsyms`.

use nearmiss_record::symbols::{DataObject, KERNEL_MODULE, ModuleData};

/// Generated names that no access is ever attributed to; they still end the variable before them.
const NOISE: [&str; 12] = [
    "__ksymtab",
    "__kstrtab",
    "__kcrctab",
    "__UNIQUE_ID",
    "__initcall",
    "__event_",
    "__syscall_meta",
    "__already_done",
    "__pfx_",
    "__bss_stop",
    "__brk_",
    "_end",
];
/// A variable ends here at the latest, regardless of the next symbol.
const LARGEST_VARIABLE: u64 = 16 << 20;

/// Per-CPU symbols lie below, relative to each CPU's area.
const PER_CPU_LIMIT: u64 = 1 << 32;

#[derive(Clone, Debug)]
struct Line<'a> {
    address: u64,
    kind: u8,
    name: &'a str,
    module: &'a str,
}

/// Functions and variables.
#[derive(Clone, Debug, Default)]
pub(super) struct Kallsyms {
    /// Name and module of each function, by address.
    functions: Vec<(u64, String, String)>,
    pub data: ModuleData,
}

impl Kallsyms {
    /// Reads the text; lines that are not of its form are passed over.
    pub fn parse(text: &str) -> Self {
        let mut lines: Vec<_> = text.lines().filter_map(line).collect();
        relative_to_each_area(&mut lines);
        // The plainest of several names of one address is first.
        let underscores = |name: &str| name.len() - name.trim_start_matches('_').len();
        lines.sort_by_key(|l| (l.address, is_noise(l.name), underscores(l.name), l.name.len(), l.name));
        let mut functions: Vec<(u64, String, String)> = Vec::new();
        let mut data = ModuleData { module: KERNEL_MODULE.to_owned(), ..ModuleData::default() };
        for (index, line) in lines.iter().enumerate() {
            if index > 0 && lines[index - 1].address == line.address {
                continue;
            }
            if matches!(line.kind, b't' | b'T' | b'w' | b'W') && line.address >= PER_CPU_LIMIT {
                functions.push((line.address, line.name.to_owned(), line.module.to_owned()));
            } else if !is_noise(line.name) {
                let next = lines[index..].iter().find(|l| l.address > line.address).map_or(u64::MAX, |l| l.address);
                // The last of the per-CPU symbols is their end, not a variable that reaches to the kernel's image.
                if line.address >= PER_CPU_LIMIT || next < PER_CPU_LIMIT {
                    let bytes = (next - line.address).min(LARGEST_VARIABLE);
                    data.objects.push(DataObject { name: line.name.to_owned(), vaddr: line.address, bytes });
                }
            }
        }
        Kallsyms { functions, data }
    }

    /// Name and module (or [`KERNEL_MODULE`]) of the function at `address`.
    pub fn function(&self, address: u64) -> Option<(&str, &str)> {
        let index = self.functions.partition_point(|f| f.0 <= address).checked_sub(1)?;
        let (_, name, module) = &self.functions[index];
        Some((name, module))
    }
}

fn line(text: &str) -> Option<Line<'_>> {
    let mut fields = text.split_ascii_whitespace();
    let address = u64::from_str_radix(fields.next()?, 16).ok()?;
    let kind = *fields.next()?.as_bytes().first()?;
    Some(Line { address, kind, name: fields.next()?, module: fields.next().unwrap_or(KERNEL_MODULE) })
}

/// Puts per-CPU symbols where they were linked until Linux 6.15: at 0. Later ones lie in the kernel's image, at a place
/// that no CPU uses once it has an area of its own.
fn relative_to_each_area(lines: &mut [Line<'_>]) {
    let address = |name: &str| lines.iter().find(|line| line.name == name).map(|line| line.address);
    let (Some(start), Some(end)) = (address("__per_cpu_start"), address("__per_cpu_end")) else { return };
    for line in lines.iter_mut().filter(|line| (start..=end).contains(&line.address)) {
        line.address -= start;
    }
}

fn is_noise(name: &str) -> bool {
    NOISE.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_modules_and_variables() {
        let text = "0000000000000000 A fixed_percpu_data\n0000000000034c00 D pcpu_hot\n0000000000034c40 D other\n0000000000034d00 D __per_cpu_end\n\
                    ffffffff81000000 T _text\nffffffff81000000 T startup_64\nffffffff81000100 t copy_page\n\
                    ffffffff82000000 D jiffies\nffffffff82000008 d __already_done.1\nffffffff82000040 D init_task\n\
                    nonsense\nffffffffa0001000 t ovl_read\t[overlay]\n";
        let symbols = Kallsyms::parse(text);
        assert_eq!(symbols.function(0xffff_ffff_8100_0050), Some(("startup_64", KERNEL_MODULE)));
        assert_eq!(symbols.function(0xffff_ffff_8100_0100), Some(("copy_page", KERNEL_MODULE)));
        assert_eq!(symbols.function(0xffff_ffff_a000_1004), Some(("ovl_read", "[overlay]")));
        assert_eq!(symbols.function(0x1000), None);
        let found = |address| symbols.data.object_at(address).map(|i| symbols.data.objects[i].name.as_str());
        assert_eq!(found(0x34c20), Some("pcpu_hot"));
        assert_eq!((found(0xffff_ffff_8200_0007), found(0xffff_ffff_8200_0008)), (Some("jiffies"), None));
        assert_eq!((found(0x34cff), found(0x34d00)), (Some("other"), None));
        assert_eq!(found(0xffff_ffff_8200_0040), Some("init_task"));
    }

    #[test]
    fn per_cpu_variables_in_the_kernels_image_are_separated_from_the_start_of_their_area() {
        let text = "ffffffff82000000 D jiffies\nffffffff83001000 D __per_cpu_start\nffffffff83001000 D cpu_tss_rw\n\
                    ffffffff83035c40 D current_task\nffffffff83036000 D __per_cpu_end\nffffffff83037000 D later\n";
        let symbols = Kallsyms::parse(text);
        let found = |address| symbols.data.object_at(address).map(|i| symbols.data.objects[i].name.as_str());
        assert_eq!((found(0x34c44), found(0x10)), (Some("current_task"), Some("cpu_tss_rw")));
        assert_eq!((found(0xffff_ffff_8303_5c44), found(0xffff_ffff_8303_7000)), (None, Some("later")));
    }
}
