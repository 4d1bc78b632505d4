//! The states that are compared: each aged volume as an image, and the image of its unaged twin.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use senesce_core::{Bytes, Seed};
use senesce_experiment::create_untaken;
use senesce_image::{Container, RestoreOptions, restore};
use senesce_volume::{
    Backend, Custodian, Existing, FileSystemKind, Host, Slot, SuperblockIdentity, Uuid, Volume, VolumeSpec, copy_tree,
    read_superblock,
};

use crate::{
    clock::SystemClock,
    exit::usage,
    machine::count_threads,
    verb::image::{explain, is_interrupted, open_source, read_start},
};

/// An aged volume that was named.
pub struct Source {
    pub path: PathBuf,
    /// Its file system, with the file's name if several have the same.
    pub name: String,
    pub file_system: FileSystemKind,
    pub volume_bytes: u64,
    /// Bytes of its image that are not holes.
    pub data_bytes: u64,
    /// Of a container.
    pub content_hash: Option<String>,
    /// Of the file system.
    pub uuid: Uuid,
    pub states: Vec<State>,
    /// How the twin differs besides its layout.
    pub unlike: Vec<String>,
}

/// One state of it: an image that every run begins from.
pub struct State {
    pub role: &'static str,
    image: PathBuf,
    /// Between runs, if what one run did is kept for the next.
    kept: Option<Volume>,
    pub figures: Vec<f64>,
    /// Further figures of runs of personalities.
    pub details: Vec<serde_json::Value>,
    /// Bytes that each run read from the device.
    pub device_read_bytes: Vec<u64>,
    /// In which ways other work disturbed each run; empty if it did not.
    pub disturbances: Vec<String>,
    /// Bytes that the volume has in use before the first run.
    pub used_bytes: u64,
    /// How cold the last run found it.
    pub cold: String,
    pub circumstances: Vec<(String, String)>,
}

/// Where everything is made.
pub struct Bench<'a> {
    pub custodian: &'a Custodian,
    /// For the run's own things: journal, mount points, images of runs.
    pub scratch: &'a Path,
    /// For the images that runs begin from.
    pub images: &'a Path,
    pub is_memory: bool,
}

impl Bench<'_> {
    /// The image of an aged volume: restored from its container, or the named one, which is only
    /// read.
    pub fn open_aged(&self, path: &Path, number: usize) -> Result<Source> {
        let (image, content_hash) = match Container::open(path) {
            Ok(container) => {
                self.check_room(container.data_bytes())?;
                let image = self.images.join(format!("{number}-aged"));
                let options =
                    RestoreOptions { threads: count_threads(None), stop: is_interrupted, ..RestoreOptions::default() };
                (image.clone(), Some(restore(path, &image, &options).map_err(explain)?.content_hash))
            }
            Err(senesce_image::Error::NotAContainer { .. }) if path.is_file() => (path.to_owned(), None),
            Err(senesce_image::Error::NotAContainer { .. }) => return Err(neither(path)),
            Err(error) => return Err(explain(error)),
        };
        drop(open_source(&image)?);
        let start = read_start(&image)?;
        let metadata = fs::metadata(&image).with_context(|| format!("cannot read {}", image.display()))?;
        let found = read_superblock(&start).ok_or_else(|| no_file_system(path))?;
        let states = vec![State::new("aged", image)];
        Ok(Source { content_hash, states, ..Source::new(path, &found, metadata.len(), metadata.blocks() * 512) })
    }

    /// Makes the unaged twin: a fresh file system of the same kind and size, with the same tree,
    /// copied in directory order.
    pub fn add_twin(&self, source: &mut Source, number: usize) -> Result<()> {
        let context = || format!("cannot make the unaged twin of {}", source.path.display());
        let aged = self.restore(source, &source.states[0], &format!("{number}-source"))?;
        let spec = self.spec(source);
        let seed = Seed(1).derive(&format!("bench unaged {number} {}", source.uuid));
        let mut twin =
            create_untaken(self.custodian, &spec, self.slot(source, &format!("{number}-twin"), Uuid::from_seed(seed)))
                .with_context(context)?;
        copy_tree(aged.root(), twin.root(), &is_interrupted).with_context(context)?;
        twin.sync()?;
        let space = |volume: &Volume| {
            rustix::fs::statvfs(volume.root())
                .with_context(|| format!("cannot read the size and free space of {}", volume.root().display()))
        };
        let (of_aged, of_twin) = (space(&aged)?, space(&twin)?);
        if of_aged.f_frsize != of_twin.f_frsize {
            source.unlike.push(format!("blocks: {} B aged, {} B unaged", of_aged.f_frsize, of_twin.f_frsize));
        }
        let (capacity_aged, capacity_twin) = (of_aged.f_blocks * of_aged.f_frsize, of_twin.f_blocks * of_twin.f_frsize);
        if capacity_aged.abs_diff(capacity_twin) * 100 > capacity_aged {
            source.unlike.push(format!("capacity: {} aged, {} unaged", Bytes(capacity_aged), Bytes(capacity_twin)));
        }
        aged.destroy()?;
        twin.unmount()?;
        let image = self.images.join(format!("{number}-unaged"));
        self.check_room(
            fs::metadata(twin.image().unwrap_or(&image))
                .map_or(0, |found| std::os::unix::fs::MetadataExt::blocks(&found) * 512),
        )?;
        twin.snapshot_to(&image, Existing::Replace, &SystemClock::start())?;
        twin.destroy()?;
        source.states.push(State::new("unaged", image));
        Ok(())
    }

    /// The volume in that state, mounted with cold caches; `state` remembers how cold, and the
    /// circumstances.
    pub fn begin(&self, source: &mut Source, state: usize, number: usize) -> Result<Volume> {
        let mut volume = match source.states[state].kept.take() {
            Some(volume) => volume,
            None => self.restore(source, &source.states[state], &format!("{number}-{}", source.states[state].role))?,
        };
        let state = &mut source.states[state];
        state.cold = volume.remount_cold()?.description;
        if state.circumstances.is_empty() {
            state.circumstances = volume.circumstances()?;
            let root = volume.root();
            let space = rustix::fs::statvfs(root)
                .with_context(|| format!("cannot read the free space of {}", root.display()))?;
            state.used_bytes = (space.f_blocks - space.f_bfree) * space.f_frsize;
        }
        Ok(volume)
    }

    /// Gives the volume back, or keeps it unmounted for the next run.
    pub fn end(&self, state: &mut State, mut volume: Volume, is_kept: bool) -> Result<()> {
        if !is_kept {
            return Ok(volume.destroy()?);
        }
        volume.unmount()?;
        state.kept = Some(volume);
        Ok(())
    }

    fn restore(&self, source: &Source, state: &State, name: &str) -> Result<Volume> {
        let slot = self.slot(source, name, source.uuid);
        let (volume, _) =
            Volume::restore(self.custodian, &self.spec(source), &slot, &state.image, &SystemClock::start())
                .with_context(|| format!("cannot restore {} ({})", source.path.display(), state.role))?;
        Ok(volume)
    }

    fn spec(&self, source: &Source) -> VolumeSpec {
        let (dir, size) = (self.scratch.to_owned(), Bytes(source.volume_bytes));
        VolumeSpec::new(Backend::Image { dir, size, memory: self.is_memory }, source.file_system)
    }

    fn slot(&self, source: &Source, name: &str, uuid: Uuid) -> Slot {
        // A command may fill the volume: space for all of it.
        Slot { name: name.to_owned(), uuid, mount_dir: self.scratch.to_owned(), needed: Bytes(source.volume_bytes) }
    }

    fn check_room(&self, needed_bytes: u64) -> Result<()> {
        check_free(&**self.custodian.host(), self.scratch.parent().unwrap_or(self.scratch), needed_bytes)
    }
}

