//! The data that an evergreen returns to an inspection.

use anyhow::{Context, Result};
use senesce_core::{Extent, RelPath};
use senesce_evergreen::{SurveyedFile, survey};
use senesce_fsapi::FileKind;
use senesce_inspect::{Told, ToldEntry};
use senesce_probe::{
    collect::{EntryKind, Surveyed},
    map::{ExtentFlags, FreeExtent, RawExtent},
};

use super::{super::survey::figures, Place};

/// Surveys an evergreen, straight from its device. A position is a byte of the device. `goes_on` is
/// asked now and then.
pub fn collect_told(place: &Place, goes_on: &dyn Fn() -> bool) -> Result<Told> {
    let device = place.look()?;
    let capacity = device.size().0;
    let (mut entries, mut strange) = (Vec::new(), Vec::new());
    let found = survey(device, &mut |file| {
        match told(&file) {
            Some(entry) => entries.push(entry),
            None => strange.push((file.path, "its name is none".to_owned())),
        }
        !entries.len().is_multiple_of(1024) || goes_on()
    });
    let found = found.with_context(|| format!("cannot look into {place}"))?;
    let free_extent = |&(start_bytes, length_bytes): &(u64, u64)| FreeExtent { start_bytes, length_bytes };
    let free: Vec<FreeExtent> = found.free.iter().map(free_extent).collect();
    Ok(Told {
        path: format!("evergreen:{place}"),
        file_system: "evergreen".to_owned(),
        read: "straight from its device".to_owned(),
        capacity_bytes: found.area.1,
        drives: vec![capacity],
        turn_bytes: capacity,
        // Up to the limit of memory.
        inodes: (0, 0),
        areas: Vec::new(),
        is_shuffled: false,
        free,
        survey: figures(&entries, found.further_links, &strange),
        warnings: vec![
            "a block lies where its bytes lie in a leaf of the tree; the keys between them are not counted, so what one reading of a leaf \
             gives is in one piece"
                .to_owned(),
        ],
        entries,
    })
}

fn told(file: &SurveyedFile) -> Option<ToldEntry> {
    let path = if file.path.is_empty() { RelPath::root() } else { RelPath::new(&file.path[..]).ok()? };
    let placed = |extent: &Extent| RawExtent { extent: *extent, flags: ExtentFlags::NOT_ALIGNED };
    let entry = Surveyed {
        path,
        kind: if file.kind == FileKind::Directory { EntryKind::Directory } else { EntryKind::File },
        inode: file.ino,
        links: u64::from(file.links),
        is_executable: false,
        size_bytes: file.size,
        allocated_bytes: file.content_bytes,
        modified_unix_seconds: file.modified_unix_seconds,
        born_unix_seconds: None,
        extents: file.extents.iter().map(placed).collect(),
    };
    Some(ToldEntry { entry, metadata: vec![file.inode_at / 4096 * 4096], packed_bytes: file.metadata_bytes })
}
