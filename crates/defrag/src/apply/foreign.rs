//! Names of file systems whose files cannot move.

/// Returns the name of a file system that `defrag` refuses, and a hint for the user.
pub(super) fn describe_foreign(magic: u64) -> (String, Option<&'static str>) {
    const ON_SERVER: Option<&str> = Some("run the command on the server, on the file system that stores the files");
    const BELOW: Option<&str> = Some("name a directory of the file system below it, such as the upper directory");
    // `linux/magic.h` and the sources of the file systems.
    match magic {
        0x6969 => ("NFS, a network file system".to_owned(), ON_SERVER),
        0xFE53_4D42 | 0xFF53_4D42 | 0x517B => ("SMB, a network file system".to_owned(), ON_SERVER),
        0x00C3_6400 => ("Ceph, a network file system".to_owned(), ON_SERVER),
        0x0102_1997 => ("9P, a file system of another host".to_owned(), ON_SERVER),
        0x794C_7630 => ("an overlay".to_owned(), BELOW),
        0xF15F => ("eCryptfs".to_owned(), BELOW),
        0x6573_5546 => ("a FUSE file system".to_owned(), None),
        0x0102_1994 => ("tmpfs, which is in memory".to_owned(), None),
        0xF2F5_2010 => ("F2FS".to_owned(), None),
        magic => (format!("another file system (magic {magic:#x})"), None),
    }
}
