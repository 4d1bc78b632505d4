//! `senesce kernels`: the kernels that runs can use, their file systems, and what is missing.

use anyhow::Result;
use schemars::JsonSchema;
use senesce_guest::{PACKAGE, find_kernel};
use senesce_volume::{FileSystemKind, Host, LinuxHost, is_guest};
use serde::Serialize;

use crate::{args::KernelsArgs, schema::Versioned};

/// The version of [`Listing`].
pub(super) const KERNELS_SCHEMA: &str = "senesce-kernels/1";

/// The JSON output of `kernels`.
#[derive(Serialize, JsonSchema)]
pub(super) struct Listing {
    /// The kernels.
    kernels: Vec<Kernel>,
    /// The programs that make file systems.
    mkfs: Vec<Mkfs>,
}

/// A kernel.
#[derive(Serialize, JsonSchema)]
struct Kernel {
    /// `host` or `uml`.
    kind: &'static str,
    /// The release of the kernel. `None` if no kernel is installed.
    release: Option<String>,
    /// The file systems of plans that the kernel mounts.
    file_systems: Vec<&'static str>,
    /// The reason why the kernel cannot be used now. `None` if it can be used.
    missing: Option<String>,
    /// Advice for the user. `None` if there is none.
    hint: Option<String>,
}

/// A program that makes file systems.
#[derive(Serialize, JsonSchema)]
struct Mkfs {
    /// The kind of file system.
    file_system: &'static str,
    /// The name of the program.
    tool: &'static str,
    /// The path of the program. `None` if it is not installed.
    path: Option<String>,
    /// The Debian package that has the program, if the program is missing.
    package: Option<&'static str>,
}

/// Prints the kernels.
pub fn kernels(args: &KernelsArgs) -> Result<()> {
    let host = LinuxHost::default();
    let listing = Listing { kernels: vec![this_machine(&host)?, uml()], mkfs: mkfs_tools(&host) };
    if args.json {
        println!("{}", serde_json::to_string_pretty(&Versioned::new(KERNELS_SCHEMA, &listing))?);
        return Ok(());
    }
    for kernel in &listing.kernels {
        let release = kernel.release.as_deref().unwrap_or("not installed");
        println!("{:<5} {release}", kernel.kind);
        if !kernel.file_systems.is_empty() {
            println!("      file systems: {}", kernel.file_systems.join(", "));
        }
        if let Some(missing) = &kernel.missing {
            println!("      {missing}");
        }
        if let Some(hint) = &kernel.hint {
            println!("      hint: {hint}");
        }
    }
    println!("mkfs");
    for mkfs in &listing.mkfs {
        let place = mkfs
            .path
            .clone()
            .unwrap_or_else(|| format!("not installed (apt-get install {})", mkfs.package.unwrap_or_default()));
        println!("      {:<10} {place}", mkfs.file_system);
    }
    Ok(())
}

fn this_machine(host: &LinuxHost) -> Result<Kernel> {
    let mut file_systems = Vec::new();
    for kind in FileSystemKind::ALL {
        if host.kernel_knows(kind)? {
            file_systems.push(kind.name());
        }
    }
    let missing = (!host.is_root()).then(|| "making and mounting file systems needs root".to_owned());
    let hint = missing.as_ref().map(|_| "run as root, or in a guest: senesce run PLAN --guest uml".to_owned());
    let kind = if is_guest() { "uml" } else { "host" };
    let release = Some(rustix::system::uname().release().to_string_lossy().into_owned());
    Ok(Kernel { kind, release, file_systems, missing, hint })
}

fn uml() -> Kernel {
    let kind = "uml";
    match find_kernel() {
        Ok(kernel) => {
            let has = |found: &FileSystemKind| kernel.modules.has(found.kernel_name());
            let file_systems = FileSystemKind::ALL.into_iter().filter(has).map(FileSystemKind::name).collect();
            Kernel { kind, release: Some(kernel.release), file_systems, missing: None, hint: None }
        }
        Err(error) => {
            let hint = error.hint().or_else(|| Some(format!("apt-get install {PACKAGE}")));
            Kernel { kind, release: None, file_systems: Vec::new(), missing: Some(error.to_string()), hint }
        }
    }
}

/// Engines of our own are made by this program.
fn mkfs_tools(host: &LinuxHost) -> Vec<Mkfs> {
    let kinds = FileSystemKind::ALL.into_iter().filter(|kind| !kind.is_engine());
    kinds
        .map(|kind| {
            let path = host.find_tool(kind.mkfs_tool()).map(|path| path.display().to_string());
            let package = path.is_none().then(|| kind.debian_package());
            Mkfs { file_system: kind.name(), tool: kind.mkfs_tool(), path, package }
        })
        .collect()
}
