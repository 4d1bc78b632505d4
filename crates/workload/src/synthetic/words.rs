//! The words of names and texts.

/// Parts of names: short words of systems code.
pub(super) const WORDS: [&str; 96] = [
    "acl", "addr", "agent", "align", "alloc", "arena", "async", "attr", "audio", "bank", "base", "batch", "bind",
    "bitmap", "block", "bridge", "buffer", "bus", "cache", "call", "chain", "channel", "check", "class", "clock",
    "codec", "config", "control", "core", "count", "crypt", "cursor", "debug", "delay", "device", "digest", "disk",
    "driver", "entry", "event", "fault", "fetch", "filter", "flag", "frame", "gate", "group", "handle", "hash",
    "header", "host", "index", "inode", "input", "item", "key", "label", "lease", "level", "limit", "link", "list",
    "lock", "map", "mask", "memory", "meta", "mode", "mount", "node", "offset", "page", "parser", "path", "phase",
    "pool", "port", "probe", "queue", "range", "reset", "ring", "route", "sample", "scan", "sensor", "slot", "socket",
    "stack", "state", "table", "timer", "trace", "unit", "vector", "zone",
];

/// Endings of file names and their frequencies (parts per hundred).
pub(super) const ENDINGS: [(&str, u64); 6] = [(".c", 52), (".h", 38), (".txt", 4), (".S", 3), (".sh", 1), (".dts", 2)];
