//! Parser of one line of strace's output.

use senesce_core::Nanos;

/// The content of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// A whole call.
    Call(Call),
    /// The first part of a call; the rest follows in a later line.
    Unfinished(String),
    /// The rest of a call.
    Resumed(String),
    /// The process exited or was killed.
    Exited,
    /// A signal, or a message of strace itself.
    Nothing,
}

/// A parsed line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub pid: u32,
    pub time: Option<Nanos>,
    pub said: Said,
}

/// A complete call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub name: String,
    pub arguments: Vec<String>,
    /// `None` if it failed or did not return.
    pub result: Option<i64>,
    /// The text after the result: with -y, the path of a descriptor.
    pub note: String,
}

/// Parses a line. Errors: what is wrong with it.
pub(super) fn parse(text: &str) -> Result<Line, String> {
    let nothing = |pid| Line { pid, time: None, said: Said::Nothing };
    if text.trim().is_empty() || text.starts_with("strace: ") {
        return Ok(nothing(0));
    }
    let mut rest = text.trim_start();
    let mut pid = 0;
    if let Some(tail) = rest.strip_prefix("[pid") {
        let (number, tail) = tail.split_once(']').ok_or("a [pid that does not end")?;
        pid = number.trim().parse().map_err(|_| format!("{number:?} is not a process"))?;
        rest = tail.trim_start();
    } else if let Some((number, tail)) = rest.split_once(' ')
        && let Ok(number) = number.parse()
    {
        pid = number;
        rest = tail.trim_start();
    }
    let mut time = None;
    if rest.starts_with(|c: char| c.is_ascii_digit()) {
        let (stamp, tail) = rest.split_once(' ').ok_or("nothing follows the time")?;
        time = Some(parse_time(stamp).ok_or_else(|| format!("{stamp:?} is not a time"))?);
        rest = tail.trim_start();
    }
    let said = if rest.starts_with("+++ exited") || rest.starts_with("+++ killed") {
        Said::Exited
    } else if rest.starts_with("+++ ") || rest.starts_with("--- ") {
        Said::Nothing
    } else if let Some(tail) = rest.strip_prefix("<... ") {
        let (_, tail) = tail.split_once(" resumed>").ok_or("a resumed call without `resumed>`")?;
        Said::Resumed(tail.to_owned())
    } else if let Some(head) = rest.strip_suffix("<unfinished ...>") {
        name(head)?;
        Said::Unfinished(head.trim_end().to_owned())
    } else {
        Said::Call(parse_call(rest)?)
    };
    Ok(Line { pid, time, said })
}

fn parse_time(text: &str) -> Option<Nanos> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut seconds = 0u64;
    for part in whole.split(':') {
        seconds = seconds.checked_mul(60)?.checked_add(part.parse().ok()?)?;
    }
    if fraction.len() > 9 {
        return None;
    }
    let nanoseconds: u64 = if fraction.is_empty() { 0 } else { format!("{fraction:0<9}").parse().ok()? };
    seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds).map(Nanos)
}

fn name(text: &str) -> Result<&str, String> {
    let (name, _) = text.split_once('(').ok_or("no call")?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_name { Ok(name) } else { Err("no call".into()) }
}

/// Parses `name(arguments) = result note`.
pub(super) fn parse_call(text: &str) -> Result<Call, String> {
    let name = name(text)?;
    let bytes = text.as_bytes();
    let mut arguments = Vec::new();
    let (mut at, mut start, mut depth) = (name.len() + 1, name.len() + 1, 0);
    let end = loop {
        match bytes.get(at) {
            None => return Err("a call that does not end".into()),
            Some(b'"') => {
                at += 1;
                while *bytes.get(at).ok_or("a text that does not end")? != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
            // With -y, a path follows a descriptor; strace escapes a > in it.
            Some(b'<') if at > start && (bytes[at - 1].is_ascii_digit() || bytes[at - 1] == b'D') => {
                while *bytes.get(at).ok_or("a path that does not end")? != b'>' {
                    at += 1;
                }
            }
            Some(b'(' | b'[' | b'{') => depth += 1,
            Some(b')') if depth == 0 => break at,
            Some(b')' | b']' | b'}') => depth -= 1,
            Some(b',') if depth == 0 => {
                arguments.push(text.get(start..at).ok_or("broken text")?.trim().to_owned());
                start = at + 1;
            }
            Some(_) => {}
        }
        at += 1;
    };
    let last = text.get(start..end).ok_or("broken text")?.trim();
    if !last.is_empty() {
        arguments.push(last.to_owned());
    }
    let tail = text[end + 1..].trim_start().strip_prefix('=').ok_or("a call without a result")?.trim();
    let digits = tail.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'-').count();
    let (result, note) = tail.split_at(digits);
    let result = match result {
        "" => None,
        hex if hex.starts_with("0x") => i64::from_str_radix(&hex[2..], 16).ok(),
        number => Some(number.parse::<i64>().map_err(|_| format!("{number:?} is not a result"))?),
    };
    if result.is_none() && !tail.starts_with('?') && !tail.starts_with("0x") {
        return Err("a call without a result".into());
    }
    Ok(Call { name: name.to_owned(), arguments, result: result.filter(|&result| result >= 0), note: note.into() })
}

