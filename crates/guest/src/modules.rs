//! The modules of a guest kernel, and the order in which they are loaded.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// The modules of one kernel, as `modules.dep` and `modules.builtin` list them.
#[derive(Clone, Debug, Default)]
pub struct Modules {
    dir: PathBuf,
    /// File of each module below `dir`, by its name.
    files: BTreeMap<String, String>,
    /// Names of the modules that a module needs.
    needs: BTreeMap<String, Vec<String>>,
    /// Names of the modules that are parts of the kernel.
    built_in: BTreeSet<String>,
}

/// The most bytes of a list that are read.
const MOST_BYTES: usize = 16 << 20;

/// `kernel/fs/f2fs/f2fs.ko.xz` is `f2fs`; the kernel takes `-` and `_` for one.
fn name_of(path: &str) -> Option<String> {
    let (name, _) = path.rsplit('/').next()?.split_once(".ko")?;
    Some(name.replace('-', "_"))
}

/// What a module needs although no list says so: it looks these up by name at run time.
const UNLISTED: &[(&str, &[&str])] = &[("f2fs", &["lz4_compress", "lz4hc_compress", "crc32_generic"])];

impl Modules {
    /// Reads the lists in the directory of a kernel's modules; `None` if there is none.
    pub fn read(dir: &Path) -> Option<Self> {
        let read = |name: &str| {
            let file = fs::File::open(dir.join(name)).ok()?;
            let bytes = senesce_core::input::read_bytes(file, MOST_BYTES).ok()?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        };
        let listed = read("modules.dep")?;
        Some(Self::parse(dir, &listed, &read("modules.builtin").unwrap_or_default()))
    }

    fn parse(dir: &Path, listed: &str, built_in: &str) -> Self {
        let mut found = Self { dir: dir.to_owned(), ..Self::default() };
        for (file, needed) in listed.lines().filter_map(|line| line.split_once(':')) {
            let Some(name) = name_of(file) else { continue };
            found.files.insert(name.clone(), file.to_owned());
            found.needs.insert(name, needed.split_whitespace().filter_map(name_of).collect());
        }
        found.built_in = built_in.lines().filter_map(name_of).collect();
        found
    }

    /// Whether the kernel has a module, built in or as a file.
    pub fn has(&self, name: &str) -> bool {
        self.built_in.contains(name) || self.files.contains_key(name)
    }

    /// The files to load for these modules, each after those that it needs. Built-in and unknown
    /// modules have none.
    pub fn in_order(&self, names: &[&str]) -> Vec<PathBuf> {
        let mut done = BTreeSet::new();
        let mut order = Vec::new();
        names.iter().for_each(|name| self.visit(name, &mut done, &mut order));
        order
    }

    fn visit(&self, name: &str, done: &mut BTreeSet<String>, order: &mut Vec<PathBuf>) {
        // Marked before its needs are visited, so that a circle in a damaged list ends.
        if !done.insert(name.to_owned()) {
            return;
        }
        let Some(file) = self.files.get(name) else { return };
        let unlisted = UNLISTED.iter().find(|(of, _)| *of == name).map_or(&[][..], |(_, needs)| needs);
        unlisted.iter().for_each(|need| self.visit(need, done, order));
        self.needs[name].iter().for_each(|need| self.visit(need, done, order));
        order.push(self.dir.join(file));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules() -> Modules {
        let listed = "kernel/fs/f2fs/f2fs.ko:\nkernel/crypto/crc32_generic.ko:\nkernel/lib/lz4/lz4_compress.ko:\n\
            kernel/lib/lz4/lz4hc-compress.ko: kernel/lib/lz4/lz4_compress.ko\nkernel/a.ko: kernel/b.ko\n\
            kernel/b.ko: kernel/a.ko\nno line\n";
        Modules::parse(Path::new("/m"), listed, "kernel/fs/ext4/ext4.ko\n")
    }

    #[test]
    fn needed_modules_come_first() {
        let order = modules().in_order(&["f2fs", "ext4", "lz4_compress"]);
        let names: Vec<_> = order.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        assert_eq!(
            names,
            [
                "/m/kernel/lib/lz4/lz4_compress.ko",
                "/m/kernel/lib/lz4/lz4hc-compress.ko",
                "/m/kernel/crypto/crc32_generic.ko",
                "/m/kernel/fs/f2fs/f2fs.ko"
            ]
        );
    }

    #[test]
    fn a_circle_and_an_unknown_module_end() {
        assert_eq!(modules().in_order(&["a", "unknown"]).len(), 2);
        assert!(modules().has("ext4") && modules().has("f2fs") && !modules().has("zfs"));
    }
}