/// Errors: the directory has less free space.
pub fn check_free(host: &dyn Host, dir: &Path, needed_bytes: u64) -> Result<()> {
    let (available, needed) = (host.free_bytes(dir)?, Bytes(needed_bytes));
    match available < needed {
        true => Err(senesce_volume::Error::NotEnoughSpace { dir: dir.to_owned(), available, needed }.into()),
        false => Ok(()),
    }
}

/// Reads a container or an image as [`Bench::open_aged`] does, and restores nothing. The source has
/// no states.
pub fn look_at(path: &Path) -> Result<Source> {
    match Container::open_until(path, is_interrupted) {
        Ok(container) => {
            let start = container.read_start().map_err(explain)?;
            let found = read_superblock(&start).ok_or_else(|| no_file_system(path))?;
            Ok(Source::new(path, &found, container.volume_bytes(), container.data_bytes()))
        }
        Err(senesce_image::Error::NotAContainer { .. }) if path.is_file() => {
            drop(open_source(path)?);
            let metadata = fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
            let found = read_superblock(&read_start(path)?).ok_or_else(|| no_file_system(path))?;
            Ok(Source::new(path, &found, metadata.len(), metadata.blocks() * 512))
        }
        Err(senesce_image::Error::NotAContainer { .. }) => Err(neither(path)),
        Err(error) => Err(explain(error)),
    }
}

fn no_file_system(path: &Path) -> anyhow::Error {
    let hint = "known are ext4, XFS and Btrfs, without a partition table";
    usage(format!("{} holds no known file system", path.display()), Some(hint))
}

fn neither(path: &Path) -> anyhow::Error {
    let hint = "keep a device's contents with `senesce image save` first";
    usage(format!("{} is neither a container nor an image", path.display()), Some(hint))
}

impl Source {
    fn new(path: &Path, found: &SuperblockIdentity, volume_bytes: u64, data_bytes: u64) -> Self {
        Self {
            path: path.to_owned(),
            name: found.file_system.to_string(),
            file_system: found.file_system,
            volume_bytes,
            data_bytes,
            content_hash: None,
            uuid: found.uuid,
            states: Vec::new(),
            unlike: Vec::new(),
        }
    }
}

impl State {
    fn new(role: &'static str, image: PathBuf) -> Self {
        Self {
            role,
            image,
            kept: None,
            figures: Vec::new(),
            details: Vec::new(),
            device_read_bytes: Vec::new(),
            disturbances: Vec::new(),
            used_bytes: 0,
            cold: String::new(),
            circumstances: Vec::new(),
        }
    }
}
