//! The circumstances of a volume, recorded with every result.

use super::lifecycle::{Place, Volume};
use crate::{Backend, MountEntry, Pace, Result};

impl Volume {
    /// Returns keys and values of the machine, the device, the mkfs command and the mount. Keys are
    /// unique, in snake case with units. Values have the words of the kernel or the tool.
    pub fn circumstances(&self) -> Result<Vec<(String, String)>> {
        let host = self.host();
        let device = self.device();
        let mut found = host.circumstances(device);
        let mut add = |key: &str, value: String| found.push((key.to_owned(), value));
        let mounts = host.mounts()?;
        add("volume", self.name.clone());
        if let Some(made) = &self.made {
            add("mkfs_command", made.command.clone());
            add("mkfs_version", made.tool_version.clone());
        }
        if !matches!(self.place, Place::Directory) {
            add("file_system", self.spec.file_system.to_string());
            add("mount_options_asked", self.spec.mount_options.clone());
        }
        if let Some(mount) = mounts.iter().rev().find(|mount| mount.point == self.root) {
            add("mount_options", mount.options.clone());
        }
        if let Ok(space) = rustix::fs::statvfs(&self.root) {
            add("block_bytes", space.f_frsize.to_string());
        }
        if let Some(device) = device {
            add("device_bytes", host.device_size(device)?.0.to_string());
        }
        match &self.place {
            Place::Image { path, device, .. } => {
                add("backend", "image".to_owned());
                add("image", path.display().to_string());
                add("loop_direct_io", device.direct_io.to_string());
                add("loop_block_bytes", device.block_size_bytes.to_string());
                let memory = matches!(self.spec.backend, Backend::Image { memory: true, .. });
                add("image_in_memory", memory.to_string());
            }
            Place::Disk { image, device, server, .. } => {
                let mut server = server.lock();
                add("backend", "virtual disk".to_owned());
                add("image", image.display().to_string());
                add("loop_direct_io", device.direct_io.to_string());
                add("loop_block_bytes", device.block_size_bytes.to_string());
                add("virtual_device", server.time()?.device);
                add("virtual_disk_server", server.notes().join(", "));
                if let Backend::Virtual { memory, device, .. } = &self.spec.backend {
                    add("image_in_memory", memory.to_string());
                    add("virtual_real_time", (device.pace == Pace::RealTime).to_string());
                }
            }
            Place::Device { .. } => add("backend", "device".to_owned()),
            Place::Directory => add("backend", "directory".to_owned()),
        }
        let below = self.image().unwrap_or(&self.root);
        if device.is_none() || self.image().is_some() {
            // The longest mount point above the path is that of its file system.
            let is_above = |mount: &&MountEntry| below.starts_with(&mount.point);
            let host_mount = mounts.iter().filter(is_above).max_by_key(|mount| mount.point.as_os_str().len());
            if let Some(mount) = host_mount {
                add("host_file_system", mount.file_system.clone());
                add("host_mount_options", mount.options.clone());
                add("host_device", mount.source.display().to_string());
            }
        }
        Ok(found)
    }
}
