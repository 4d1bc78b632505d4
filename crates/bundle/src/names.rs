//! Names of files in a bundle.

/// The longest name, bytes. A tar header has space for 255, and the directory needs some.
const LONGEST: usize = 200;

/// Checks the name of a file in a bundle: a relative path of letters, digits and `-_.%`.
///
/// Errors: the fault, as the end of a sentence that starts with the name.
pub fn check_name(name: &str) -> Result<(), String> {
    match () {
        () if name.is_empty() => Err("is empty".to_owned()),
        () if name.len() > LONGEST => Err(format!("has more than {LONGEST} bytes")),
        () if name.starts_with('/') => Err("is an absolute path".to_owned()),
        () => name.split('/').try_for_each(check_part),
    }
}

fn check_part(part: &str) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.%".contains(&byte);
    match () {
        () if part.is_empty() => Err("has an empty part".to_owned()),
        () if part == ".." => Err("leaves the directory of the bundle".to_owned()),
        () if part.starts_with('.') => Err("has a part that starts with a dot".to_owned()),
        () if !part.bytes().all(is_plain) => Err("has a character that no name of a bundle has".to_owned()),
        () => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_relative_names_are_accepted() {
        for name in ["plan.toml", "figures/a-84mm.pdf", "logs/ext4%20x.senesce-log"] {
            check_name(name).unwrap();
        }
        for (name, fault) in [
            ("", "is empty"),
            ("/etc/passwd", "absolute"),
            ("../x", "leaves"),
            ("a/../../x", "leaves"),
            ("a//b", "empty part"),
            ("a/", "empty part"),
            ("./a", "starts with a dot"),
            (".bashrc", "starts with a dot"),
            ("a\u{1b}[2J", "character"),
            ("a b", "character"),
            ("ä", "character"),
            ("a\\b", "character"),
        ] {
            assert!(check_name(name).unwrap_err().contains(fault), "{name}");
        }
        assert!(check_name(&"x".repeat(201)).is_err());
    }
}
