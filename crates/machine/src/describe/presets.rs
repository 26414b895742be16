//! The machines that come with nearmiss.

use super::{DescribeError, parse};
use nearmiss_record::machine::Machine;

/// A machine file embedded in the binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Name of the preset, as typed after `-m`.
    pub name: &'static str,
    /// The file, with its comments.
    pub text: &'static str,
}

impl Preset {
    /// Reads the machine from the preset's text.
    pub fn machine(&self) -> Result<Machine, DescribeError> {
        parse(&format!("preset {}", self.name), self.text)
    }
}

macro_rules! presets {
    ($($name:literal),* $(,)?) => {
        /// All presets: the papers' machines first, then today's.
        pub const PRESETS: &[Preset] = &[
            $(Preset { name: $name, text: include_str!(concat!("../../machines/", $name, ".toml")) }),*
        ];
    };
}

presets!(
    "pentium-pro-4way-256k",
    "pentium-pro-4way-512k",
    "pentium-pro-4way-1m",
    "pentium3-xeon-8way",
    "xeon-mp-4way-l3",
    "xeon-ht-2x2",
    "pentium3-xeon-numa-2x2",
    "zen3-milan",
    "zen4-genoa",
    "zen5-turin",
    "xeon-icelake-sp",
    "xeon-sapphire-rapids",
    "neoverse-n1",
);

/// The preset of this name.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|p| p.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::describe::{figures, is_assumed, source_of};

    #[test]
    fn every_preset_is_a_machine_of_its_name() {
        for p in PRESETS {
            let machine = p.machine().unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(machine.name, p.name);
        }
    }

    #[test]
    fn every_figure_of_every_preset_has_a_source_or_is_marked_assumed() {
        for p in PRESETS {
            let machine = p.machine().unwrap_or_else(|e| panic!("{e}"));
            for figure in figures(&machine) {
                let source = source_of(&machine, &figure);
                assert!(source.is_some_and(|s| s.len() > 6), "{}: no source for {figure}", p.name);
            }
            let known = machine.sources.values().filter(|s| !is_assumed(s)).count();
            assert!(known >= 4, "{}: {known} sourced figures", p.name);
        }
    }

    #[test]
    fn the_papers_machines_are_the_papers() {
        let shape = |name: &str| {
            let m = preset(name).expect("a preset").machine().expect("a good one");
            let last = m.caches.iter().max_by_key(|c| c.level).expect("caches").clone();
            let t = m.topology;
            (
                (t.packages, t.cores_per_package, t.threads_per_core),
                m.clock_mhz,
                last.size.0 >> 10,
                last.ways,
                m.memory.nodes,
            )
        };
        assert_eq!(shape("pentium-pro-4way-256k"), ((4, 1, 1), 200, 256, 4, 1));
        assert_eq!(shape("pentium-pro-4way-512k"), ((4, 1, 1), 200, 512, 4, 1));
        assert_eq!(shape("pentium-pro-4way-1m"), ((4, 1, 1), 200, 1024, 4, 1));
        assert_eq!(shape("pentium3-xeon-8way"), ((8, 1, 1), 550, 1024, 4, 1));
        assert_eq!(shape("xeon-mp-4way-l3"), ((4, 1, 1), 2200, 2048, 8, 1));
        assert_eq!(shape("xeon-ht-2x2"), ((2, 1, 2), 2800, 512, 8, 1));
        assert_eq!(shape("pentium3-xeon-numa-2x2"), ((4, 1, 1), 450, 512, 4, 2));
        let numa = preset("pentium3-xeon-numa-2x2").expect("a preset").machine().expect("a good one").latency;
        assert_eq!(numa.memory_remote_cycles, 3 * numa.memory_local_cycles);
    }
}
