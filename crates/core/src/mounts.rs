//! The fields of the kernel's lists of mounts and swap areas, as proc(5) describes them.

/// Decodes the octal escapes of a field: the kernel writes a blank as `\040`, and likewise tab,
/// newline, backslash and `#`.
pub fn unescape_field(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, tail)) = rest.split_first() {
        match tail.first_chunk().filter(|_| byte == b'\\').and_then(decode_octal) {
            Some(code) => {
                out.push(code);
                rest = &tail[3..];
            }
            None => {
                out.push(byte);
                rest = tail;
            }
        }
    }
    out
}

fn decode_octal(digits: &[u8; 3]) -> Option<u8> {
    let is_octal = matches!(digits, [b'0'..=b'3', b'0'..=b'7', b'0'..=b'7']);
    is_octal.then(|| digits.iter().fold(0, |code, digit| code << 3 | (digit - b'0')))
}

/// Whether a text of the form of `/proc/self/mountinfo` lists a mount with this source.
pub fn lists_source(mountinfo: &[u8], source: &str) -> bool {
    mountinfo
        .split(|&byte| byte == b'\n')
        .filter_map(source_field)
        .any(|field| unescape_field(field) == source.as_bytes())
}

/// The source in a line. A single dash ends a variable number of optional fields; the type and the
/// source follow it.
fn source_field(line: &[u8]) -> Option<&[u8]> {
    let mut fields = line.split(|&byte| byte == b' ').skip(6);
    fields.find(|field| *field == b"-")?;
    fields.nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_decoded_and_other_backslashes_stay() {
        assert_eq!(unescape_field(br"a\040b\011\012\134\043"), b"a b\t\n\\#");
        assert_eq!(unescape_field(br"a\134b\9\04"), br"a\b\9\04");
        // More than a byte, and a sign, are no escapes.
        assert_eq!(unescape_field(br"\777\+12\08x"), br"\777\+12\08x");
        assert_eq!(unescape_field(b"\\"), b"\\");
    }

    #[test]
    fn sources_with_escaped_bytes_are_found() {
        let table = br"22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
36 22 0:52 / /mnt/- rw,nosuid shared:7 master:1 - fuse a\040b\134c\043 rw,user_id=0
37 22 0:53 / /mnt/c rw - fuse plain rw
torn 1 2";
        for source in ["/dev/vda", r"a b\c#", "plain"] {
            assert!(lists_source(table, source), "{source}");
        }
        for source in ["a", "fuse", "rw", r"a\040b\134c\043", "", "2"] {
            assert!(!lists_source(table, source), "{source}");
        }
    }
}
