//! Variables of files and of the kernel, read while a run is recorded.

use super::elf::Elf;
use super::kallsyms::Kallsyms;
use nearmiss_record::symbols::{DataSymbols, KernelLayout, ModuleData};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Reads the host's files, which are the guest's: its root is the host's.
#[derive(Debug)]
pub struct LiveData {
    modules: HashMap<String, Option<Arc<ModuleData>>>,
    kallsyms: PathBuf,
    layout: Arc<OnceLock<KernelLayout>>,
}

impl LiveData {
    /// `kallsyms`: text of the guest's `/proc/kallsyms`. `layout`: filled by the recorder once the guest has booted;
    /// while it is empty, per-CPU variables have no names.
    pub fn new(kallsyms: &Path, layout: Arc<OnceLock<KernelLayout>>) -> Self {
        LiveData { modules: HashMap::new(), kallsyms: kallsyms.to_owned(), layout }
    }
}

impl DataSymbols for LiveData {
    fn module(&mut self, path: &str) -> Option<Arc<ModuleData>> {
        if let Some(known) = self.modules.get(path) {
            return known.clone();
        }
        let data = module_data(path).map(Arc::new);
        self.modules.insert(path.to_owned(), data.clone());
        data
    }

    fn kernel(&mut self) -> Option<Arc<ModuleData>> {
        let text = std::fs::read_to_string(&self.kallsyms).ok()?;
        Some(Arc::new(Kallsyms::parse(&text).data))
    }

    fn layout(&mut self) -> KernelLayout {
        self.layout.get().cloned().unwrap_or_default()
    }
}

/// Variables of an ELF file; `None` for any other.
pub(super) fn module_data(path: &str) -> Option<ModuleData> {
    Elf::open(Path::new(path)).map(|elf| elf.data(path))
}
