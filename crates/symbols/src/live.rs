//! Variables of files and of the kernel, read while a run is recorded.

use super::elf::Elf;
use super::kallsyms::Kallsyms;
use nearmiss_record::symbols::{DataSymbols, KernelLayout, ModuleData};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// Reads the host's files, which are the guest's: its root is the host's.
#[derive(Debug)]
pub struct LiveData {
    modules: HashMap<String, Option<Arc<ModuleData>>>,
    booted: Arc<OnceLock<Booted>>,
}

/// Facts about the guest's kernel, available once the guest has booted.
#[derive(Clone, Debug)]
pub struct Booted {
    /// Text of the guest's `/proc/kallsyms`.
    pub kallsyms: Arc<str>,
    /// Places of the guest kernel's data.
    pub layout: KernelLayout,
}

impl LiveData {
    /// `booted`: filled by the recorder once the guest has booted; while it is empty, the kernel's variables have no
    /// names.
    pub fn new(booted: Arc<OnceLock<Booted>>) -> Self {
        LiveData { modules: HashMap::new(), booted }
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
        Some(Arc::new(Kallsyms::parse(&self.booted.get()?.kallsyms).data))
    }

    fn layout(&mut self) -> KernelLayout {
        self.booted.get().map(|booted| booted.layout.clone()).unwrap_or_default()
    }
}

/// Variables of an ELF file; `None` for any other.
pub(super) fn module_data(path: &str) -> Option<ModuleData> {
    Elf::open(Path::new(path)).map(|elf| elf.data(path))
}