/// Returns the bytes of a quoted text. `None` if it is not quoted, or truncated.
pub(super) fn unquote(text: &str) -> Option<Vec<u8>> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while at < inner.len() {
        if inner[at] != b'\\' {
            out.push(inner[at]);
            at += 1;
            continue;
        }
        at += 1;
        match *inner.get(at)? {
            b'n' => out.push(b'\n'),
            b't' => out.push(b'\t'),
            b'r' => out.push(b'\r'),
            b'v' => out.push(0x0b),
            b'f' => out.push(0x0c),
            b'x' => {
                let digits = std::str::from_utf8(inner.get(at + 1..at + 3)?).ok()?;
                out.push(u8::from_str_radix(digits, 16).ok()?);
                at += 2;
            }
            b'0'..=b'7' => {
                let length = inner[at..].iter().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
                let digits = std::str::from_utf8(&inner[at..at + length]).ok()?;
                out.push(u8::from_str_radix(digits, 8).ok()?);
                at += length - 1;
            }
            other => out.push(other),
        }
        at += 1;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_lines_of_all_kinds() {
        let line = parse("20445 1795278026.390749 write(1</tmp/a (b)>, \"he\\\"l, o\\n\", 6) = 6").unwrap();
        assert_eq!((line.pid, line.time), (20_445, Some(Nanos(1_795_278_026_390_749_000))));
        let Said::Call(call) = line.said else { panic!() };
        assert_eq!(call.arguments, ["1</tmp/a (b)>", "\"he\\\"l, o\\n\"", "6"]);
        assert_eq!(call.result, Some(6));
        let line =
            parse("[pid  77] 10:00:01.5 openat(AT_FDCWD</x>, \"f\", O_RDONLY) = -1 ENOENT (No such file)").unwrap();
        assert_eq!((line.pid, line.time), (77, Some(Nanos(36_001_500_000_000))));
        assert!(matches!(line.said, Said::Call(Call { result: None, .. })));
        assert_eq!(parse("5 vfork( <unfinished ...>").unwrap().said, Said::Unfinished("vfork(".into()));
        assert_eq!(parse("5 <... vfork resumed>) = 6").unwrap().said, Said::Resumed(") = 6".into()));
        for exited in ["5 +++ exited with 0 +++", "5 +++ killed by SIGKILL (core dumped) +++"] {
            assert_eq!(parse(exited).unwrap().said, Said::Exited);
        }
        for nothing in [
            "5 --- SIGCHLD {si_signo=SIGCHLD} ---",
            "5 +++ superseded by execve in pid 6 +++",
            "strace: Process 9 attached",
            "",
        ] {
            assert_eq!(parse(nothing).unwrap().said, Said::Nothing);
        }
        assert!(matches!(parse("exit_group(0)   = ?").unwrap().said, Said::Call(Call { result: None, .. })));
        assert!(matches!(parse("mmap(NULL, 8) = 0x7f68").unwrap().said, Said::Call(Call { result: Some(0x7f68), .. })));
    }

    #[test]
    fn malformed_lines_are_errors() {
        for bad in [
            "hello world",
            "5 write(1, \"x",
            "5 write(1, \"x\", 1)",
            "5 write(1, 2) = x",
            "[pid 5 write() = 0",
            "5 = 6",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn unquote_decodes_escapes_and_refuses_truncated_texts() {
        assert_eq!(unquote(r#""a\"b\\\n\303\x41\0""#).unwrap(), b"a\"b\\\n\xc3A\0");
        assert_eq!(unquote(r#""cut"..."#), None);
        assert_eq!(unquote("0x7ffe"), None);
    }

    proptest::proptest! {
        #[test]
        fn no_line_causes_a_panic(text in ".{0,80}", tail in r#"[0-9a-z(<>"\\,= \[\]{}]{0,40}"#) {
            let _ = parse(&text);
            let _ = parse(&format!("5 {tail}"));
            let _ = parse(&format!("5 write({tail}"));
            let _ = unquote(&tail);
        }
    }
}
